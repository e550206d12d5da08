package scim

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func object(t testing.TB, text string) map[string]any {
	t.Helper()
	var o map[string]any
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return o
}

func decode(t testing.TB, text string) []Operation {
	t.Helper()
	all, err := DecodePatch(object(t, `{"schemas":["urn:ietf:params:scim:api:messages:2.0:PatchOp"],"Operations":`+text+`}`))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return all
}

// ada is the user that the patches change, in the form in which it is stored.
const ada = `{"userName":"ada","externalId":"e1","displayName":"Ada L","name":{"familyName":"Lovelace","givenName":"Ada"},` +
	`"emails":[{"value":"ada@example.com","type":"work","primary":true},{"value":"ada@home.example","type":"home"}],"department":"Engines","active":true}`

func storedUser(t testing.TB, text string) User {
	t.Helper()
	var u User
	if err := json.Unmarshal([]byte(text), &u); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestPatchOfUser(t *testing.T) {
	for name, test := range map[string]struct{ operations, old, new string }{
		"Entra: disable":          {`[{"op":"Replace","path":"active","value":"False"}]`, `"active":true`, `"active":false`},
		"Entra: disable, boolean": {`[{"op":"Replace","path":"active","value":false}]`, `"active":true`, `"active":false`},
		"Okta: disable":           {`[{"op":"replace","value":{"active":false}}]`, `"active":true`, `"active":false`},
		"Entra: names":            {`[{"op":"Replace","path":"name.familyName","value":"King"},{"op":"Add","path":"name.formatted","value":"Ada King"}]`, `"name":{"familyName":"Lovelace"`, `"name":{"formatted":"Ada King","familyName":"King"`},
		"Entra: work address":     {`[{"op":"Replace","path":"emails[type eq \"work\"].value","value":"ada@new.example"}]`, `ada@example.com`, `ada@new.example`},
		"Entra: new address":      {`[{"op":"Add","path":"emails[type eq \"other\"].value","value":"a@other.example"}]`, `"type":"home"}`, `"type":"home"},{"value":"a@other.example","type":"other"}`},
		"Entra: address in two steps": {
			`[{"op":"Add","path":"emails[type eq \"other\"].primary","value":true},{"op":"Add","path":"emails[type eq \"other\"].value","value":"a@other.example"}]`,
			`"primary":true},{"value":"ada@home.example","type":"home"}`, `"primary":false},{"value":"ada@home.example","type":"home"},{"value":"a@other.example","type":"other","primary":true}`,
		},
		"Entra: primary address": {`[{"op":"Replace","path":"emails[primary eq true].value","value":"ada@new.example"}]`, `ada@example.com`, `ada@new.example`},
		"Entra: primary as text": {`[{"op":"Replace","path":"emails[primary eq \"True\"].value","value":"ada@new.example"}]`, `ada@example.com`, `ada@new.example`},
		"Entra: department":      {`[{"op":"Add","path":"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department","value":"Poetry"}]`, `Engines`, `Poetry`},
		"Entra: without paths": {
			`[{"op":"replace","value":{"name.familyName":"King","userName":"ada2","emails[type eq \"home\"].value":"h@new.example","urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department":"Poetry","title":"Countess","unknown":1,"urn:x:y:2.0:User:z":"1"}}]`,
			`"userName":"ada","externalId":"e1","displayName":"Ada L","name":{"familyName":"Lovelace","givenName":"Ada"},"emails":[{"value":"ada@example.com","type":"work","primary":true},{"value":"ada@home.example","type":"home"}],"department":"Engines"`,
			`"userName":"ada2","externalId":"e1","displayName":"Ada L","name":{"familyName":"King","givenName":"Ada"},"emails":[{"value":"ada@example.com","type":"work","primary":true},{"value":"h@new.example","type":"home"}],"department":"Poetry"`,
		},
		"URN of the core schema":     {`[{"op":"replace","path":"urn:ietf:params:scim:schemas:core:2.0:User:emails[type eq \"work\"].value","value":"ada@new.example"}]`, `ada@example.com`, `ada@new.example`},
		"extension as object":        {`[{"op":"replace","value":{"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User":{"Department":"Poetry","manager":{"value":"x"}}}}]`, `Engines`, `Poetry`},
		"extension as path":          {`[{"op":"add","path":"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User","value":{"department":"Poetry"}}]`, `Engines`, `Poetry`},
		"remove the extension":       {`[{"op":"remove","path":"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"}]`, `,"department":"Engines"`, ``},
		"remove the department":      {`[{"op":"Remove","path":"URN:ietf:params:scim:schemas:extension:enterprise:2.0:user:DEPARTMENT"}]`, `,"department":"Engines"`, ``},
		"null":                       {`[{"op":"replace","path":"displayName","value":null}]`, `,"displayName":"Ada L"`, ``},
		"add null":                   {`[{"op":"add","path":"displayName","value":null}]`, ``, ``},
		"empty text":                 {`[{"op":"replace","path":"externalId","value":""}]`, `,"externalId":"e1"`, ``},
		"parts of the name stay":     {`[{"op":"replace","path":"name","value":{"givenName":"A."}}]`, `"givenName":"Ada"`, `"givenName":"A."`},
		"remove the name":            {`[{"op":"remove","path":"name"}]`, `,"name":{"familyName":"Lovelace","givenName":"Ada"}`, ``},
		"remove a part of the name":  {`[{"op":"remove","path":"name.givenName"}]`, `,"givenName":"Ada"`, ``},
		"add addresses":              {`[{"op":"add","path":"emails","value":[{"value":"ADA@home.example","type":"Home","display":"h"},{"value":"n@x.example","primary":true}]}]`, `"primary":true},{"value":"ada@home.example","type":"home"}`, `"primary":false},{"value":"ada@home.example","type":"home","display":"h"},{"value":"n@x.example","primary":true}`},
		"replace addresses":          {`[{"op":"replace","path":"emails","value":[{"value":"n@x.example","$ref":null,"primary":"True"}]}]`, `{"value":"ada@example.com","type":"work","primary":true},{"value":"ada@home.example","type":"home"}`, `{"value":"n@x.example","primary":true}`},
		"replace a selected address": {`[{"op":"replace","path":"emails[value ew \"HOME.example\" and not (primary eq true)]","value":{"value":"n@x.example"}}]`, `{"value":"ada@home.example","type":"home"}`, `{"value":"n@x.example"}`},
		"add to a selected address":  {`[{"op":"add","path":"emails[type eq \"home\"]","value":{"display":"h"}}]`, `"type":"home"`, `"type":"home","display":"h"`},
		"another primary address":    {`[{"op":"replace","path":"emails[type eq \"home\"].primary","value":true}]`, `"primary":true},{"value":"ada@home.example","type":"home"}`, `"primary":false},{"value":"ada@home.example","type":"home","primary":true}`},
		"remove an address":          {`[{"op":"remove","path":"emails[type eq \"home\" or type eq \"none\"]"}]`, `,{"value":"ada@home.example","type":"home"}`, ``},
		"remove the value":           {`[{"op":"remove","path":"emails[type eq \"home\"].value"}]`, `,{"value":"ada@home.example","type":"home"}`, ``},
		"remove listed addresses":    {`[{"op":"remove","path":"emails","value":[{"value":"ADA@home.example"}]}]`, `,{"value":"ada@home.example","type":"home"}`, ``},
		"remove an absent address":   {`[{"op":"remove","path":"emails[type eq \"other\"]"},{"op":"remove","path":"emails[type eq \"other\"].value"}]`, ``, ``},
		"attributes without storage": {`[{"op":"Add","path":"title","value":"x"},{"op":"Replace","path":"addresses[type eq \"work\"].locality","value":"x"},{"op":"remove","path":"password"},{"op":"Add","path":"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:manager","value":"x"}]`, ``, ``},
		"read-only in an object":     {`[{"op":"replace","value":{"id":"x","meta":{},"groups":[],"schemas":["x"]}}]`, ``, ``},
		"add a null object":          {`[{"op":"add","path":"name","value":null}]`, ``, ``},
		"add without a filter":       {`[{"op":"remove","path":"emails"},{"op":"add","path":"emails.value","value":"n@x.example"}]`, `{"value":"ada@example.com","type":"work","primary":true},{"value":"ada@home.example","type":"home"}`, `{"value":"n@x.example"}`},
		"active null":                {`[{"op":"replace","path":"active","value":null}]`, ``, ``},
		"no operations":              {`[]`, ``, ``},
	} {
		want := ada
		if test.old != "" {
			if want = strings.Replace(ada, test.old, test.new, 1); want == ada {
				t.Fatalf("%s: %s is not in the user", name, test.old)
			}
		}
		old := storedUser(t, ada)
		got, err := PatchUser(old, decode(t, test.operations))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !reflect.DeepEqual(got, storedUser(t, want)) {
			text, _ := json.Marshal(got)
			t.Errorf("%s:\n%s, want\n%s", name, text, want)
		}
		if !reflect.DeepEqual(old, storedUser(t, ada)) {
			t.Errorf("%s: the old user changed", name)
		}
	}
}

func TestRefusedPatchOfUser(t *testing.T) {
	for operations, scimType := range map[string]string{
		`[{"op":"remove","path":"userName"}]`:                                                                                        Mutability,
		`[{"op":"remove","path":"active"}]`:                                                                                          Mutability,
		`[{"op":"replace","path":"userName","value":null}]`:                                                                          InvalidValue,
		`[{"op":"replace","path":"userName","value":5}]`:                                                                             InvalidValue,
		`[{"op":"replace","path":"active","value":"yes"}]`:                                                                           InvalidValue,
		`[{"op":"replace","path":"active","value":1}]`:                                                                               InvalidValue,
		`[{"op":"replace","path":"id","value":"x"}]`:                                                                                 Mutability,
		`[{"op":"add","path":"groups","value":[]}]`:                                                                                  Mutability,
		`[{"op":"replace","path":"meta.version","value":"x"}]`:                                                                       Mutability,
		`[{"op":"add","path":"nothing","value":"x"}]`:                                                                                InvalidPath,
		`[{"op":"add","path":"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:nothing","value":"x"}]`:                     InvalidPath,
		`[{"op":"add","path":"urn:x:2.0:User:department","value":"x"}]`:                                                              InvalidPath,
		`[{"op":"add","path":"name.nothing","value":"x"}]`:                                                                           InvalidPath,
		`[{"op":"add","path":"userName.value","value":"x"}]`:                                                                         InvalidPath,
		`[{"op":"add","path":"userName[value eq \"x\"]","value":"x"}]`:                                                               InvalidPath,
		`[{"op":"add","path":"name[value eq \"x\"]","value":"x"}]`:                                                                   InvalidPath,
		`[{"op":"add","path":"emails.nothing","value":"x"}]`:                                                                         InvalidPath,
		`[{"op":"add","path":"emails[nothing eq \"x\"].value","value":"x@y.example"}]`:                                               InvalidPath,
		`[{"op":"add","path":"emails[type sw \"x\"].value","value":"x@y.example"}]`:                                                  NoTarget,
		`[{"op":"remove","path":"emails[type.x eq \"x\"]"}]`:                                                                         InvalidPath,
		`[{"op":"remove","path":"emails[` + strings.Repeat(`type pr or `, comparisonsMax) + `type pr]"}]`:                            InvalidPath,
		`[{"op":"add","path":"emails[type eq \"x\"]","value":5}]`:                                                                    InvalidValue,
		`[{"op":"add","path":"emails[primary eq \"x\"].value","value":"x@y.example"}]`:                                               InvalidValue,
		`[{"op":"add","path":"emails[display eq \"x\"].nothing","value":"x"}]`:                                                       InvalidPath,
		`[{"op":"add","path":"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department.x","value":"x"}]`:                InvalidPath,
		`[{"op":"add","path":"emails","value":5}]`:                                                                                   InvalidValue,
		`[{"op":"add","path":"emails","value":[{"value":5}]}]`:                                                                       InvalidValue,
		`[{"op":"replace","path":"emails","value":[{"value":"a@x.example","primary":true},{"value":"b@x.example","primary":true}]}]`: InvalidValue,
		`[{"op":"remove","path":"emails"}]`:                                                                                          InvalidValue, // the user name is not an address
		`[{"op":"replace","path":"name","value":"Ada"}]`:                                                                             InvalidValue,
		`[{"op":"replace","value":"x"}]`:                                                                                             InvalidValue,
		`[{"op":"replace","value":{"userName":"a","USERNAME":"b"}}]`:                                                                 InvalidSyntax,
		`[{"op":"replace","path":"displayName","value":"a\u0000b"}]`:                                                                 InvalidValue,
		`[{"op":"replace","path":"name.formatted","value":"a\nb"}]`:                                                                  InvalidValue,
		`[{"op":"replace","path":"name.formatted","value":"` + strings.Repeat("a", 256) + `"}]`:                                      InvalidValue,
		`[{"op":"add","path":"emails","value":[` + strings.Repeat(`{},`, 20) + `{}]}]`:                                               InvalidValue,
		`[{"op":"add","path":"emails","value":[` + emails(19) + `]}]`:                                                                InvalidValue,
	} {
		old := storedUser(t, ada)
		refused(t, operations, scimType, func() error {
			_, err := PatchUser(old, decode(t, operations))
			return err
		})
		if !reflect.DeepEqual(old, storedUser(t, ada)) {
			t.Errorf("%s: the old user changed", operations)
		}
	}
}

func TestSelectedEmails(t *testing.T) {
	for filter, want := range map[string]string{ // the types of the selected addresses
		`value eq "ADA@example.com"`: "work", `type ne "work"`: "home other", `value co "HOME"`: "home", `value sw "ada@h"`: "home",
		`value ew ".example"`: "home other", `type gt "home"`: "work other", `type ge "other"`: "work other", `type lt "other"`: "home", `type le "home"`: "home",
		`display pr`: "other", `display eq null`: "work home", `display ne null`: "other", `type eq 5`: "", `type ne 5`: "work home other",
		`primary eq true`: "work", `primary eq false`: "home other", `primary ne true`: "home other", `primary pr`: "work", `primary gt true`: "", `primary eq "x"`: "",
		`not (type eq "work" or type eq "home")`: "other", `type eq "home" and value ew "example" or primary eq true`: "work home",
		`(type eq "home" or type eq "other") and display pr`: "other",
	} {
		u := storedUser(t, ada)
		u.Emails = append(u.Emails, Email{Value: "o@other.example", Type: "other", Display: "o"})
		p, err := parsePath("emails[" + filter + "].display")
		if err != nil {
			t.Errorf("%s: %v", filter, err)
			continue
		}
		var selected []string
		for i := range u.Emails {
			matches, err := u.Emails[i].matches(p.filter)
			if err != nil {
				t.Errorf("%s: %v", filter, err)
			}
			if matches {
				selected = append(selected, u.Emails[i].Type)
			}
		}
		if got := strings.Join(selected, " "); got != want {
			t.Errorf("%s: %s, want %s", filter, got, want)
		}
	}
}

// emails returns n different addresses.
func emails(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`{"value":"ada%d@example.com"}`, i)
	}
	return strings.Join(all, ",")
}

