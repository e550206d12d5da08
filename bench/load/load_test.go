package load_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/bench/load"
)

func TestMain(m *testing.M) {
	load.Serve()
	os.Exit(m.Run())
}

const body = `{"name":"Ada Lovelace"}`

// get returns a plan of 200 requests to the server, by four connections.
func get(server *httptest.Server) load.Plan {
	address := server.Listener.Addr().String()
	return load.Plan{
		Address: address, Connections: 4, Duration: time.Minute, Limit: 200, Status: http.StatusOK, AtLeast: len(body),
		Requests: []string{"GET /" + load.Number + " HTTP/1.1\r\nHost: " + address + "\r\n\r\n"},
	}
}

func start(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

func write(t *testing.T, w io.Writer, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Error(err)
	}
}

// flush writes the text as a chunk.
func flush(t *testing.T, w http.ResponseWriter, text string) {
	t.Helper()
	write(t, w, text)
	if err := http.NewResponseController(w).Flush(); err != nil {
		t.Error(err)
	}
}

func TestEveryRequestIsAnsweredAndCounted(t *testing.T) {
	for name, run := range map[string]func(context.Context, load.Plan) (*load.Result, error){"here": load.Run, "apart": load.RunApart} {
		var seen sync.Map
		server := start(t, func(w http.ResponseWriter, r *http.Request) {
			if _, again := seen.LoadOrStore(r.URL.Path, true); again || len(r.URL.Path) != 17 {
				t.Errorf("%s: asked for %s, again or not a number of 16 digits", name, r.URL.Path)
			}
			write(t, w, body)
		})
		got, err := run(t.Context(), get(server))
		if err != nil {
			t.Fatal(err)
		}
		if err := got.Err(); err != nil || got.Sent != 200 || got.Right != 200 || got.Statuses[200] != 200 || got.Counted() != 200 || got.PerSecond() <= 0 {
			t.Errorf("%s: got %+v and %v, want 200 right answers", name, got, err)
		}
		if name == "apart" && got.Spent <= 0 {
			t.Error("the time of the process is not known")
		}
	}
}

func TestWrongResponsesAreReportedAndNotCounted(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer http.HandlerFunc
		reason string
	}{
		{"a refusal", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusUnauthorized)
			write(t, w, body)
		}, "status 401"},
		{"less than there should be", func(w http.ResponseWriter, _ *http.Request) { write(t, w, `{}`) }, "a body of 2 bytes"},
		{"no body", func(http.ResponseWriter, *http.Request) {}, "a body of 0 bytes"},
		{"half an object", func(w http.ResponseWriter, _ *http.Request) { write(t, w, `{"name":"Ada Lovelace",`) }, "not an object"},
		{"less than was announced", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			write(t, w, body)
		}, "ended after 23 of 100 bytes"},
		{"no length", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Transfer-Encoding", "identity")
			write(t, w, body)
		}, "how long it is"},
		{"chunks without an end", func(w http.ResponseWriter, _ *http.Request) {
			flush(t, w, body)
			panic(http.ErrAbortHandler)
		}, "ended after 23 bytes of a body in chunks"},
		{"chunks with a trailer", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Sum")
			write(t, w, body)
			w.Header().Set("X-Sum", "1")
		}, "a trailer follows"},
		{"no answer", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "ended after 0 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan := get(start(t, c.answer))
			plan.Limit = 3
			got, err := load.Run(t.Context(), plan)
			if err != nil {
				t.Fatal(err)
			}
			if got.Sent != 3 || got.Right != 0 || got.Counted() != 0 || got.Err() == nil || !strings.Contains(got.Err().Error(), c.reason) {
				t.Errorf("got %d right of %d and %v, want none of 3 and %q", got.Right, got.Sent, got.Err(), c.reason)
			}
		})
	}
}

func TestCorrectResponsesInOtherForms(t *testing.T) {
	long := "[" + strings.Repeat(body+",", 1000) + body + "]"
	for name, answer := range map[string]http.HandlerFunc{
		"one chunk":    func(w http.ResponseWriter, _ *http.Request) { flush(t, w, body) },
		"two chunks":   func(w http.ResponseWriter, _ *http.Request) { flush(t, w, body[:5]); flush(t, w, body[5:]) },
		"a long array": func(w http.ResponseWriter, _ *http.Request) { flush(t, w, long[:4000]); write(t, w, long[4000:]) },
		"nothing":      func(http.ResponseWriter, *http.Request) {},
	} {
		plan := get(start(t, answer))
		switch name {
		case "a long array":
			plan.AtLeast = len(long)
		case "nothing":
			plan.AtLeast = 0
		}
		if got, err := load.Run(t.Context(), plan); err != nil || got.Err() != nil || got.Right != 200 {
			t.Errorf("%s: got %d right answers, %v and %v, want 200", name, got.Right, got.Err(), err)
		}
	}
}

