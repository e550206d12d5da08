package rolecall_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rolecall/rolecall"
)

func departments(n int) []string {
	names := make([]string, 0, n)
	for i := range n {
		names = append(names, fmt.Sprintf("Department %03d", i))
	}
	return names
}

func TestAssignmentDraft(t *testing.T) {
	type d = rolecall.AssignmentDraft
	for name, test := range map[string]struct {
		draft d
		want  []string
	}{
		"everywhere, never ending": {d{}, nil},
		"some departments":         {d{Departments: departments(100)}, nil},
		"no departments":           {d{Departments: []string{}}, []string{"/reach/departments too-few"}},
		"too many departments":     {d{Departments: departments(101)}, []string{"/reach/departments too-many"}},
		"bad department":           {d{Departments: []string{"Sales", ""}}, []string{"/reach/departments/1 length"}},
		"ends in a moment":         {d{ExpiresAt: new(aMoment + 1)}, nil},
		"ends now":                 {d{ExpiresAt: new(aMoment)}, []string{"/expiresAt past"}},
	} {
		if got := codes(test.draft.Check(aMoment)); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
	if draft := (d{}); !draft.Reach().IsEverywhere() || draft.Expiry() != rolecall.Never {
		t.Errorf("an empty draft reaches %v until %d", draft.Reach(), draft.Expiry())
	}
	if draft := (d{Departments: []string{"Sales"}, ExpiresAt: new(aMoment)}); draft.Reach().IsEverywhere() || draft.Expiry() != aMoment {
		t.Errorf("it reaches %v until %d", draft.Reach(), draft.Expiry())
	}
}

func TestAssignmentEndsAtItsExpiry(t *testing.T) {
	a := rolecall.Assignment{ExpiresAt: aMoment}
	if !a.Live(aMoment-1) || a.Live(aMoment) {
		t.Error("it must count until its expiry, and not from then on")
	}
	if forever := (rolecall.Assignment{ExpiresAt: rolecall.Never}); !forever.Live(aMoment) {
		t.Error("one without an end does not count")
	}
}
