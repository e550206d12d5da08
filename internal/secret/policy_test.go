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
		{"e\u0301e\u0301 fourteenth", "length"}, // composed before it is counted
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
	} {
		code, detail := CheckPassword(test.password, rolecall.DefaultPasswordMin, "ada@example.com", "Ada Lovelace, nee Byron", "acme", "")
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
		if code, _ := CheckPassword(password, rolecall.DefaultPasswordMin); code != "common" {
			t.Errorf("CheckPassword(%q) = %q", password, code)
		}
		refused++
	}
	if refused < 80 {
		t.Errorf("the list holds %d long passwords: was it cut?", refused)
	}
}

func TestCommonListIsSortedAndFolded(t *testing.T) {
	list := slices.Sorted(func(yield func(string) bool) {
		for password := range commonPasswords() {
			if !yield(password) {
				return
			}
		}
	})
	if n := len(list); n < 580 || strings.Count(commonText, "\n")-strings.Count(commonText, "#") != n {
		t.Errorf("%d entries of %d lines: is one twice?", n, strings.Count(commonText, "\n"))
	}
	if text := "\n" + strings.Join(list, "\n") + "\n"; !strings.HasSuffix(commonText, text) {
		t.Error("common.txt is not sorted")
	}
}

func TestRandomPasswordIsTaken(t *testing.T) {
	shape := regexp.MustCompile(`^[A-Z2-7]{7}-[A-Z2-7]{7}-[A-Z2-7]{7}-[A-Z2-7]{5}$`)
	for range 100 {
		password := RandomPassword()
		if code, detail := CheckPassword(password, rolecall.DefaultPasswordMin); code != "" || !shape.MatchString(password) {
			t.Fatalf("RandomPassword() = %q: %s %s", password, code, detail)
		}
	}
}
