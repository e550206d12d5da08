package httpapi

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/web"
	"github.com/rolecall/rolecall/internal/wire"
)

func TestIdempotencyKeys(t *testing.T) {
	for _, test := range []struct{ text, key, code string }{
		{"abc", "abc", ""},
		{`"abc"`, "abc", ""},
		{`"a\"b\\c"`, `a"b\c`, ""},
		{`a"b`, `a"b`, ""},
		{strings.Repeat("k", 255), strings.Repeat("k", 255), ""},
		{strings.Repeat("k", 256), "", "length"},
		{"", "", "length"},
		{`""`, "", "length"},
		{"a b", "", "format"},
		{"a\tb", "", "format"},
		{"schlüssel", "", "format"},
		{`"a"b"`, "", "format"},
		{`"a\b"`, "", "format"},
	} {
		key, code, _ := parseKey(test.text)
		if key != test.key || code != test.code {
			t.Errorf("%q: key %q, fault %q", test.text, key, code)
		}
	}
}

func TestLimits(t *testing.T) {
	for text, want := range map[string]int{"1": 1, "50": 50, "200": 200, "201": 200, "99999999999999999999999": 200} {
		var limit limitValue
		if code, _ := limit.setParameter(text); code != "" || int(limit) != want {
			t.Errorf("%q: %d, fault %q", text, limit, code)
		}
	}
	for _, text := range []string{"", "0", "-1", "1.5", "ten", "+1", " 1"} {
		var limit limitValue
		if code, _ := limit.setParameter(text); code == "" {
			t.Errorf("%q is a limit of %d", text, limit)
		}
	}
}

func TestSearches(t *testing.T) {
	for text, want := range map[string]string{
		"ada lov": "", "Ädä": "", "": "length", strings.Repeat("a", 201): "length", "!?": "no-word",
		"a b c d e f g h": "", "a b c d e f g h i": "too-many",
	} {
		var words searchValue
		if code, _ := words.setParameter(text); code != want {
			t.Errorf("%q: fault %q, want %q", text, code, want)
		}
	}
}

func TestEntityTags(t *testing.T) {
	for _, test := range []struct {
		text                 string
		strongly, weakly, ok bool
	}{
		{`"a"`, true, true, true},
		{`"b", "a"`, true, true, true},
		{`"b","a"`, true, true, true},
		{`*`, true, true, true},
		{`W/"a"`, false, true, true},
		{`"b"`, false, false, true},
		{`""`, false, false, true},
		{`"b,a"`, false, false, true},
		{`a`, false, false, false},
		{`"a`, false, false, false},
		{`"a" "b"`, false, false, false},
		{`"a",`, true, true, true},
		{`"b", , "a"`, true, true, true},
		{`w/"a"`, false, false, false},
		{`*, "a"`, false, false, false},
		{`"a b"`, false, false, false},
		{``, false, false, false},
	} {
		var list tags
		code, _ := readTags(&list, test.text)
		if (code == "") != test.ok || list.given != test.ok || list.matches(`"a"`) != test.strongly || list.matchesWeakly(`"a"`) != test.weakly {
			t.Errorf("%s: fault %q, %+v", test.text, code, list)
		}
	}
}

// FuzzTags checks that what is read as a list of tags can be written and read
// again as the same list.
func FuzzTags(f *testing.F) {
	seeds := []string{`*`, `"a"`, `"a", W/"b"`, `"`, `W/`, `"a",,"b"`}
	if len(seeds) == 0 {
		f.Fatal("no seeds")
	}
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var list, again tags
		if code, _ := readTags(&list, text); code != "" || list.any {
			return
		}
		if code, _ := readTags(&again, strings.Join(list.list, ", ")); code != "" || !slices.Equal(list.list, again.list) {
			t.Fatalf("%q is read as %q, and that as %q", text, list.list, again.list)
		}
	})
}

func TestAccept(t *testing.T) {
	for accept, want := range map[string]bool{
		"*/*": true, "application/json": true, "Application/JSON;q=0.5": true, "application/*": true, "text/html, */*;q=0.1": true,
		"": true, " , ,": true, "text/html": false, "application/json;q=0": false, "application/json;q=0.0, */*": false, "*/*;q=0": false,
		"application/problem+json": false,
	} {
		if got := accepts([]string{accept}); got != want {
			t.Errorf("%q: %v", accept, got)
		}
	}
}

func TestContentTypes(t *testing.T) {
	for contentType, want := range map[string][2]bool{
		"application/json":                  {true, true},
		"application/json; charset=UTF-8":   {true, true},
		`APPLICATION/JSON;charset="utf-8"`:  {true, true},
		"application/json;":                 {true, true},
		"application/merge-patch+json":      {false, true},
		"application/json; charset=latin-1": {false, false},
		"application/json; version=2":       {false, false},
		"text/plain":                        {false, false},
		"multipart/form-data; boundary=x":   {false, false},
		"":                                  {false, false},
	} {
		if got := [2]bool{isJSON(contentType, false), isJSON(contentType, true)}; got != want {
			t.Errorf("%q: %v", contentType, got)
		}
	}
}

// FuzzText checks that every text becomes a JSON string that says the same, and
// that what is not UTF-8 breaks no document.
func FuzzText(f *testing.F) {
	seeds := []string{"", "Ada", "\"\\\n\t\x00\x1f", "Ädä \U0001F600", "\xff\xc3", "a\xe2\x28", "\u2028"}
	if len(seeds) == 0 {
		f.Fatal("no seeds")
	}
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var got string
		if err := json.Unmarshal(wire.AppendText(nil, text), &got); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if want := strings.Join(strings.Split(text, ""), ""); utf8.ValidString(text) && got != want || !utf8.ValidString(got) {
			t.Fatalf("%q became %q", text, got)
		}
	})
}

func TestTitles(t *testing.T) {
	if got := web.TitleOf(rolecall.ErrEmailTaken.Code); got != "Email taken" {
		t.Error(got)
	}
}

func TestTheNilUUIDFiltersNothingAndIsRefused(t *testing.T) {
	s := newTestServer(t)
	const none = "00000000-0000-0000-0000-000000000000"
	for path, fault := range map[string]string{
		"/users?role=" + none:     "role format",
		"/events?actor=" + none:   "actor format",
		"/events?subject=" + none: "subject format",
	} {
		r := s.as(s.owner, "GET", path, "")
		if r.StatusCode != 400 || r.faults(t) != fault {
			t.Errorf("%s: %d %s", path, r.StatusCode, r.body)
		}
	}
	expectProblem(t, s.as(s.owner, "GET", "/roles/"+none+"/users", ""), 404, "not-found")
}

func TestTheUsersOfARoleAreNotFilteredByAnother(t *testing.T) {
	s := newTestServer(t)
	role := s.as(s.owner, "GET", "/roles?key=owner", "").items(t)[0]["id"].(string)
	r := s.as(s.owner, "GET", "/roles/"+role+"/users?role="+role, "")
	if r.StatusCode != 400 || r.faults(t) != "role unknown" {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
}
