package web

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/limiter"
)

func TestCellsAreNeutralizedAndQuoted(t *testing.T) {
	for cell, want := range map[string]string{
		"a;=1":         "a;'=1",
		"a; =1":        "a;' =1",
		"a;\"=1\"":     `"a;'""=1"""`,
		"a;b;+1;@x":    "a;b;'+1;'@x",
		"a\t=1":        "a\t'=1",
		"a\n-1":        "\"a\n'-1\"",
		"a\r\n=1":      "\"a\r\n'=1\"",
		"a\u2028=1":    "a\u2028'=1",
		";=1":          ";'=1",
		" =1":          "' =1",
		"\u00a0=1":     "'\u00a0=1",
		"a;'=1":        "a;'=1",
		"\t=1":         "'\t'=1",
		"＝1+1":         "'＝1+1",
		"＋1":           "'＋1",
		"－1":           "'－1",
		"＠x":           "'＠x",
		"a;＝1":         "a;'＝1",
		"a, =b; c":     `"a, =b; c"`,
		"+49 30 12345": "'+49 30 12345",
		"Sales; R&D":   "Sales; R&D",

		"":          "",
		"Ada":       "Ada",
		"a-b=c":     "a-b=c",
		"=1+1":      "'=1+1",
		"+1":        "'+1",
		"-1":        "'-1",
		"@a":        "'@a",
		"\tx":       "'\tx",
		"\rx":       "\"'\rx\"",
		"a,b":       `"a,b"`,
		`a"b`:       `"a""b"`,
		"a\r\nb":    "\"a\r\nb\"",
		`=a,"b"`:    `"'=a,""b"""`,
		"'=already": "'=already",
	} {
		if got := string(appendCell(nil, neutralized(cell))); got != want {
			t.Errorf("%q is written as %q, not %q", cell, got, want)
		}
		raw, err := csv.NewReader(bytes.NewReader(CSV{Raw: true}.append(nil, []string{"x", cell}))).Read()
		if text := strings.ReplaceAll(cell, "\r\n", "\n"); err != nil || raw[1] != text { // encoding/csv changes \r\n to \n
			t.Errorf("%q is read as %q from a raw file (error %v)", cell, raw, err)
		}
	}
}

func FuzzCSV(f *testing.F) {
	f.Add("Ada", `a "b", c`)
	f.Add("=1", "")
	f.Fuzz(func(t *testing.T, one, two string) {
		if strings.Contains(one+two, "\r") { // encoding/csv changes \r\n to \n
			t.Skip()
		}
		row := CSV{}.append(nil, []string{one, two})
		record, err := csv.NewReader(bytes.NewReader(row)).Read()
		if err != nil || len(record) != 2 {
			t.Fatalf("%q, %v", record, err)
		}
		for i, cell := range []string{one, two} {
			if got := strings.ReplaceAll(record[i], "'", ""); got != strings.ReplaceAll(cell, "'", "") {
				t.Errorf("%q was read as %q", cell, record[i])
			}
			for _, part := range strings.FieldsFunc(record[i], func(r rune) bool { return strings.ContainsRune(cellBreaks, r) }) {
				if start := strings.TrimLeft(part, " \"\u00a0"); start != "" && strings.ContainsAny(start[:1], "=+-@") {
					t.Errorf("%q has the formula %q", cell, part)
				}
			}
			if record[i] != "" && strings.ContainsAny(record[i][:1], "=+-@\t") {
				t.Errorf("%q is a formula", record[i])
			}
		}
	})
}

// pipes is a listener whose connections are in memory, so that synctest controls the time.
type pipes chan net.Conn

// Accept returns the next connection.
func (p pipes) Accept() (net.Conn, error) {
	if conn, ok := <-p; ok {
		return conn, nil
	}
	return nil, net.ErrClosed
}

// Close ends Accept.
func (p pipes) Close() error {
	close(p)
	return nil
}

