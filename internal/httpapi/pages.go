package httpapi

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/web"
	"github.com/rolecall/rolecall/openapi"
)

// pages is what is served without a tenant.
func (s *Server) pages() []web.Route {
	pages := append(s.newDocs().pages(),
		s.page("/livez", "livez", live),
		s.page("/readyz", "readyz", s.ready),
	)
	contract := web.NewDocument("/openapi.yaml", "application/yaml", openapi.YAML)
	pages = append(pages,
		web.Route{Method: http.MethodGet, Path: contract.Path, Label: "openapi", Handler: contract},
		s.page("/openapi.json", "openapi", showJSON),
	)
	if s.securityContact != "" {
		pages = append(pages, s.page("/.well-known/security.txt", "security", s.showSecurityContact))
	}
	return pages
}

// contractJSON makes the document as JSON when it is first requested.
var contractJSON = sync.OnceValues(func() (*web.Asset, error) {
	document, err := json.MarshalIndent(Document(), "", "  ")
	if err != nil {
		return nil, err
	}
	return web.NewDocument("/openapi.json", "application/json", append(document, '\n')), nil
})

// showJSON answers with the contract as JSON.
func showJSON(w http.ResponseWriter, r *http.Request) error {
	document, err := contractJSON()
	if err != nil {
		return err
	}
	document.ServeHTTP(w, r)
	return nil
}

// page returns the route of a page. It answers the error of the handler as a problem.
func (s *Server) page(path, label string, handle func(w http.ResponseWriter, r *http.Request) error) web.Route {
	return web.Route{Method: http.MethodGet, Path: path, Label: label, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := handle(w, r); err != nil {
			s.site.RespondProblem(w, r, err)
		}
	})}
}

// securityLifetime is how long a security.txt counts: RFC 9116 recommends less than a
// year. It is served with another end each day.
const securityLifetime = 90 * 24 * time.Hour

// showSecurityContact says to whom weaknesses of this service are reported (RFC 9116).
func (s *Server) showSecurityContact(w http.ResponseWriter, r *http.Request) error {
	expires := web.RequestOf(r).Started.UTC().Truncate(24 * time.Hour).Add(securityLifetime)
	text := "Contact: " + s.securityContact + "\nExpires: " + expires.Format(time.RFC3339) + "\n"
	if s.site.Public != "" {
		text += "Canonical: " + s.site.Public + "/.well-known/security.txt\n"
	}
	respondTagged(w, r, []byte(text), "text/plain; charset=utf-8", "public, max-age=300")
	return nil
}

// respondTagged answers with the content under its entity tag, or with 304 if the client
// has it.
func respondTagged(w http.ResponseWriter, r *http.Request, content []byte, contentType, caching string) {
	web.RespondTagged(w, r, content, contentType, caching, secret.ETag(content))
}

// live says that the process runs.
func live(w http.ResponseWriter, r *http.Request) error {
	respondJSON(w, r, http.StatusOK, []byte(`{"status":"ok"}`))
	return nil
}