func TestDecodePatch(t *testing.T) {
	for body, want := range map[string]string{
		`{}`:                  InvalidSyntax,
		`{"active":false}`:    InvalidSyntax,
		`{"Operations":null}`: InvalidSyntax,
		`{"schemas":["URN:ietf:params:scim:api:messages:2.0:patchop"],"operations":[]}`: "",
		`{"schemas":["urn:x"],"Operations":[]}`:                                         InvalidSyntax,
		`{"schemas":[5],"Operations":[]}`:                                               InvalidSyntax,
		`{"Operations":{}}`:                                                             InvalidSyntax,
		`{"Operations":[5]}`:                                                            InvalidSyntax,
		`{"Operations":[{"op":"move","path":"a","value":1}]}`:                           InvalidSyntax,
		`{"Operations":[{"path":"a","value":1}]}`:                                       InvalidSyntax,
		`{"Operations":[{"op":"add","path":"userName"}]}`:                               InvalidValue,
		`{"Operations":[{"op":"remove"}]}`:                                              NoTarget,
		`{"Operations":[{"op":"remove","path":""}]}`:                                    NoTarget,
		`{"Operations":[{"op":"remove","path":5}]}`:                                     InvalidPath,
		`{"Operations":[{"op":"remove","path":"emails[type eq \"work\""}]}`:             InvalidPath,
		`{"Operations":[{"op":"remove","path":"emails[type eq \"work\"].value.x"}]}`:    InvalidPath,
		`{"Operations":[{"op":"remove","path":"emails.value[type eq \"work\"]"}]}`:      InvalidPath,
		`{"Operations":[{"op":"remove","path":"a b"}]}`:                                 InvalidPath,
		`{"Operations":[{"op":"remove","path":"/userName"}]}`:                           InvalidPath,
		`{"Operations":[{"op":"remove","path":"emails[emails[type eq \"a\"]]"}]}`:       InvalidPath,
		`{"Operations":[{"op":"remove","path":"x","OP":"add"}]}`:                        InvalidSyntax,
	} {
		if want == "" {
			if all, err := DecodePatch(object(t, body)); err != nil || len(all) != 0 {
				t.Errorf("%s: %v %v", body, all, err)
			}
			continue
		}
		refused(t, body, want, func() error { _, err := DecodePatch(object(t, body)); return err })
	}
	var e *Error
	tooMany := `{"Operations":[` + strings.Repeat(`{"op":"remove","path":"x"},`, operationsMax) + `{"op":"remove","path":"x"}]}`
	if _, err := DecodePatch(object(t, tooMany)); !errors.As(err, &e) || e.Status != 413 {
		t.Errorf("too many operations: %v", err)
	}
}

