package rolecall_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rolecall/rolecall"
)

func TestCheckEmail(t *testing.T) {
	local64 := strings.Repeat("a", 64)
	label63 := strings.Repeat("b", 63)
	longest := local64 + "@" + strings.Join([]string{label63, label63, strings.Repeat("c", 61)}, ".") // 254 octets
	for _, email := range []string{
		"ada@example.com", "a@b.c", "ADA@Example.COM", "ada+news@example.com", "ada.lovelace@sub.example.co.uk",
		"o'neill@example.com", "user_name-1@my-host.example", "ada@localhost", "用户@例子.公司", "josé@example.com", longest,
	} {
		if code, detail := rolecall.CheckEmail(email); code != "" || detail != "" {
			t.Errorf("CheckEmail(%q) = %q, %q", email, code, detail)
		}
	}
	for email, want := range map[string]string{
		"":                                "length",
		"a@":                              "length",
		"ada":                             "email",
		"@example.com":                    "email",
		"ada@":                            "email",
		"ada@@example.com":                "email",
		"ada lovelace@example.com":        "email",
		" ada@example.com":                "email",
		"ada@example.com ":                "email",
		"ada@example..com":                "email",
		"ada@.example.com":                "email",
		"ada@example.com.":                "email",
		"ada@-example.com":                "email",
		"ada@example-.com":                "email",
		"ada@exa_mple.com":                "email",
		"ada@[192.0.2.1]":                 "email",
		".ada@example.com":                "email",
		"ada.@example.com":                "email",
		"a..da@example.com":               "email",
		`"ada"@example.com`:               "email",
		"Ada <ada@example.com>":           "email",
		"ada@example.com,eve@evil.com":    "email",
		"ada(comment)@example.com":        "email",
		"ada\u200b@example.com":           "email", // looks like the address of another user
		"ada@exam\u200dple.com":           "email",
		"ada\u00a0b@example.com":          "email",
		"ada\r\nbcc:eve@example.com":      "control-character",
		"ada\x00@example.com":             "control-character",
		"a" + local64 + "@example.com":    "email",
		"ada@" + label63 + "b.com":        "email",
		longest + "c":                     "length",
		strings.Repeat("é", 120) + "@b.c": "email", // within 254 characters, not octets
	} {
		if code, detail := rolecall.CheckEmail(email); code != want || detail == "" {
			t.Errorf("CheckEmail(%q) = %q, %q, want %q", email, code, detail, want)
		}
	}
}

func FuzzCheckEmail(f *testing.F) {
	f.Add("ada@example.com")
	f.Add("\"a b\"@[::1]")
	f.Fuzz(func(t *testing.T, email string) {
		code, _ := rolecall.CheckEmail(email)
		if code == "" && (len(email) > rolecall.EmailMax || strings.ContainsAny(email, " \t\r\n\x00<>,;\"")) {
			t.Errorf("%q is taken for an address", email)
		}
	})
}

func TestEmailKey(t *testing.T) {
	for email, want := range map[string]string{
		"Ada@Example.COM":                              "ada@example.com",
		"JOSE\u0301@example.com":                       "jos\u00e9@example.com",
		"jos\u00e9@example.com":                        "jos\u00e9@example.com",
		"ada+news@example.com":                         "ada+news@example.com",
		"\u0130DA@\u0130stanbul.example":               "i\u0307da@xn--istanbul-o0e.example",
		"ÄDA@EXAMPLE.COM":                              "äda@example.com",
		"a.da@example.com":                             "a.da@example.com",
		"Ada@BÜCHER.example":                           "ada@xn--bcher-kva.example",
		"ada@XN--BCHER-KVA.Example":                    "ada@xn--bcher-kva.example",
		"ada@bu\u0308cher.example":                     "ada@xn--bcher-kva.example",
		"ada@straße.example":                           "ada@xn--strae-oqa.example", // nontransitional
		"ada@strasse.example":                          "ada@strasse.example",
		"用户@例子.公司":                                     "用户@xn--fsqu00a.xn--55qx5d",
		"ada@ｅｘａｍｐｌｅ.com":                              "ada@example.com",
		"ada@xn--a.example":                            "ada@xn--a.example",                            // not an A-label
		"ada@ü" + strings.Repeat("a", 62) + ".example": "ada@ü" + strings.Repeat("a", 62) + ".example", // too long as an A-label
		"Ｆｕｌｌ@example.com":                             "ｆｕｌｌ@example.com",                             // wide letters stay wide, unlike in a folded name
	} {
		if got := rolecall.EmailKey(email); got != want {
			t.Errorf("EmailKey(%q) = %q, want %q", email, got, want)
		}
	}
}

