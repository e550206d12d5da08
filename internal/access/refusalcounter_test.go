package access

import (
	"math/rand/v2"
	"testing"

	"github.com/rolecall/rolecall"
)

// For any sequence of refusals in any number of tenants, every refusal is counted
// once and the number of pending events is bounded.
func TestTheRefusalCounterIsBoundedAndComplete(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	tenants := make([]rolecall.TenantID, 300)
	for i := range tenants {
		tenants[i] = rolecall.NewID[rolecall.Tenant](1)
	}
	var c refusalCounter
	const refusals = 200_000
	for i := range refusals {
		key := refusalKey{tenant: tenants[random.IntN(len(tenants))], kind: rolecall.EventRefused, actor: AnonymousActor, reason: "code"}
		if random.IntN(2) == 0 {
			key.actor = rolecall.Actor{Type: rolecall.ActorUser, ID: rolecall.NewID[rolecall.User](1)}
		}
		if i > refusals/2 || random.IntN(4) > 0 {
			key.subject = rolecall.NewID[rolecall.User](1)
		}
		c.add(map[refusalKey]refusal{key: {1, "192.0.2.1"}})
	}
	if n, most := len(c.pending), mostRefusals+2*len(tenants); n < mostRefusals || n > most {
		t.Errorf("%d events wait, of at most %d", n, most)
	}
	sum := 0
	for _, counted := range c.drain() {
		for _, r := range counted {
			sum += r.count
		}
	}
	if sum != refusals || c.pending != nil || c.events != nil {
		t.Errorf("%d of %d refusals are counted", sum, refusals)
	}
}
