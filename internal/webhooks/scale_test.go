package webhooks_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/outbound"
	"github.com/rolecall/rolecall/internal/outbound/outboundtest"
	"github.com/rolecall/rolecall/internal/patience"
)

// TestDeadEndpointsDoNotStopOthers gives each tenant 20 webhooks, and every tenth endpoint never answers.
// The others receive all changes. make bench-scale measures how long that takes.
func TestDeadEndpointsDoNotStopOthers(t *testing.T) {
	nodetest.OnEachStoreInLong(t, func(f *nodetest.Fixture) {
		const tenants, rounds = 3, 3
		stuck := make(chan struct{})
		dead := outboundtest.Endpoint(f.T, "127.0.0.1:0", func(_ http.ResponseWriter, q *http.Request) {
			select {
			case <-stuck:
			case <-q.Context().Done():
			}
		})
		r := newReceiver(f, nil)
		o := reaching(f, r)
		o.Outbound = outbound.New(outbound.Options{
			Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Roots: outboundtest.Roots(r.server),
			Resolver: outboundtest.Resolver(f.T, map[string][]string{"example.com": {"127.0.0.1"}}),
			Timeout:  patience.Limit, // the attempts to reach a dead endpoint do not end before the test fails
		})
		f.Node = node.New(f.DB, o)
		work(f, f.Node)
		f.Cleanup(func() { close(stuck) }) // before the node stops
		var owners []*nodetest.Fixture
		for i := range tenants {
			one := f.InNewTenant(fmt.Sprintf("tenant-%d", i))
			account := aReader(one)
			for n := range rolecall.WebhooksMax {
				url := r.url("/live")
				if n%10 == 0 {
					url = "https://example.com:" + outboundtest.Port(dead) + "/dead"
				}
				newWebhook(one, url, account.ID, types(rolecall.EventRoleCreated))
			}
			owners = append(owners, one)
		}
		const live = rolecall.WebhooksMax - rolecall.WebhooksMax/10
		for round := range rounds {
			for i, owner := range owners {
				owner.NewRole(fmt.Sprintf("Round %d of %d", round, i))
			}
			f.Eventually(func() bool { return len(r.all()) >= (round+1)*tenants*live })
		}
	})
}
