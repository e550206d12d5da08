package wire

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rolecall/rolecall"
)

type inner struct {
	City *string `json:"city"`
}

type sample struct {
	ID     rolecall.UserID `json:"id"`
	Name   string          `json:"name" required:"true"`
	Count  int             `json:"count"`
	Active bool            `json:"active"`
	inner
	Tags    []string            `json:"tags"`
	At      rolecall.Time       `json:"at"`
	Owner   rolecall.UserID     `json:"owner"`
	Home    inner               `json:"home"`
	Raw     jsontext.Value      `json:"raw,omitzero"`
	Absent  *string             `json:"absent,omitzero"`
	Hidden  string              `json:"-"`
	Private string              // without a tag
	Grants  rolecall.Permission `json:"grants"`
}

func TestAppend(t *testing.T) {
	city := "Z\"ürich\n\x01\xff"
	id := rolecall.NewID[rolecall.User](1)
	permission, err := rolecall.ParsePermission("users:read")
	if err != nil {
		t.Fatal(err)
	}
	v := sample{
		ID: id, Name: "Ada", Count: -7, Active: true, inner: inner{&city}, Tags: []string{"a", "b"}, At: 1_700_000_000_000_000,
		Home: inner{}, Raw: jsontext.Value(`{"x":1}`), Hidden: "no", Private: "no", Grants: permission,
	}
	encoder := NewEncoder[sample]()
	want := fmt.Sprintf(`{"id":"%s","name":"Ada","count":-7,"active":true,"city":"Z\"ürich\n\u0001`+"\uFFFD"+`","tags":["a","b"],"at":"2023-11-14T22:13:20.000000Z","owner":null,"home":{"city":null},"raw":{"x":1},"grants":"users:read"}`, id)
	got := string(encoder.Append(nil, &v))
	if got != want || !json.Valid([]byte(got)) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := string(encoder.AppendFields([]byte("x"), &v, encoder.Fields("name", "tags"))); got != `x{"name":"Ada","tags":["a","b"]}` {
		t.Errorf("two fields: %s", got)
	}
	if got := string(encoder.AppendFields(nil, &sample{At: rolecall.Never}, encoder.Fields("at", "tags", "absent"))); got != `{"tags":[],"at":null}` {
		t.Errorf("nothing: %s", got)
	}
	if got := string(NewEncoder[[]int]().Append(nil, &[]int{1, 2})); got != "[1,2]" {
		t.Errorf("a list: %s", got)
	}
}

func TestUnsupportedTypesPanicAtTheStart(t *testing.T) {
	for what, compile := range map[string]func(){
		"a channel": func() {
			NewEncoder[struct {
				C chan int `json:"c"`
			}]()
		},
		"a decoded function": func() {
			NewDecoder(reflect.TypeFor[struct {
				F func() `json:"f"`
			}]())
		},
		"an unknown field": func() { NewEncoder[sample]().Fields("nobody") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s is taken", what)
				}
			}()
			compile()
		}()
	}
}

type draft struct {
	Name  string                                `json:"name" required:"true"`
	Note  string                                `json:"note" nullable:"true"`
	Desk  *string                               `json:"desk"`
	Tags  []string                              `json:"tags" nullable:"true"`
	Pairs map[string]string                     `json:"pairs" nullable:"true"`
	Patch rolecall.Optional[map[string]*string] `json:"patch" nullable:"true"`
	Lists []string                              `json:"lists"`
	Texts map[string]string                     `json:"texts"`
	Email rolecall.Optional[*string]            `json:"email"`
	Title rolecall.Optional[string]             `json:"title" nullable:"true"`
	Sure  bool                                  `json:"sure"`
	At    *rolecall.Time                        `json:"at"`
	Role  rolecall.RoleID                       `json:"role"`
	Reach struct {
		Departments []string `json:"departments" required:"true"`
	} `json:"reach"`
	Fixed Immutable `json:"fixed"`
}

func decode(body string, allowed func(string, jsontext.Value) error) (d draft, faults []string, denied error) {
	found, denied := NewDecoder(reflect.TypeFor[draft]()).Decode([]byte(body), reflect.ValueOf(&d).Elem(), allowed)
	for _, f := range found {
		faults = append(faults, f.Pointer+" "+f.Code)
	}
	return d, faults, denied
}

