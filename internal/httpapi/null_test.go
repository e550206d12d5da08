package httpapi

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/web"
)

// requestMember is a member of the body of an operation, at any depth.
type requestMember struct {
	operation *operation.Operation
	path      []string // of the member; 0 is an element of an array
	schema    *huma.Schema
	nullable  bool
	about     string // the description of the member
}

func (m *requestMember) pointer() string { return "/" + strings.Join(m.path, "/") }

// bodyWith returns a body in which the member has the value, besides a member that does not exist. Because of the
// latter, all rules of the body are checked.
func (m *requestMember) bodyWith(value any) string {
	for _, name := range slices.Backward(m.path) {
		if name == "0" {
			value = []any{value}
		} else {
			value = map[string]any{name: value}
		}
	}
	value.(map[string]any)["unknown"] = true
	body, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return string(body)
}

// requestMembers returns the members of all bodies in the OpenAPI document.
func requestMembers() (members []requestMember) {
	for _, o := range declared {
		if !o.Input().TakesJSON() {
			continue
		}
		var add func(path []string, s *huma.Schema)
		add = func(path []string, s *huma.Schema) {
			s, _ = resolved(s)
			if s.Items != nil {
				_, nullable := resolved(s.Items)
				element := append(slices.Clone(path), "0")
				members = append(members, requestMember{o, element, s.Items, nullable, s.Items.Description})
				add(element, s.Items)
			}
			for name, p := range s.Properties {
				at := append(slices.Clone(path), name)
				own, nullable := resolved(p)
				members = append(members, requestMember{o, at, own, nullable, p.Description})
				add(at, own)
			}
		}
		add(nil, describedOperation(o).RequestBody.Content[jsonType].Schema)
	}
	return members
}

func (m *requestMember) faults(t *testing.T, value any) []string {
	t.Helper()
	input := m.operation.Input()
	err := input.DecodeBody(input.New(), []byte(m.bodyWith(value)), unrestricted(), 0)
	_, known := web.StatusOf(err)
	var codes []string
	for _, f := range known.FieldErrors {
		if f.Pointer == m.pointer() {
			codes = append(codes, f.Code)
		}
	}
	return codes
}

// TestNullIsAcceptedOnlyWhereTheSchemaAllowsIt sends null as each member of each body.
func TestNullIsAcceptedOnlyWhereTheSchemaAllowsIt(t *testing.T) {
	members := requestMembers()
	for _, m := range members {
		if codes := m.faults(t, nil); (codes == nil) != m.nullable {
			t.Errorf("%s %s: null gives %v, but the schema allows it: %v", m.operation.ID, m.pointer(), codes, m.nullable)
		}
	}
	if len(members) < 150 {
		t.Errorf("found only %d members", len(members))
	}
}

// TestEmptyListsAreAcceptedOnlyWhereTheSchemaAllowsThem sends an empty array as each array of each body.
func TestEmptyListsAreAcceptedOnlyWhereTheSchemaAllowsThem(t *testing.T) {
	for _, m := range requestMembers() {
		if m.schema.Type != "array" {
			continue
		}
		allowed := m.schema.MinItems == nil || *m.schema.MinItems == 0
		if codes := m.faults(t, []any{}); (codes == nil) != allowed {
			t.Errorf("%s %s: an empty array gives %v, but the schema allows it: %v", m.operation.ID, m.pointer(), codes, allowed)
		}
	}
}

var (
	aboutNothing = regexp.MustCompile(`(?i)(\bnull\b|\bempty\b|\bemptied\b)[^.]*\.`)
	meansMore    = regexp.MustCompile(`(?i)\b(all|any|every|everything|everywhere|whole|never|unlimited|no limit|no maximum)\b`)
)

// TestNothingNeverMeansMore reads what null and an empty array mean in each body: it must be in the
// description, and must not be more than a value would mean.
func TestNothingNeverMeansMore(t *testing.T) {
	for _, m := range requestMembers() {
		canBeEmpty := m.schema.Type == "array" && (m.schema.MinItems == nil || *m.schema.MinItems == 0)
		if !m.nullable && !canBeEmpty {
			continue
		}
		sentences := aboutNothing.FindAllString(m.about, -1)
		if sentences == nil {
			t.Errorf("%s %s: the description does not say what null or an empty array means: %s", m.operation.ID, m.pointer(), m.about)
		}
		for _, sentence := range sentences {
			if meansMore.MatchString(sentence) {
				t.Errorf("%s %s: null or an empty array means more than a value: %s", m.operation.ID, m.pointer(), sentence)
			}
		}
	}
}
