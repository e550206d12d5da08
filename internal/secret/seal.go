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

// ErrSealed is the error for a text that cannot be decrypted: none of the keys has sealed
// it for this purpose and with this associated data.
var ErrSealed = errors.New("not sealed here")

// Keys are the secrets of an instance. The current one seals and signs. Previous keys
// only open and verify.
type Keys struct{ secrets [][]byte }

// NewKeys returns the keys of secrets. Each has at least 32 random bytes.
func NewKeys(current []byte, previous ...[]byte) *Keys {
	k := &Keys{}
	for _, secret := range append([][]byte{current}, previous...) {
		k.secrets = append(k.secrets, slices.Clone(secret))
	}
	return k
}

// Fingerprints returns a fingerprint of each key, the current key first. A fingerprint
// identifies the key and does not reveal it.
func (k *Keys) Fingerprints() [][]byte {
	var all [][]byte
	for _, secret := range k.secrets {
		all = append(all, NewKeys(secret).MAC("key fingerprint")[:16])
	}
	return all
}

// Seal encrypts and authenticates the plaintext and returns it as base64url. Open needs the
// same purpose and the same associated data.
func (k *Keys) Seal(purpose string, plaintext, associated []byte) string {
	return text.EncodeToString(seal(derive(k.secrets[0], purpose), plaintext, associated))
}

// Open returns the plaintext of a text that the current or a previous key has sealed, or
// ErrSealed.
func (k *Keys) Open(purpose, sealed string, associated []byte) ([]byte, error) {
	raw, err := text.DecodeString(sealed)
	if err != nil || text.EncodedLen(len(raw)) != len(sealed) { // the decoder skips line ends
		return nil, ErrSealed
	}
	for _, secret := range k.secrets {
		if plaintext, err := open(derive(secret, purpose), raw, associated); err == nil {
			return plaintext, nil
		}
	}
	return nil, ErrSealed
}

// Renew seals the text again if a previous key has sealed it, so that the previous key
// can be removed. It returns the text unchanged if the current key has sealed it, or if
// no key can open it.
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

// MAC returns the HMAC-SHA256 of the parts under the current key for the purpose.
// Different parts never give the same input to the hash, because each part is preceded by
// its length.
func (k *Keys) MAC(purpose string, parts ...string) []byte {
	mac := hmac.New(sha256.New, derive(k.secrets[0], purpose))
	for _, part := range parts {
		mac.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		mac.Write([]byte(part))
	}
	return mac.Sum(nil)
}

// Digest returns the SHA-256 of the parts. Different parts never give the same input: each
// part is preceded by its length.
func Digest(parts ...[]byte) []byte {
	sum := sha256.New()
	for _, part := range parts {
		sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		sum.Write(part)
	}
	return sum.Sum(nil)
}

// ETag returns the strong entity tag of the representation, quotes included:
// half of its SHA-256 in base64url.
func ETag(representation []byte) string {
	sum := sha256.Sum256(representation)
	tag := make([]byte, 0, 24)
	tag = append(tag, '"')
	tag = text.AppendEncode(tag, sum[:16])
	return string(append(tag, '"'))
}

// derive returns the key of a secret for one purpose, by HKDF-SHA256 (RFC 5869).
func derive(secret []byte, purpose string) []byte {
	key, err := hkdf.Key(sha256.New, secret, nil, "rolecall "+purpose, chacha20poly1305.KeySize)
	if err != nil {
		panic(err) // HKDF fails only for a longer key than it can derive
	}
	return key
}

// newAEAD returns XChaCha20-Poly1305. Its nonce is long enough to be random for any number
// of texts.
func newAEAD(key []byte) cipher.AEAD {
	aead, err := chacha20poly1305.NewX(key)
	if err != nil {
		panic(err) // fails only for a key that does not have 32 bytes
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