// Addr returns an address without a name.
func (p pipes) Addr() net.Addr { return &net.UnixAddr{} }

// exporting calls test in a bubble of synctest, with a function that gets the table from a server. The
// export may take longer than the request timeouts of the server.
func exporting(t *testing.T, format CSV, open func() (*rolecall.Table, error), test func(t *testing.T, get func() (*http.Response, error))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		site := New(Options{Logger: slog.New(slog.DiscardHandler), Deadline: 100 * time.Millisecond})
		server := site.Server(site.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := site.ServeCSV(w, r, format, open); err != nil {
				site.RespondProblem(w, r, err)
			}
		}), site.RespondProblem))
		server.ReadTimeout, server.WriteTimeout = 200*time.Millisecond, 200*time.Millisecond
		connections := make(pipes)
		served := make(chan error, 1)
		go func() { served <- server.Serve(connections) }()
		transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			connections <- theirs
			return ours, nil
		}}
		test(t, func() (*http.Response, error) { return (&http.Client{Transport: transport}).Get("http://example.com/") })
		transport.CloseIdleConnections()
		err := server.Close()
		if ended := <-served; err != nil || !errors.Is(ended, http.ErrServerClosed) {
			t.Errorf("%v, %v", err, ended)
		}
	})
}

func read(t *testing.T, get func() (*http.Response, error)) (*http.Response, string, error) {
	t.Helper()
	answer, err := get()
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(answer.Body)
	return answer, string(body), errors.Join(err, answer.Body.Close())
}

func TestExportsOutliveTheDeadlinesOfARequest(t *testing.T) {
	parts := 0
	exporting(t, CSV{Tenant: "acme", Mark: true}, func() (*rolecall.Table, error) {
		return &rolecall.Table{Name: "users", Columns: []string{"id"}, Record: func() error { return nil }, Next: func(ctx context.Context) ([][]string, bool, error) {
			<-time.After(60 * time.Millisecond)
			parts++
			return [][]string{{strings.Repeat("x", parts)}}, parts < 10, ctx.Err()
		}}, nil
	}, func(t *testing.T, get func() (*http.Response, error)) {
		answer, body, err := read(t, get)
		if lines := strings.Split(body, "\r\n"); err != nil || len(lines) != 12 || lines[0] != "\ufeffid" || lines[10] != strings.Repeat("x", 10) {
			t.Errorf("%q, %v", body, err)
		}
		if answer.Header.Get("Content-Type") != "text/csv; charset=utf-8" || !strings.HasPrefix(answer.Header.Get("Content-Disposition"), `attachment; filename="acme-users-2`) {
			t.Error(answer.Header)
		}
	})
}

func TestAnExportThatFailsAbortsTheConnection(t *testing.T) {
	parts := 0
	exporting(t, CSV{Tenant: "acme"}, func() (*rolecall.Table, error) {
		return &rolecall.Table{Columns: []string{"id"}, Record: func() error { return nil }, Next: func(context.Context) ([][]string, bool, error) {
			if parts++; parts == 3 {
				return nil, false, errors.New("the store is down")
			}
			return [][]string{{"x"}}, true, nil
		}}, nil
	}, func(t *testing.T, get func() (*http.Response, error)) {
		if _, body, err := read(t, get); err == nil {
			t.Errorf("the client got %q as a whole file", body)
		}
	})
}

