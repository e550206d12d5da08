package secret

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rolecall/rolecall"
)

func TestCheckPassword(t *testing.T) {
	for _, test := range []struct{ password, code string }{
		{"correct horse battery staple", ""},
		{"Mein Hund frisst Fisch", ""},
		{"täglich drei Äpfel", ""},
		{"пароль из четырёх слов", ""},
		{"8Zk3vXq0LmWt5RbY", ""},
		{strings.Repeat("🐎🔋📎", 4) + "staple", ""},
		{"", "length"},
		{"fourteen chars", "length"},
		{"e\u0301e\u0301 fourteenth", "length"}, // normalized to NFC before the code points are counted
		{strings.Repeat("x1y2z3w4 ", 114), "length"},
		{"fifteen chars \xff", "encoding"},
		{"passwordpassword", "common"},
		{"PasswordPassword1!", "common"},
		{"aaaaaaaaaaaaaaaaaaaa", "common"},
		{"abcabcabcabcabcabc", "common"},
		{"123456789012345", "common"},
		{"987654321098765", "common"},
		{"qwertyuiop12345", "common"},
		{"1q2w3e4r5t6y7u8i", "common"},
		{"letmein123456789", "common"},
		{"manchesterunited", "common"},
		{"Manchester since 1878", ""},
		{"ada@example.com", "personal"},
		{"ADA@EXAMPLE.COM", "personal"},
		{"Ada Lovelace, née Byron", "personal"},
		{"rolecallrolecall", "personal"},
		{"RoleCall-2026-rolecall", "personal"},
		{"Rolecall answers at noon", ""},
	} {
		code, detail := CheckPassword(test.password, rolecall.DefaultPasswordMin, Words{}, "ada@example.com", "Ada Lovelace, nee Byron", "acme", "")
		if code != test.code || (code == "") != (detail == "") {
			t.Errorf("CheckPassword(%q) = %q, %q; want %q", test.password, code, detail, test.code)
		}
	}
}

func TestEveryLongCommonPasswordIsRefused(t *testing.T) {
	refused := 0
	for password := range commonPasswords() {
		if utf8.RuneCountInString(password) < rolecall.DefaultPasswordMin {
			continue
		}
		if code, _ := CheckPassword(password, rolecall.DefaultPasswordMin, Words{}); code != "common" {
			t.Errorf("CheckPassword(%q) = %q", password, code)
		}
		refused++
	}
	if refused < 80 {
		t.Errorf("the list holds %d long passwords: was it cut?", refused)
	}
}

func TestEveryFrequentPasswordIsRefused(t *testing.T) {
	counted := 0
	for _, password := range frequentPasswords() {
		for _, spelled := range []string{password, strings.ToUpper(password)} {
			if code, _ := CheckPassword(spelled, rolecall.PasswordLeast, Words{}); code != "common" {
				t.Errorf("CheckPassword(%q) = %q", spelled, code)
			}
		}
		if utf8.RuneCountInString(password) >= rolecall.PasswordLeast {
			counted++
		}
	}
	if counted < 3000 {
		t.Errorf("%d passwords are long enough for a tenant to allow them; want 3000 (ASVS 5.0, 6.2.4)", counted)
	}
}

func TestFrequentPasswordsMayBePartsOfAPassphrase(t *testing.T) {
	for _, password := range []string{"cowboys1 blackbir vineyard", "mustangs vanilla marathon kettle"} {
		if code, detail := CheckPassword(password, rolecall.DefaultPasswordMin, Words{}); code != "" {
			t.Errorf("CheckPassword(%q) = %q, %q", password, code, detail)
		}
	}
}

func TestListsAreSortedAndFolded(t *testing.T) {
	for name, list := range map[string]string{"common.txt": commonText, "frequent.txt": frequentText} {
		passwords := entries(list)
		if len(passwords) < 580 || !slices.IsSorted(passwords) || len(slices.Compact(slices.Clone(passwords))) != len(passwords) {
			t.Errorf("%s: %d entries, not sorted, or not each once", name, len(passwords))
		}
		for _, password := range passwords {
			if rolecall.Fold(password) != password {
				t.Errorf("%s: %q is not folded", name, password)
			}
		}
	}
}

func TestRandomPasswordsAreAccepted(t *testing.T) {
	shape := regexp.MustCompile(`^[A-Z2-7]{7}-[A-Z2-7]{7}-[A-Z2-7]{7}-[A-Z2-7]{5}$`)
	for range 100 {
		password := RandomPassword()
		if code, detail := CheckPassword(password, rolecall.DefaultPasswordMin, Words{}); code != "" || !shape.MatchString(password) {
			t.Fatalf("RandomPassword() = %q: %s %s", password, code, detail)
		}
	}
}
