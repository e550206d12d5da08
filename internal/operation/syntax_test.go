package operation

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/web"
)

// syntaxOf returns the syntax errors of the body, each as "pointer code".
func syntaxOf(body string) []string {
	var faults rolecall.FieldErrors
	checkSyntax(&faults, []byte(body))
	return named(faults)
}

func named(faults rolecall.FieldErrors) []string {
	var names []string
	for _, f := range faults {
		names = append(names, strings.TrimSpace(f.Pointer+" "+f.Code))
	}
	return names
}

func TestSyntaxIsStrict(t *testing.T) {
	deep := func(n int) string { return `{"a":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}` }
	for _, test := range []struct{ body, want string }{
		{`{}`, ""},
		{" \t\r\n{\"a\":1}\n", ""},
		{deep(32), ""},
		{deep(33), "depth"},
		{``, "syntax"},
		{`  `, "syntax"},
		{`null`, ""},
		{` [] `, ""},
		{`[{"a":1}]`, ""},
		{`"a"`, ""},
		{`-1.5e3`, ""},
		{`[{"a":1,"a":2}]`, "/0/a duplicate"},
		{`[]]`, "syntax"},
		{`1 1`, "syntax"},
		{`nul`, "syntax"},
		{`[1,`, "syntax"},
		{strings.Repeat("[", 33) + strings.Repeat("]", 33), "depth"},
		{`{`, "syntax"},
		{`{"a":1,}`, "syntax"},
		{`{"a":01}`, "syntax"},
		{`{'a':1}`, "syntax"},
		{`{"a":1} {}`, "syntax"},
		{`{"a":1}x`, "syntax"},
		{"\uFEFF{}", "syntax"},
		{"{\"a\":\"\xff\"}", "/a syntax"},
		{`{"a":"\ud800"}`, "/a syntax"},
		{`{"a":"\ud800\u0041"}`, "/a syntax"},
		{"{\"a\":\"\x01\"}", "/a syntax"},
		{`{"a":1,"a":2}`, "/a duplicate"},
		{`{"a":1,"\u0061":2}`, "/a duplicate"},
		{`{"m":{"k":"1","k":"2"}}`, "/m/k duplicate"},
	} {
		if got := strings.Join(syntaxOf(test.body), "; "); got != test.want {
			t.Errorf("%q: %q, want %q", test.body, got, test.want)
		}
	}
}

// draftRequest is the input of an operation with the body of a new user.
type draftRequest struct{ Body rolecall.UserDraft }

func draftOf(body string) (rolecall.UserDraft, error) {
	var value draftRequest
	err := inputOf(reflect.TypeFor[draftRequest]()).DecodeBody(reflect.ValueOf(&value).Elem(), []byte(body), access.Caller{Principal: &authz.Principal{}}, 0)
	return value.Body, err
}

func TestEveryFaultOfABodyIsFoundAtOnce(t *testing.T) {
	for _, test := range []struct {
		body string
		want []string
	}{
		{`{"email":"ada@example.com","name":"Ada"}`, nil},
		{`{}`, []string{"/email required", "/name required"}},
		{`[]`, []string{"type"}},
		{` "ada@example.com" `, []string{"type"}},
		{`1`, []string{"type"}},
		{`null`, []string{"type"}},
		{`{"email":1,"name":[],"department":{},"externalId":true,"metadata":"x"}`,
			[]string{"/email type", "/name type", "/department type", "/externalId type", "/metadata type"}},
		{`{"email":"ada","name":1,"department":"x"}`, []string{"/name type", "/email email", "/department length"}},
		{`{"email":null,"name":null}`, []string{"/email type", "/name type"}},
		{`{"Email":"ada@example.com","name":"Ada"}`, []string{"/Email unknown", "/email required"}},
		{`{"email":"ada@example.com","name":"Ada","isAdmin":true,"id":"x","a/b~c":1}`,
			[]string{"/isAdmin unknown", "/id unknown", "/a~1b~0c unknown"}},
		{`{"email":"ada@example.com","name":"Ada","metadata":{"a":1,"b":null,"c":"x"}}`, []string{"/metadata/a type", "/metadata/b type"}},
	} {
		_, err := draftOf(test.body)
		var got []string
		if err != nil {
			_, known := web.StatusOf(err)
			got = named(known.FieldErrors)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.body, got, test.want)
		}
	}
}

func TestUnknownMembersAreRepeatedOnlyInPart(t *testing.T) {
	_, err := draftOf(`{"` + strings.Repeat("x", 5000) + `":1}`)
	_, known := web.StatusOf(err)
	for _, f := range known.FieldErrors {
		if len(f.Pointer) > 250 {
			t.Errorf("a pointer of %d bytes", len(f.Pointer))
		}
	}
}

// fuzzSeeds are valid bodies, and bodies with different kinds of errors.
var fuzzSeeds = []string{
	`{}`, `null`, `[`, `[{}]`, `"x"`, ` 1`, `{"email":"ada@example.com","name":"Ada Lovelace","department":"Sales","externalId":null,"metadata":{"a":"b"}}`,
	`{"email":1,"name":[],"metadata":{"a":null}}`, `{"a":1,"\u0061":2}`, `{"a":"\ud800"}`, "{\"\xff\":1}", `{"a":{"b":{"c":[[[[]]]]}}} `,
	`{"metadata":{"~/":1}}`, `{"name":"Ada"}{"name":"Eve"}`,
}

// FuzzDecode checks that encoding/json reads the same values as DecodeBody from each valid body.
// It also checks that each invalid body gives field errors and no other error.
func FuzzDecode(f *testing.F) {
	if len(fuzzSeeds) == 0 {
		f.Fatal("no seeds")
	}
	for _, seed := range fuzzSeeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if syntaxOf(body) != nil {
			return
		}
		if !json.Valid([]byte(body)) || !utf8.ValidString(body) {
			t.Fatalf("%q passed as JSON", body)
		}
		draft, err := draftOf(body)
		if err != nil {
			if _, known := web.StatusOf(err); known.Kind != rolecall.Invalid || len(known.FieldErrors) == 0 {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		var plain struct{ Email, Name string }
		if err := json.Unmarshal([]byte(body), &plain); err != nil || plain.Email != draft.Email || plain.Name != draft.Name {
			t.Fatalf("%q is read as %+v, and by the library as %+v (%v)", body, draft, plain, err)
		}
		if !bytes.Equal(canonicalJSON([]byte(body)), canonicalJSON(canonicalJSON([]byte(body)))) {
			t.Fatalf("%q has two canonical forms", body)
		}
	})
}
