package secret

import (
	"encoding/hex"
	"strings"
	"testing"
)

const (
	knownAPIToken    = "rc_" + string(knownToken) + "0Syauu"
	knownOperatorKey = "rco_" + string(knownToken) + "41IIi4"
)

func TestNewTokensOfProgramsParse(t *testing.T) {
	seen := map[Token]bool{}
	for range 1000 {
		for _, kind := range []struct {
			make         func() Token
			parse, other func(string) (Token, bool)
		}{{NewAPIToken, ParseAPIToken, ParseOperatorKey}, {NewOperatorKey, ParseOperatorKey, ParseAPIToken}} {
			token := kind.make()
			if parsed, ok := kind.parse(string(token)); !ok || parsed != token || seen[token] {
				t.Fatalf("%q parses as %q, %v; seen before: %v", token, parsed, ok, seen[token])
			}
			if _, ok := kind.other(string(token)); ok {
				t.Fatalf("%q passes for the other kind", token)
			}
			seen[token] = true
		}
	}
}

// The expected hash was computed with another implementation of SHA-256 (FIPS 180-4).
func TestAPITokenHashIncludesPrefixAndChecksum(t *testing.T) {
	const want = "97d962492d38c8404015b3c1841f5e052da922d7ef6b6624fb540f0999b468f0"
	if got := hex.EncodeToString(Token(knownAPIToken).Hash()); got != want {
		t.Errorf("Hash() = %s, want %s", got, want)
	}
}

// apiTokenSeeds contains texts for ParseAPIToken. The value is true if the text is valid.
// The checksums were computed with another implementation of CRC-32.
var apiTokenSeeds = map[string]bool{
	knownAPIToken: true,
	"rc_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAf400m7I9": true,  // the checksum has leading zeros
	"rc_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAf4m7I9":   false, // leading zeros of the checksum are required
	knownOperatorKey:                      false,
	"":                                    false,
	"rc_":                                 false,
	"rc_000000":                           false,
	string(knownToken):                    false,
	"rc_" + string(knownToken):            false,
	"rc_" + string(knownToken) + "0Syauv": false,
	"rc_" + string(knownToken) + "0syauu": false,
	"rc_" + string(knownToken) + "41IIi4": false, // the checksum of the operator key
	"Rc_" + string(knownToken) + "0Syauu": false,
	" " + knownAPIToken:                   false,
	knownAPIToken + "\n":                  false,
	"rc_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAB1oStQb":     false, // unused bits at the end are set; the checksum fits this text
	"rc_" + strings.Repeat(string(knownToken), 200) + "0Syauu": false,
}

func TestParseAPIToken(t *testing.T) {
	for text, want := range apiTokenSeeds {
		if _, ok := ParseAPIToken(text); ok != want {
			t.Errorf("ParseAPIToken(%q) = %v, want %v", text, ok, want)
		}
	}
	for i := range knownAPIToken {
		damaged := []byte(knownAPIToken)
		damaged[i] ^= 1
		if _, ok := ParseAPIToken(string(damaged)); ok {
			t.Errorf("took a token with character %d changed", i)
		}
	}
	if _, ok := ParseOperatorKey(knownOperatorKey); !ok {
		t.Error("ParseOperatorKey refuses a key")
	}
}

func FuzzParseAPIToken(f *testing.F) {
	for text := range apiTokenSeeds {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for prefix, parse := range map[string]func(string) (Token, bool){"rc_": ParseAPIToken, "rco_": ParseOperatorKey} {
			token, ok := parse(text)
			if !ok {
				continue
			}
			random, prefixed := strings.CutPrefix(text, prefix)
			if _, is := ParseToken(random[:min(43, len(random))]); string(token) != text || !prefixed || !is || len(random) != 49 {
				t.Errorf("%q passes for %s and is none", text, prefix)
			}
		}
	})
}
