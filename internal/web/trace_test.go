package web

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestTraceIDs(t *testing.T) {
	const id, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
	for header, want := range map[string]string{
		"00-" + id + "-" + parent + "-01":                      id,
		"00-" + id + "-" + parent + "-00":                      id,
		"cc-" + id + "-" + parent + "-01":                      id, // a later version
		"cc-" + id + "-" + parent + "-01-more":                 id,
		"":                                                     "",
		"00-" + id + "-" + parent + "-01-more":                 "",
		"00-" + id + "-" + parent + "-01x":                     "",
		"cc-" + id + "-" + parent + "-01.more":                 "",
		"ff-" + id + "-" + parent + "-01":                      "",
		"00-" + strings.ToUpper(id) + "-" + parent + "-01":     "",
		"00-" + id + "-" + parent + "-0g":                      "",
		"00-" + id[:31] + "\n-" + parent + "-01":               "",
		"00-" + strings.Repeat("0", 32) + "-" + parent + "-01": "",
		"00-" + id + "-" + strings.Repeat("0", 16) + "-01":     "",
		"00_" + id + "-" + parent + "-01":                      "",
		"00-" + id + "-" + parent:                              "",
		"00-" + id[:31] + "--" + parent + "-01":                "",
		strings.Repeat("-", 55):                                "",
	} {
		if got := traceID(http.Header{"Traceparent": {header}}); got != want {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
	}
	if got := traceID(http.Header{"Traceparent": {"00-" + id + "-" + parent + "-01", "00-" + id + "-" + parent + "-01"}}); got != "" {
		t.Errorf("two headers: %q", got)
	}
}

func TestTheLogHasTheTraceID(t *testing.T) {
	var log bytes.Buffer
	site := New(Options{Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	handler := site.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := RequestOf(r)
		q.path, q.metrics = "/users", site.metrics.of("list")
		w.WriteHeader(http.StatusOK)
	}), nil)
	for _, traceparent := range []string{"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "unknown"} {
		log.Reset()
		request := httptest.NewRequest(http.MethodGet, "/users", nil)
		request.Header.Set("traceparent", traceparent)
		handler.ServeHTTP(httptest.NewRecorder(), request)
		isValid := traceparent != "unknown"
		if strings.Contains(log.String(), `"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736"`) != isValid || strings.Contains(log.String(), "trace_id") != isValid || !strings.Contains(log.String(), `"duration_ms":`) {
			t.Errorf("%s: logged %s", traceparent, log.Bytes())
		}
	}
}
