package patience

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestPollWaitsForTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begun := time.Now()
		if Poll(func() bool { return false }) || time.Since(begun) != Limit {
			t.Errorf("gave up after %v", time.Since(begun))
		}
		calls := 0
		if !Poll(func() bool { calls++; return calls == 3 }) || calls != 3 {
			t.Errorf("stopped after %d calls", calls)
		}
	})
}

func TestTheVariableScalesTheLimit(t *testing.T) {
	for text, want := range map[string]float64{"": 1, "3": 3, "0.5": 0.5} {
		t.Setenv(Variable, text)
		if got := factor(); got != want {
			t.Errorf("%s=%q: got %v", Variable, text, got)
		}
	}
	for _, text := range []string{"0", "-1", "a lot"} {
		t.Setenv(Variable, text)
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s=%q was accepted", Variable, text)
				}
			}()
			factor()
		}()
	}
}