func TestAnExportEndsWhenTheClientLeaves(t *testing.T) {
	var ended error
	exporting(t, CSV{Tenant: "acme"}, func() (*rolecall.Table, error) {
		return &rolecall.Table{Columns: []string{"id"}, Record: func() error { return nil }, Next: func(ctx context.Context) ([][]string, bool, error) {
			select {
			case <-ctx.Done():
				ended = ctx.Err()
				return nil, false, ended
			case <-time.After(time.Millisecond):
				return [][]string{{"x"}}, true, nil
			}
		}}, nil
	}, func(t *testing.T, get func() (*http.Response, error)) {
		answer, err := get()
		if err == nil {
			err = answer.Body.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		<-time.After(2 * time.Millisecond) // the next part
		synctest.Wait()
		if !errors.Is(ended, context.Canceled) {
			t.Errorf("the export goes on, or ended with %v", ended)
		}
	})
}

// TestASlowExportMakesRoom has a client that does not read. The export ends although its write waits.
func TestASlowExportMakesRoom(t *testing.T) {
	site := &Site{exports: newExports()}
	control := &stuckWriter{writing: make(chan struct{}), deadlines: make(chan time.Time, 10)}
	q := &Request{site: site}
	running, lose := context.WithCancelCause(t.Context())
	table := &rolecall.Table{Next: func(context.Context) ([][]string, bool, error) { return [][]string{{"x"}}, true, nil }}
	ended := make(chan error)
	go func() { ended <- q.sendTable(running, control, []byte("id"), CSV{}, table) }()
	<-control.writing
	lose(limiter.ErrLostShare)
	if err := <-ended; !errors.Is(err, limiter.ErrLostShare) {
		t.Errorf("the export ended with %v", err)
	}
}

// stuckWriter is a connection whose client does not read.
type stuckWriter struct {
	http.ResponseWriter
	writing   chan struct{}
	deadlines chan time.Time
}

func (w *stuckWriter) SetReadDeadline(time.Time) error { return nil }

func (w *stuckWriter) SetWriteDeadline(at time.Time) error {
	w.deadlines <- at
	return nil
}

func (w *stuckWriter) Write([]byte) (int, error) {
	close(w.writing)
	for at := range w.deadlines {
		if !at.After(time.Now()) {
			break
		}
	}
	return 0, os.ErrDeadlineExceeded
}

func TestExportsAreBounded(t *testing.T) {
	e := newExports()
	var began []bool
	contexts, ends := map[string]context.Context{}, map[string]func(){} // of the last export of each tenant
	begin := func(tenant string) bool {
		running, end, ok := e.begin(t.Context(), tenant)
		if ok {
			contexts[tenant], ends[tenant] = running, end
		}
		return ok
	}
	for _, tenant := range []string{"a", "a", "a", "b", "b", "c", "c", "d", "d", "e", "f", "g", "h", "i"} {
		began = append(began, begin(tenant))
	}
	// The tenants e to h take the second exports of a to d.
	if want := []bool{true, true, false, true, true, true, true, true, true, true, true, true, true, false}; !slices.Equal(began, want) {
		t.Error(began)
	}
	for tenant, running := range contexts {
		if lost := errors.Is(context.Cause(running), limiter.ErrLostShare); lost != (tenant < "e") {
			t.Errorf("the last export of %s made room: %v", tenant, lost)
		}
	}
	if begin("a") {
		t.Error("an export that made room, and has not ended yet, does not count for its tenant")
	}
	ends["a"]()
	ends["e"]()
	if !begin("i") {
		t.Error("an export that ended counts")
	}
	started, release := make(chan struct{}, exportsOfOne), make(chan struct{})
	exporting(t, CSV{Tenant: "acme"}, func() (*rolecall.Table, error) {
		return &rolecall.Table{Columns: []string{"id"}, Record: func() error { return nil }, Next: func(context.Context) ([][]string, bool, error) {
			started <- struct{}{}
			<-release
			return nil, false, nil
		}}, nil
	}, func(t *testing.T, get func() (*http.Response, error)) {
		done := make(chan error, exportsOfOne)
		for range exportsOfOne {
			go func() {
				answer, err := get()
				if err == nil {
					_, err = io.Copy(io.Discard, answer.Body)
				}
				done <- err
			}()
		}
		for range exportsOfOne {
			<-started
		}
		if answer, body, err := read(t, get); answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") == "" {
			t.Error(answer.StatusCode, body, err)
		}
		close(release)
		for range exportsOfOne {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}
