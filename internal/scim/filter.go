package scim

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// The attributes of a Term.
const (
	ByID          = "id"
	ByUserName    = "username"
	ByExternalID  = "externalid"
	ByEmail       = "emails.value"
	ByDisplayName = "displayname"
	ByMember      = "members.value"
	ByActive      = "active"
)

// Term is a comparison for equality. A resource matches a filter if it matches all terms of the filter.
type Term struct {
	Attribute string // one of the constants above
	Type      string // for ByEmail: the type of the address, in any case; empty for any type
	Text      string // the text to compare with; empty for ByActive
	Bool      bool   // for ByActive: the boolean to compare with
}

// String returns the term as a filter.
func (t Term) String() string {
	switch {
	case t.Attribute == ByActive && t.Bool:
		return "active eq true"
	case t.Attribute == ByActive:
		return "active eq false"
	case t.Type != "":
		return "emails[type eq " + quote(t.Type) + "].value eq " + quote(t.Text)
	}
	return t.Attribute + " eq " + quote(t.Text)
}

func quote(text string) string {
	quoted, _ := json.Marshal(text) // a text can always be encoded
	return string(quoted)
}

// supportedFilters says which filters of a resource can be answered.
type supportedFilters struct {
	attributes []string                  // attributes of terms
	answerable func(names []string) bool // whether an index finds the resources by these attributes
	supported  string                    // the same for administrators
}

var (
	userFilters = supportedFilters{
		attributes: []string{ByID, ByUserName, ByExternalID, ByEmail, ByActive},
		answerable: func(names []string) bool {
			return slices.ContainsFunc(names, func(name string) bool { return name != ByActive })
		},
		supported: `userName, externalId, id or emails.value with eq, also joined by and, also with active eq`,
	}
	groupFilters = supportedFilters{
		attributes: []string{ByID, ByDisplayName, ByExternalID, ByMember},
		answerable: func(names []string) bool {
			return slices.Contains(names, ByID) || len(names) > 0 && !slices.Contains(names, ByMember)
		},
		supported: `displayName, externalId or id with eq, also joined by and, and members eq together with id eq`,
	}
)

// ParseUserFilter parses a filter of users. It returns the terms, at least one. One of them at least is not
// ByActive. An attribute can be in several terms. ParseUserFilter returns an *Error of the type invalidFilter if the
// text is not a filter, or if no index can answer the filter.
func ParseUserFilter(text string) ([]Term, error) { return userFilters.parse(text) }

// ParseGroupFilter parses a filter of groups. It returns the terms, at least one. If one of them is ByMember,
// another one is ByID. An attribute can be in several terms. ParseGroupFilter returns an *Error of the type
// invalidFilter if the text is not a filter, or if no index can answer the filter.
func ParseGroupFilter(text string) ([]Term, error) { return groupFilters.parse(text) }

func (f *supportedFilters) parse(text string) ([]Term, error) {
	e, err := parseExpression(text)
	if err != nil {
		return nil, badRequest(InvalidFilter, "The filter is not a filter of RFC 7644, section 3.4.2.2, or has more than %d bytes. Use %s.", filterMax, f.supported)
	}
	var terms []Term
	var names []string
	for _, conjunct := range e.conjuncts() {
		term, err := conjunct.term()
		if err != nil || !slices.Contains(f.attributes, term.Attribute) {
			return nil, f.unsupported()
		}
		terms, names = append(terms, term), append(names, term.Attribute)
	}
	if !f.answerable(names) {
		return nil, f.unsupported()
	}
	return terms, nil
}

func (f *supportedFilters) unsupported() *Error {
	return badRequest(InvalidFilter, "This filter is not supported. Use %s.", f.supported)
}

var errUnsupported = errors.New("scim: not a term")

// term returns the expression as a term.
func (e *expression) term() (Term, error) {
	if e.attribute.schema != "" || e.op != opEqual && e.op != opValue {
		return Term{}, errUnsupported
	}
	if e.filter != nil {
		return e.valueTerm()
	}
	name := e.attribute.String()
	if name == ByActive {
		truth, ok := boolean(e.value)
		if !ok || truth == nil {
			return Term{}, errUnsupported
		}
		return Term{Attribute: ByActive, Bool: *truth}, nil
	}
	if name == "emails" || name == "members" {
		name += ".value"
	}
	return textTerm(Term{Attribute: name}, e.value)
}

// valueTerm returns emails[type eq "work"].value eq "x", and its other forms, as a term.
func (e *expression) valueTerm() (Term, error) {
	comparisons := e.filter.conjuncts()
	if e.op == opEqual {
		comparisons = append(comparisons, &expression{op: opEqual, attribute: attributePath{attribute: e.attribute.sub}, value: e.value})
	}
	term := Term{Attribute: e.attribute.attribute + ".value"}
	hasValue, hasType := false, false
	for _, c := range comparisons {
		text, ok := c.value.(string)
		if c.op != opEqual || c.attribute.schema != "" || !ok || !storable(text) {
			return Term{}, errUnsupported
		}
		switch name := c.attribute.String(); {
		case name == "value" && !hasValue:
			term.Text, hasValue = text, true
		case name == "type" && !hasType && term.Attribute == ByEmail && text != "":
			term.Type, hasType = text, true
		default:
			return Term{}, errUnsupported
		}
	}
	if !hasValue {
		return Term{}, errUnsupported
	}
	return term, nil
}

func textTerm(term Term, value any) (Term, error) {
	text, ok := value.(string)
	if !ok || !storable(text) {
		return Term{}, errUnsupported
	}
	term.Text = text
	return term, nil
}

// storable reports whether both databases accept the text as a parameter.
func storable(text string) bool { return !strings.Contains(text, "\x00") }
