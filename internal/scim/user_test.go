package scim

import (
	"reflect"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
)

// entraUser is the body of a POST of Entra with its default attribute mappings.
const entraUser = `{
	"schemas": ["urn:ietf:params:scim:schemas:core:2.0:User", "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"],
	"externalId": "0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef", "userName": "ada@tenant.example", "active": true,
	"addresses": [{"primary": false, "type": "work", "country": "UK", "formatted": null}],
	"displayName": "Ada Lovelace", "emails": [{"primary": true, "type": "work", "value": "ada@example.com"}],
	"meta": {"resourceType": "User"}, "name": {"formatted": "Countess Ada", "familyName": "Lovelace", "givenName": "Ada"},
	"phoneNumbers": [{"primary": true, "type": "work", "value": "555"}], "preferredLanguage": "en", "roles": [], "title": "Countess",
	"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": {"department": "Engines", "employeeNumber": "7", "manager": {"value": "x"}}}`

// oktaUser is the body of a POST of Okta.
const oktaUser = `{
	"schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"], "userName": "ada@example.com",
	"name": {"givenName": "Ada", "familyName": "Lovelace"}, "emails": [{"primary": true, "value": "ada@example.com", "type": "work"}],
	"displayName": "Ada Lovelace", "locale": "en-US", "externalId": "00ujl29u0le5T6Aj10h7", "groups": [], "password": "1mz050nq", "active": true}`

func TestDecodeUser(t *testing.T) {
	truth, lie := true, false
	for body, want := range map[string]User{
		entraUser: {
			UserName: "ada@tenant.example", ExternalID: "0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef", DisplayName: "Ada Lovelace",
			Name:   Name{Formatted: "Countess Ada", FamilyName: "Lovelace", GivenName: "Ada"},
			Emails: []Email{{Value: "ada@example.com", Type: "work", Primary: &truth}}, Department: "Engines", Active: &truth,
		},
		oktaUser: {
			UserName: "ada@example.com", ExternalID: "00ujl29u0le5T6Aj10h7", DisplayName: "Ada Lovelace",
			Name:   Name{FamilyName: "Lovelace", GivenName: "Ada"},
			Emails: []Email{{Value: "ada@example.com", Type: "work", Primary: &truth}}, Active: &truth,
		},
		`{"USERNAME":"ada@example.com","Active":"False","EMAILS":[{"VALUE":"a@x.example","Primary":"true"},{"value":null,"type":"home"}],"externalid":null,"displayName":"","name":null}`: {
			UserName: "ada@example.com", Active: &lie, Emails: []Email{{Value: "a@x.example", Primary: &truth}},
		},
		`{"urn:ietf:params:scim:schemas:core:2.0:User:userName":"ada@example.com","URN:ietf:params:scim:schemas:extension:enterprise:2.0:User:department":"Engines","active":null,"emails":[],"x y":1}`: {
			UserName: "ada@example.com", Department: "Engines",
		},
		`{"userName":"ada","emails":"ada@example.com","urn:ietf:params:scim:schemas:extension:enterprise:2.0:User":null}`: {
			UserName: "ada", Emails: []Email{{Value: "ada@example.com"}},
		},
		`{"userName":"ada","emails":{"value":"ada@example.com","primary":false}}`: {
			UserName: "ada", Emails: []Email{{Value: "ada@example.com", Primary: &lie}},
		},
	} {
		got, err := DecodeUser(object(t, body))
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v %v, want %+v", body, got, err, want)
		}
	}
}

func TestRefusedUsers(t *testing.T) {
	for body, scimType := range map[string]string{
		`{}`:                 InvalidValue,
		`{"userName":""}`:    InvalidValue,
		`{"userName":null}`:  InvalidValue,
		`{"userName":5}`:     InvalidValue,
		`{"userName":["a"]}`: InvalidValue,
		`{"userName":"ada"}`: InvalidValue, // no address
		`{"userName":"ada","emails":[{"value":"ada"}]}`:                                                                                             InvalidValue,
		`{"userName":"a@x.example","emails":["b@x.example",5]}`:                                                                                     InvalidValue,
		`{"userName":"a@x.example","active":"maybe"}`:                                                                                               InvalidValue,
		`{"userName":"a@x.example","displayName":true}`:                                                                                             InvalidValue,
		`{"userName":"a@x.example","name":"Ada"}`:                                                                                                   InvalidValue,
		`{"userName":"a@x.example","name":{"givenName":1}}`:                                                                                         InvalidValue,
		`{"userName":"a@x.example","externalId":"a\u0007"}`:                                                                                         InvalidValue,
		`{"userName":"a@x.example","externalId":"` + strings.Repeat("a", 256) + `"}`:                                                                InvalidValue,
		`{"userName":"` + strings.Repeat("a", 256) + `","emails":["a@x.example"]}`:                                                                  InvalidValue,
		`{"userName":"a@x.example","displayName":"` + strings.Repeat("é", textMax+1) + `"}`:                                                         InvalidValue,
		`{"userName":"a@x.example","displayName":"` + strings.Repeat("é", 256) + `"}`:                                                               InvalidValue,
		`{"userName":"a@x.example","urn:ietf:params:scim:schemas:extension:enterprise:2.0:User":{"department":"` + strings.Repeat("a", 256) + `"}}`: InvalidValue,
		`{"userName":"a@x.example","urn:ietf:params:scim:schemas:extension:enterprise:2.0:User":"Engines"}`:                                         InvalidValue,
		`{"userName":"a@x.example","emails":[` + emails(21) + `]}`:                                                                                  InvalidValue,
		`{"userName":"a@x.example","emails":[{"value":"a@x.example","primary":true},{"value":"b@x.example","primary":"True"}]}`:                     InvalidValue,
		`{"userName":"a@x.example","username":"b@x.example"}`:                                                                                       InvalidSyntax,
	} {
		refused(t, body, scimType, func() error { _, err := DecodeUser(object(t, body)); return err })
	}
	if _, err := DecodeUser(map[string]any{"userName": "a@x.example", "displayName": "\xff"}); err == nil {
		t.Error("invalid UTF-8 was accepted")
	}
}

