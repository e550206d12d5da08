package secret

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/rolecall/rolecall"
)

func words(t testing.TB, lines ...string) Words {
	t.Helper()
	w, err := ReadWords(strings.NewReader(strings.Join(lines, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func TestKnownWordsAreRemovedFromAPassword(t *testing.T) {
	forbidden := words(t, "Rolecall", "Zürich", "tiny words", "ab")
	for password, code := range map[string]string{
		"lovelace":                          "personal",
		"Lovelace-Lovelace-Lovelace":        "personal",
		"xAda!Lovelace?Acmey":               "personal", // parts of the address, the name and the tenant
		"ROLECALL-rolecall-1":               "personal",
		"zurich1zürich2ZÜRICH3":             "personal",
		"tiny words 123":                    "personal",
		"analytical.engine engines":         "personal",
		"hôspital acme 12":                  "personal", // the tenant's display name
		"mail-example-mail":                 "personal", // the domain
		"ab.ab.ab.ab.ab.ab":                 "common",   // too short to be words
		"Lovelace 12345678":                 "common",   // a word of the name and a common password
		"Lovelace 3rKq9 vT2":                "",
		"acme is where I drink coffee":      "",
		"rolecall-zürich-Kq93vT2w":          "",
		"lady augusta byron wrote programs": "",
	} {
		got, detail := CheckPassword(password, rolecall.PasswordLeast, forbidden, "Ada Lovelace", "analytical.engine@mail.example.com", "acme", "Hôspital Acme")
		if got != code || (code == "personal") != strings.Contains(detail, "at least 8 characters that are not part of") {
			t.Errorf("CheckPassword(%q) = %q, %q; want %q", password, got, detail, code)
		}
	}
}

func TestForbiddenWordsAreOneOnALine(t *testing.T) {
	w := words(t, "\uFEFFFirst", "", "  Second word\t", "ab", "Ünder", "first", "last\r")
	want := map[string]bool{"first": true, "second word": true, "under": true, "last": true}
	if len(w.set) != len(want) || w.longest != 11 {
		t.Errorf("%v, the longest of %d", w.set, w.longest)
	}
	for word := range want {
		if !w.set[word] {
			t.Errorf("%q is not among %v", word, w.set)
		}
	}
	for _, bad := range []string{"fine\n\xff\xff\xff", "fine\n" + strings.Repeat("x", 201)} {
		if _, err := ReadWords(strings.NewReader(bad)); err == nil || !strings.Contains(err.Error(), "line 2 ") {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
	if _, err := ReadWords(strings.NewReader(strings.Repeat("x", 100_000))); err == nil {
		t.Error("an endless line is read")
	}
}

// leftByTrying computes the result of fewestLeft in a simpler and slower way: it tries
// every choice of words to remove.
func leftByTrying(password string, w Words) int {
	if password == "" {
		return 0
	}
	_, size := utf8.DecodeRuneInString(password)
	least := 1 + leftByTrying(password[size:], w)
	for word := range w.set {
		if rest, found := strings.CutPrefix(password, word); found {
			least = min(least, leftByTrying(rest, w))
		}
	}
	return least
}

func TestTheFewestCharactersAreLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("abcü")), 0, 12, -1)
		password := text.Draw(t, "password")
		var few, more Words
		few.add(rapid.SliceOfN(text, 0, 4).Draw(t, "words")...)
		more.add(rapid.SliceOfN(text, 0, 4).Draw(t, "more words")...)
		left := fewestLeft(rolecall.Fold(password), false, few)
		if want := leftByTrying(rolecall.Fold(password), few); left != want {
			t.Fatalf("%d code points of %q are left without %v, want %d", left, password, few.set, want)
		}
		if both := fewestLeft(rolecall.Fold(password), false, few, more); both > left {
			t.Fatalf("more words leave %d code points instead of %d", both, left)
		}
	})
}

func TestEightCharactersOutsideOfWordsAreRequired(t *testing.T) {
	forbidden := words(t, "swordfish", "xyzzy", "plugh")
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOfN(rapid.SampledFrom([]string{"Swordfish", "XYZZY", "plugh", "Lovelace", "ADA", "example"}), 1, 8).Draw(t, "words")
		// None of the words contains one of these characters, and no two of these
		// characters are neighboring keys.
		others := []rune("1Q7V4J0Z5T")[:rapid.IntRange(0, 10).Draw(t, "others")]
		for _, other := range others {
			i := rapid.IntRange(0, len(pieces)).Draw(t, "at")
			pieces = slices.Insert(pieces, i, string(other))
		}
		password := strings.Join(pieces, "")
		code, _ := CheckPassword(password, 1, forbidden, "Ada Lovelace", "ada@example.com")
		if (code == "personal") != (len(others) < leastLeft) {
			t.Fatalf("%q with %d other characters: %q", password, len(others), code)
		}
	})
}

func BenchmarkCheckPassword(b *testing.B) {
	forbidden := words(b, "swordfish", strings.Repeat("x", 200))
	password := strings.Repeat("correct horse ", 70)
	for b.Loop() {
		CheckPassword(password, rolecall.DefaultPasswordMin, forbidden, "Ada Lovelace", "ada@example.com", "acme", "Acme")
	}
}
