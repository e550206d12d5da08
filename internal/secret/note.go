package secret

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// NoteSigner returns a signer of notes with an Ed25519 key, and the text of the public key that verifies
// its signatures. The seed has 32 random bytes. The name is part of both keys. It is not empty, and has
// no spaces and no plus signs.
func NoteSigner(name string, seed []byte) (signer note.Signer, verifierKey string, err error) {
	if len(seed) != ed25519.SeedSize {
		return nil, "", fmt.Errorf("secret: a signing key has %d bytes, not %d", len(seed), ed25519.SeedSize)
	}
	public := ed25519.NewKeyFromSeed(seed).Public().(ed25519.PublicKey)
	if verifierKey, err = note.NewEd25519VerifierKey(name, public); err != nil {
		return nil, "", err
	}
	// The parts of both texts are the name, a hash, and the kind of key with its bytes.
	hash, _, _ := strings.Cut(strings.TrimPrefix(verifierKey, name+"+"), "+")
	const kind = "\x01" // Ed25519
	signer, err = note.NewSigner("PRIVATE+KEY+" + name + "+" + hash + "+" + base64.StdEncoding.EncodeToString(append([]byte(kind), seed...)))
	return signer, verifierKey, err
}