func TestDecode(t *testing.T) {
	text := "x"
	at := rolecall.Time(1_893_456_000_000_000)
	d, faults, denied := decode(`{"name":"A","note":null,"desk":"x","tags":["a"],"pairs":{"k":"v"},"patch":{"a":null,"b":"x"},"email":null,"sure":true,"at":"2030-01-01T00:00:00Z","reach":{"departments":["Sales"]}}`, nil)
	want := draft{
		Name: "A", Desk: &text, Tags: []string{"a"}, Pairs: map[string]string{"k": "v"},
		Patch: rolecall.Some(map[string]*string{"a": nil, "b": &text}), Email: rolecall.Some[*string](nil), Sure: true, At: &at,
	}
	want.Reach.Departments = []string{"Sales"}
	if faults != nil || denied != nil || !reflect.DeepEqual(d, want) {
		t.Errorf("%+v, want %+v (%q, %v)", d, want, faults, denied)
	}
	d, faults, _ = decode(`{"name":"A","desk":null,"tags":null,"pairs":null,"patch":null,"title":null,"at":null}`, nil)
	if faults != nil || !reflect.DeepEqual(d, draft{Name: "A", Patch: rolecall.Optional[map[string]*string]{Set: true}, Title: rolecall.Some("")}) {
		t.Errorf("nulls: %+v %q", d, faults)
	}
	refused := []string{"/name type", "/sure type", "/role type", "/reach type", "/lists type", "/texts type", "/tags/0 type", "/pairs/k type"}
	if _, faults, _ = decode(`{"name":null,"sure":null,"role":null,"reach":null,"lists":null,"texts":null,"tags":[null],"pairs":{"k":null}}`, nil); !slices.Equal(faults, refused) {
		t.Errorf("refused nulls: %q", faults)
	}
}

func TestAllFieldErrorsAreReportedAtOnce(t *testing.T) {
	for body, want := range map[string][]string{
		`[]`: {" type"},
		`{}`: {"/name required"},
		`{"name":null,"note":1,"desk":1,"tags":"x","pairs":[],"patch":1,"email":1,"sure":"x","at":"x","role":"x","reach":{},"fixed":1}`: {
			"/name type", "/note type", "/desk type", "/tags type", "/pairs type", "/patch type", "/email type", "/sure type", "/at format",
			"/role format", "/reach/departments required", "/fixed immutable",
		},
		`{"name":"A","Note":"x","a/b~c":1,"tags":["a",1],"pairs":{"k":1,"l":"x"},"reach":{"x":1}}`: {
			"/Note unknown", "/a~1b~0c unknown", "/tags/1 type", "/pairs/k type", "/reach/x unknown", "/reach/departments required",
		},
	} {
		if _, got, _ := decode(body, nil); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", body, got, want)
		}
	}
}

func TestDeniedMembersAreNotRead(t *testing.T) {
	d, faults, denied := decode(`{"name":"A","note":1,"desk":2,"reach":{"departments":["Sales"]}}`, func(member string, _ jsontext.Value) error {
		if member == "note" || member == "desk" || member == "departments" {
			return fmt.Errorf("not %s", member)
		}
		return nil
	})
	if denied == nil || denied.Error() != "not note" || faults != nil || d.Reach.Departments == nil {
		t.Errorf("%v %q %+v", denied, faults, d)
	}
}

func TestMergeKeepsErrorsOfOtherValues(t *testing.T) {
	faults := rolecall.FieldErrors{{Pointer: "/a", Code: "type"}}
	merged := Merge(faults, rolecall.FieldErrors{{Pointer: "/a", Code: "length"}, {Pointer: "/a/0", Code: "length"}, {Pointer: "/ab", Code: "length"}})
	if len(merged) != 2 || merged[1].Pointer != "/ab" {
		t.Errorf("%+v", merged)
	}
}

func TestLongNamesAreCut(t *testing.T) {
	_, faults, _ := decode(`{"name":"A","`+strings.Repeat("ü", 500)+`":1}`, nil)
	if len(faults) != 1 || len(faults[0]) > 200 || !strings.Contains(faults[0], "…") {
		t.Errorf("%q", faults)
	}
}

// FuzzText checks that each text becomes a JSON string with the same value. It also checks that the
// string is valid JSON if the text is not valid UTF-8.
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
		if err := json.Unmarshal(AppendText(nil, text), &got); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		if want := strings.Join(strings.Split(text, ""), ""); utf8.ValidString(text) && got != want || !utf8.ValidString(got) {
			t.Fatalf("%q became %q", text, got)
		}
	})
}
