package secret

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"slices"

	"golang.org/x/crypto/chacha20poly1305"
)

// ErrSealed is the error for a text that cannot be decrypted. No key of the instance has
// encrypted this text for this purpose and with this associated data.
var ErrSealed = errors.New("not sealed here")

// Keys are the secret keys of an instance. New texts are encrypted and authenticated with
// the current key. Texts of previous keys can still be decrypted and verified.
type Keys struct{ secrets [][]byte }

// NewKeys returns Keys with the current and the previous keys. Each key must have at
// least 32 random bytes.
func NewKeys(current []byte, previous ...[]byte) *Keys {
	k := &Keys{}
	for _, secret := range append([][]byte{current}, previous...) {
		k.secrets = append(k.secrets, slices.Clone(secret))
	}
	return k
}

// Fingerprints returns a fingerprint of each key, the current key first. A fingerprint
// identifies a key without revealing it.
func (k *Keys) Fingerprints() [][]byte {
	var all [][]byte
	for _, secret := range k.secrets {
		all = append(all, NewKeys(secret).MAC("key fingerprint")[:16])
	}
	return all
}

// Seal encrypts and authenticates the plaintext with the current key, and returns the
// result as base64url. To decrypt it, call Open with the same purpose and the same
// associated data.
func (k *Keys) Seal(purpose string, plaintext, associated []byte) string {
	return text.EncodeToString(seal(derive(k.secrets[0], purpose), plaintext, associated))
}

// Open decrypts a text that Seal has returned. It tries the current key and the previous
// keys. It returns ErrSealed if no key can decrypt the text.
func (k *Keys) Open(purpose, sealed string, associated []byte) ([]byte, error) {
	raw, err := text.DecodeString(sealed)
	if err != nil || text.EncodedLen(len(raw)) != len(sealed) { // the decoder ignores line ends, so the length is compared
		return nil, ErrSealed
	}
	for _, secret := range k.secrets {
		if plaintext, err := open(derive(secret, purpose), raw, associated); err == nil {
			return plaintext, nil
		}
	}
	return nil, ErrSealed
}

// Renew decrypts a text of a previous key and encrypts it again with the current key, so
// that the previous key can be removed later. It returns the text unchanged if the
// current key has encrypted it, or if no key can decrypt it.
func (k *Keys) Renew(purpose, sealed string, associated []byte) string {
	if _, err := NewKeys(k.secrets[0]).Open(purpose, sealed, associated); err == nil {
		return sealed
	}
	plaintext, err := k.Open(purpose, sealed, associated)
	if err != nil {
		return sealed
	}
	return k.Seal(purpose, plaintext, associated)
}

// MAC returns the HMAC-SHA256 of the parts with the current key. The result is different
// for each purpose. Each part is preceded by its length, so different parts never give
// the same input to the hash.
func (k *Keys) MAC(purpose string, parts ...string) []byte {
	mac := hmac.New(sha256.New, derive(k.secrets[0], purpose))
	for _, part := range parts {
		mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		mac.Write([]byte(part))
	}
	return mac.Sum(nil)
}

// Digest returns the SHA-256 of the parts. Each part is preceded by its length, so
// different parts never give the same input to the hash.
func Digest(parts ...[]byte) []byte {
	sum := sha256.New()
	for _, part := range parts {
		sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		sum.Write(part)
	}
	return sum.Sum(nil)
}

// ETag returns a strong entity tag for the representation, including the quotation marks.
// The tag is the first half of the SHA-256 of the representation in base64url.
func ETag(representation []byte) string {
	sum := sha256.Sum256(representation)
	tag := make([]byte, 0, 24)
	tag = append(tag, '"')
	tag = text.AppendEncode(tag, sum[:16])
	return string(append(tag, '"'))
}

// derive returns the key for one purpose. It derives the key from the secret with
// HKDF-SHA256 (RFC 5869).
func derive(secret []byte, purpose string) []byte {
	key, err := hkdf.Key(sha256.New, secret, nil, "rolecall "+purpose, chacha20poly1305.KeySize)
	if err != nil {
		panic(err) // HKDF fails only if the requested key is too long
	}
	return key
}

// newAEAD returns the cipher XChaCha20-Poly1305 with the key. Its nonces have 192 bits,
// so random nonces do not repeat.
func newAEAD(key []byte) cipher.AEAD {
	aead, err := chacha20poly1305.NewX(key)
	if err != nil {
		panic(err) // NewX fails only if the key does not have 32 bytes
	}
	return aead
}

func seal(key, plaintext, associated []byte) []byte {
	nonce := make([]byte, chacha20poly1305.NonceSizeX, chacha20poly1305.NonceSizeX+len(plaintext)+chacha20poly1305.Overhead)
	_, _ = rand.Read(nonce) // never fails: it ends the process instead
	return newAEAD(key).Seal(nonce, nonce, plaintext, associated)
}

func open(key, sealed, associated []byte) ([]byte, error) {
	if len(sealed) < chacha20poly1305.NonceSizeX {
		return nil, ErrSealed
	}
	nonce, ciphertext := sealed[:chacha20poly1305.NonceSizeX], sealed[chacha20poly1305.NonceSizeX:]
	plaintext, err := newAEAD(key).Open(nil, nonce, ciphertext, associated)
	if err != nil {
		return nil, ErrSealed
	}
	return plaintext, nil
}
