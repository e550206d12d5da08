package faults

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
)

// What a program may hold more than before it was used, when nobody is connected
// any more: connections to its database, and what they need.
const slack = 32

// Bounds of the memory of a program that this crowd uses, in bytes.
const (
	memoryMax    = 120 << 20
	memoryGrowth = 16 << 20 // from one half of the requests to the other
)

// TestNothingLeaks lets a crowd ask 200,000 times, with clients in between that go
// away in the middle of a request, and looks at what the program still holds.
func TestNothingLeaks(t *testing.T) {
	skipIfShort(t)
	onStores(t, func(t *testing.T, database string) {
		metrics := freeAddress(t)
		s := serve(t, database, "--metrics-listen", metrics)
		makeCrowdTenant(t, s)
		before := holdingsAt(t, metrics)
		first := useAndRest(t, s.Address, metrics, before)
		second := useAndRest(t, s.Address, metrics, before)
		t.Logf("idle at first: %v; after half of the requests: %v; after all: %v", before, first, second)
		if *full && (second.memory > memoryMax || second.memory > first.memory+memoryGrowth) { // before, it grows to what it needs
			t.Errorf("the memory grows: %v, then %v", first, second)
		}
	})
}

// useAndRest makes half of the requests, and returns what the program holds when
// it is nearly as little as before. That may take a moment.
func useAndRest(t *testing.T, address, metrics string, before holdings) (after holdings) {
	t.Helper()
	requests := int64(times(2_000, 100_000))
	c := gather(t, address)
	for range 10 {
		for range requests / 1_000 {
			goAwayMidway(t, address)
		}
		c.moreAnswers(requests / 10)
	}
	c.leave()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections() // with which users were counted
	await(t, "the program goes on holding more than before it was used", func() bool {
		after = holdingsAt(t, metrics)
		return after.goroutines <= before.goroutines+slack && after.descriptors <= before.descriptors+slack
	})
	return after
}

// goAwayMidway sends the first half of a request and goes away.
func goAwayMidway(t *testing.T, address string) {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("POST /auths/login HTTP/1.1\r\nHost: crowd\r\nX-Tenant-Schema: crowd\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{")); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
}

// holdings are what a process holds.
type holdings struct{ goroutines, descriptors, memory float64 }

// holdingsAt returns what the process that serves the metrics says that it holds.
func holdingsAt(t *testing.T, metrics string) (h holdings) {
	t.Helper()
	answer, err := http.Get("http://" + metrics + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	wanted := map[string]*float64{"go_goroutines": &h.goroutines, "process_open_fds": &h.descriptors, "process_resident_memory_bytes": &h.memory}
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if into := wanted[name]; into != nil {
			if _, err := fmt.Sscan(value, into); err != nil {
				t.Fatal(err)
			}
		}
	}
	if h.goroutines == 0 || h.descriptors == 0 || h.memory == 0 {
		t.Fatalf("the metrics do not say what the process holds: %v", h)
	}
	return h
}

// String says what is held.
func (h holdings) String() string {
	return fmt.Sprintf("%.0f goroutines, %.0f descriptors, %.1f MiB", h.goroutines, h.descriptors, h.memory/(1<<20))
}
