package secret

import (
	"regexp"
	"strings"
	"testing"
)

func TestRecoveryCodes(t *testing.T) {
	shape := regexp.MustCompile(`^([0-9a-hjkmnp-tv-z]{4}-){3}[0-9a-hjkmnp-tv-z]{4}$`)
	seen := map[RecoveryCode]bool{}
	for _, code := range NewRecoveryCodes() {
		if !shape.MatchString(string(code)) || seen[code] {
			t.Errorf("%s: malformed, or there twice", code)
		}
		seen[code] = true
		if parsed, ok := ParseRecoveryCode(string(code)); !ok || parsed != code {
			t.Errorf("ParseRecoveryCode(%s) = %s, %v", code, parsed, ok)
		}
	}
	if len(seen) != 10 {
		t.Errorf("%d codes, want ten", len(seen))
	}
}

func TestRecoveryCodesAreReadAsPeopleWriteThem(t *testing.T) {
	const code = RecoveryCode("0123-4567-89ab-cdef")
	for text, want := range map[string]RecoveryCode{
		"0123-4567-89ab-cdef":                   code,
		"0123456789abcdef":                      code,
		"oi23 4567 89AB CDEF":                   code,
		"OL23-4567-89AB-CDEF":                   code,
		" 0 123-4567 89abcdef-":                 code,
		"0123-4567-89ab-cdeg":                   "0123-4567-89ab-cdeg",
		"0123-4567-89ab-cde":                    "",
		"0123-4567-89ab-cdefg":                  "",
		"0123-4567-89ab-cde\n":                  "",
		"0123-4567-89ab-cdef\n":                 "",
		"0123-4567-89ab-cdeu":                   "",
		"":                                      "",
		strings.Repeat("-", 100) + string(code): "",
	} {
		if got, ok := ParseRecoveryCode(text); got != want || ok != (want != "") {
			t.Errorf("ParseRecoveryCode(%q) = %s, %v; want %s", text, got, ok, want)
		}
	}
	if other := RecoveryCode("0123-4567-89ab-cdeg"); string(code.Hash()) == string(other.Hash()) || len(code.Hash()) != 32 {
		t.Error("hashes do not tell codes apart")
	}
}

func FuzzParseRecoveryCode(f *testing.F) {
	for _, text := range []string{"0123-4567-89ab-cdef", "OL23 4567 89AB CDEF", "", "-"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		code, ok := ParseRecoveryCode(text)
		if !ok {
			return
		}
		if again, ok := ParseRecoveryCode(string(code)); !ok || again != code {
			t.Errorf("ParseRecoveryCode(%q) = %s, which is read as %s, %v", text, code, again, ok)
		}
	})
}
