package rolecall

import (
	"bytes"
	"testing"
)

// TestEachGroupHasItsOwnSalt checks that the salt of one group says nothing about another one. An erasure
// removes only the salts of the erased groups. With the same salt, the others would let readers guess the
// erased data.
func TestEachGroupHasItsOwnSalt(t *testing.T) {
	e := Event{Type: EventUserUpdated, Reason: "on request", Source: "192.0.2.1"}
	salts, others := NewEventSalts(), NewEventSalts()
	var before [EventGroupCount][]byte
	for g := range EventGroupCount {
		before[g] = bytes.Clone(salts.Salt(g))
		if len(before[g]) != saltLength {
			t.Errorf("the salt of %s has %d bytes", g, len(before[g]))
		}
		if bytes.Equal(before[g], others.Salt(g)) {
			t.Errorf("two events have the same salt of %s", g)
		}
		for other := range g {
			if bytes.Equal(before[g], before[other]) {
				t.Errorf("%s and %s have the same salt", g, other)
			}
		}
	}
	leaf := e.LeafHash(&salts)
	if !e.EraseSource(&salts) || e.LeafHash(&salts) != leaf {
		t.Error("an erasure of the source changes the leaf")
	}
	stored, err := ParseEventSalts(salts.Stored())
	if err != nil {
		t.Fatal(err)
	}
	if !stored.Erased(GroupSource) || bytes.Contains(salts.Stored(), before[GroupSource]) {
		t.Error("after an erasure, the salt of the source is stored")
	}
	for _, g := range []EventGroup{GroupValues, GroupReason} {
		if !bytes.Equal(stored.Salt(g), before[g]) {
			t.Errorf("an erasure of the source changes the salt of %s", g)
		}
	}
}
