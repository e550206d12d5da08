package pgtest_test

import (
	"testing"

	"github.com/rolecall/rolecall/internal/pgtest"
)

func TestRowsOfAPlanAreThoseOfAllLoops(t *testing.T) {
	for plan, want := range map[string]float64{
		"": 0,
		"Limit (actual rows=51 loops=1)\n  ->  Nested Loop (actual rows=51 loops=1)\n        ->  Index Scan on users (actual rows=0.50 loops=600)\n": 300,
		"Index Scan on users (actual rows=1 loops=20)\n  Filter: x\n  Rows Removed by Filter: 40\n":                                                  800,
	} {
		if got := pgtest.LookedAt(plan); got != want {
			t.Errorf("%v rows, want %v: %s", got, want, plan)
		}
	}
}
