package faults

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
)

// slack limits how many more goroutines, and how many more descriptors, the program may have after
// all clients have disconnected than before the first one connected. Connections to the database
// need some.
const slack = 32

// The limits of the memory of the program in TestNothingLeaks, in bytes.
const (
	memoryMax    = 120 << 20
	memoryGrowth = 16 << 20 // from the first half of the requests to the second
)

// TestNothingLeaks lets a crowd send 4,000 requests, or 200,000 with -full, while other clients
// disconnect in the middle of a request. Then it checks the resources that the program still holds.
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
		if *full && (second.memory > memoryMax || second.memory > first.memory+memoryGrowth) { // during the first half, the memory grows to its normal size
			t.Errorf("the memory grows: %v, then %v", first, second)
		}
	})
}

// useAndRest sends half of the requests. Then it waits until the program has hardly more goroutines
// and descriptors than before, and returns the resources of the program.
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
	http.DefaultTransport.(*http.Transport).CloseIdleConnections() // the connection on which leave listed the users
	await(t, "the program goes on holding more than before it was used", func() bool {
		after = holdingsAt(t, metrics)
		return after.goroutines <= before.goroutines+slack && after.descriptors <= before.descriptors+slack
	})
	return after
}

// goAwayMidway sends a request without the end of its body, and disconnects.
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

// holdings are the resources of a process.
type holdings struct{ goroutines, descriptors, memory float64 }

// holdingsAt returns the resources of the process according to its metrics.
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

// String returns the resources as text.
func (h holdings) String() string {
	return fmt.Sprintf("%.0f goroutines, %.0f descriptors, %.1f MiB", h.goroutines, h.descriptors, h.memory/(1<<20))
}
