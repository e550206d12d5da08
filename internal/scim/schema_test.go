package scim

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
)

// publishedAttributes returns the names of the attributes of a schema.
func publishedAttributes(id string) []string {
	for _, s := range schemas {
		if s.id == id {
			return names(s.attributes)
		}
	}
	return nil
}

func names(attributes []attribute) []string {
	var all []string
	for _, a := range attributes {
		all = append(all, a.Name)
		for _, sub := range names(a.SubAttributes) {
			all = append(all, a.Name+"."+sub)
		}
	}
	slices.Sort(all)
	return all
}

// rendered returns the names of the attributes of a resource, without those that all resources have.
func rendered(resource map[string]any) []string {
	found := map[string]bool{}
	for name, value := range resource {
		if slices.Contains([]string{"schemas", "id", "externalId", "meta", EnterpriseUserSchema}, name) {
			continue
		}
		found[name] = true
		for _, v := range list(value) {
			object, _ := v.(map[string]any)
			for sub := range object {
				found[name+"."+sub] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}

func TestSchemasHaveTheRenderedAttributes(t *testing.T) {
	primary := true
	u := User{"u", "e", "d", Name{"f", "f", "g", "m", "p", "s"}, []Email{{"v", "t", "d", &primary}}, "d", &primary}
	user := roundTrip(t, u.Resource(testMeta, []rolecall.GroupName{{Name: "g"}}))
	group := roundTrip(t, (&Group{"d", "e"}).Resource(testMeta, userIDs(t, textA)))
	extension, _ := user[EnterpriseUserSchema].(map[string]any)
	for id, resource := range map[string]map[string]any{UserSchema: user, GroupSchema: group, EnterpriseUserSchema: extension} {
		if got, want := publishedAttributes(id), rendered(resource); !slices.Equal(got, want) {
			t.Errorf("%s: published %v, rendered %v", id, got, want)
		}
	}
	config := roundTrip(t, ServiceProviderConfig(testMeta.Base))
	published := publishedAttributes(configSchema)
	for _, name := range rendered(config) {
		if !slices.Contains(published, name) {
			t.Errorf("ServiceProviderConfig has %s, which its schema does not have", name)
		}
	}
}

func TestRequiredAttributes(t *testing.T) {
	var required []string
	for _, a := range userAttributes() {
		if a.Required {
			required = append(required, a.Name)
		}
	}
	if want := []string{"userName", "active", "emails"}; !slices.Equal(required, want) {
		t.Errorf("%v, want %v", required, want)
	}
}

func TestDiscovery(t *testing.T) {
	for _, s := range Schemas("https://id.example/scim") {
		id, _ := s["id"].(string)
		meta, _ := s["meta"].(map[string]any)
		if meta["location"] != "https://id.example/scim/Schemas/"+id || meta["resourceType"] != "Schema" {
			t.Errorf("%s: %v", id, meta)
		}
		roundTrip(t, s)
	}
	types := ResourceTypes("https://id.example/scim")
	if len(types) != 2 || types[0]["endpoint"] != "/Users" || types[1]["schema"] != GroupSchema {
		t.Errorf("%v", types)
	}
}

func TestErrorBody(t *testing.T) {
	got := roundTrip(t, badRequest(InvalidFilter, "A %s.", "sentence"))
	want := object(t, `{"schemas":["urn:ietf:params:scim:api:messages:2.0:Error"],"status":"400","scimType":"invalidFilter","detail":"A sentence."}`)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	var err error = &Error{Status: 404, Detail: "This does not exist."}
	text, _ := json.Marshal(err)
	if want := `{"schemas":["urn:ietf:params:scim:api:messages:2.0:Error"],"status":"404","detail":"This does not exist."}`; string(text) != want {
		t.Errorf("%s, want %s", text, want)
	}
	if e := (*Error)(nil); !errors.As(fmt.Errorf("while patching: %w", err), &e) || !strings.Contains(err.Error(), "404") {
		t.Errorf("%v", err)
	}
}

func TestSelection(t *testing.T) {
	for parameters, want := range map[[2]string]string{
		{"", ""}:                             `active displayName emails externalId groups id meta name schemas urn userName`,
		{"userName", ""}:                     `id schemas userName`,
		{"USERNAME, emails ,nothing", ""}:    `emails id schemas userName`,
		{"name.familyName,emails.value", ""}: `emails{value} id name{familyName} schemas`,
		{"name,name.familyName", ""}:         `id name schemas`,
		{"nothing", ""}:                      `id schemas`,
		{"*", ""}:                            `id schemas`,
		{",", ""}:                            `active displayName emails externalId groups id meta name schemas urn userName`,
		{EnterpriseUserSchema, ""}:           `id schemas urn`,
		{EnterpriseUserSchema + ":department," + UserSchema + ":active", ""}: `active id schemas urn`,
		{"", "members,groups,id,schemas,meta"}:                               `active displayName emails externalId id name schemas urn userName`,
		{"", "name.givenName,emails.display,emails.primary"}:                 `active displayName emails{type value} externalId groups id meta name{familyName formatted honorificPrefix honorificSuffix middleName} schemas urn userName`,
		{"", EnterpriseUserSchema + ":department"}:                           `active displayName emails externalId groups id meta name schemas userName`,
	} {
		primary := true
		u := User{"u", "e", "d", Name{"f", "f", "g", "m", "p", "s"}, []Email{{"v", "t", "d", &primary}}, "d", &primary}
		resource := u.Resource(testMeta, []rolecall.GroupName{{Name: "g"}})
		s, err := ParseSelection(parameters[0], parameters[1])
		if err != nil {
			t.Errorf("%v: %v", parameters, err)
		}
		s.Apply(resource)
		if got := shape(resource); got != want {
			t.Errorf("%v: %s, want %s", parameters, got, want)
		}
	}
	refused(t, "both", InvalidValue, func() error { _, err := ParseSelection("userName", "members"); return err })
}

// shape returns the names of the attributes, with the sub-attributes if some are missing.
func shape(resource map[string]any) string {
	complete := map[string]int{"name": 6, "emails": 4}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(resource)) {
		value := resource[name]
		if values, ok := value.([]map[string]any); ok {
			value = values[0]
		}
		if object, ok := value.(map[string]any); ok && complete[name] > len(object) {
			name += fmt.Sprint("{", strings.Join(slices.Sorted(maps.Keys(object)), " "), "}")
		}
		if strings.HasPrefix(name, "urn:") {
			name = "urn"
		}
		all = append(all, name)
	}
	return strings.Join(all, " ")
}

func TestSelectionOfMembers(t *testing.T) {
	for parameters, want := range map[[2]string][2]bool{ // requested, returned
		{"", ""}:              {false, true},
		{"members", ""}:       {true, true},
		{"Members.value", ""}: {true, true},
		{"displayName", ""}:   {false, false},
		{"", "members"}:       {false, false},
		{"", "members.$ref"}:  {false, true},
		{"", "displayName"}:   {false, true},
	} {
		s, err := ParseSelection(parameters[0], parameters[1])
		if got := [2]bool{s.Requests("members"), s.Returns("members")}; err != nil || got != want {
			t.Errorf("%v: %v %v, want %v", parameters, got, err, want)
		}
	}
}
