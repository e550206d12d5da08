package scim

import (
	"slices"
	"strings"
	"unicode/utf8"
)

const textMax = 512 // maximum length of texts without a limit in the root package, in characters

// text returns the text of an attribute, which has at most maximum characters. It returns an empty text for null.
func text(attribute string, value any, maximum int) (string, error) {
	if value == nil {
		return "", nil
	}
	text, ok := value.(string)
	if !ok {
		return "", badRequest(InvalidValue, "%s must be a string.", attribute)
	}
	if !utf8.ValidString(text) || !storable(text) {
		return "", badRequest(InvalidValue, "%s must be valid UTF-8 without U+0000.", attribute)
	}
	if utf8.RuneCountInString(text) > maximum {
		return "", badRequest(InvalidValue, "%s must have at most %d characters.", attribute, maximum)
	}
	return text, nil
}

// boolean returns a boolean, which old versions of Entra send as text. It returns nil for null and for an
// empty text, and false for other values.
func boolean(value any) (*bool, bool) {
	switch value := value.(type) {
	case nil:
		return nil, true
	case bool:
		return &value, true
	case string:
		truth := strings.EqualFold(value, "true")
		if truth || strings.EqualFold(value, "false") {
			return &truth, true
		}
		return nil, value == ""
	}
	return nil, false
}

// optionalBoolean returns the boolean of an attribute, or nil if it is unassigned.
func optionalBoolean(attribute string, value any) (*bool, error) {
	truth, ok := boolean(value)
	if !ok {
		return nil, badRequest(InvalidValue, "%s must be true or false.", attribute)
	}
	return truth, nil
}

// member is a member of a JSON object.
type member struct {
	name  string // in lower case
	value any
}

// members returns the members of the object, sorted by name. It returns an invalidSyntax error if two names differ
// only in case.
func members(object map[string]any) ([]member, error) {
	all := make([]member, 0, len(object))
	for name, value := range object {
		all = append(all, member{strings.ToLower(name), value})
	}
	slices.SortFunc(all, func(a, b member) int { return strings.Compare(a.name, b.name) })
	for i := 1; i < len(all); i++ {
		if all[i].name == all[i-1].name {
			return nil, badRequest(InvalidSyntax, "An object has two members whose names differ only in case.")
		}
	}
	return all, nil
}

// list returns the values of a multi-valued attribute. It accepts a single value in place of a list, and null for
// an empty list.
func list(value any) []any {
	switch value := value.(type) {
	case nil:
		return nil
	case []any:
		return value
	}
	return []any{value}
}
