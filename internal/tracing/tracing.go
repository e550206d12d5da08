// Package tracing sends spans to an OTLP receiver if the standard variables of OpenTelemetry enable
// this. The package may import the root package and internal/store.
package tracing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// Tracer creates spans. A nil Tracer means that tracing is off.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	logger   *slog.Logger
}

// IsEnabled reports whether the standard variables enable traces: a receiver is named, or the exporter
// is otlp. It returns an error if the variables name an exporter or protocol that Rolecall does not have, or
// have a value that OpenTelemetry would ignore.
func IsEnabled(getenv func(string) string) (bool, error) {
	exporter := getenv("OTEL_TRACES_EXPORTER")
	isNamed := getenv("OTEL_EXPORTER_OTLP_ENDPOINT") != "" || getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") != ""
	protocol := getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
	if protocol == "" {
		protocol = getenv("OTEL_EXPORTER_OTLP_PROTOCOL")
	}
	switch {
	case strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") || exporter == "none" || exporter == "" && !isNamed:
		return false, nil
	case exporter != "" && exporter != "otlp":
		return false, fmt.Errorf("OTEL_TRACES_EXPORTER is %q, but Rolecall has only the exporters otlp and none", exporter)
	case protocol != "" && protocol != "http/protobuf":
		return false, fmt.Errorf("the protocol for OTLP is %q, but Rolecall has only http/protobuf: set OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf, and the port for HTTP, which is usually 4318", protocol)
	}
	return true, cmp.Or(checkEndpoint(getenv, "OTEL_EXPORTER_OTLP_ENDPOINT"), checkEndpoint(getenv, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), checkSampler(getenv))
}

// checkEndpoint returns an error unless the variable is empty or has the URL of a receiver.
func checkEndpoint(getenv func(string) string, name string) error {
	value := getenv(name)
	if value == "" {
		return nil
	}
	if u, err := url.Parse(value); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return fmt.Errorf("%s must be an http or https URL, such as http://127.0.0.1:4318", name)
	}
	return nil
}

// samplers are the values of OTEL_TRACES_SAMPLER. The value is true if the sampler uses
// OTEL_TRACES_SAMPLER_ARG.
var samplers = map[string]bool{
	"always_on": false, "always_off": false, "traceidratio": true,
	"parentbased_always_on": false, "parentbased_always_off": false, "parentbased_traceidratio": true,
}

// checkSampler returns an error unless the sampler exists and its argument is valid.
func checkSampler(getenv func(string) string) error {
	name, argument := strings.ToLower(strings.TrimSpace(getenv("OTEL_TRACES_SAMPLER"))), strings.TrimSpace(getenv("OTEL_TRACES_SAMPLER_ARG"))
	if name == "" {
		return nil
	}
	hasRatio, isKnown := samplers[name]
	if !isKnown {
		return fmt.Errorf("OTEL_TRACES_SAMPLER must be one of %s", strings.Join(slices.Sorted(maps.Keys(samplers)), ", "))
	}
	if ratio, err := strconv.ParseFloat(argument, 64); hasRatio && argument != "" && (err != nil || !(ratio >= 0 && ratio <= 1)) {
		return errors.New("OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1, such as 0.1")
	}
	return nil
}

// New returns a Tracer that sends spans in batches, as the standard variables say, or nil if IsEnabled
// returns false. The version is that of this program. Failed sends are logged as warnings. Call Stop at
// the end.
func New(ctx context.Context, getenv func(string) string, version string, logger *slog.Logger) (*Tracer, error) {
	enabled, err := IsEnabled(getenv)
	if err != nil || !enabled {
		return nil, err
	}
	// The SDK reports its problems to these, and otherwise to standard error as text.
	otel.SetLogger(logr.FromSlogHandler(logger.Handler()))
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { logger.Warn("cannot send spans", "error", err) }))
	self, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "rolecall"), attribute.String("service.version", version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv()) // later options take precedence
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("set up the OTLP exporter: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(self))
	return &Tracer{provider, provider.Tracer("github.com/rolecall/rolecall"), logger}, nil
}

// stopTime is the maximum time to send the last spans.
const stopTime = 5 * time.Second

// Stop sends the spans that wait, and logs a warning if it cannot. It does nothing if the Tracer is nil.
func (t *Tracer) Stop(ctx context.Context) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTime)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.logger.Warn("cannot send the last spans", "error", err)
	}
}

// Request is the span of one request.
type Request struct{ span trace.Span }

// Start begins the span of a request. If the header has a valid traceparent, it names the parent. The
// returned context has the span, so that spans of the database become its children.
func (t *Tracer) Start(ctx context.Context, h http.Header, started time.Time) (context.Context, Request) {
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(h))
	ctx, span := t.tracer.Start(ctx, "request", trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(started))
	return ctx, Request{span}
}

// TraceID returns the id of the trace in hexadecimal digits.
func (r Request) TraceID() string { return r.span.SpanContext().TraceID().String() }

// End ends the span. The route is the pattern of the path, such as /users/{id}. The status is 0 if the
// connection was aborted.
func (r Request) End(method, route string, status int, requestID string) {
	if r.span.IsRecording() {
		r.span.SetName(strings.TrimSpace(method + " " + route))
		r.span.SetAttributes(attribute.String("http.request.method", method), attribute.String("http.route", route),
			attribute.Int("http.response.status_code", status), attribute.String("rolecall.request_id", requestID))
		if status == 0 || status >= http.StatusInternalServerError {
			r.span.SetStatus(codes.Error, "")
		}
	}
	r.span.End()
}

// Database returns a database with a span for each transaction of a traced request. If the Tracer is
// nil, it returns db. The system is sqlite or postgresql.
func (t *Tracer) Database(db store.Database, system string) store.Database {
	if t == nil {
		return db
	}
	return &database{db, t.tracer, attribute.String("db.system.name", system)}
}

// database is a store.Database with spans.
type database struct {
	store.Database
	tracer trace.Tracer
	system attribute.KeyValue
}

func (d *database) View(ctx context.Context, tenant rolecall.TenantID, fn func(store.Querier) error) error {
	return d.traced(ctx, "view", func(ctx context.Context) error { return d.Database.View(ctx, tenant, fn) })
}

func (d *database) Update(ctx context.Context, tenant rolecall.TenantID, fn func(store.Querier) error) error {
	return d.traced(ctx, "update", func(ctx context.Context) error { return d.Database.Update(ctx, tenant, fn) })
}

// traced calls fn in a span. Work that no request caused has no span.
func (d *database) traced(ctx context.Context, operation string, fn func(context.Context) error) error {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return fn(ctx)
	}
	ctx, span := d.tracer.Start(ctx, "database "+operation, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(d.system, attribute.String("db.operation.name", operation)))
	defer span.End()
	err := fn(ctx)
	if _, isAnswer := errors.AsType[*rolecall.Error](err); err != nil && !isAnswer {
		span.SetStatus(codes.Error, "")
	}
	return err
}