func FuzzPath(f *testing.F) {
	for _, path := range []string{
		`userName`, `name.givenName`, `emails[type eq "work"].value`, `emails[primary eq true and not (value pr)]`, `members[value eq "x"]`,
		EnterpriseUserSchema, EnterpriseUserSchema + `:department`, UserSchema + `:emails[type eq "work"].value`, `$ref`, `urn:`, `a.b.c`, `[`,
	} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePath(text)
		if err != nil {
			refused(t, text, InvalidPath, func() error { return err })
			return
		}
		if again, err := parsePath(p.attributePath.String()); err != nil || again.attributePath != p.attributePath {
			t.Errorf("%s: %v, parsed again: %v %v", text, p, again, err)
		}
		if p.isRoot() {
			t.Errorf("%q is a path to the whole resource", text)
		}
	})
}

func FuzzPatch(f *testing.F) {
	for _, operations := range []string{
		`[{"op":"Replace","path":"active","value":"False"}]`,
		`[{"op":"replace","value":{"name.familyName":"King","emails[type eq \"home\"].value":"h@new.example","active":null}}]`,
		`[{"op":"Add","path":"emails[type eq \"other\"].primary","value":true},{"op":"Add","path":"emails[type eq \"other\"].value","value":"a@other.example"}]`,
		`[{"op":"remove","path":"emails"},{"op":"replace","path":"userName","value":"a@b.example"}]`,
		`[{"op":"Add","path":"members","value":[{"$ref":null,"value":"018f1f2e-0000-7000-8000-000000000001"}]}]`,
		`[{"op":"Remove","path":"members[value eq \"018f1f2e-0000-7000-8000-000000000001\"]"},{"op":"replace","value":{"displayName":"S","members":[]}}]`,
		`[{"op":"add","path":"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User","value":{"department":"Poetry"}}]`,
	} {
		f.Add(operations)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var values any
		if json.Unmarshal([]byte(text), &values) != nil {
			return
		}
		all, err := DecodePatch(map[string]any{"Operations": values})
		if err != nil {
			return
		}
		old := storedUser(t, ada)
		if u, err := PatchUser(old, all); err == nil {
			if err := u.Check(); err != nil {
				t.Errorf("%s: %v", text, err)
			}
			again, err := DecodeUser(roundTrip(t, u.Resource(Meta{ID: "x"}, nil)))
			if again.Active == nil || err != nil || !reflect.DeepEqual(again, u) {
				t.Errorf("%s: %+v, sent again: %+v %v", text, u, again, err)
			}
		}
		if !reflect.DeepEqual(old, storedUser(t, ada)) {
			t.Errorf("%s: the old user changed", text)
		}
		if p, err := PatchGroup(all); err == nil && p.DisplayName.Set {
			g := Group{p.DisplayName.Value, p.ExternalID.Value}
			if err := g.check(); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
	})
}

// roundTrip returns the value as a client decodes it.
func roundTrip(t testing.TB, value any) map[string]any {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return object(t, string(text))
}
