package main

import (
	"bytes"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"syscall"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// spanSink is a receiver of spans over OTLP with HTTP.
type spanSink struct {
	*httptest.Server
	mu       sync.Mutex
	spans    []*otlp.Span
	services []string
}

func newSpanSink(t *testing.T) *spanSink {
	sink := new(spanSink)
	sink.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &request)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		sink.mu.Lock()
		defer sink.mu.Unlock()
		for _, resource := range request.ResourceSpans {
			for _, attribute := range resource.Resource.Attributes {
				if attribute.Key == "service.name" {
					sink.services = append(sink.services, attribute.Value.GetStringValue())
				}
			}
			for _, scope := range resource.ScopeSpans {
				sink.spans = append(sink.spans, scope.Spans...)
			}
		}
	}))
	t.Cleanup(sink.Close)
	return sink
}

const (
	clientTrace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	clientSpan   = "00f067aa0ba902b7"
	traceparent  = "00-" + clientTrace + "-" + clientSpan + "-01"
	sessionRoute = "GET /auths/session"
)

func TestSpansHaveTheRightParents(t *testing.T) {
	sink := newSpanSink(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", sink.URL)
	s := startServer(t, newTenant(t))
	for _, parent := range []string{traceparent, ""} {
		request, err := http.NewRequest(http.MethodGet, "http://"+s.address+"/auths/session", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("x-tenant-schema", "acme")
		request.AddCookie(&http.Cookie{Name: "session", Value: strings.Repeat("A", 43)})
		if parent != "" {
			request.Header.Set("traceparent", parent)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
	}
	for _, probe := range []string{"/livez", "/readyz"} {
		answer, err := http.Get("http://" + s.address + probe)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
	}
	if err := s.stop(syscall.SIGTERM); err != nil { // sends the last spans
		t.Error(err)
	}
	sink.mu.Lock()
	defer sink.mu.Unlock()
	if len(sink.services) == 0 || sink.services[0] != "rolecall" {
		t.Errorf("the spans are of the services %q", sink.services)
	}
	var requests, ofClient, children int
	servers := map[string]*otlp.Span{}
	for _, span := range sink.spans {
		if strings.HasSuffix(span.Name, "livez") || strings.HasSuffix(span.Name, "readyz") {
			t.Errorf("a probe has the span %s", span.Name)
		}
		if span.Name == sessionRoute {
			requests++
			servers[string(span.SpanId)] = span
			if hex.EncodeToString(span.TraceId) == clientTrace && hex.EncodeToString(span.ParentSpanId) == clientSpan {
				ofClient++
			}
		}
	}
	for _, span := range sink.spans {
		if !strings.HasPrefix(span.Name, "database ") {
			continue
		}
		if parent := servers[string(span.ParentSpanId)]; parent != nil && bytes.Equal(parent.TraceId, span.TraceId) {
			children++
		} else {
			t.Errorf("the span %s of the database has no request as its parent", span.Name)
		}
	}
	if requests != 2 || ofClient != 1 || children == 0 {
		t.Errorf("%d spans of requests, of which %d have the span of the client as parent, and %d of the database: %v", requests, ofClient, children, sink.spans)
	}
}

func TestAReceiverOfSpansThatDoesNotAnswerDoesNotFailTheStop(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+listener.Addr().String())
	s := startServer(t, newTenant(t))
	answer, err := http.Get("http://" + s.address + "/auths/session")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if err := s.stop(syscall.SIGTERM); err != nil {
		t.Errorf("the process ends with %v", err)
	}
}

func TestSettingsOfTracesAreChecked(t *testing.T) {
	for _, test := range []struct{ name, value, says string }{
		{"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf"},
		{"OTEL_TRACES_EXPORTER", "zipkin", "only the exporters otlp and none"},
		{"OTEL_EXPORTER_OTLP_ENDPOINT", "collector:4318", "OTEL_EXPORTER_OTLP_ENDPOINT must be an http or https URL"},
		{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "127.0.0.1", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT must be an http or https URL"},
		{"OTEL_TRACES_SAMPLER", "nonsense", "OTEL_TRACES_SAMPLER must be one of always_off"},
		{"OTEL_TRACES_SAMPLER_ARG", "2", "OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1"},
	} {
		environ := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_TRACES_SAMPLER=traceidratio", test.name + "=" + test.value}
		var stdout, stderr bytes.Buffer
		code := runCommand(t.Context(), []string{"config", "check", "--database", t.TempDir() + "/new.db"}, environ, nil, &stdout, &stderr)
		if code != exitFailure || !strings.Contains(stdout.String(), test.says) {
			t.Errorf("%s=%s: exit code %d, %s%s", test.name, test.value, code, stdout.Bytes(), stderr.Bytes())
		}
	}
}
