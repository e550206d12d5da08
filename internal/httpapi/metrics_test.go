package httpapi

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/web"
)

// The maximum numbers of time series of this package. mostIdleSeries is for a node that has
// served no request. mostSeries is for a node that has responded to every operation with every
// class of status. docs/operations.md has the numbers for a node with all its metrics.
const (
	mostIdleSeries = 100
	mostSeries     = 5_000
)

// series returns the number of series that the server exposes (lines of its metrics), the number of
// series that count requests by status, and the operations that have metrics.
func (s *testServer) series() (n, answered int, operations map[string]bool) {
	s.t.Helper()
	families, err := s.registry.Gather()
	if err != nil {
		s.t.Fatal(err)
	}
	operations = map[string]bool{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			n++
			if family.GetName() == "rolecall_http_requests_total" {
				answered++
			}
			if histogram := m.GetHistogram(); histogram != nil {
				n += len(histogram.GetBucket()) + 2 // and the last bucket, the sum and the count
			}
			for _, label := range m.GetLabel() {
				if label.GetName() == "operation" {
					operations[label.GetValue()] = true
				}
			}
		}
	}
	return n, answered, operations
}

func TestMetricsAreFew(t *testing.T) {
	s := newTestServer(t)
	if n, _, _ := s.series(); n > mostIdleSeries {
		t.Errorf("after one sign-in there are %d series, want at most %d", n, mostIdleSeries)
	}
	place := regexp.MustCompile(`\{[^}]*\}`)
	all := s.edge.pages()
	for _, op := range declared {
		all = append(all, web.Route{Method: op.Method, Path: op.Path, Label: op.ID})
	}
	for _, route := range all {
		path := strings.ReplaceAll(route.Path, "{code}", "validation")
		path = place.ReplaceAllString(path, s.ownerID)
		s.request(route.Method, path, "")
	}
	n, answered, seen := s.series()
	for _, route := range all {
		if !seen[route.Label] {
			t.Errorf("%s has no metrics after a request", route.Label)
		}
	}
	// The worst case: each operation has responded with each of the four classes of status.
	n += len(seen)*4 - answered
	// An upper limit for the console: one page per operation for tenants. The console has fewer pages.
	const histogram, statuses = 8 + 3, 4 // a histogram has 8 buckets, +Inf, sum and count
	n += len(Policies()) * (histogram + statuses)
	if n > mostSeries {
		t.Errorf("after all operations there are %d series, want at most %d", n, mostSeries)
	}
	t.Logf("%d operations and pages make %d series", len(seen), n)
}

func TestTheLogHasMilliseconds(t *testing.T) {
	s := newTestServer(t)
	begun := time.Now()
	s.request("GET", "/auths/session", "")
	most := float64(time.Since(begun).Microseconds()) / 1000
	s.request("GET", "/livez", "") // gets no line
	lines := strings.Split(strings.TrimSpace(s.log.String()), "\n")
	var line struct {
		Route    string   `json:"route"`
		Duration *float64 `json:"duration_ms"`
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &line); err != nil {
		t.Fatal(err)
	}
	if line.Route != "/auths/session" || line.Duration == nil || *line.Duration < 0.001 || *line.Duration > most {
		t.Errorf("the log says %s, want duration_ms of at most %v", lines[len(lines)-1], most)
	}
}
