package scim

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	filterMax      = 4096 // maximum length of a filter and of a path, in bytes
	filterDepthMax = 20   // maximum depth of parentheses and brackets
)

// The operators of expressions, in lower case.
const (
	opAnd   = "and"
	opOr    = "or"
	opNot   = "not"
	opValue = "[]" // a filter of the values of a multi-valued attribute
	opEqual = "eq"
)

// expression is a filter of RFC 7644, section 3.4.2.2.
type expression struct {
	op        string
	operands  []*expression // of and, or and not
	attribute attributePath // of comparisons, pr and []
	filter    *expression   // of [], and of comparisons such as emails[type eq "work"].value eq "x"
	value     any           // of comparisons: string, float64, bool or nil
}

var errGrammar = errors.New("scim: not a filter")

// scanner reads a filter or a path from left to right.
type scanner struct {
	text  string
	depth int
}

// newScanner returns nil if the text is too long or not valid UTF-8.
func newScanner(text string) *scanner {
	if len(text) > filterMax || !utf8.ValidString(text) {
		return nil
	}
	return &scanner{text: text}
}

// parseExpression parses a whole filter.
func parseExpression(text string) (*expression, error) {
	s := newScanner(text)
	if s == nil {
		return nil, errGrammar
	}
	e, err := s.or(true)
	if err != nil || !s.atEnd() {
		return nil, errGrammar
	}
	return e, nil
}

// skipSpace reports whether the text began with spaces.
func (s *scanner) skipSpace() bool {
	trimmed := strings.TrimLeft(s.text, " ")
	skipped := len(trimmed) < len(s.text)
	s.text = trimmed
	return skipped
}

func (s *scanner) atEnd() bool {
	s.skipSpace()
	return s.text == ""
}

func (s *scanner) take(c byte) bool {
	if s.text == "" || s.text[0] != c {
		return false
	}
	s.text = s.text[1:]
	return true
}

// peek returns the characters up to the next space, bracket, parenthesis or quotation mark.
func (s *scanner) peek() string {
	if end := strings.IndexAny(s.text, " ()[]\""); end >= 0 {
		return s.text[:end]
	}
	return s.text
}

func (s *scanner) word() string {
	word := s.peek()
	s.text = s.text[len(word):]
	return word
}

// keyword takes the next word if it is the keyword, in any case.
func (s *scanner) keyword(keyword string) bool {
	word := s.peek()
	if !strings.EqualFold(word, keyword) {
		return false
	}
	s.text = s.text[len(word):]
	return true
}

func (s *scanner) attribute() (attributePath, bool) { return parseAttribute(s.word()) }

// or parses a filter. valuePaths is false inside of brackets, which cannot be nested.
func (s *scanner) or(valuePaths bool) (*expression, error) {
	return s.logical(opOr, func() (*expression, error) {
		return s.logical(opAnd, func() (*expression, error) { return s.operand(valuePaths) })
	})
}

func (s *scanner) logical(op string, operand func() (*expression, error)) (*expression, error) {
	first, err := operand()
	if err != nil {
		return nil, err
	}
	all := []*expression{first}
	for {
		before := s.text
		s.skipSpace()
		if !s.keyword(op) {
			s.text = before
			break
		}
		next, err := operand()
		if err != nil {
			return nil, err
		}
		all = append(all, next)
	}
	if len(all) == 1 {
		return first, nil
	}
	return &expression{op: op, operands: all}, nil
}

func (s *scanner) operand(valuePaths bool) (*expression, error) {
	s.skipSpace()
	if s.take('(') {
		return s.group(valuePaths)
	}
	before := s.text
	if s.keyword(opNot) {
		s.skipSpace()
		if s.take('(') {
			inner, err := s.group(valuePaths)
			if err != nil {
				return nil, err
			}
			return &expression{op: opNot, operands: []*expression{inner}}, nil
		}
		s.text = before
	}
	attribute, ok := s.attribute()
	if !ok || attribute.attribute == "" {
		return nil, errGrammar
	}
	if s.take('[') {
		if !valuePaths || attribute.sub != "" {
			return nil, errGrammar
		}
		return s.valuePath(attribute)
	}
	return s.comparison(&expression{attribute: attribute})
}

// group parses the filter in parentheses, after the opening one.
func (s *scanner) group(valuePaths bool) (*expression, error) {
	if s.depth++; s.depth > filterDepthMax {
		return nil, errGrammar
	}
	inner, err := s.or(valuePaths)
	s.skipSpace()
	if err != nil || !s.take(')') {
		return nil, errGrammar
	}
	s.depth--
	return inner, nil
}

// valueFilter parses the filter in brackets, after the opening one.
func (s *scanner) valueFilter() (*expression, error) {
	filter, err := s.or(false)
	s.skipSpace()
	if err != nil || !s.take(']') {
		return nil, errGrammar
	}
	return filter, nil
}

