package httpapi

import (
	"net/http"
	"time"

	"github.com/rolecall/rolecall/internal/web"
	"github.com/rolecall/rolecall/openapi"
)

// pages is what is served without a tenant.
func (s *Server) pages() []*operation {
	pages := append(newDocs(s.site.Base).pages(),
		page("/livez", "livez", live),
		page("/readyz", "readyz", ready),
	)
	for _, document := range []*web.Asset{
		web.NewDocument("/openapi.json", "application/json", openapi.JSON),
		web.NewDocument("/openapi.yaml", "application/yaml", openapi.YAML),
	} {
		pages = append(pages, page(document.Path, "openapi", file(document)))
	}
	if s.securityContact != "" {
		pages = append(pages, page("/.well-known/security.txt", "security", showSecurityContact))
	}
	return pages
}

func page(path, id string, handle func(*exchange) error) *operation {
	return &operation{method: http.MethodGet, path: path, id: id, page: true, handle: handle}
}

// file returns the handler that serves the file.
func file(a *web.Asset) func(*exchange) error {
	return func(x *exchange) error {
		a.ServeHTTP(x.writer, x.request)
		return nil
	}
}

// securityLifetime is how long a security.txt counts: RFC 9116 recommends less than a
// year. It is served with another end each day.
const securityLifetime = 90 * 24 * time.Hour

// showSecurityContact says to whom weaknesses of this service are reported (RFC 9116).
func showSecurityContact(x *exchange) error {
	x.out = append(x.out, "Contact: "+x.server.securityContact+"\n"...)
	x.out = x.web.Started.UTC().Truncate(24*time.Hour).Add(securityLifetime).AppendFormat(append(x.out, "Expires: "...), time.RFC3339)
	if x.server.site.Public != "" {
		x.out = append(x.out, "\nCanonical: "+x.server.site.Public+"/.well-known/security.txt"...)
	}
	x.out = append(x.out, '\n')
	return x.content("text/plain; charset=utf-8", "public, max-age=300")
}

// live says that the process runs.
func live(x *exchange) error {
	x.out = append(x.out, `{"status":"ok"}`...)
	return x.json(http.StatusOK)
}
