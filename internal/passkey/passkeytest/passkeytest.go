// Package passkeytest simulates an authenticator and the part of a browser that calls it.
// Tests use it to create passkeys and to sign with them.
package passkeytest

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"slices"
	"testing"
)

// Authenticator holds ES256 passkeys and answers requests of pages with its origin. A
// test can change the exported fields between two requests, to get responses that the
// server must refuse.
type Authenticator struct {
	Origin   string
	Verifies bool // the authenticator verifies the user, for example with a PIN
	Synced   bool // as for synced passkeys: the signature counter stays the same, and responses say that the passkey is backed up
	IDLength int  // length of the ids of new passkeys, in bytes; zero: 16
	Keys     []*Key
}

// Key is one passkey.
type Key struct {
	ID      []byte
	Domain  string
	Handle  []byte // user handle
	Counter uint32
	private *ecdsa.PrivateKey
}

// New returns an authenticator that has no passkeys and verifies the user. Its responses
// name the origin.
func New(origin string) *Authenticator { return &Authenticator{Origin: origin, Verifies: true} }

// Create creates a passkey. The argument publicKey has the options for
// navigator.credentials.create as JSON. Create returns the response in the form of
// PublicKeyCredential.toJSON.
func (a *Authenticator) Create(t testing.TB, publicKey []byte) json.RawMessage {
	t.Helper()
	var options struct {
		Challenge string
		RP        struct{ ID string }
		User      struct{ ID string }
	}
	decode(t, publicKey, &options)
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key := &Key{ID: random(cmp.Or(a.IDLength, 16)), Domain: options.RP.ID, Handle: unbase64(t, options.User.ID), private: private}
	a.Keys = append(a.Keys, key)

	data := a.authenticatorData(key, hasKey)
	data = append(data, make([]byte, 16)...) // an AAGUID of zeros, which names no model of authenticator
	data = binary.BigEndian.AppendUint16(data, uint16(len(key.ID)))
	data = append(append(data, key.ID...), key.cose(t)...)
	return encode(t, map[string]any{
		"id": base64url(key.ID), "rawId": base64url(key.ID), "type": "public-key",
		"authenticatorAttachment": "platform", "clientExtensionResults": map[string]any{},
		"response": map[string]any{
			"clientDataJSON":    base64url(a.clientData(t, "webauthn.create", options.Challenge)),
			"attestationObject": base64url(unattested(data)),
			"transports":        []string{"internal"},
		},
	})
}

// Get signs with the first passkey that the options allow. The argument publicKey has the
// options for navigator.credentials.get as JSON. Get returns the response in the form of
// PublicKeyCredential.toJSON.
func (a *Authenticator) Get(t testing.TB, publicKey []byte) json.RawMessage {
	t.Helper()
	var options struct {
		Challenge        string
		RPID             string `json:"rpId"`
		AllowCredentials []struct{ ID string }
	}
	decode(t, publicKey, &options)
	at := slices.IndexFunc(a.Keys, func(key *Key) bool {
		return key.Domain == options.RPID && (len(options.AllowCredentials) == 0 ||
			slices.ContainsFunc(options.AllowCredentials, func(c struct{ ID string }) bool { return c.ID == base64url(key.ID) }))
	})
	if at < 0 {
		t.Fatalf("the authenticator has no passkey for %s", publicKey)
	}
	return a.Sign(t, a.Keys[at], options.Challenge)
}

// Sign signs the challenge with the passkey, without checking whether any options allow
// it.
func (a *Authenticator) Sign(t testing.TB, key *Key, challenge string) json.RawMessage {
	t.Helper()
	if !a.Synced {
		key.Counter++
	}
	client, data := a.clientData(t, "webauthn.get", challenge), a.authenticatorData(key, 0)
	hash := sha256.Sum256(client)
	digest := sha256.Sum256(slices.Concat(data, hash[:]))
	signature, err := ecdsa.SignASN1(rand.Reader, key.private, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	return encode(t, map[string]any{
		"id": base64url(key.ID), "rawId": base64url(key.ID), "type": "public-key",
		"authenticatorAttachment": "platform", "clientExtensionResults": map[string]any{},
		"response": map[string]any{
			"clientDataJSON": base64url(client), "authenticatorData": base64url(data),
			"signature": base64url(signature), "userHandle": base64url(key.Handle),
		},
	})
}

// The flags of authenticator data (WebAuthn, 6.1).
const (
	userPresent    = 1 << 0
	userVerified   = 1 << 2
	backupEligible = 1 << 3
	backedUp       = 1 << 4
	hasKey         = 1 << 6
)

func (a *Authenticator) authenticatorData(key *Key, flags byte) []byte {
	flags |= userPresent
	if a.Verifies {
		flags |= userVerified
	}
	if a.Synced {
		flags |= backupEligible | backedUp
	}
	domain := sha256.Sum256([]byte(key.Domain))
	return binary.BigEndian.AppendUint32(append(domain[:], flags), key.Counter)
}

func (a *Authenticator) clientData(t testing.TB, kind, challenge string) []byte {
	return encode(t, map[string]any{"type": kind, "challenge": challenge, "origin": a.Origin, "crossOrigin": false})
}

// cose returns the public key as a COSE key in CBOR: {1: 2, 3: -7, -1: 1, -2: x, -3: y}.
// This means an elliptic-curve key for ES256 on P-256 with the coordinates x and y.
func (key *Key) cose(t testing.TB) []byte {
	point, err := key.private.PublicKey.Bytes() // the byte 4, then x and y (SEC 1)
	if err != nil {
		t.Fatal(err)
	}
	b := []byte{0xa5, 0x01, 0x02, 0x03, 0x26, 0x20, 0x01, 0x21, 0x58, 32}
	b = append(b, point[1:33]...)
	return append(append(b, 0x22, 0x58, 32), point[33:]...)
}

// unattested returns an attestation object that has no attestation, in CBOR: {"fmt":
// "none", "attStmt": {}, "authData": data}.
func unattested(data []byte) []byte {
	b := []byte("\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x59")
	return append(binary.BigEndian.AppendUint16(b, uint16(len(data))), data...)
}

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails: it ends the process instead
	return b
}

func base64url(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func unbase64(t testing.TB, text string) []byte {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func decode(t testing.TB, document []byte, value any) {
	t.Helper()
	if err := json.Unmarshal(document, value); err != nil {
		t.Fatalf("%v in %s", err, document)
	}
}

func encode(t testing.TB, value any) []byte {
	t.Helper()
	document, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return document
}
