package scim

import (
	"strings"
)

// Selection says which attributes of resources a response has (RFC 7644, section 3.9). The zero Selection selects all.
type Selection struct {
	only, without map[string]bool // paths in lower case; at most one of both is not empty
}

// ParseSelection returns the selection of the query parameters attributes and excludedAttributes, which are lists of
// paths with commas. Unknown attributes have no effect. It returns an *Error of the type invalidValue if both have
// a value.
func ParseSelection(attributes, excluded string) (Selection, error) {
	s := Selection{only: paths(attributes), without: paths(excluded)}
	if len(s.only) > 0 && len(s.without) > 0 {
		return Selection{}, badRequest(InvalidValue, "A request can have attributes or excludedAttributes, but not both.")
	}
	return s, nil
}

func paths(texts string) map[string]bool {
	if texts == "" {
		return nil
	}
	all := map[string]bool{}
	for text := range strings.SplitSeq(texts, ",") {
		text = strings.TrimSpace(text)
		if p, ok := parseAttribute(text); ok {
			all[p.String()] = true
		} else if text != "" {
			all[""] = true // attributes=* selects nothing but the attributes that are always returned
		}
	}
	return all
}

// Requests reports whether attributes has the attribute or one of its sub-attributes. attribute is in lower case.
func (s *Selection) Requests(attribute string) bool { return hasPath(s.only, attribute) }

// Returns reports whether a response can have the attribute. attribute is in lower case.
func (s *Selection) Returns(attribute string) bool {
	return len(s.only) == 0 && !s.without[attribute] || s.Requests(attribute)
}

// hasPath reports whether the paths have the attribute or one of its sub-attributes.
func hasPath(paths map[string]bool, attribute string) bool {
	if paths[attribute] {
		return true
	}
	for path := range paths {
		if isBelow(path, attribute) {
			return true
		}
	}
	return false
}

// isBelow reports whether path is a sub-attribute of the attribute or, if that is the URN of an extension, an attribute
// of the extension.
func isBelow(path, attribute string) bool {
	rest, ok := strings.CutPrefix(path, attribute)
	return ok && (strings.HasPrefix(rest, ".") || strings.HasPrefix(rest, ":"))
}

// Apply removes the attributes from the resource that are not selected. id and schemas stay. The resource must be the
// result of a method Resource.
func (s *Selection) Apply(resource map[string]any) {
	if len(s.only) == 0 && len(s.without) == 0 {
		return
	}
	for name, value := range resource {
		lower := strings.ToLower(name)
		if lower == "id" || lower == "schemas" {
			continue
		}
		if !s.Returns(lower) {
			delete(resource, name)
			continue
		}
		if !s.only[lower] && (hasPath(s.only, lower) || hasPath(s.without, lower)) {
			if s.applyBelow(lower, value); isEmpty(value) {
				delete(resource, name)
			}
		}
	}
}

// applyBelow removes the sub-attributes that are not selected.
func (s *Selection) applyBelow(attribute string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for name := range value {
			dotted, colon := attribute+"."+strings.ToLower(name), attribute+":"+strings.ToLower(name)
			selected := s.only[dotted] || s.only[colon]
			if len(s.only) > 0 && !selected || s.without[dotted] || s.without[colon] {
				delete(value, name)
			}
		}
	case []map[string]any:
		for _, v := range value {
			s.applyBelow(attribute, v)
		}
	}
}

// isEmpty reports whether the value is an object or a list without any members.
func isEmpty(value any) bool {
	switch value := value.(type) {
	case map[string]any:
		return len(value) == 0
	case []map[string]any:
		for _, v := range value {
			if len(v) > 0 {
				return false
			}
		}
		return true
	}
	return false
}
