package e2e

import (
	"encoding/json"
	"testing"
)

// operatorKey makes a key by the command line, and returns who sends requests with
// it, in no tenant yet.
func (p *program) operatorKey(t testing.TB, flags ...string) *caller {
	t.Helper()
	output := p.run(t, "", append([]string{"operator-key", "create", "End to end", "--json"}, flags...)...)
	var made struct{ ID, Key string }
	if err := json.Unmarshal([]byte(output), &made); err != nil {
		t.Fatal(err)
	}
	p.tokensMu.Lock()
	p.tokens = append(p.tokens, made.Key)
	p.tokensMu.Unlock()
	return &caller{bearer: made.Key, id: made.ID}
}

// of returns the caller in the tenant of a world, and from its address.
func (c *caller) of(w *world) *caller {
	there := *c
	there.world, there.tenant = w, w.name
	return &there
}

// operator makes a key for the tenant of the world alone.
func (w *world) operator(t testing.TB) *caller {
	t.Helper()
	return w.program.operatorKey(t, "--tenant", w.name).of(w)
}
func testOperators(t *testing.T, p *program) {}
