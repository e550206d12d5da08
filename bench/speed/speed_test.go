package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rolecall/rolecall/bench/floor"
	"github.com/rolecall/rolecall/bench/load"
	"github.com/rolecall/rolecall/bench/peers"
	"github.com/rolecall/rolecall/internal/progress"
)

func TestMain(m *testing.M) {
	load.Serve()
	floor.Serve()
	os.Exit(m.Run())
}

const right = `{"id":"01a1fc10-ea84-7001-a69a-ad84f9bf0fcb","name":"Ada Lovelace"}`

// measured starts a server with the handler, measures it in one window, and returns the result.
func measured(t *testing.T, answer http.HandlerFunc) (sample, error) {
	t.Helper()
	server := httptest.NewServer(answer)
	defer server.Close()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	}()
	b := &bench{subject: &subject{}, bar: progress.Start(io.Discard, "measurements", 1)}
	b.LogFile = log
	op := &operation{requests: []string{get("/users/1", "s")}, status: http.StatusOK, atLeast: len(right)}
	return b.window(t.Context(), op, schedule{connections: 2, window: 100 * time.Millisecond}, server.Listener.Addr().String(), os.Getpid())
}

func TestAWindowOfCorrectResponsesIsMeasured(t *testing.T) {
	got, err := measured(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Tenant-Schema") != tenant || r.Host != host {
			w.WriteHeader(http.StatusBadRequest)
		}
		_, _ = io.WriteString(w, right)
	})
	if err != nil || got.Rate <= 0 || got.P50 <= 0 || got.P99 < got.P50 || got.Generator <= 0 {
		t.Errorf("got %+v and %v", got, err)
	}
}

