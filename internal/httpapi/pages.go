package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"html/template"
	"net/http"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/typeface"
	"github.com/rolecall/rolecall/internal/web"
	"github.com/rolecall/rolecall/openapi"
)

// pages returns the routes that are not operations of the contract: the documentation, the health
// checks, the OpenAPI document and security.txt. Requests to them name no tenant.
func (s *Server) pages() []web.Route {
	d := s.newDocs()
	pages := append(d.pages(),
		s.page("/livez", "livez", live),
		s.page("/readyz", "readyz", s.ready),
	)
	asYAML := web.NewDocument("/openapi.yaml", "application/yaml", openapi.YAML)
	pages = append(pages,
		web.Route{Method: http.MethodGet, Path: asYAML.Path, Label: "openapi", Handler: asYAML},
		s.page("/openapi.json", "openapi", showJSON),
	)
	if s.securityContact != "" {
		pages = append(pages, s.page("/.well-known/security.txt", "security", s.showSecurityContact))
	}
	return append(pages, s.attemptPages(d)...)
}

// contractJSON returns the OpenAPI document as JSON. The first call builds it.
var contractJSON = sync.OnceValues(func() (*web.Asset, error) {
	document, err := json.MarshalIndent(builtDocument(), "", "  ")
	if err != nil {
		return nil, err
	}
	return web.NewDocument("/openapi.json", "application/json", append(document, '\n')), nil
})

// showJSON writes the OpenAPI document as JSON.
func showJSON(w http.ResponseWriter, r *http.Request) error {
	document, err := contractJSON()
	if err != nil {
		return err
	}
	document.ServeHTTP(w, r)
	return nil
}

// page returns the route of a page. An error of the handler is written as a problem.
func (s *Server) page(path, label string, handle func(w http.ResponseWriter, r *http.Request) error) web.Route {
	return web.Route{Method: http.MethodGet, Path: path, Label: label, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := handle(w, r); err != nil {
			s.site.RespondProblem(w, r, err)
		}
	})}
}

// securityLifetime is the lifetime of a security.txt. RFC 9116 recommends less than a year. The
// expiry date is recomputed each day.
const securityLifetime = 90 * 24 * time.Hour

// showSecurityContact writes the security.txt with the contact for vulnerabilities (RFC 9116).
func (s *Server) showSecurityContact(w http.ResponseWriter, r *http.Request) error {
	expires := web.RequestOf(r).Started.UTC().Truncate(24 * time.Hour).Add(securityLifetime)
	text := "Contact: " + s.securityContact + "\nExpires: " + expires.Format(time.RFC3339) + "\n"
	if s.site.Public != "" {
		text += "Canonical: " + s.site.Public + "/.well-known/security.txt\n"
	}
	respondTagged(w, r, []byte(text), "text/plain; charset=utf-8", "public, max-age=300")
	return nil
}

// respondTagged sends the content with its entity tag. If the client already has this version, it
// sends 304 without content.
func respondTagged(w http.ResponseWriter, r *http.Request, content []byte, contentType, caching string) {
	web.RespondTagged(w, r, content, contentType, caching, secret.ETag(content))
}

// live handles the liveness check: it always responds that the process is running.
func live(w http.ResponseWriter, r *http.Request) error {
	operation.RespondJSON(w, r, http.StatusOK, []byte(`{"status":"ok"}`))
	return nil
}

// Values of Content-Security-Policy. The page with the list of operations has referencePolicy,
// because it has a script and a search form. Other pages have pagePolicy. No page loads anything
// from other origins.
var (
	pagePolicy      = []string{"default-src 'none'; style-src 'self'; font-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"}
	referencePolicy = []string{"default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"}
)

// docs serves the HTML documentation pages and the files that they load.
type docs struct {
	server    *Server
	templates *template.Template
	assets    []*web.Asset
}

