package httpapi

import (
	"bytes"
	"html/template"
	"net/http"
	"slices"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/web"
	"github.com/rolecall/rolecall/openapi"
)

// What the pages may load. The viewer of the reference sets styles of its own
// and reads the document; nothing comes from elsewhere.
var (
	pagePolicy      = []string{"default-src 'none'; style-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"}
	referencePolicy = []string{"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src 'self' data:; font-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"}
)

// docs is the pages for people, and the files that they load.
type docs struct {
	server    *Server
	templates *template.Template
	assets    []*web.Asset
}

func (s *Server) newDocs() *docs {
	d := &docs{server: s}
	paths := map[string]string{}
	for _, a := range openapi.Assets {
		own := web.NewAsset("/docs/", a.Name, a.Type, a.Content, a.Gzipped)
		paths[a.Name] = own.Path
		d.assets = append(d.assets, own)
	}
	functions := template.FuncMap{"asset": func(name string) string { return paths[name] }}
	d.templates = template.Must(template.New("").Funcs(functions).ParseFS(openapi.Pages, "reference/*.html"))
	return d
}

// pages returns the routes of the pages and their files.
func (d *docs) pages() []web.Route {
	page := d.server.page
	pages := []web.Route{
		page("/docs", "docs", d.showReference),
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

// view is what a page shows.
type view struct {
	Base, Here, Title string
	Statuses          []statusView
	Problem           problemView
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

// operationView is an operation that the reference shows.
type operationView struct{ ID, Method, Path, Summary string }

func (d *docs) showReference(w http.ResponseWriter, r *http.Request) error {
	w.Header()["Content-Security-Policy"] = referencePolicy
	return d.show(w, r, "reference.html", view{Here: "docs", Title: "Reference"})
}

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
	for _, known := range catalogue { // it is sorted by status
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
		return rolecall.ErrNotFound.With("No problem has this code.")
	}
	v := view{Here: "problems", Title: web.TitleOf(code), Problem: viewProblem(catalogue[at])}
	for _, op := range operations {
		if slices.Contains(op.problemsByStatus()[v.Problem.Status], catalogue[at]) {
			v.Problem.Operations = append(v.Problem.Operations, operationView{op.id, op.method, op.path, op.summary})
		}
	}
	w.Header()["Content-Security-Policy"] = pagePolicy
	return d.show(w, r, "problem.html", v)
}

func viewProblem(known *rolecall.Error) problemView {
	status, _ := web.StatusOf(known)
	return problemView{Code: known.Code, Detail: known.Detail, Status: status, Reason: http.StatusText(status)}
}

// show answers with a page, which is asked for anew each time so that it never
// names files of another version.
func (d *docs) show(w http.ResponseWriter, r *http.Request, name string, v view) error {
	v.Base = d.server.site.Base
	w.Header()["Permissions-Policy"] = web.NoFeatures
	w.Header()["Cross-Origin-Opener-Policy"] = web.SameOrigin
	var rendered bytes.Buffer
	if err := d.templates.ExecuteTemplate(&rendered, name, v); err != nil {
		return err
	}
	respondTagged(w, r, rendered.Bytes(), "text/html; charset=utf-8", "no-cache")
	return nil
}