func TestAddressAndFullName(t *testing.T) {
	for body, want := range map[string][2]string{
		`{"userName":"ada@example.com","emails":["other@example.com"]}`:                                                                               {"ada@example.com", "ada"},
		`{"userName":"ada","emails":["first@example.com",{"value":"work@example.com","type":"Work"},{"value":"primary@example.com","primary":true}]}`: {"primary@example.com", "primary"},
		`{"userName":"ada","emails":["first@example.com",{"value":"work@example.com","type":"Work"}]}`:                                                {"work@example.com", "work"},
		`{"userName":"ada","emails":["first@example.com",{"value":"invalid","primary":true}],"displayName":" Ada L "}`:                                {"first@example.com", "Ada L"},
		`{"userName":"a@x.example","displayName":"Display","name":{"formatted":" ","givenName":"Ada","familyName":"Lovelace"}}`:                       {"a@x.example", "Display"},
		`{"userName":"a@x.example","name":{"formatted":"Formatted","givenName":"Ada","familyName":"Lovelace"},"displayName":"Display"}`:               {"a@x.example", "Formatted"},
		`{"userName":"a@x.example","name":{"givenName":"Ada","familyName":"Lovelace"}}`:                                                               {"a@x.example", "Ada Lovelace"},
		`{"userName":"a@x.example","name":{"familyName":"Lovelace"}}`:                                                                                 {"a@x.example", "Lovelace"},
	} {
		u, err := DecodeUser(object(t, body))
		if err != nil || u.Address() != want[0] || u.FullName() != want[1] {
			t.Errorf("%s: %q %q %v, want %q", body, u.Address(), u.FullName(), err, want)
		}
	}
	if u := (User{UserName: "ada"}); u.Address() != "" || u.FullName() != "" {
		t.Errorf("%q %q without an address", u.Address(), u.FullName())
	}
}

var testMeta = Meta{ID: "018f1f2e-0000-7000-8000-000000000001", Base: "https://id.example/scim/v2/acme", Created: 1_700_000_000_000_001, Modified: 1_700_000_001_000_000, Version: 3}

func TestResourceOfUser(t *testing.T) {
	u, err := DecodeUser(object(t, entraUser))
	if err != nil {
		t.Fatal(err)
	}
	group := rolecall.GroupName{ID: rolecall.GroupID{1}, Name: "Sales"}
	got := roundTrip(t, u.Resource(testMeta, []rolecall.GroupName{group}))
	want := object(t, `{
		"schemas": ["urn:ietf:params:scim:schemas:core:2.0:User", "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"],
		"id": "018f1f2e-0000-7000-8000-000000000001", "externalId": "0a21f0f2-8d2a-4f8e-bf98-7363c4aed4ef",
		"userName": "ada@tenant.example", "active": true, "displayName": "Ada Lovelace",
		"emails": [{"primary": true, "type": "work", "value": "ada@example.com"}],
		"name": {"formatted": "Countess Ada", "familyName": "Lovelace", "givenName": "Ada"},
		"groups": [{"value": "01000000-0000-0000-0000-000000000000", "display": "Sales", "$ref": "https://id.example/scim/v2/acme/Groups/01000000-0000-0000-0000-000000000000"}],
		"urn:ietf:params:scim:schemas:extension:enterprise:2.0:User": {"department": "Engines"},
		"meta": {"resourceType": "User", "created": "2023-11-14T22:13:20.000001Z", "lastModified": "2023-11-14T22:13:21.000000Z",
			"location": "https://id.example/scim/v2/acme/Users/018f1f2e-0000-7000-8000-000000000001", "version": "W/\"3\""}}`)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	least := User{UserName: "ada@example.com"}
	got = roundTrip(t, least.Resource(testMeta, nil))
	delete(got, "meta")
	if want := object(t, `{"schemas":["urn:ietf:params:scim:schemas:core:2.0:User"],"id":"018f1f2e-0000-7000-8000-000000000001","userName":"ada@example.com","active":true}`); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func BenchmarkUser(b *testing.B) {
	body := object(b, entraUser)
	for b.Loop() {
		u, err := DecodeUser(body)
		if err != nil {
			b.Fatal(err)
		}
		u.Resource(testMeta, nil)
	}
}