func TestMaskEmail(t *testing.T) {
	for email, want := range map[string]string{
		"ada@example.com": "a***@example.com",
		"a@b.c":           "a***@b.c",
		"用户@例子.公司":        "用***@例子.公司",
		`"a@b"@host`:      `"***@host`,
		"@host":           "***@host",
		"no address":      "***",
		"":                "***",
	} {
		if got := rolecall.MaskEmail(email); got != want {
			t.Errorf("MaskEmail(%q) = %q, want %q", email, got, want)
		}
	}
}

func draft(change func(*rolecall.UserDraft)) *rolecall.UserDraft {
	d := &rolecall.UserDraft{
		Email: "ada@example.com", Name: "Ada Lovelace", Department: new("Engineering"), ExternalID: new("e-1"),
		Metadata: map[string]string{"desk": "4", "empty": ""},
	}
	change(d)
	return d
}

func pairs(n int) map[string]string {
	metadata := map[string]string{}
	for i := range n {
		metadata[fmt.Sprintf("key%02d", i)] = "value"
	}
	return metadata
}

func TestUserDraftCheck(t *testing.T) {
	type d = rolecall.UserDraft
	for name, test := range map[string]struct {
		change func(*d)
		want   []string
	}{
		"good":                {func(*d) {}, nil},
		"only what is needed": {func(u *d) { u.Department, u.ExternalID, u.Metadata = nil, nil, nil }, nil},
		"nothing":             {func(u *d) { *u = d{} }, []string{"/email length", "/name length"}},
		"everything wrong": {
			func(u *d) {
				*u = d{Email: "ada", Name: "ab", Department: new("ab"), ExternalID: new(""), Metadata: map[string]string{"k": "\x00"}}
			},
			[]string{"/email email", "/name length", "/department length", "/externalId length", "/metadata/k control-character"},
		},
		"50 pairs": {func(u *d) { u.Metadata = pairs(50) }, nil},
		"51 pairs": {func(u *d) { u.Metadata = pairs(51) }, []string{"/metadata too-many"}},
		"longest pair": {func(u *d) {
			u.Metadata = map[string]string{strings.Repeat("k", 64): strings.Repeat("v", 500)}
		}, nil},
		"too long key":       {func(u *d) { u.Metadata = map[string]string{strings.Repeat("k", 65): ""} }, []string{"/metadata length"}},
		"too long value":     {func(u *d) { u.Metadata = map[string]string{"k": strings.Repeat("v", 501)} }, []string{"/metadata/k length"}},
		"empty key":          {func(u *d) { u.Metadata = map[string]string{"": "v"} }, []string{"/metadata length"}},
		"pointer is escaped": {func(u *d) { u.Metadata = map[string]string{"a/b~c": "\n"} }, []string{"/metadata/a~1b~0c control-character"}},
		"faults in the order of keys": {
			func(u *d) { u.Metadata = map[string]string{"c": "\n", "a": "\n", "b": "\n"} },
			[]string{"/metadata/a control-character", "/metadata/b control-character", "/metadata/c control-character"},
		},
	} {
		if got := codes(draft(test.change).Check(rolecall.DefaultNameMin)); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestDraftedUser(t *testing.T) {
	u := draft(func(d *rolecall.UserDraft) { d.Metadata = nil }).User(aMoment)
	if u.ID.IsZero() || u.Status != rolecall.UserPending || u.Version != 1 || u.CreatedAt != aMoment || u.UpdatedAt != aMoment {
		t.Errorf("%+v", u)
	}
	if text := u.Metadata.String(); text != "{}" {
		t.Errorf("metadata is %s, want an empty object", text)
	}
}

func TestUserPatchCheck(t *testing.T) {
	type p = rolecall.UserPatch
	removed := map[string]*string{}
	for key := range pairs(60) {
		removed[key] = nil
	}
	for name, test := range map[string]struct {
		patch p
		want  []string
	}{
		"empty":        {p{}, nil},
		"null clears":  {p{Department: rolecall.Some[*string](nil), ExternalID: rolecall.Some[*string](nil)}, nil},
		"removals":     {p{Metadata: rolecall.Some(removed)}, nil},
		"empty name":   {p{Name: rolecall.Some("")}, []string{"/name length"}},
		"all at once":  {p{Name: rolecall.Some("ab"), Department: rolecall.Some(new("a\n")), ExternalID: rolecall.Some(new(""))}, []string{"/name length", "/department control-character", "/externalId length"}},
		"bad metadata": {p{Metadata: rolecall.Some(map[string]*string{"k": new("\x00"), "gone": nil})}, []string{"/metadata/k control-character"}},
	} {
		if got := codes(test.patch.Check(rolecall.DefaultNameMin)); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestUserPatchApply(t *testing.T) {
	type p = rolecall.UserPatch
	before := draft(func(*rolecall.UserDraft) {}).User(aMoment)
	for name, test := range map[string]struct {
		patch   p
		changed []string
		check   func(u rolecall.User) bool
	}{
		"empty":       {p{}, []string{}, func(u rolecall.User) bool { return u.Name == before.Name }},
		"same values": {p{Name: rolecall.Some("Ada Lovelace"), Department: rolecall.Some(new("Engineering"))}, []string{}, func(u rolecall.User) bool { return true }},
		"name":        {p{Name: rolecall.Some("Ada King")}, []string{"name"}, func(u rolecall.User) bool { return u.Name == "Ada King" }},
		"null":        {p{Department: rolecall.Some[*string](nil)}, []string{"department"}, func(u rolecall.User) bool { return u.Department == nil }},
		"metadata merges": {p{Metadata: rolecall.Some(map[string]*string{"desk": nil, "floor": new("2")})}, []string{"metadata"}, func(u rolecall.User) bool {
			return u.Metadata == rolecall.NewMetadata(map[string]string{"floor": "2", "empty": ""})
		}},
		"metadata null":     {p{Metadata: rolecall.Some[map[string]*string](nil)}, []string{"metadata"}, func(u rolecall.User) bool { return u.Metadata == rolecall.Metadata{} }},
		"metadata the same": {p{Metadata: rolecall.Some(map[string]*string{"desk": new("4"), "none": nil})}, []string{}, func(u rolecall.User) bool { return u.Metadata == before.Metadata }},
		"several":           {p{ExternalID: rolecall.Some(new("e-2")), Name: rolecall.Some("Ada King")}, []string{"name", "externalId"}, func(u rolecall.User) bool { return *u.ExternalID == "e-2" }},
	} {
		after, changed, err := test.patch.Apply(before, aMoment+5)
		if err != nil || !slices.Equal(changed.Names(), test.changed) || !test.check(after) {
			t.Errorf("%s: %+v, changed %q, %v", name, after, changed.Names(), err)
		}
		wantVersion, wantUpdated := before.Version, before.UpdatedAt
		if len(test.changed) > 0 {
			wantVersion, wantUpdated = before.Version+1, aMoment+5
		}
		if after.Version != wantVersion || after.UpdatedAt != wantUpdated {
			t.Errorf("%s: version %d at %d, want %d at %d", name, after.Version, after.UpdatedAt, wantVersion, wantUpdated)
		}
	}
	if before.Metadata != rolecall.NewMetadata(map[string]string{"desk": "4", "empty": ""}) {
		t.Errorf("the user before was changed: %v", before.Metadata)
	}
}

func TestUpdatedAtIncreasesWhenTheClockGoesBack(t *testing.T) {
	before := draft(func(*rolecall.UserDraft) {}).User(aMoment)
	patch := rolecall.UserPatch{Name: rolecall.Some("Ada King")}
	after, _, err := patch.Apply(before, aMoment-1_000_000)
	if err != nil || after.UpdatedAt <= before.UpdatedAt {
		t.Errorf("updated at %d, before at %d, %v", after.UpdatedAt, before.UpdatedAt, err)
	}
}

func TestPatchedMetadataStaysBounded(t *testing.T) {
	before := draft(func(d *rolecall.UserDraft) { d.Metadata = pairs(50) }).User(aMoment)
	more := rolecall.UserPatch{Metadata: rolecall.Some(map[string]*string{"more": new("1")})}
	after, changed, err := more.Apply(before, aMoment+1)
	if !errors.Is(err, rolecall.ErrValidation) || changed != 0 || after.Metadata != before.Metadata {
		t.Errorf("51 pairs: %v, changed %v, %v", after.Metadata, changed.Names(), err)
	}
	swap := rolecall.UserPatch{Metadata: rolecall.Some(map[string]*string{"more": new("1"), "key00": nil})}
	if after, _, err := swap.Apply(before, aMoment+1); err != nil || strings.Count(after.Metadata.String(), ":") != 50 {
		t.Errorf("one in, one out: %v, %v", after.Metadata, err)
	}
}

// Apply must change only members that are present in the patch, and must return exactly the
// members that Differences returns.
func TestPatchChangesWhatItNames(t *testing.T) {
	text := rapid.SampledFrom([]string{"Sales", "sales", "Support", "Ada"})
	optional := rapid.Ptr(text, true)
	rapid.Check(t, func(t *rapid.T) {
		before := rolecall.UserDraft{Email: "ada@example.com", Name: text.Draw(t, "name"), Department: optional.Draw(t, "department")}
		user := before.User(aMoment)
		var patch rolecall.UserPatch
		if rapid.Bool().Draw(t, "names the name") {
			patch.Name = rolecall.Some(text.Draw(t, "next name"))
		}
		if rapid.Bool().Draw(t, "names the department") {
			patch.Department = rolecall.Some(optional.Draw(t, "next department"))
		}
		after, changed, err := patch.Apply(user, aMoment+1)
		if err != nil {
			t.Fatal(err)
		}
		if changed&^patch.Members() != 0 {
			t.Errorf("changed %v, named %v", changed.Names(), patch.Members().Names())
		}
		if after.Differences(user) != changed {
			t.Errorf("differences %v, changed %v", after.Differences(user).Names(), changed.Names())
		}
		if again, twice, err := patch.Apply(after, aMoment+2); err != nil || twice != 0 || again.Version != after.Version {
			t.Errorf("applied again it changes %v, %v", twice.Names(), err)
		}
	})
}

func TestDifferences(t *testing.T) {
	u := draft(func(*rolecall.UserDraft) {}).User(aMoment)
	for want, change := range map[string]func(v *rolecall.User){
		"email":      func(v *rolecall.User) { v.Email = "eve@example.com" },
		"name":       func(v *rolecall.User) { v.Name = "ada lovelace" },
		"department": func(v *rolecall.User) { v.Department = nil },
		"externalId": func(v *rolecall.User) { v.ExternalID = new("e-2") },
		"metadata":   func(v *rolecall.User) { v.Metadata = rolecall.Metadata{} },
		"status":     func(v *rolecall.User) { v.Status = rolecall.UserSuspended },
		"":           func(v *rolecall.User) { v.UpdatedAt, v.Department = 7, new("Engineering") },
	} {
		v := u
		change(&v)
		if got := strings.Join(u.Differences(v).Names(), " "); got != want {
			t.Errorf("differences are %q, want %q", got, want)
		}
	}
}

func TestMembersHaveNames(t *testing.T) {
	for m := range rolecall.AllUserMembers.All() {
		named, ok := rolecall.UserMemberNamed(m.String())
		if !ok || named != m {
			t.Errorf("%s names %v, %v", m, named, ok)
		}
		if want := "users." + m.String() + ":read"; m.Read().String() != want {
			t.Errorf("%s is read with %s", m, m.Read())
		}
	}
	if _, ok := rolecall.UserMemberNamed("id"); ok {
		t.Error("id is a member that can be withheld")
	}
	if got, want := rolecall.AllUserMembers.Names(), []string{"email", "name", "department", "externalId", "metadata", "status", "managedBy", "createdAt", "updatedAt"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// The row of each member must be about the member with its JSON name.
func TestTheRowsOfMembers(t *testing.T) {
	u := rolecall.User{
		Email: "ada@example.com", Name: "Ada", Department: new("Engineering"), ExternalID: new("e-1"),
		Metadata: rolecall.NewMetadata(map[string]string{"a": "b"}), Status: rolecall.UserActive, CreatedAt: 1, UpdatedAt: 2,
	}
	values := map[string]json.RawMessage{}
	decode(t, u, &values)
	for m := range rolecall.AllUserMembers.All() {
		value, err := json.Marshal(m.Of(&u))
		if err != nil || string(value) != string(values[m.String()]) {
			t.Errorf("%v: the value is %s (error %v), and in JSON %s", m, value, err, values[m.String()])
		}
		text, err := json.Marshal(m.Text(&u))
		if want := string(values[m.String()]); err != nil || m != rolecall.MemberMetadata && string(text) != want {
			t.Errorf("%v: the text is %s (error %v), and in JSON %s", m, text, err, want)
		}
	}
	for m := range rolecall.OptionalTexts.All() {
		var draft rolecall.UserDraft
		*m.OfDraft(&draft) = new("text")
		in := map[string]any{}
		if decode(t, draft, &in); in[m.String()] != "text" {
			t.Errorf("%v: the row sets another member of the draft: %v", m, in)
		}
		var patch rolecall.UserPatch
		*m.OfPatch(&patch) = rolecall.Some(new("text"))
		changes := map[string]struct{ Set bool }{}
		if decode(t, patch, &changes); !changes[m.String()].Set {
			t.Errorf("%v: the row sets another member of the patch: %v", m, changes)
		}
		for _, of := range []reflect.Type{reflect.TypeFor[rolecall.UserDraft](), reflect.TypeFor[rolecall.UserPatch]()} {
			checkBound(t, of, "json", m)
		}
	}
	for m := range rolecall.FilterableTexts.All() {
		var filter rolecall.TextFilter
		*m.OfFilter(&filter) = "text"
		set := reflect.ValueOf(filter).FieldByIndex(checkBound(t, reflect.TypeFor[rolecall.TextFilter](), "query", m))
		if set.String() != "text" || !maps.Equal(maps.Collect(filter.All()), map[rolecall.UserMember]string{m: "text"}) {
			t.Errorf("%v: the row sets another member of the filter: %+v", m, filter)
		}
	}
}

// checkBound checks that the struct tag of the member has the length of its row. It returns the index of the member.
func checkBound(t *testing.T, of reflect.Type, tag string, m rolecall.UserMember) []int {
	t.Helper()
	for _, f := range reflect.VisibleFields(of) {
		if f.Tag.Get(tag) == m.String() {
			if f.Tag.Get("maxLength") != strconv.Itoa(m.LengthMax()) {
				t.Errorf("%v of %v: the tag has the length %s, and the row %d", m, of, f.Tag.Get("maxLength"), m.LengthMax())
			}
			return f.Index
		}
	}
	t.Fatalf("%v does not have %v", of, m)
	return nil
}

// decode decodes the JSON of the value.
func decode(t *testing.T, value, into any) {
	t.Helper()
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}