func TestOneWrongResponseAmongManyIsReported(t *testing.T) {
	var once sync.Once
	got, err := load.Run(t.Context(), get(start(t, func(w http.ResponseWriter, _ *http.Request) {
		once.Do(func() { w.WriteHeader(http.StatusServiceUnavailable) })
		write(t, w, body)
	})))
	if err != nil {
		t.Fatal(err)
	}
	if got.Err() == nil || got.Right != 199 || got.Statuses[503] != 1 || got.Counted() != 199 {
		t.Errorf("got %d right, statuses %v and %v, want 199 right and one 503", got.Right, got.Statuses, got.Err())
	}
}

func TestAClosedConnectionIsReopened(t *testing.T) {
	got, err := load.Run(t.Context(), get(start(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		write(t, w, body)
	})))
	if err != nil || got.Err() != nil || got.Right != 200 {
		t.Errorf("got %d right answers, %v and %v, want all 200", got.Right, got.Err(), err)
	}
}

func TestLatencyAtARateIncludesTheDelayOfARequest(t *testing.T) {
	const wait = 20 * time.Millisecond
	plan := get(start(t, func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(wait)
		write(t, w, body)
	}))
	plan.Connections, plan.Limit, plan.Rate = 1, 20, 1000 // twenty times the rate of one connection
	got, err := load.Run(t.Context(), plan)
	if err != nil || got.Err() != nil {
		t.Fatal(err, got.Err())
	}
	// The response to the 20th request arrives after 20 waits. That request was due
	// after 19 ms.
	if longest, want := got.Latency.Max, 20*wait-19*time.Millisecond; longest < want {
		t.Errorf("the longest latency is %v, want at least %v", longest, want)
	}

	plan.Limit, plan.Rate = 5, 50 // slower than the server: no request waits for another
	begun := time.Now()
	if got, err = load.Run(t.Context(), plan); err != nil || got.Err() != nil {
		t.Fatal(err, got.Err())
	}
	if took := time.Since(begun); took < 4*20*time.Millisecond {
		t.Errorf("5 requests at 50 a second took %v", took)
	}
}

func TestWarmingUpIsNotCounted(t *testing.T) {
	plan := get(start(t, func(w http.ResponseWriter, _ *http.Request) { write(t, w, body) }))
	plan.WarmUp = time.Minute
	got, err := load.Run(t.Context(), plan)
	if err != nil || got.Right != 200 || got.Counted() != 0 {
		t.Errorf("got %d right and %d counted, %v, want 200 and none", got.Right, got.Counted(), err)
	}
}

func TestRefusedConnectionsAreReported(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := load.Run(t.Context(), load.Plan{Address: address, Connections: 2, Duration: time.Minute, Limit: 4, Requests: []string{"GET / HTTP/1.1\r\n\r\n"}})
	if err != nil || got.Broken != 4 || got.Err() == nil {
		t.Errorf("got %d broken, %v and %v, want 4", got.Broken, got.Err(), err)
	}
}

func TestTheEndOfTheContextEndsTheRun(t *testing.T) {
	asked := make(chan struct{})
	release := make(chan struct{})
	defer close(release)
	server := start(t, func(http.ResponseWriter, *http.Request) {
		asked <- struct{}{}
		<-release
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	plan := get(server)
	plan.Connections = 1
	if _, err := load.Run(ctx, plan); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want that it was cancelled", err)
	}
}

func TestAnEmptyPlanIsRefused(t *testing.T) {
	for _, plan := range []load.Plan{{}, {Connections: 1, Duration: 1}, {Connections: 1, Requests: []string{""}}} {
		if _, err := load.Run(t.Context(), plan); err == nil {
			t.Errorf("%+v was taken", plan)
		}
	}
}

func TestQuantiles(t *testing.T) {
	var h, other load.Histogram
	for i := range 1000 {
		h.Record(time.Duration(i+1) * time.Millisecond)
	}
	for share, want := range map[float64]time.Duration{0: time.Millisecond, 0.5: 500 * time.Millisecond, 0.99: 990 * time.Millisecond, 1: time.Second} {
		if got := h.Quantile(share); got < want || float64(got) > 1.016*float64(want) {
			t.Errorf("quantile %v is %v, want %v", share, got, want)
		}
	}
	other.Record(time.Hour)
	other.Record(-1)
	h.Add(&other)
	if got := h.Quantile(1); h.Count() != 1002 || h.Max != time.Hour || got != time.Hour {
		t.Errorf("got %d times, the longest %v, %v", h.Count(), h.Max, got)
	}
	if got := new(load.Histogram).Quantile(0.5); got != 0 {
		t.Errorf("the median of nothing is %v", got)
	}
}

func ExampleRun() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{}`) }))
	defer server.Close()
	result, err := load.Run(context.Background(), load.Plan{
		Address: server.Listener.Addr().String(), Connections: 2, Duration: time.Minute, Limit: 10, Status: http.StatusOK,
		Requests: []string{"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n"},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Statuses, result.Err())
	// Output: map[200:10] <nil>
}