func (s *Server) newDocs() *docs {
	d := &docs{server: s}
	paths := map[string]string{}
	add := func(name, contentType string, content []byte) {
		own := web.NewAsset("/docs/", name, contentType, content)
		paths[name] = own.Path
		d.assets = append(d.assets, own)
	}
	add(typeface.Name, "font/woff2", typeface.Font)
	for _, a := range openapi.Assets {
		add(a.Name, a.Type, bytes.ReplaceAll(a.Content, []byte(typeface.Name), []byte(path.Base(paths[typeface.Name]))))
	}
	functions := template.FuncMap{"asset": func(name string) string { return paths[name] }, "typeset": typeset}
	d.templates = template.Must(template.New("").Funcs(functions).ParseFS(openapi.Pages, "reference/*.html"))
	return d
}

// pages returns the routes of the pages and their files.
func (d *docs) pages() []web.Route {
	page := d.server.page
	pages := []web.Route{
		page("/docs", "docs", d.showReference),
		page("/docs/operations/{id}", "docs", d.showOperation),
		page("/docs/permissions", "docs", d.showPermissions),
		page("/docs/events", "docs", d.showEvents),
		page("/problems", "problems", d.listProblems),
		page("/problems/{code}", "problems", d.explainProblem),
	}
	for _, a := range d.assets {
		pages = append(pages, web.Route{Method: http.MethodGet, Path: a.Path, Label: "docs", Handler: a})
	}
	return pages
}

// view is the data of all page templates. Each page sets the fields that its template shows.
type view struct {
	Base, Here, Title, Theme string
	Statuses                 []statusView
	Problem                  problemView
	Query                    string
	Groups                   []groupView
	Operation                operationPage
	Back                     template.URL // of a failed sign-in; empty if it is unknown
	RequestID                string
}

// statusView is a status with the problems that have it.
type statusView struct {
	Status   int
	Reason   string
	Problems []problemView
}

// problemView is a problem as its page explains it.
type problemView struct {
	Code, Detail string
	Status       int
	Reason       string
	Operations   []operationView
}

// operationView is an operation in a list. The ID is part of the link to its page.
type operationView struct{ ID, Method, Path, Summary string }

func (d *docs) showPermissions(w http.ResponseWriter, r *http.Request) error {
	w.Header()["Content-Security-Policy"] = pagePolicy
	return d.show(w, r, "permissions.html", view{Here: "permissions", Title: "Permissions"})
}

func (d *docs) showEvents(w http.ResponseWriter, r *http.Request) error {
	w.Header()["Content-Security-Policy"] = pagePolicy
	return d.show(w, r, "events.html", view{Here: "events", Title: "Events"})
}

func (d *docs) listProblems(w http.ResponseWriter, r *http.Request) error {
	v := view{Here: "problems", Title: "Problems"}
	for _, known := range catalogue { // the catalogue is sorted by status
		problem := viewProblem(known)
		if last := len(v.Statuses) - 1; last < 0 || v.Statuses[last].Status != problem.Status {
			v.Statuses = append(v.Statuses, statusView{Status: problem.Status, Reason: problem.Reason})
		}
		last := &v.Statuses[len(v.Statuses)-1]
		last.Problems = append(last.Problems, problem)
	}
	w.Header()["Content-Security-Policy"] = pagePolicy
	return d.show(w, r, "problems.html", v)
}

func (d *docs) explainProblem(w http.ResponseWriter, r *http.Request) error {
	code := r.PathValue("code")
	at := slices.IndexFunc(catalogue, func(known *rolecall.Error) bool { return known.Code == code })
	if at < 0 {
		return rolecall.ErrNotFound.With("No problem type has this code. /problems lists all codes.")
	}
	v := view{Here: "problems", Title: web.TitleOf(code), Problem: viewProblem(catalogue[at])}
	for _, op := range declared {
		if slices.Contains(op.ProblemsByStatus(catalogue)[v.Problem.Status], catalogue[at]) {
			v.Problem.Operations = append(v.Problem.Operations, viewOperation(op))
		}
	}
	w.Header()["Content-Security-Policy"] = pagePolicy
	return d.show(w, r, "problem.html", v)
}

