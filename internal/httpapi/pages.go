package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/openapi"
)

// pages is what is served without a tenant.
func (s *Server) pages() []*operation {
	return append(newDocs(s.base).pages(),
		page("/openapi.json", "openapi", static("application/json", openapi.JSON)),
		page("/openapi.yaml", "openapi", static("application/yaml", openapi.YAML)),
		page("/livez", "livez", live),
		page("/readyz", "readyz", ready),
	)
}

func page(path, id string, handle func(*exchange) error) *operation {
	return &operation{method: http.MethodGet, path: path, id: id, page: true, handle: handle}
}

// static answers with content that is the same for everybody.
func static(contentType string, content []byte) func(*exchange) error {
	tag := secret.ETag(content)
	return func(x *exchange) error {
		x.out = append(x.out, content...)
		return x.content(contentType, "public, max-age=300", tag)
	}
}

// live says that the process runs.
func live(x *exchange) error {
	x.out = append(x.out, `{"status":"ok"}`...)
	return x.json(http.StatusOK)
}

// readyWithin bounds how long the store may take to answer for readiness.
const readyWithin = 2 * time.Second

// ready says whether requests can be served here: not without the store, and not
// while the process is leaving.
func ready(x *exchange) error {
	if x.server.draining.Load() {
		return rolecall.ErrUnavailable.With("This process is leaving; another one serves.")
	}
	ctx, cancel := context.WithTimeout(x.ctx, readyWithin)
	defer cancel()
	if err := x.server.service.Ready(ctx); err != nil {
		x.cause = err
		return rolecall.ErrUnavailable
	}
	return live(x)
}