// valuePath parses the filter in brackets, and the comparison of a sub-attribute that Entra adds.
func (s *scanner) valuePath(attribute attributePath) (*expression, error) {
	filter, err := s.valueFilter()
	if err != nil {
		return nil, err
	}
	if !s.take('.') {
		return &expression{op: opValue, attribute: attribute, filter: filter}, nil
	}
	sub, ok := parseAttribute(s.word())
	if !ok || sub.schema != "" || sub.sub != "" {
		return nil, errGrammar
	}
	attribute.sub = sub.attribute
	return s.comparison(&expression{attribute: attribute, filter: filter})
}

// comparison parses the operator and the value into e.
func (s *scanner) comparison(e *expression) (*expression, error) {
	if !s.skipSpace() {
		return nil, errGrammar
	}
	switch e.op = strings.ToLower(s.word()); e.op {
	case "pr":
		return e, nil
	case opEqual, "ne", "co", "sw", "ew", "gt", "lt", "ge", "le":
	default:
		return nil, errGrammar
	}
	if !s.skipSpace() {
		return nil, errGrammar
	}
	value, err := s.value()
	if err != nil {
		return nil, err
	}
	e.value = value
	return e, nil
}

// value parses a JSON text, number, boolean or null.
func (s *scanner) value() (any, error) {
	if strings.HasPrefix(s.text, `"`) {
		return s.quoted()
	}
	word := s.word()
	switch strings.ToLower(word) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	case "null":
		return nil, nil
	}
	if !json.Valid([]byte(word)) {
		return nil, errGrammar
	}
	return strconv.ParseFloat(word, 64)
}

func (s *scanner) quoted() (any, error) {
	for i := 1; i < len(s.text); i++ {
		switch s.text[i] {
		case '\\':
			i++
		case '"':
			var text string
			err := json.Unmarshal([]byte(s.text[:i+1]), &text)
			s.text = s.text[i+1:]
			return text, err
		}
	}
	return nil, errGrammar
}

// conjuncts returns the expressions of which all must hold. An expression that is not a conjunction is its only one.
func (e *expression) conjuncts() []*expression {
	if e.op != opAnd {
		return []*expression{e}
	}
	var all []*expression
	for _, operand := range e.operands {
		all = append(all, operand.conjuncts()...)
	}
	return all
}

// size returns the number of comparisons of the expression, which can be nil.
func (e *expression) size() int {
	if e == nil {
		return 0
	}
	if len(e.operands) == 0 {
		return 1
	}
	size := 0
	for _, operand := range e.operands {
		size += operand.size()
	}
	return size
}

// matches reports whether the filter of a value path selects a value. value returns the text or the boolean of a
// sub-attribute, whose name is in lower case, or false if the sub-attribute is unknown. known is false if the filter
// names an unknown sub-attribute.
func (e *expression) matches(value func(sub string) (any, bool)) (matches, known bool) {
	switch e.op {
	case opAnd, opOr, opNot:
		matches, known = e.op == opAnd, true
		for _, operand := range e.operands {
			m, k := operand.matches(value)
			known = known && k
			switch e.op {
			case opAnd:
				matches = matches && m
			case opOr:
				matches = matches || m
			case opNot:
				matches = !m
			}
		}
		return matches, known
	}
	if e.attribute.schema != "" || e.attribute.sub != "" {
		return false, false
	}
	actual, known := value(e.attribute.attribute)
	return known && compare(e.op, actual, e.value), known
}

// compare compares texts without regard to case. An empty text is an unassigned attribute.
func compare(op string, actual, wanted any) bool {
	switch actual := actual.(type) {
	case bool:
		want, ok := boolean(wanted)
		if op == "pr" {
			return actual
		}
		equal := ok && want != nil && *want == actual
		return op == opEqual && equal || op == "ne" && !equal
	case string:
		if op == "pr" {
			return actual != ""
		}
		want, isText := wanted.(string)
		if wanted == nil {
			isText = true // null: unassigned
		}
		return compareTexts(op, strings.ToLower(actual), strings.ToLower(want), isText)
	}
	return false
}

func compareTexts(op, actual, wanted string, isText bool) bool {
	if !isText {
		return op == "ne"
	}
	switch op {
	case opEqual:
		return actual == wanted
	case "ne":
		return actual != wanted
	case "co":
		return strings.Contains(actual, wanted)
	case "sw":
		return strings.HasPrefix(actual, wanted)
	case "ew":
		return strings.HasSuffix(actual, wanted)
	case "gt":
		return actual > wanted
	case "ge":
		return actual >= wanted
	case "lt":
		return actual < wanted
	case "le":
		return actual <= wanted
	}
	return false
}
