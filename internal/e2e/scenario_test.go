package e2e

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// scenario is a request with the expected response. Except for the status, fields that are
// empty are not checked.
type scenario struct {
	name   string // a sentence
	as     *caller
	send   string   // METHOD /path
	header []string // header lines in the form of caller.request
	body   string

	status   int
	code     string            // error code of the problem
	faults   []string          // all field errors of the problem, such as "/name length"
	members  string            // all members of the body, separated by blanks
	has      map[string]any    // values of the body, by JSON pointer
	headers  map[string]string // "" means that the response must not have the header
	contains []string          // texts that the body must contain
	lacks    []string          // texts that the body must not contain
}

// play runs the scenarios as subtests, in order.
func play(t *testing.T, scenarios []scenario) {
	t.Helper()
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			s.check(t, s.as.do(t, s.send, s.body, s.header...))
		})
	}
}

// check compares the answer with the expectations of the scenario.
func (s *scenario) check(t *testing.T, a *answer) {
	t.Helper()
	a.expect(t, s.status)
	if s.code != "" && a.text("/code") != s.code {
		t.Errorf("the code is %q, not %q: %s", a.text("/code"), s.code, a.body)
	}
	if s.faults != nil && !slices.Equal(a.faults(), sorted(s.faults)) {
		t.Errorf("the faults are %q, not %q", a.faults(), sorted(s.faults))
	}
	if s.members != "" && !slices.Equal(a.members(""), sorted(strings.Fields(s.members))) {
		t.Errorf("the members are %q, not %q", a.members(""), s.members)
	}
	for pointer, wanted := range s.has {
		if got := a.value(pointer); got != wanted {
			t.Errorf("%s is %v, not %v", pointer, got, wanted)
		}
	}
	for name, wanted := range s.headers {
		if got := a.header.Get(name); got != wanted {
			t.Errorf("%s is %q, not %q", name, got, wanted)
		}
	}
	for _, text := range s.contains {
		if !bytes.Contains(a.body, []byte(text)) {
			t.Errorf("the body does not hold %q: %s", text, a.body)
		}
	}
	for _, text := range s.lacks {
		if bytes.Contains(a.body, []byte(text)) {
			t.Errorf("the body holds %q: %s", text, a.body)
		}
	}
}

func sorted(texts []string) []string { return slices.Sorted(slices.Values(texts)) }
