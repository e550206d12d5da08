package faults

import (
	"io"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/pgtest"
	"github.com/rolecall/rolecall/internal/process"
)

// requestGoal is the documented maximum time of a request in any state of the network.
const requestGoal = 15 * time.Second

// storm is a named network fault.
type storm struct {
	name string
	weather
}

// silence is a fault in which connections lose all data. It is not in storms, because a request
// over a silent connection takes until the time limit of the client.
var silence = storm{"silence", weather{silent: true}}

var storms = []storm{
	{"latency of 200 ms", weather{latency: 200 * time.Millisecond}},
	{"jitter", weather{latency: 5 * time.Millisecond, jitter: 100 * time.Millisecond}},
	{"1 kB/s", weather{perSecond: 1000}},
	{"slices of 3 bytes", weather{slice: 3}},
}

// TestNetworkFaultsBeforeTheDatabase applies every network fault between the program and its
// database.
func TestNetworkFaultsBeforeTheDatabase(t *testing.T) {
	skipIfShort(t)
	alongside(t)
	server, database := startPostgres(t)
	r := newRelay(t, socket(t, server))
	metrics, err := process.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	l := newLoad(t, serve(t, through(database, r), "--metrics-listen", metrics))
	l.inspect = inside(t, server)
	for _, storm := range append([]storm{silence}, storms[:times(0, len(storms))]...) {
		l.start()
		l.await(50)
		l.weather(r, storm.name, storm.weather)
		l.await(50)
		l.finish()
		l.client.CloseIdleConnections()
		expectNoLeak(t, metrics, server)
	}
	l.report("storms before the database")
}

// TestNetworkFaultsBeforeTheProgram applies every network fault between the clients and the
// program.
func TestNetworkFaultsBeforeTheProgram(t *testing.T) {
	skipIfShort(t)
	alongside(t)
	server, database := startPostgres(t)
	metrics, err := process.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, database, "--metrics-listen", metrics)
	r := newRelay(t, s.Address)
	l := newLoad(t, s)
	l.inspect, l.url = inside(t, server), "http://"+r.address()
	for _, storm := range storms[:times(1, len(storms))] {
		l.start()
		l.await(50)
		l.weather(r, storm.name, storm.weather)
		for range times(5, 50) {
			l.await(5)
			r.cut()
		}
		l.await(50)
		l.finish()
		l.client.CloseIdleConnections()
		expectNoLeak(t, metrics, server)
	}
	l.report("storms before the program")
}

// weather applies the fault for a while. No request may take longer than requestGoal, and the
// database must be readable soon after the fault.
func (l *load) weather(r *relay, name string, w weather) {
	l.t.Helper()
	r.change(w)
	var asking sync.WaitGroup
	var mu sync.Mutex
	var longest time.Duration
	for range 4 {
		asking.Go(func() {
			for range times(2, 10) {
				took := l.probe().took()
				mu.Lock()
				longest = max(longest, took)
				mu.Unlock()
			}
		})
	}
	asking.Wait()
	if longest > within(requestGoal) {
		l.t.Errorf("%s: a request took %v", name, longest)
	}
	r.change(weather{})
	l.t.Logf("%s: no request took more than %v; well again %v after it", name, longest, l.expectRecovery())
}

var goroutines = regexp.MustCompile(`(?m)^go_goroutines (\d+)$`)

// expectNoLeak checks that the program soon has no more goroutines and database connections than an
// idle program needs.
func expectNoLeak(t *testing.T, metrics string, server *pgtest.Server) {
	t.Helper()
	const mostGoroutines, mostConnections = 80, 64
	admin := connectTo(t, server)
	running, connections := 0, 0
	if !patience.Poll(func() bool {
		running = countGoroutines(t, metrics)
		if err := admin.QueryRow(t.Context(), "select count(*) from pg_stat_activity where application_name like 'rolecall%'").Scan(&connections); err != nil {
			t.Fatal(err)
		}
		return running <= mostGoroutines && connections <= mostConnections
	}) {
		t.Errorf("after the load the program goes on having %d goroutines and %d connections", running, connections)
	}
}

func countGoroutines(t *testing.T, metrics string) int {
	t.Helper()
	response, err := http.Get("http://" + metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	found := goroutines.FindSubmatch(text)
	if found == nil {
		t.Fatalf("the metrics do not count goroutines:\n%s", text)
	}
	n, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
