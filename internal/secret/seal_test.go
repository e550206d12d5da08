package secret

import (
	"bytes"
	"encoding/hex"
	"errors"
	"testing"
)

// knownKey is the key with the bytes 00, 01, 02 and so on to 1f.
var knownKey = func() []byte {
	key := make([]byte, 32)
	for i := range key {
		key[i] = byte(i)
	}
	return key
}()

func TestKeysOpenWhatTheySealed(t *testing.T) {
	old, current := NewKey(), NewKey()
	sealed := NewKeys(old).Seal("cursor", []byte("plain"), []byte("acme"))
	rotated := NewKeys(current, old)
	for name, keys := range map[string]*Keys{"same": NewKeys(old), "rotated": rotated} {
		if got, err := keys.Open("cursor", sealed, []byte("acme")); err != nil || string(got) != "plain" {
			t.Errorf("%s key: Open = %q, %v", name, got, err)
		}
	}
	fresh := rotated.Seal("cursor", []byte("plain"), nil)
	if _, err := NewKeys(old).Open("cursor", fresh, nil); !errors.Is(err, ErrSealed) {
		t.Errorf("sealed under the previous key after a rotation: %v", err)
	}
}

func TestRenewedTextsNeedNoPreviousKey(t *testing.T) {
	old, current := NewKey(), NewKey()
	keys := NewKeys(current, old)
	sealed := NewKeys(old).Seal("totp", []byte("plain"), []byte("acme"))
	renewed := keys.Renew("totp", sealed, []byte("acme"))
	if got, err := NewKeys(current).Open("totp", renewed, []byte("acme")); err != nil || string(got) != "plain" {
		t.Errorf("Open = %q, %v", got, err)
	}
	if got := keys.Renew("totp", renewed, []byte("acme")); got != renewed {
		t.Errorf("what is under the current key was sealed anew: %s", got)
	}
	if got := keys.Renew("totp", sealed, []byte("globex")); got != sealed {
		t.Errorf("what is not ours was sealed anew: %s", got)
	}
}

func TestKeysRefuseForeignTexts(t *testing.T) {
	keys := NewKeys(knownKey)
	sealed := keys.Seal("cursor", []byte("plain"), []byte("acme"))
	for _, test := range []struct {
		name, purpose, sealed, associated string
		keys                              *Keys
	}{
		{"other purpose", "device", sealed, "acme", keys},
		{"other associated data", "cursor", sealed, "globex", keys},
		{"other key", "cursor", sealed, "acme", NewKeys(NewKey())},
		{"cut", "cursor", sealed[:len(sealed)-4], "acme", keys},
		{"line end", "cursor", sealed + "\n", "acme", keys},
		{"not base64url", "cursor", "+" + sealed[1:], "acme", keys},
		{"too short", "cursor", "AAAA", "acme", keys},
		{"empty", "cursor", "", "acme", keys},
	} {
		if got, err := test.keys.Open(test.purpose, test.sealed, []byte(test.associated)); !errors.Is(err, ErrSealed) || got != nil {
			t.Errorf("%s: Open = %q, %v; want ErrSealed", test.name, got, err)
		}
	}
}

// The expected values were computed with other implementations of HKDF (RFC 5869), HMAC
// (RFC 2104) and SHA-256 (FIPS 180-4).
func TestDerivedValuesStayReadableAcrossReleases(t *testing.T) {
	for _, test := range []struct {
		name string
		got  []byte
		want string
	}{
		{"MAC", NewKeys(knownKey).MAC("attempts", "acme", "ada@example.com"), "f25293856c289fe6e0b0c889a79a300cada381ecb6cbd5849d8dac59bd1ec9bd"},
		{"Digest", Digest([]byte("ab"), nil, []byte("c")), "9c24d27974bb3b173e762a999df89274e93d1e37cba113b996aa47139a011d4a"},
	} {
		if got := hex.EncodeToString(test.got); got != test.want {
			t.Errorf("%s = %s, want %s", test.name, got, test.want)
		}
	}
	if got, want := ETag([]byte("{}")), `"RBNvo1WzZ4oRRq0W9-hkng"`; got != want {
		t.Errorf("ETag = %s, want %s", got, want)
	}
}

func TestDifferentPartsHaveDifferentDigests(t *testing.T) {
	keys := NewKeys(knownKey)
	if bytes.Equal(keys.MAC("p", "ab", "c"), keys.MAC("p", "a", "bc")) {
		t.Error("MAC of (ab, c) and of (a, bc) are equal")
	}
	if bytes.Equal(keys.MAC("p", "a"), keys.MAC("q", "a")) {
		t.Error("MACs for two purposes are equal")
	}
	if bytes.Equal(Digest([]byte("ab"), []byte("c")), Digest([]byte("a"), []byte("bc"))) {
		t.Error("Digest of (ab, c) and of (a, bc) are equal")
	}
}

func FuzzOpen(f *testing.F) {
	keys := NewKeys(knownKey)
	f.Add(keys.Seal("cursor", []byte("plain"), []byte("acme")), []byte("plain"))
	f.Add(keys.Seal("cursor", nil, []byte("acme")), []byte{})
	f.Add("", []byte("\x00"))
	f.Fuzz(func(t *testing.T, sealed string, plaintext []byte) {
		if opened, err := keys.Open("cursor", sealed, []byte("globex")); err == nil {
			t.Errorf("opened %q for other associated data: %q", sealed, opened)
		}
		opened, err := keys.Open("cursor", keys.Seal("cursor", plaintext, []byte("acme")), []byte("acme"))
		if err != nil || !bytes.Equal(opened, plaintext) {
			t.Errorf("round trip of %q: %q, %v", plaintext, opened, err)
		}
	})
}
