package httpapi

import (
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// meters are the metrics of the edge. None has a label for the tenant: there
// may be very many of them.
type meters struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight prometheus.Gauge
	shed     [lanes]prometheus.Counter
}

// meter holds the metrics of one operation. Each is made when it is first needed, so
// that operations that nobody calls make no series.
type meter struct {
	requests [6]func() prometheus.Counter // by class of status
	duration func() prometheus.Observer
}

func newMeters(registry prometheus.Registerer, passwordHashes func() uint64) *meters {
	m := &meters{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rolecall_http_requests_total", Help: "Requests answered, by operation and class of status.",
		}, []string{"operation", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "rolecall_http_request_duration_seconds", Help: "Time from the request's header to the answer's end.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .1, .5, 2.5},
		}, []string{"operation"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "rolecall_http_requests_in_flight", Help: "Requests being answered now.",
		}),
		shed: newShed(registry),
	}
	if registry == nil {
		return m
	}
	registry.MustRegister(m.requests, m.duration, m.inFlight)
	if passwordHashes != nil {
		registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "rolecall_password_hashes_total", Help: "Password hashes computed.",
		}, func() float64 { return float64(passwordHashes()) }))
	}
	return m
}

// of returns the metrics of the operation.
func (m *meters) of(operation string) *meter {
	of := &meter{duration: sync.OnceValue(func() prometheus.Observer { return m.duration.WithLabelValues(operation) })}
	for class, label := range [...]string{2: "2xx", 3: "3xx", 4: "4xx", 5: "5xx"} {
		of.requests[class] = sync.OnceValue(func() prometheus.Counter { return m.requests.WithLabelValues(operation, label) })
	}
	return of
}

// observe counts the exchange and writes its line to the log: what was asked, by
// whom and how it went; nothing of what was sent.
func (s *Server) observe(x *exchange) {
	s.meters.inFlight.Dec()
	if x.status == 0 { // the connection was cut on purpose
		return
	}
	took := time.Since(x.started)
	x.route.meter.requests[x.status/100]().Inc()
	x.route.meter.duration().Observe(took.Seconds())

	ctx := x.request.Context()
	if x.cause != nil {
		level := slog.LevelDebug // the client has left while it was answered
		if x.status >= http.StatusInternalServerError {
			level = slog.LevelError
		}
		s.logger.LogAttrs(ctx, level, "request failed", slog.String("request_id", x.requestID), slog.Any("cause", x.cause))
	}
	if !s.logger.Enabled(ctx, slog.LevelInfo) {
		return
	}
	principal := ""
	if x.call.Principal != nil {
		principal = x.call.User.ID.String()
	}
	// Past the Logger, which would look up this very line of the source each time.
	line := slog.NewRecord(x.started.Add(took), slog.LevelInfo, "request", 0)
	line.AddAttrs(
		slog.String("request_id", x.requestID),
		slog.String("method", x.request.Method),
		slog.String("route", x.route.path),
		slog.Int("status", x.status),
		slog.Int("bytes", len(x.out)),
		slog.Float64("duration_ms", float64(took.Microseconds())/1000),
		slog.String("tenant", x.named),
		slog.String("principal", principal),
	)
	_ = s.logger.Handler().Handle(ctx, line) // as Logger does: there is nowhere to say that a log cannot be written
}