// showFailure writes a page for a person whose sign-in with an identity provider has failed. The address back is where
// the sign-in was to return, or empty.
func (d *docs) showFailure(w http.ResponseWriter, r *http.Request, err error, back string) error {
	p := web.RequestOf(r).ProblemOf(err)
	v := view{Title: "Sign-in failed", Problem: viewProblem(p.Error), RequestID: p.RequestID}
	if back != "" {
		code := signin.CodeRefused
		if p.Kind == rolecall.Unavailable {
			code = rolecall.ErrConnectionUnavailable.Code
		}
		v.Back = template.URL(withParameter(back, "error", code)) //nolint:gosec // one of the registered addresses, or a page of the console
	}
	w.Header()["Content-Security-Policy"] = pagePolicy
	page, err := d.render(w, r, "failure.html", v)
	if err != nil {
		return err
	}
	p.SetHeaders(w, r)
	w.Header()["Content-Type"] = []string{"text/html; charset=utf-8"}
	web.Respond(w, r, p.Status, page)
	return nil
}

func viewProblem(known *rolecall.Error) problemView {
	status, _ := web.StatusOf(known)
	return problemView{Code: known.Code, Detail: known.Detail, Status: status, Reason: http.StatusText(status)}
}

// show writes a page. Clients must revalidate the page, so that a cached page does not link to
// files of another version.
func (d *docs) show(w http.ResponseWriter, r *http.Request, name string, v view) error {
	page, err := d.render(w, r, name, v)
	if err != nil {
		return err
	}
	respondTagged(w, r, page, "text/html; charset=utf-8", "no-cache")
	return nil
}

// render returns a page, and sets the headers that all pages have.
func (d *docs) render(w http.ResponseWriter, r *http.Request, name string, v view) ([]byte, error) {
	v.Base, v.Theme = d.server.site.Base, web.ThemeOf(r)
	w.Header()["Vary"] = append(w.Header()["Vary"], "Cookie")
	w.Header()["Permissions-Policy"] = web.NoFeatures
	w.Header()["Cross-Origin-Opener-Policy"] = web.SameOrigin
	var rendered bytes.Buffer
	err := d.templates.ExecuteTemplate(&rendered, name, v)
	return rendered.Bytes(), err
}

const (
	// readyWithin is the time limit for the store's answer to a readiness check.
	readyWithin = 2 * time.Second

	// readyFor is how long /readyz uses the result of a check.
	readyFor = 250 * time.Millisecond
)

// readiness checks whether the store can serve. It runs one check at a time, and at most one
// check per readyFor, regardless of the number of requests.
type readiness struct {
	check func(context.Context) error

	turn    chan struct{} // holds a token while a request uses the fields below
	checked time.Time     // when the last check ended
	err     error         // the result of the last check
}

func newReadiness(check func(context.Context) error) *readiness {
	return &readiness{check: check, turn: make(chan struct{}, 1)}
}

// result returns the result of the last check. It runs a new check if that result is too old.
func (r *readiness) result(ctx context.Context) error {
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-r.turn }()
	if !r.checked.IsZero() && time.Since(r.checked) < readyFor {
		return r.err
	}
	// Other requests use the result too, so the check continues if this client disconnects.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyWithin)
	defer cancel()
	r.err = r.check(ctx)
	r.checked = time.Now()
	return r.err
}

// ready handles the readiness check. It returns ErrUnavailable if the store does not answer, or
// if the process is shutting down. With for=writes, it also does so if the store accepts no writes. Without
// it, a node stays ready then, because it can still check sessions and permissions.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) error {
	if s.site.IsDraining() {
		return rolecall.ErrUnavailable.With("This process is shutting down. Send the request to another one.")
	}
	if err := s.readiness.result(r.Context()); err != nil {
		web.RequestOf(r).Cause = err
		return rolecall.ErrUnavailable
	}
	if purpose, ok := r.URL.Query()["for"]; ok {
		if !slices.Equal(purpose, []string{"writes"}) {
			return rolecall.ErrMalformed.With("The only value of the parameter for is writes.")
		}
		if err := s.writes.result(r.Context()); err != nil {
			web.RequestOf(r).Cause = err
			return rolecall.ErrUnavailable.With("The database accepts no writes. Reads still work.")
		}
	}
	return live(w, r)
}
