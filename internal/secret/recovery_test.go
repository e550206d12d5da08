package secret

import (
	"regexp"
	"strings"
	"testing"
)

func TestRecoveryCodes(t *testing.T) {
	shape := regexp.MustCompile(`^([0-9a-hjkmnp-tv-z]{4}-){6}[0-9a-hjkmnp-tv-z][048cgmrw]$`)
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
	const code, older = RecoveryCode("0123-4567-89ab-cdef-ghjk-mnpq-r8"), RecoveryCode("0123-4567-89ab-cdef")
	for text, want := range map[string]RecoveryCode{
		"0123-4567-89ab-cdef-ghjk-mnpq-r8":                    code,
		"0123456789abcdefghjkmnpqr8":                          code,
		"oi23 4567 89AB CDEF GHJK MNPQ R8":                    code,
		" 0\t123-4567 89abcdef-ghjkmnpqr-8-\n":                code,
		"0123\u20114567\u201389ab\u2014cdef\u00a0ghjk mnpqr8": code, // other dashes, and a no-break space
		"0123-4567-89ab-cdef-ghjk-mnpq-r9":                    "",   // the last digit has an unused bit set
		"0123-4567-89ab-cdef-ghjk-mnpq-r":                     "",
		"0123-4567-89ab-cdef-ghjk-mnpq-r80":                   "",
		"0123-4567-89ab-cdef-ghjk-mnpq-u8":                    "",
		"0123-4567-89ab-cdef-ghjk-mnpq-r_8":                   "",
		"0123-4567-89ab-cdef":                                 older,
		"0123456789abcdef":                                    older,
		"OL23-4567-89AB-CDEF":                                 older,
		"0123-4567-89ab-cdeg":                                 "0123-4567-89ab-cdeg",
		"0123-4567-89ab-cde":                                  "",
		"0123-4567-89ab-cdefg":                                "",
		"0123-4567-89ab-cdeu":                                 "",
		"":                                                    "",
		strings.Repeat("-", 200) + string(code):               "",
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
