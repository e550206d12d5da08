package operation

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
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
		var limit Limit
		if code, _ := limit.SetParameter(text); code != "" || int(limit) != want {
			t.Errorf("%q: %d, fault %q", text, limit, code)
		}
	}
	for _, text := range []string{"", "0", "-1", "1.5", "ten", "+1", " 1"} {
		var limit Limit
		if code, _ := limit.SetParameter(text); code == "" {
			t.Errorf("%q is a limit of %d", text, limit)
		}
	}
}

func TestSearches(t *testing.T) {
	for text, want := range map[string]string{
		"ada lov": "", "Ädä": "", "": "length", strings.Repeat("a", 201): "length", "!?": "no-word",
		"a b c d e f g h": "", "a b c d e f g h i": "too-many",
	} {
		var words Search
		if code, _ := words.SetParameter(text); code != want {
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
		if (code == "") != test.ok || list.Given != test.ok || list.Matches(`"a"`) != test.strongly || list.matchesWeakly(`"a"`) != test.weakly {
			t.Errorf("%s: fault %q, %+v", test.text, code, list)
		}
	}
}

// FuzzTags checks that each parsed list of entity tags gives the same tags if it is written as a
// header and parsed again.
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

// FuzzKey checks that the bare form and the quoted form of an idempotency key give the same key,
// and that a key has only visible ASCII characters.
func FuzzKey(f *testing.F) {
	for _, text := range []string{"abc", `"abc"`, `"a\"b\\c"`, `a"b`, `"`, `""`, `"\`, "a b", "schlüssel", strings.Repeat("k", 255)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key, code, _ := parseKey(text)
		if code != "" {
			return
		}
		if n := len(key); n < 1 || n > keyLength || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
			t.Fatalf("%q is taken for the key %q", text, key)
		}
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
		if again, code, _ := parseKey(quoted); code != "" || again != key {
			t.Fatalf("%q is the key %q, and %s is %q", text, key, quoted, again)
		}
	})
}

// userListRequest and eventListRequest have every kind of query parameter.
type (
	userListRequest struct {
		PageRequest
		Sort   Order           `query:"sort" order:"name,email,createdAt"`
		Search Search          `query:"q"`
		Email  string          `query:"email" maxLength:"254"`
		Status string          `query:"status" enum:"pending,active"`
		Role   rolecall.RoleID `query:"role"`
		CountQuery
	}
	eventListRequest struct {
		PageRequest
		Actor rolecall.AnyID `query:"actor"`
		From  rolecall.Time  `query:"from"`
		Touch Touch          `query:"touch"`
	}
)

// listOf returns the handler of an operation with the input In.
func listOf[In any]() Handler {
	return JSON(func(context.Context, access.Caller, *In) (Response[NoContent], error) {
		return Response[NoContent]{}, nil
	})
}

// FuzzQuery checks the link to the next page for each valid query. The server must read the same
// filters and sort order from the link, and a cursor in addition. FuzzQuery also checks that each
// field error has a code and a detail.
func FuzzQuery(f *testing.F) {
	for _, query := range []string{
		"", "limit=50&sort=-name&count=true", "q=ada+l&status=active", "email=a%40b.c&department=S%C3%A4les", "externalId=%00", "limit=0&limit=1",
		"role=01890a5d-ac96-774b-bcce-b302099a8057", "actor=x&from=2030-01-31T12:00:00Z&to=9999-12-31T23:59:59-01:00&type=user.updated", "%zz=1&=&&;", "cursor=abc",
		"subject=00000000-0000-0000-0000-000000000000", "key=owner", "q=%ff", "sort=name&sort=name", "x=1",
	} {
		f.Add(query)
	}
	principal := &authz.Principal{}
	lists := map[string]Handler{"users": listOf[userListRequest](), "events": listOf[eventListRequest]()}
	f.Fuzz(func(t *testing.T, query string) {
		for id, handler := range lists {
			op := &Operation{ID: id, Handler: handler}
			takes := op.Input()
			read := func(query string) (in reflect.Value, r *http.Request, faults parameterFaults) {
				in, r = takes.New(), &http.Request{URL: &url.URL{Path: "/list", RawQuery: query}}
				return in, r, takes.readParameters(in, r)
			}
			x, first, faults := read(query)
			for _, fault := range slices.Concat(faults.malformed, faults.unknown) {
				if fault.Code == "" || fault.Detail == "" {
					t.Fatalf("%s?%s is refused with %+v", id, query, fault)
				}
			}
			if faults.malformed != nil {
				continue
			}
			next, ok := strings.CutPrefix(strings.TrimSuffix(nextLink(first.URL, "next"), `>; rel="next"`), "</list?")
			y, second, again := read(next)
			cursor := fieldOf[Cursor](y, takes.cursor)
			if !ok || again.malformed != nil || cursor.text != "next" || !bytes.Equal(listDigest(op, first.URL, principal), listDigest(op, second.URL, principal)) {
				t.Fatalf("%s?%s leads to %q: %v", id, query, next, again.malformed)
			}
			if *cursor = *fieldOf[Cursor](x, takes.cursor); !reflect.DeepEqual(x.Interface(), y.Interface()) {
				t.Fatalf("%s?%s leads to %q, which is read otherwise", id, query, next)
			}
			if strings.ContainsAny(next, "<>\" \r\n\x00") {
				t.Fatalf("%s?%s leads to %q", id, query, next)
			}
		}
	})
}
