package httpapi

import (
	"bytes"
	"encoding/json"
	"math"
	"math/big"
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

// unrestricted is a request by somebody with all of Rolecall's own permissions.
func unrestricted() access.Caller {
	all := rolecall.Assignment{Role: rolecall.Role{Permissions: []rolecall.Permission{rolecall.AllOwn}}, Reach: rolecall.Everywhere(), ExpiresAt: rolecall.Never}
	return access.Caller{Principal: authz.NewPrincipal(rolecall.Tenant{}, rolecall.User{}, rolecall.Session{}, []rolecall.Assignment{all}, 0)}
}

// decode reads the body into the input of an operation.
func decode[In any](body string) (value In, err error) {
	in := inputOf(reflect.TypeFor[In]())
	return value, in.decodeBody(reflect.ValueOf(&value).Elem(), []byte(body), unrestricted(), 0)
}

func draftOf(body string) (rolecall.UserDraft, error) {
	in, err := decode[createUserRequest](body)
	return in.Body, err
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
			got = named(known.Faults)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.body, got, test.want)
		}
	}
}

func TestPatchTellsAbsentFromNull(t *testing.T) {
	in, err := decode[updateUserRequest](`{"department":null,"metadata":{"a":null,"b":"x"}}`)
	if err != nil {
		t.Fatal(err)
	}
	text := "x"
	want := rolecall.UserPatch{
		Department: rolecall.Some[*string](nil),
		Metadata:   rolecall.Some(map[string]*string{"a": nil, "b": &text}),
	}
	if patch := in.Body.UserPatch; !reflect.DeepEqual(patch, want) {
		t.Errorf("%+v, want %+v", patch, want)
	}
	_, err = decode[updateUserRequest](`{"email":"eve@example.com","name":null}`)
	_, known := web.StatusOf(err)
	if got := named(known.Faults); !slices.Equal(got, []string{"/email immutable", "/name type"}) {
		t.Errorf("faults %q", got)
	}
}

func TestUnknownMembersAreRepeatedOnlyInPart(t *testing.T) {
	_, err := draftOf(`{"` + strings.Repeat("x", 5000) + `":1}`)
	_, known := web.StatusOf(err)
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
		_, err := decode[assignRoleRequest[rolecall.User]](test.body)
		var got []string
		if err != nil {
			_, known := web.StatusOf(err)
			got = named(known.Faults)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.body, got, test.want)
		}
	}
}

// TestWholeNumbers compares the reader with exact arithmetic.
func TestWholeNumbers(t *testing.T) {
	texts := []string{"0", "-0", "7", "-7", "10.0", "1e1", "1E+1", "100e-1", "-2.50e1", "1.5", "15e-1", "0.1", "1e-1", "0e99999999999999999999", "0.000", "12.340e2", "12.345e2", "9223372036854775807", "9223372036854775807.0",
		"-9223372036854775808", "9223372036854775808", "1e18", "1e19", "-1e19", "123456789012345678901234567890", "0.00000000000000000001e20", "1e0005", "0.5e1", "10e-2", "1" + strings.Repeat("0", 60) + "e-60"}
	for _, text := range texts {
		exact, ok := new(big.Rat).SetString(text)
		if !ok {
			exact = new(big.Rat) // the exponent of zero is too long for it
		}
		n, whole := wholeNumber(text)
		want := new(big.Int).Set(exact.Num())
		if least := big.NewInt(math.MinInt64); want.Cmp(least) < 0 {
			want = least
		} else if most := big.NewInt(math.MaxInt64); want.Cmp(most) > 0 {
			want = most
		}
		if whole != exact.IsInt() || whole && n != want.Int64() {
			t.Errorf("%s is read as %d, %v, and is %s", text, n, whole, exact)
		}
	}
	for text, want := range map[string]int64{"1e400000000": math.MaxInt64, "-1e99999999999999999999": math.MinInt64, "0e-99999999999999999999": 0} {
		if n, whole := wholeNumber(text); n != want || !whole {
			t.Errorf("%s is read as %d, %v", text, n, whole)
		}
	}
	for _, text := range []string{"", "x", "+1", " 1", "1 ", "1e", "e1", ".5", `"1"`, "1e-400000000", "-1e-99999999999999999999", "1.5e", "--1", "1_0", "0x10", "1e1.5", "1.2.3"} {
		if n, whole := wholeNumber(text); whole {
			t.Errorf("%q is read as %d", text, n)
		}
	}
	const huge = "1e400000000"
	if n := testing.AllocsPerRun(10, func() { wholeNumber(huge) }); n > 5 {
		t.Errorf("%s takes %v allocations", huge, n)
	}
}

// fuzzSeeds are bodies that reach every branch of the decoder.
var fuzzSeeds = []string{
	`{}`, `null`, `[`, `[{}]`, `"x"`, ` 1`, `{"email":"ada@example.com","name":"Ada Lovelace","department":"Sales","externalId":null,"metadata":{"a":"b"}}`,
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
			if _, known := web.StatusOf(err); known.Kind != rolecall.Invalid || len(known.Faults) == 0 {
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
