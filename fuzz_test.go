package rolecall_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rolecall/rolecall"
)

// writings are the seeds of the fuzz tests: normal names, and texts that often cause errors
// in programs.
var writings = []string{
	"", "Ada", "ADA Lovelace", "Ädä\u0308", "ﬁne Straße", "İstanbul ıI", "a\u0301\u0302\u0303", "\u200b\u200d", "\u202eright to left", "\u2028",
	"用户 名前 이름", "\U0001F469\u200D\U0001F4BB", "\x00", "\xff\xc3(", "K\u212a ſs Ωω ϴ", "ǅ ǆ Ǆ", strings.Repeat("ab ", 100), strings.Repeat("ﷺ", 100),
}

// FuzzFold checks that a folded text has at most 200 code points, and that folding it
// again changes nothing. Otherwise a stored sort key could differ from the key of a
// search.
func FuzzFold(f *testing.F) {
	for _, text := range writings {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			return
		}
		folded := rolecall.Fold(text)
		if again := rolecall.Fold(folded); again != folded || !utf8.ValidString(folded) || utf8.RuneCountInString(folded) > 200 {
			t.Errorf("%q is folded to %q, and that to %q", text, folded, again)
		}
		if upper := rolecall.Fold(strings.ToUpper(folded)); len(folded) == len(upper) && isLetters(folded) && upper != folded {
			t.Errorf("%q and its upper case are told apart: %q, %q", text, folded, upper)
		}
		words := rolecall.Words(text)
		for i, word := range words {
			if got := rolecall.Words(word); word == "" || len(got) != 1 || got[0] != word || slices.Contains(words[:i], word) {
				t.Errorf("%q has the words %q, and of these %q has %q", text, words, word, got)
			}
		}
	})
}

// isLetters reports whether text has only the letters a to z. Each of these letters has
// exactly one upper-case form, so changing the case and back gives the same text.
func isLetters(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r < 'a' || r > 'z' })
}

// FuzzCheckText checks that a text that CheckText accepts can be displayed.
func FuzzCheckText(f *testing.F) {
	for _, text := range writings {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		code, detail := rolecall.CheckText(text, 1, 20)
		if (code == "") != (detail == "") {
			t.Fatalf("%q: code %q, detail %q", text, code, detail)
		}
		if code != "" {
			return
		}
		if n := utf8.RuneCountInString(text); !utf8.ValidString(text) || n < 1 || n > 20 || strings.ContainsAny(text, "\x00\r\n\t\x7f\u0085\u2028\u2029") || strings.TrimSpace(text) == "" {
			t.Errorf("%q is taken", text)
		}
	})
}

// FuzzTime checks that each parsed time is formatted in the canonical RFC 3339 form,
// and that parsing this form gives the same time.
func FuzzTime(f *testing.F) {
	for _, text := range []string{
		"2030-01-31T12:00:00Z", "2030-01-31T12:00:00.123456789+23:59", "1969-12-31T23:59:59.999999Z", "0000-01-01T00:00:00+00:01",
		"9999-12-31T23:59:59-00:01", "2016-12-31T23:59:60Z", "2030-1-31T12:00:00Z", "2030-01-31t12:00:00z", "2030-01-31 12:00:00Z",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var at, again rolecall.Time
		if at.UnmarshalText([]byte(text)) != nil {
			return
		}
		written := at.String()
		if err := again.UnmarshalText([]byte(written)); err != nil || again != at || len(written) != len("2030-01-31T12:00:00.000000Z") {
			t.Errorf("%q is written as %q, which is read as %q (%v)", text, written, again, err)
		}
	})
}

// FuzzEmailKey checks two properties of EmailKey: the key of a key is the key itself, and
// the case of letters does not change the key.
func FuzzEmailKey(f *testing.F) {
	for _, text := range append(writings, "Ada@Example.COM", "JOSE\u0301@example.com", "用户@例子.公司") {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, email string) {
		key := rolecall.EmailKey(email)
		if again := rolecall.EmailKey(key); again != key || !utf8.ValidString(key) || strings.Contains(key, "\x00") {
			t.Errorf("the key of %q is %q, and of that %q", email, key, again)
		}
	})
}

// FuzzTenantName checks that names that IsTenantName accepts have only safe characters.
func FuzzTenantName(f *testing.F) {
	for _, name := range []string{"acme", "a", "a-b_c", "-a", "Acme", "a.b", "ａcme", strings.Repeat("a", 63), strings.Repeat("a", 64)} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if rolecall.IsTenantName(name) && (len(name) > 63 || name != strings.ToLower(name) || strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789_-") != "" || strings.IndexAny(name, "-_") == 0) {
			t.Errorf("%q is taken for a tenant's name", name)
		}
	})
}

// FuzzLogo checks that no file makes the check of logos fail, and that an accepted file is
// within the limits.
func FuzzLogo(f *testing.F) {
	for _, content := range [][]byte{nil, drawn(f, 16, 16, asPNG), drawn(f, 64, 64, asJPEG), drawn(f, 20, 20, asGIF), aWebP(f), claiming(f, 65535, 65535), []byte("RIFF\x00\x00\x00\x00WEBP")} {
		f.Add(content)
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		for _, mediaType := range rolecall.LogoMediaTypes {
			file := rolecall.LogoFile{MediaType: mediaType, Content: content}
			logo, faults := file.Logo("hash", aMoment)
			if faults == nil && (min(logo.Width, logo.Height) < rolecall.LogoSideMin || max(logo.Width, logo.Height) > rolecall.LogoSideMax || len(content) > rolecall.LogoSizeMax) {
				t.Errorf("%+v is accepted", logo)
			}
		}
	})
}
