package httpapi

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rolecall/rolecall"
)

// syntaxOf returns the faults of the body's syntax as "pointer code".
func syntaxOf(body string) []string {
	var faults rolecall.Faults
	checkSyntax(&faults, []byte(body))
	return named(faults)
}

func named(faults rolecall.Faults) []string {
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
		{``, "not-an-object"},
		{`  `, "not-an-object"},
		{`null`, "not-an-object"},
		{`[]`, "not-an-object"},
		{`"a"`, "not-an-object"},
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

func draftOf(body string) (rolecall.UserDraft, error) {
	x := &exchange{body: []byte(body)}
	return x.userDraft()
}

func TestEveryFaultOfABodyIsFoundAtOnce(t *testing.T) {
	for _, test := range []struct {
		body string
		want []string
	}{
		{`{"email":"ada@example.com","name":"Ada"}`, nil},
		{`{}`, []string{"/email required", "/name required"}},
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
			_, known := statusOf(err)
			got = named(known.Faults)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.body, got, test.want)
		}
	}
}

func TestPatchTellsAbsentFromNull(t *testing.T) {
	x := &exchange{body: []byte(`{"department":null,"metadata":{"a":null,"b":"x"}}`)}
	patch, err := x.userPatch()
	if err != nil {
		t.Fatal(err)
	}
	text := "x"
	want := rolecall.UserPatch{
		Department: rolecall.Some[*string](nil),
		Metadata:   rolecall.Some(map[string]*string{"a": nil, "b": &text}),
	}
	if !reflect.DeepEqual(patch, want) {
		t.Errorf("%+v, want %+v", patch, want)
	}
	x.body = []byte(`{"email":"eve@example.com","name":null}`)
	_, err = x.userPatch()
	_, known := statusOf(err)
	if got := named(known.Faults); !slices.Equal(got, []string{"/email immutable", "/name type"}) {
		t.Errorf("faults %q", got)
	}
}

func TestUnknownMembersAreRepeatedOnlyInPart(t *testing.T) {
	_, err := draftOf(`{"` + strings.Repeat("x", 5000) + `":1}`)
	_, known := statusOf(err)
	for _, f := range known.Faults {
		if len(f.Pointer) > 250 {
			t.Errorf("a pointer of %d bytes", len(f.Pointer))
		}
	}
}

func TestAssignmentBody(t *testing.T) {
	for _, test := range []struct {
		body string
		want []string
	}{
		{``, nil},
		{`{"reach":null,"expiresAt":null}`, nil},
		{`{"reach":{"departments":["Sales"]}}`, nil},
		{`{"reach":{}}`, []string{"/reach/departments required"}},
		{`{"reach":{"departments":[]},"expiresAt":"tomorrow"}`, []string{"/expiresAt format", "/reach/departments too-few"}},
		{`{"reach":{"departments":["Sales",1]}}`, []string{"/reach/departments/1 type"}},
		{`{"reach":[],"until":1}`, []string{"/reach type", "/until unknown"}},
	} {
		x := &exchange{body: []byte(test.body), server: newTestServer(t).edge}
		_, err := x.assignmentDraft()
		var got []string
		if err != nil {
			_, known := statusOf(err)
			got = named(known.Faults)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.body, got, test.want)
		}
	}
}

// fuzzSeeds are bodies that reach every branch of the decoder.
var fuzzSeeds = []string{
	`{}`, `null`, `[`, `{"email":"ada@example.com","name":"Ada Lovelace","department":"Sales","externalId":null,"metadata":{"a":"b"}}`,
	`{"email":1,"name":[],"metadata":{"a":null}}`, `{"a":1,"\u0061":2}`, `{"a":"\ud800"}`, "{\"\xff\":1}", `{"a":{"b":{"c":[[[[]]]]}}} `,
	`{"metadata":{"~/":1}}`, `{"name":"Ada"}{"name":"Eve"}`,
}

// FuzzDecode checks that whatever the strict syntax lets through means the same
// to the library's decoder, and that no body makes the decoder fail in another
// way than with faults.
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
			if _, known := statusOf(err); known.Kind != rolecall.Invalid || len(known.Faults) == 0 {
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
