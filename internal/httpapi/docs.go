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
	base      string
	templates *template.Template
	assets    []*web.Asset
}

func newDocs(base string) *docs {
	d := &docs{base: base}
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

// pages returns the operations that serve the pages and their files.
func (d *docs) pages() []*operation {
	pages := []*operation{
		page("/docs", "docs", d.showReference),
		page("/docs/permissions", "docs", d.showPermissions),
		page("/docs/events", "docs", d.showEvents),
		page("/problems", "problems", d.listProblems),
		page("/problems/{code}", "problems", d.explainProblem),
	}
	for _, a := range d.assets {
		pages = append(pages, page(a.Path, "docs", file(a)))
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

func (d *docs) showReference(x *exchange) error {
	x.header["Content-Security-Policy"] = referencePolicy
	return d.show(x, "reference.html", view{Here: "docs", Title: "Reference"})
}

func (d *docs) showPermissions(x *exchange) error {
	x.header["Content-Security-Policy"] = pagePolicy
	return d.show(x, "permissions.html", view{Here: "permissions", Title: "Permissions"})
}

func (d *docs) showEvents(x *exchange) error {
	x.header["Content-Security-Policy"] = pagePolicy
	return d.show(x, "events.html", view{Here: "events", Title: "Events"})
}

func (d *docs) listProblems(x *exchange) error {
	v := view{Here: "problems", Title: "Problems"}
	for _, known := range catalogue { // it is sorted by status
		problem := viewProblem(known)
		if last := len(v.Statuses) - 1; last < 0 || v.Statuses[last].Status != problem.Status {
			v.Statuses = append(v.Statuses, statusView{Status: problem.Status, Reason: problem.Reason})
		}
		last := &v.Statuses[len(v.Statuses)-1]
		last.Problems = append(last.Problems, problem)
	}
	x.header["Content-Security-Policy"] = pagePolicy
	return d.show(x, "problems.html", v)
}

func (d *docs) explainProblem(x *exchange) error {
	code := x.request.PathValue("code")
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
	x.header["Content-Security-Policy"] = pagePolicy
	return d.show(x, "problem.html", v)
}

func viewProblem(known *rolecall.Error) problemView {
	status, _ := web.StatusOf(known)
	return problemView{Code: known.Code, Detail: known.Detail, Status: status, Reason: http.StatusText(status)}
}

// show answers with a page, which is asked for anew each time so that it never
// names files of another version.
func (d *docs) show(x *exchange, name string, v view) error {
	v.Base = d.base
	x.header["Permissions-Policy"] = web.NoFeatures
	x.header["Cross-Origin-Opener-Policy"] = web.SameOrigin
	rendered := bytes.NewBuffer(x.out)
	if err := d.templates.ExecuteTemplate(rendered, name, v); err != nil {
		return err
	}
	x.out = rendered.Bytes()
	return x.content("text/html; charset=utf-8", "no-cache")
}
