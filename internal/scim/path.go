package scim

import (
	"strings"
)

// The schemas of the resources.
const (
	UserSchema           = "urn:ietf:params:scim:schemas:core:2.0:User"
	GroupSchema          = "urn:ietf:params:scim:schemas:core:2.0:Group"
	EnterpriseUserSchema = "urn:ietf:params:scim:schemas:extension:enterprise:2.0:User"
)

// The schemas in lower case, because attribute names are compared without regard to case.
var (
	userKey       = strings.ToLower(UserSchema)
	groupKey      = strings.ToLower(GroupSchema)
	enterpriseKey = strings.ToLower(EnterpriseUserSchema)
)

// attributePath names an attribute, in lower case: members, name.givenname.
type attributePath struct {
	schema    string // empty for the core schemas of users and groups
	attribute string // empty for all attributes of an extension
	sub       string // sub-attribute, or empty
}

// Path is the target of an operation of a PATCH: an attribute, such as name.givenName, or values that a filter
// selects, such as emails[type eq "work"].value. The zero Path is the whole resource.
type Path struct {
	attributePath
	filter *expression // selects values of a multi-valued attribute, or nil
}

// parseAttribute parses the path of an attribute, with or without the URN of its schema. It returns false if the
// text is not one.
func parseAttribute(text string) (attributePath, bool) {
	lower := strings.ToLower(text)
	var p attributePath
	if strings.HasPrefix(lower, "urn:") {
		if lower == enterpriseKey {
			return attributePath{schema: enterpriseKey}, true
		}
		colon := strings.LastIndexByte(lower, ':')
		p.schema, lower = lower[:colon], lower[colon+1:]
		if p.schema == userKey || p.schema == groupKey {
			p.schema = ""
		}
	}
	attribute, sub, hasSub := strings.Cut(lower, ".")
	if !isAttributeName(attribute) || hasSub && !isAttributeName(sub) {
		return attributePath{}, false
	}
	p.attribute, p.sub = attribute, sub
	return p, true
}

// isAttributeName reports whether the text in lower case is an ATTRNAME of RFC 7643, section 2.1, or $ref.
func isAttributeName(text string) bool {
	for i := range len(text) {
		c := text[i]
		letter := 'a' <= c && c <= 'z'
		if !letter && (i == 0 || c != '-' && c != '_' && (c < '0' || c > '9')) && (i > 0 || c != '$') {
			return false
		}
	}
	return text != "" && text != "$"
}

// String returns the path in lower case.
func (p attributePath) String() string {
	text := p.attribute
	if p.schema != "" && text != "" {
		text = p.schema + ":" + text
	} else if p.schema != "" {
		text = p.schema
	}
	if p.sub != "" {
		text += "." + p.sub
	}
	return text
}

// parsePath parses the path of an operation. It returns an invalidPath error.
func parsePath(text string) (Path, error) {
	if attribute, ok := parseAttribute(text); ok { // most paths have no filter
		return Path{attributePath: attribute}, nil
	}
	invalid := func() (Path, error) {
		return Path{}, badRequest(InvalidPath, "The path is not a path of RFC 7644, section 3.5.2, such as name.givenName or emails[type eq \"work\"].value.")
	}
	s := newScanner(text)
	if s == nil {
		return invalid()
	}
	attribute, ok := s.attribute()
	if !ok || attribute.attribute == "" || attribute.sub != "" || !s.take('[') {
		return invalid()
	}
	filter, err := s.valueFilter()
	if err != nil {
		return invalid()
	}
	if s.take('.') {
		sub, ok := parseAttribute(s.word())
		if !ok || sub.schema != "" || sub.sub != "" {
			return invalid()
		}
		attribute.sub = sub.attribute
	}
	if !s.atEnd() {
		return invalid()
	}
	return Path{attributePath: attribute, filter: filter}, nil
}
