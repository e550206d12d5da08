package faults

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	generator "github.com/rolecall/rolecall/bench/load"
)

// probe is a client that repeats one request until it is stopped.
type probe struct {
	ask     func() result
	stop    chan struct{}
	running sync.WaitGroup

	statuses map[int]int
	latency  generator.Histogram
}

// begin starts a probe that sends a few hundred requests a second.
func begin(ask func() result) *probe {
	p := &probe{ask: ask, stop: make(chan struct{}), statuses: map[int]int{}}
	p.running.Go(func() {
		pace := time.NewTicker(3 * time.Millisecond)
		defer pace.Stop()
		for {
			select {
			case <-p.stop:
				return
			case <-pace.C:
				of := p.ask()
				p.statuses[of.status]++
				p.latency.Record(time.Duration(of.end - of.start))
			}
		}
	})
	return p
}

func (p *probe) end() {
	close(p.stop)
	p.running.Wait()
}

// String returns the number of responses by status, and their latency.
func (p *probe) String() string {
	return fmt.Sprintf("%v, p50 %v, p99 %v", p.statuses, p.latency.Quantile(0.5), p.latency.Quantile(0.99))
}

// only reports whether all answers had the status.
func (p *probe) only(status int) bool { return len(p.statuses) == 1 && p.statuses[status] > 0 }

// people creates n users in the tenant, so that its lists are long.
func people(t *testing.T, tn *tenant, n int) {
	t.Helper()
	for range n {
		if _, ok := tn.create(tn.newCreation("")); !ok {
			t.Fatal("a user was not made")
		}
	}
}

// text returns a request as HTTP/1.1 text. A request without a body has the session of the owner.
func (tn *tenant) text(line, body string) string {
	header := "Host: rolecall\r\nX-Tenant-Schema: " + tn.name + "\r\n"
	if body == "" {
		header += "Cookie: session=" + tn.owner.token + "\r\n"
	} else {
		header += fmt.Sprintf("Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	return line + " HTTP/1.1\r\n" + header + "\r\n" + body
}

func run(t *testing.T, plan generator.Plan) *generator.Result {
	t.Helper()
	result, err := generator.Run(context.WithoutCancel(t.Context()), plan)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// TestOverload requests five times as many lists as the program can answer. Requests that
// wait too long get 503, and all others get 200. Requests for the session and for health
// always get 200.
func TestOverload(t *testing.T) {
	skipIfShort(t)
	for _, store := range stores { // one after the other, because each needs the whole machine
		t.Run(store.name, func(t *testing.T) { overload(t, store.database(t)) })
	}
}

func overload(t *testing.T, database string) {
	s := serve(t, database)
	l := newLoad(t, s)
	l.spread = 1
	l.open()
	tn := l.tenants[0]
	people(t, tn, 250)
	plan := generator.Plan{
		Address: s.Address, Requests: []string{tn.text("GET /users?limit=200", "")}, Status: http.StatusOK, AtLeast: 1000,
		Connections: 32, Duration: time.Duration(times(1, 10)) * time.Second,
	}
	peak := run(t, plan)
	plan.Connections, plan.Rate = 1000, 5*peak.PerSecond()
	plan.Duration = time.Duration(times(3, 60)) * time.Second
	session := begin(func() result { return tn.owner.send("GET /auths/session", "") })
	health := begin(func() result { return caller{load: l}.send("GET /readyz", "") })
	flooded := run(t, plan)
	session.end()
	health.end()
	t.Logf("peak %.0f/s, p99 %v; at five times that %.0f/s, p99 %v, %d shed", peak.PerSecond(), peak.Latency.Quantile(0.99),
		flooded.PerSecond(), flooded.Latency.Quantile(0.99), flooded.Statuses[http.StatusServiceUnavailable])
	t.Logf("session: %v; health: %v", session, health)
	if answered := flooded.Statuses[http.StatusOK] + flooded.Statuses[http.StatusServiceUnavailable]; answered != flooded.Sent || flooded.Broken > 0 {
		t.Errorf("of %d requests %d were answered or shed, %d connections broke: %s", flooded.Sent, answered, flooded.Broken, flooded.Reason)
	}
	if !session.only(http.StatusOK) || !health.only(http.StatusOK) {
		t.Errorf("beside the flood sessions were answered %v, and health %v", session.statuses, health.statuses)
	}
	plan.Connections, plan.Rate, plan.Duration = 32, 0, time.Second
	if after := run(t, plan); after.Statuses[http.StatusServiceUnavailable] > 0 {
		t.Errorf("after the flood %d were shed", after.Statuses[http.StatusServiceUnavailable])
	}
	if *full && flooded.PerSecond() < 0.8*peak.PerSecond() {
		t.Errorf("at five times the peak of %.0f/s only %.0f/s were answered", peak.PerSecond(), flooded.PerSecond())
	}
	l.finish()
}

// TestSignInFlood sends more sign-ins than the program can hash. All other requests are
// served. Their additional delay is only logged, because a limit would make the test
// unreliable.
func TestSignInFlood(t *testing.T) {
	skipIfShort(t)
	s := newServer(t, filepath.Join(t.TempDir(), "rolecall.db"))
	var err error
	if s.Binary, err = release(); err != nil {
		t.Fatal(err)
	}
	startUntilEnd(t, s)
	l := newLoad(t, s)
	l.spread = 1
	l.open()
	tn := l.tenants[0]
	duration := time.Duration(times(2, 30)) * time.Second
	guest := newGuest(tn) // not the owner, because many sign-ins would end the session that read uses
	read := func() result { return tn.owner.send("GET /users/"+tn.ownerID, "") }
	calm := begin(read)
	<-time.After(duration) // as long as the measurement during the flood
	calm.end()
	beside := begin(read)
	flood := run(t, generator.Plan{
		Address: s.Address, Requests: []string{tn.text("POST /auths/login", credentials(guest.email))},
		Connections: 300, Duration: duration, Status: http.StatusOK,
	})
	beside.end()
	t.Logf("calm: %v; beside %.0f sign-ins/s, %d shed: %v", calm, flood.PerSecond(), flood.Statuses[http.StatusServiceUnavailable], beside)
	if !beside.only(http.StatusOK) {
		t.Errorf("beside the flood reads were answered %v", beside.statuses)
	}
	if flood.Statuses[http.StatusOK] == 0 || flood.Statuses[http.StatusServiceUnavailable] == 0 {
		t.Errorf("the flood was answered %v", flood.Statuses)
	}
	t.Logf("a read took %.1f times as long as without the flood (goal: 2; the client shares the cores)",
		float64(beside.latency.Quantile(0.5))/float64(calm.latency.Quantile(0.5)))
}
