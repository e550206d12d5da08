package scim

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
)

const (
	textA = "018f1f2e-0000-7000-8000-00000000000a"
	textB = "018f1f2e-0000-7000-8000-00000000000b"
	textC = "018f1f2e-0000-7000-8000-00000000000c"
)

func userIDs(t testing.TB, texts ...string) []rolecall.UserID {
	t.Helper()
	var all []rolecall.UserID
	for _, text := range texts {
		id, err := rolecall.ParseID[rolecall.User](text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, id)
	}
	return all
}

func TestDecodeGroup(t *testing.T) {
	for body, want := range map[string]struct {
		group Group
		users []rolecall.UserID
		sent  bool
	}{
		// Entra, Okta, and other forms.
		`{"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group"],"externalId":"8aa1a0c0","displayName":"Sales","meta":{"resourceType":"Group"}}`:                    {Group{"Sales", "8aa1a0c0"}, nil, false},
		`{"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group"],"displayName":"Sales","members":[{"value":"` + textA + `","display":"ada@example.com"}]}`:          {Group{"Sales", ""}, userIDs(t, textA), true},
		`{"DISPLAYNAME":"Sales","Members":[{"$ref":null,"value":"` + textA + `","type":"user"},{"Value":"` + strings.ToUpper(textB) + `"},{"value":"` + textA + `"}]}`: {Group{"Sales", ""}, userIDs(t, textA, textB), true},
		`{"displayName":"Sales","members":null,"unknown":1}`: {Group{"Sales", ""}, nil, true},
		`{"displayName":"Sales","members":[]}`:               {Group{"Sales", ""}, []rolecall.UserID{}, true},
	} {
		group, users, sent, err := DecodeGroup(object(t, body))
		if err != nil || group != want.group || len(users) != len(want.users) || len(users) > 0 && !reflect.DeepEqual(users, want.users) || sent != want.sent {
			t.Errorf("%s: %v %v %v %v, want %v", body, group, users, sent, err, want)
		}
	}
	for body, scimType := range map[string]string{
		`{}`:                  InvalidValue,
		`{"displayName":""}`:  InvalidValue,
		`{"displayName":" "}`: InvalidValue,
		`{"displayName":5}`:   InvalidValue,
		`{"displayName":"` + strings.Repeat("a", 256) + `"}`:                                InvalidValue,
		`{"displayName":"S","externalId":"a\nb"}`:                                           InvalidValue,
		`{"displayName":"S","members":[{"value":"x"}]}`:                                     InvalidValue,
		`{"displayName":"S","members":[{}]}`:                                                InvalidValue,
		`{"displayName":"S","members":5}`:                                                   InvalidValue,
		`{"displayName":"S","members":[{"value":"` + textA + `","type":"Group"}]}`:          InvalidValue,
		`{"displayName":"S","members":[{"value":"` + textA + `","VALUE":"` + textB + `"}]}`: InvalidSyntax,
		`{"displayName":"S","displayname":"T"}`:                                             InvalidSyntax,
	} {
		refused(t, body, scimType, func() error { _, _, _, err := DecodeGroup(object(t, body)); return err })
	}
}

