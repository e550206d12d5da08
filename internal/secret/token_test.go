package secret

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"testing"
)

const knownToken Token = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"

func TestNewTokenParses(t *testing.T) {
	seen := map[Token]bool{}
	for range 1000 {
		token := NewToken()
		if parsed, ok := ParseToken(string(token)); !ok || parsed != token || seen[token] {
			t.Fatalf("ParseToken(%q) = %q, %v; seen before: %v", token, parsed, ok, seen[token])
		}
		seen[token] = true
	}
}

func TestATokenIsForTheHeaderOnlyWithTheAddedPrefix(t *testing.T) {
	token := bearerPrefix + knownToken[:len(knownToken)-len(bearerPrefix)] // as NewToken can return by chance
	if token.IsForHeader() || token.NextSession().IsForHeader() {
		t.Errorf("%q is for the header", token)
	}
	if !token.ForHeader().IsForHeader() || !token.ForHeader().NextSession().IsForHeader() {
		t.Errorf("%q is not for the header", token.ForHeader())
	}
}

func TestTokenHashIsWhatIsStored(t *testing.T) {
	const want = "ea866a757e4c38babfa8127cbe9a409d3e1f93a00ff1488ff735fcf917afffd0"
	if got := hex.EncodeToString(knownToken.Hash()); got != want {
		t.Errorf("Hash() = %s, want %s", got, want)
	}
}

func TestOnlyTheBearerReadsTheSuccessor(t *testing.T) {
	token, successor := NewToken(), NewToken()
	sealed := token.Seal(successor)
	if got, err := token.Open(sealed); err != nil || got != successor {
		t.Errorf("Open = %q, %v; want %q", got, err, successor)
	}
	if got, err := NewToken().Open(sealed); !errors.Is(err, ErrSealed) || got != "" {
		t.Errorf("Open with another token = %q, %v; want ErrSealed", got, err)
	}
	for i := range sealed {
		damaged := append([]byte(nil), sealed...)
		damaged[i] ^= 1
		if _, err := token.Open(damaged); !errors.Is(err, ErrSealed) {
			t.Fatalf("Open with byte %d changed: %v, want ErrSealed", i, err)
		}
	}
}

// tokenSeeds contains texts for ParseToken. The value is true if the text is valid.
var tokenSeeds = map[string]bool{
	string(knownToken): true,
	"":                 false,
	"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh9":  false, // unused bits at the end are set
	"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh":   false,
	"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=": false,
	"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwd\nh8": false,
	"+AECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8":  false,
	"/AECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8":  false,
}

func TestParseToken(t *testing.T) {
	for text, want := range tokenSeeds {
		if _, ok := ParseToken(text); ok != want {
			t.Errorf("ParseToken(%q) = %v, want %v", text, ok, want)
		}
	}
}

func FuzzParseToken(f *testing.F) {
	for text := range tokenSeeds {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		token, ok := ParseToken(text)
		if !ok {
			return
		}
		raw, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil || len(raw) != 32 || base64.RawURLEncoding.EncodeToString(raw) != string(token) {
			t.Errorf("ParseToken(%q) took what is not the one form of 32 bytes", text)
		}
	})
}
