package httpapi

import (
	"context"
	"html"
	"net/http"
	"strconv"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/openapi"
)

// pages is what is served without a tenant.
func (s *Server) pages() []*operation {
	page := func(path, id string, handle func(*exchange) error) *operation {
		return &operation{method: http.MethodGet, path: path, id: id, page: true, handle: handle}
	}
	return []*operation{
		page("/openapi.json", "openapi", s.static("application/json", openapi.JSON)),
		page("/openapi.yaml", "openapi", s.static("application/yaml", openapi.YAML)),
		page("/problems", "problems", listProblems),
		page("/problems/{code}", "problems", explainProblem),
		page("/livez", "livez", live),
		page("/readyz", "readyz", ready),
	}
}

// static answers with content that is the same for everybody.
func (s *Server) static(contentType string, content []byte) func(*exchange) error {
	return func(x *exchange) error {
		x.header["Content-Type"] = []string{contentType}
		x.header["Cache-Control"] = []string{"public, max-age=300"}
		x.out = append(x.out, content...)
		x.write(http.StatusOK)
		return nil
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

// listProblems shows every problem that can be answered.
func listProblems(x *exchange) error {
	x.out = appendHead(x.out, "Problems")
	x.out = append(x.out, "<p>Every error is answered as application/problem+json. Programs switch on its code.</p>\n<dl>\n"...)
	for _, p := range catalogue {
		x.out = append(x.out, `<dt><a href="`+x.server.base+"/problems/"+p.Code+`">`+p.Code+"</a></dt>\n<dd>"+html.EscapeString(p.Detail)+"</dd>\n"...)
	}
	x.out = append(x.out, "</dl>\n"...)
	return x.html()
}

// explainProblem shows what a problem's type stands for.
func explainProblem(x *exchange) error {
	code := x.request.PathValue("code")
	for _, p := range catalogue {
		if p.Code != code {
			continue
		}
		status, _ := statusOf(p)
		x.out = appendHead(x.out, titleOf(p.Code))
		x.out = append(x.out, "<p>"+html.EscapeString(p.Detail)+"</p>\n<p>Code <code>"+p.Code+"</code>, status "+
			strconv.Itoa(status)+" "+http.StatusText(status)+".</p>\n<p><a href=\""+x.server.base+"/problems\">All problems</a></p>\n"...)
		return x.html()
	}
	return rolecall.ErrNotFound.With("No problem has this code.")
}

func appendHead(b []byte, title string) []byte {
	return append(b, "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width\">\n<meta name=\"color-scheme\" content=\"light dark\">\n<title>"+title+"</title>\n<h1>"+title+"</h1>\n"...)
}

func (x *exchange) html() error {
	x.header["Content-Type"] = []string{"text/html; charset=utf-8"}
	x.header["Cache-Control"] = []string{"public, max-age=300"}
	x.write(http.StatusOK)
	return nil
}