func TestWrongAnswersAreNotMeasured(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"refusals":  func(w http.ResponseWriter, _ *http.Request) { http.Error(w, right, http.StatusUnauthorized) },
		"too short": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"items":[]}`) },
		"a body cut off": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "99")
			_, _ = io.WriteString(w, right)
		},
		"not even JSON": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("-", 200)) },
		"every second": func() http.HandlerFunc {
			var n atomic.Int64
			return func(w http.ResponseWriter, _ *http.Request) {
				if n.Add(1)%2 == 0 {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
				_, _ = io.WriteString(w, right)
			}
		}(),
		"connection ends": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
	} {
		if got, err := measured(t, answer); err == nil {
			t.Errorf("%s: got %+v and no error", name, got)
		}
	}
}

func TestAnswersAreCompared(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{`{"items":[{"a":1}],"nextCursor":"x"}`, `{"nextCursor":"y", "items":[{"a":1}]}`, true},
		{`{"items":[{"a":1}]}`, `{"items":[{"a":2}]}`, false},
		{`{"items":[{"a":1}]}`, `{"items":[{"a":1},{"a":1}]}`, false},
		{`{}`, `{}`, false},
		{`{"a":1}`, `{"a":1`, false},
	} {
		if got := alike(c.a, c.b); got != c.want {
			t.Errorf("%s and %s: got %t", c.a, c.b, got)
		}
	}
}

func TestTheTimeOfAProcessIsRead(t *testing.T) {
	id, parent, ticks, err := parseStat("42 (a) b (c) S 7 42 42 0 -1 4194304 100 200 0 0 5 6 7 8 20 0 1 0 1234 0 0\n")
	if err != nil || id != 42 || parent != 7 || ticks != 5+6+7+8 {
		t.Errorf("got process %d of %d with %d ticks, and %v", id, parent, ticks, err)
	}
	for _, line := range []string{"", "42 (a", "42 (a) S 7", "42 (a) S x 42 42 0 -1 4194304 100 200 0 0 5 6 7 8 20 0"} {
		if _, _, _, err := parseStat(line); err == nil {
			t.Errorf("%q was read", line)
		}
	}
}

func TestTheTimeOfAProcessIncludesItsChildren(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); errors.Is(err, os.ErrNotExist) {
		t.Skip("this system does not tell")
	}
	before, err := measureCPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	p, err := os.StartProcess("/bin/sh", []string{"sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"}, new(os.ProcAttr))
	if err != nil {
		t.Fatal(err)
	}
	state, err := p.Wait()
	if err != nil {
		t.Fatal(err)
	}
	after, err := measureCPU(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	spent := state.UserTime() + state.SystemTime()
	if got := after.processes - before.processes; got < spent-2*tick || after.machine-before.machine < spent-2*tick {
		t.Errorf("got %v, and %v of the machine, want the %v of the child at least", got, after.machine-before.machine, spent)
	}
}

func TestMiddles(t *testing.T) {
	if got := median([]float64{3, 1, 2}); got != 2 {
		t.Errorf("got %v, want 2", got)
	}
	if got := median([]float64{4, 1}); got != 2.5 {
		t.Errorf("got %v, want 2.5", got)
	}
	if got := middle([]sample{{Rate: 3}, {Rate: 1}, {Rate: 2, P99: 7}}); got.P99 != 7 {
		t.Errorf("got %+v, want the one with rate 2", got)
	}
}

func TestReports(t *testing.T) {
	r := report{Machine: machine{Processor: "P", Cores: 2}, Stores: []storeReport{{
		Store: "sqlite",
		Rows: []row{
			{Operation: "read a user", Connections: 32, Rolecall: sample{Rate: 20_000, P50: 1, P99: 9.5, CPU: 40}, Floor: sample{Rate: 27_840, P99: 6, CPU: 30}, Ratio: 0.72, RatioByCPU: 0.75, Goal: 0.65},
			{Operation: "sign in", Connections: 32, Rolecall: sample{Rate: 70.4, CPU: 20_000}, Floor: sample{Rate: 80}, Ratio: 0.88, Goal: 0.95},
			{Operation: "sign in", Connections: 1},
			{Operation: "who am I", Connections: 32, Ratio: 9, Goal: 0.75, Others: 1.4},
		},
		Facts: []fact{{"memory when idle", 22.24, "MiB", 30}, {"memory at its peak", 122, "MiB", 120}, {"start to first answer", 60, "ms", 50}},
	}}}
	var text, markdown bytes.Buffer
	if err := errors.Join(r.writeText(&text), r.writeMarkdown(&markdown)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| read a user | 32 | 20,000/s | 1.00 ms | 9.50 ms | 40 µs | 27,800/s | 6.00 ms | 30 µs | 0.72 | 0.75 | 0.65 | reached |",
		"| sign in | 32 | 70/s | 0.00 ms | 0.00 ms | 20.0 ms | 80/s | 0.00 ms | unknown | 0.88 | 0.00 | 0.95 | below |",
		"| memory when idle | 22.2 MiB | 30 MiB | reached |",
		"| start to first answer | 60.0 ms | 50 ms | unsure |",
		"| who am I | 32 | 0/s | 0.00 ms | 0.00 ms | unknown | 0/s | 0.00 ms | unknown | 9.00 | 0.00 | 0.75 | unsure |",
		"### SQLite", "took 0.35 cores", "believe the CPU",
	} {
		if !strings.Contains(markdown.String(), want) {
			t.Errorf("the tables hold no %q:\n%s", want, markdown.String())
		}
	}
	for _, want := range []string{"SQLite. Other work", "27,800/s", "below", "above"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text holds no %q:\n%s", want, text.String())
		}
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

func TestReportOfPeers(t *testing.T) {
	r := peersReport{Machine: machine{Processor: "P", Cores: 2}, Services: []service{
		{About: peers.About{Name: "A", Version: "1.0", Store: "SQLite", Hash: "bcrypt"}, Start: 21.4, Idle: 30, Peak: 120, Samples: map[string]sample{
			"read":   {Rate: 4730, P50: 1, P99: 9.5, CPU: 355, Others: 0.5},
			"create": {Rate: 17, CPU: 61_000, Others: 0.1},
		}},
		{About: peers.About{Name: "B", Version: "2.0"}, Problems: []string{"npm ci: exit status 1\nand so on"}},
	}}
	var text, markdown bytes.Buffer
	if err := errors.Join(r.writeText(&text), r.writeMarkdown(&markdown)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| service | version | store | passwords | start | memory when idle | memory at its peak | other work, in cores |\n|---|---|---|---|---:|---:|---:|---:|\n",
		"| A | 1.0 | SQLite | bcrypt | 21 ms | 30 MiB | 120 MiB | 0.30 |",
		"| B | 2.0 |  |  | not measured |  |  |  |",
		"\nNot measured: B: npm ci: exit status 1\n",
		"| read a user | A | 4,700/s | 1.00 ms | 9.50 ms | 355 µs |\n| create a user | A | 17/s |",
		"believe the CPU",
	} {
		if !strings.Contains(markdown.String(), want) {
			t.Errorf("the tables hold no %q:\n%s", want, markdown.String())
		}
	}
	if !strings.Contains(text.String(), "Not measured: B: npm ci") {
		t.Errorf("the text does not say what was not measured:\n%s", text.String())
	}
}
