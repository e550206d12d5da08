package node_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/outbound"
	"github.com/rolecall/rolecall/internal/outbound/outboundtest"
)

// TestDeadEndpointsDoNotDelayOthers gives each tenant 20 webhooks, and every tenth endpoint never answers.
// It measures the time from a change to its delivery to each of the other endpoints. There are ten changes
// per second. The full number of tenants is a measurement for a machine without other work, and runs only
// with ROLECALL_TEST_SCALE=1.
func TestDeadEndpointsDoNotDelayOthers(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		tenants, rounds, limit := 3, 3, outbound.Timeout // a delivery that waits for a dead endpoint takes longer
		if os.Getenv("ROLECALL_TEST_SCALE") != "" {
			tenants, rounds, limit = 50, 8, time.Second
		}
		s := &scale{fixture: f, begun: map[string]time.Time{}}
		f.runClock()
		stuck := make(chan struct{})
		dead := outboundtest.Endpoint(f.T, "127.0.0.1:0", func(_ http.ResponseWriter, q *http.Request) {
			select {
			case <-stuck:
			case <-q.Context().Done():
			}
		})
		defer close(stuck)
		r := newReceiver(f, s.answer)
		o := f.reaching(r)
		o.Outbound = outbound.New(outbound.Options{
			Allowed: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Roots: outboundtest.Roots(r.server),
			Resolver: outboundtest.Resolver(f.T, map[string][]string{"example.com": {"127.0.0.1"}}),
		})
		f.Node = node.New(f.db, o)
		stop := f.work(f.Node)
		owners := s.subscribe(tenants, r.url("/live"), "https://example.com:"+outboundtest.Port(dead)+"/dead")
		const live = rolecall.WebhooksMax - rolecall.WebhooksMax/10
		pace := time.NewTicker(100 * time.Millisecond)
		defer pace.Stop()
		for round := range rounds {
			for i, owner := range owners {
				<-pace.C
				s.change(owner, fmt.Sprintf("Round %d of %d", round, i))
			}
			want := (round + 1) * tenants * live
			for s.received() < want {
				f.eventually(s.hasMore())
			}
			if round == 0 { // the first items decide which endpoints are fast
				s.mu.Lock()
				f.Logf("first items: %s", quantiles(s.took))
				s.took = nil
				s.mu.Unlock()
			}
		}
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		s.mu.Lock()
		f.Logf("%d webhooks, %d deliveries: %s; heap %d MiB", tenants*rolecall.WebhooksMax, len(s.took), quantiles(s.took), memory.HeapAlloc>>20)
		slices.Sort(s.took)
		if p99 := s.took[len(s.took)*99/100]; p99 > limit {
			f.Errorf("the slowest hundredth took %v and more", p99)
		}
		s.mu.Unlock()
		stop()
	})
}

// scale measures deliveries.
type scale struct {
	*fixture
	mu    sync.Mutex
	begun map[string]time.Time // by subject
	took  []time.Duration
	n     int
}

// answer notes a delivery.
func (s *scale) answer(got received) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if begun, ok := s.begun[got.item.Subject]; ok {
		s.took, s.n = append(s.took, time.Since(begun)), s.n+1
	}
	return http.StatusOK
}

func (s *scale) received() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

// hasMore returns a condition that is true after a further delivery.
func (s *scale) hasMore() func() bool {
	before := s.received()
	return func() bool { return s.received() > before }
}

// subscribe creates tenants with webhooks, and returns requests by their owners.
func (s *scale) subscribe(tenants int, live, dead string) (owners []*fixture) {
	s.Helper()
	for i := range tenants {
		one := *s.fixture
		one.tenant = s.newTenant(fmt.Sprintf("tenant-%d", i))
		one.owner = one.call(one.signIn("owner"))
		account := one.aReader()
		for n := range rolecall.WebhooksMax {
			url := live
			if n%10 == 0 {
				url = dead
			}
			one.newWebhook(url, account.ID, types(rolecall.EventRoleCreated))
		}
		owners = append(owners, &one)
	}
	return owners
}

// change creates a role, and notes when.
func (s *scale) change(owner *fixture, name string) {
	s.Helper()
	s.mu.Lock() // so that no delivery is seen before its begin is known
	defer s.mu.Unlock()
	begun := time.Now()
	s.begun["role/"+owner.role(name).ID.String()] = begun
}

// runClock lets the clock of the fixture run.
func (f *fixture) runClock() {
	tick, done := time.NewTicker(5*time.Millisecond), make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				f.clock.advance(5 * time.Millisecond)
			}
		}
	})
	f.Cleanup(func() {
		tick.Stop()
		close(done)
		running.Wait()
	})
}

func quantiles(took []time.Duration) string {
	sorted := slices.Sorted(slices.Values(took))
	var b strings.Builder
	for _, q := range []int{50, 90, 99, 100} {
		fmt.Fprintf(&b, "p%d %v ", q, sorted[min(len(sorted)*q/100, len(sorted)-1)].Round(time.Millisecond))
	}
	return strings.TrimSpace(b.String())
}