func TestPatchGroup(t *testing.T) {
	none := rolecall.Optional[string]{}
	for text, want := range map[string]GroupPatch{
		`[{"op":"Add","path":"members","value":[{"$ref":null,"value":"` + textA + `"}]}]`:                   {none, none, []MemberChange{{Add, userIDs(t, textA)}}},
		`[{"op":"Remove","path":"members","value":[{"$ref":null,"value":"` + textA + `"}]}]`:                {none, none, []MemberChange{{Remove, userIDs(t, textA)}}},
		`[{"op":"remove","path":"members[value eq \"` + textA + `\"]"}]`:                                    {none, none, []MemberChange{{Remove, userIDs(t, textA)}}},
		`[{"op":"remove","path":"members[value eq \"` + textA + `\" or value eq \"` + textB + `\"]"}]`:      {none, none, []MemberChange{{Remove, userIDs(t, textA, textB)}}},
		`[{"op":"remove","path":"members"}]`:                                                                {none, none, []MemberChange{{Replace, nil}}},
		`[{"op":"remove","path":"members","value":[]}]`:                                                     {none, none, nil},
		`[{"op":"replace","path":"members","value":[]}]`:                                                    {none, none, []MemberChange{{Replace, nil}}},
		`[{"op":"replace","path":"members","value":[{"value":"` + textA + `"},{"value":"` + textB + `"}]}]`: {none, none, []MemberChange{{Replace, userIDs(t, textA, textB)}}},
		`[{"op":"replace","value":{"id":"x","displayName":"Sales"}}]`:                                       {rolecall.Some("Sales"), none, nil},
		`[{"op":"add","value":{"members":[{"value":"` + textA + `"}],"externalId":"e"}}]`:                   {none, rolecall.Some("e"), []MemberChange{{Add, userIDs(t, textA)}}},
		`[{"op":"replace","value":{"members":[],"id":"x","displayName":"Sales"}}]`:                          {rolecall.Some("Sales"), none, []MemberChange{{Replace, nil}}},
		`[{"op":"Replace","path":"displayName","value":"Sales"},{"op":"Remove","path":"externalId"}]`:       {rolecall.Some("Sales"), rolecall.Some(""), nil},
		`[{"op":"Replace","path":"urn:ietf:params:scim:schemas:core:2.0:Group:displayName","value":"S"}]`:   {rolecall.Some("S"), none, nil},
		`[{"op":"add","path":"displayName","value":null},{"op":"add","path":"members","value":null}]`:       {none, none, nil},
		`[]`: {none, none, nil},
		`[{"op":"add","path":"members","value":[{"value":"` + textA + `"}]},{"op":"add","path":"members","value":[{"value":"` + textB + `"},{"value":"` + textA + `"}]},{"op":"remove","path":"members","value":[{"value":"` + textC + `"}]},{"op":"add","path":"members","value":[{"value":"` + textC + `"}]}]`: {none, none, []MemberChange{{Add, userIDs(t, textA, textB)}, {Remove, userIDs(t, textC)}, {Add, userIDs(t, textC)}}},
		`[{"op":"add","path":"members","value":[{"value":"` + textA + `"}]},{"op":"replace","path":"members","value":[{"value":"` + textB + `"}]},{"op":"add","path":"members","value":[{"value":"` + textC + `"}]}]`:                                                                                            {none, none, []MemberChange{{Replace, userIDs(t, textB)}, {Add, userIDs(t, textC)}}},
	} {
		got, err := PatchGroup(decode(t, text))
		for i := range got.Changes {
			if len(got.Changes[i].Users) == 0 {
				got.Changes[i].Users = nil
			}
		}
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v %v, want %v", text, got, err, want)
		}
	}
	for text, scimType := range map[string]string{
		`[{"op":"remove","path":"displayName"}]`:                                           Mutability,
		`[{"op":"replace","path":"displayName","value":null}]`:                             InvalidValue,
		`[{"op":"replace","path":"displayName","value":"a\nb"}]`:                           InvalidValue,
		`[{"op":"replace","path":"displayName.x","value":"a"}]`:                            InvalidPath,
		`[{"op":"replace","path":"id","value":"a"}]`:                                       Mutability,
		`[{"op":"replace","path":"nothing","value":"a"}]`:                                  InvalidPath,
		`[{"op":"replace","path":"urn:x:2.0:Group:members","value":[]}]`:                   InvalidPath,
		`[{"op":"replace","path":"members[value eq \"` + textA + `\"].type","value":"x"}]`: Mutability,
		`[{"op":"add","path":"members.value","value":"` + textA + `"}]`:                    Mutability,
		`[{"op":"remove","path":"members[type eq \"User\"]"}]`:                             InvalidPath,
		`[{"op":"remove","path":"members[value eq \"x\"]"}]`:                               InvalidValue,
		`[{"op":"add","path":"members","value":[{"value":"x"}]}]`:                          InvalidValue,
		`[{"op":"add","path":"members","value":[5]}]`:                                      InvalidValue,
		`[{"op":"replace","value":[]}]`:                                                    InvalidValue,
	} {
		refused(t, text, scimType, func() error { _, err := PatchGroup(decode(t, text)); return err })
	}
}

func TestTooManyMembers(t *testing.T) {
	ids := func(n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(`{"value":"018f1f2e-0000-7000-8000-%012x"}`, i)
		}
		return "[" + strings.Join(all, ",") + "]"
	}
	patch := func(text string) error { _, err := PatchGroup(decode(t, text)); return err }
	for name, err := range map[string]error{
		"list":     patch(`[{"op":"add","path":"members","value":` + ids(1001) + `}]`),
		"object":   patch(`[{"op":"add","value":{"Members":` + ids(1001) + `}}]`),
		"invalid":  patch(`[{"op":"add","path":"members","value":["x"]},{"op":"remove","path":"members","value":` + ids(1000) + `}]`),
		"selected": patch(`[{"op":"remove","path":"members[value eq \"` + textA + `\"]"},{"op":"remove","path":"members","value":` + ids(1000) + `}]`),
	} {
		var e *Error
		if !errors.As(err, &e) || e.Status != 413 {
			t.Errorf("%s: %v, want 413", name, err)
		}
	}
	if err := patch(`[{"op":"add","path":"members","value":` + ids(1000) + `}]`); err != nil {
		t.Error(err)
	}
	_, _, _, err := DecodeGroup(object(t, `{"displayName":"S","members":`+ids(1001)+`}`))
	if e := (*Error)(nil); !errors.As(err, &e) || e.Status != 413 {
		t.Errorf("%v, want 413", err)
	}
}

func TestResourceOfGroup(t *testing.T) {
	g := Group{DisplayName: "Sales", ExternalID: "e"}
	got := roundTrip(t, g.Resource(testMeta, userIDs(t, textA)))
	want := object(t, `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:Group"],"id":"018f1f2e-0000-7000-8000-000000000001","displayName":"Sales","externalId":"e",
		"members":[{"value":"`+textA+`","type":"User","$ref":"https://id.example/scim/v2/acme/Users/`+textA+`"}],
		"meta":{"resourceType":"Group","created":"2023-11-14T22:13:20.000001Z","lastModified":"2023-11-14T22:13:21.000000Z",
			"location":"https://id.example/scim/v2/acme/Groups/018f1f2e-0000-7000-8000-000000000001","version":"W/\"3\""}}`)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if _, has := (&Group{DisplayName: "S"}).Resource(testMeta, nil)["members"]; has {
		t.Error("a group without members has the attribute members")
	}
}
