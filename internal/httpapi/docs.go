package httpapi

import (
	"bytes"
	"compress/gzip"
	"errors"
	"html/template"
	"io"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/openapi"
)

// What the pages may load. The viewer of the reference sets styles of its own
// and reads the document; nothing comes from elsewhere.
var (
	pagePolicy      = []string{"default-src 'none'; style-src 'self'; img-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"}
	referencePolicy = []string{"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src 'self' data:; font-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"}
)

// noFeatures denies pages what none of them uses. Passkeys and the clipboard stay
// allowed, as the console uses them.
var noFeatures = []string{"accelerometer=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), hid=(), magnetometer=(), microphone=(), midi=(), payment=(), serial=(), usb=(), xr-spatial-tracking=()"}

// docs is the pages for people, and the files that they load.
type docs struct {
	base      string
	templates *template.Template
	assets    []*asset
}

// asset is content that is the same for everybody.
type asset struct {
	Asset
	path    string
	caching string
	plain   func() (representation, error)
	gzipped func() (representation, error) // nil: it is served plain alone
}

// representation is content as it is sent, with its entity tag.
type representation struct {
	content []byte
	tag     string
}

func newRepresentation(content []byte) representation {
	return representation{content, secret.ETag(content)}
}

// inflate returns the content of a compressed file.
func inflate(compressed []byte) (representation, error) {
	reader, err := gzip.NewReader(bytes.NewReader(compressed))
	if err != nil {
		return representation{}, err
	}
	content, err := io.ReadAll(reader)
	return newRepresentation(content), errors.Join(err, reader.Close())
}

// newAsset returns the asset below the folder. Its path changes with its content, so
// that it may be kept for ever.
func newAsset(folder string, a Asset) *asset {
	kept := newRepresentation(a.Content)
	asKept := func() (representation, error) { return kept, nil }
	suffix := path.Ext(a.Name)
	own := &asset{
		Asset: a, path: folder + strings.TrimSuffix(a.Name, suffix) + "." + strings.Trim(kept.tag, `"`) + suffix,
		caching: "public, max-age=31536000, immutable", plain: asKept,
	}
	if a.Gzipped {
		own.gzipped = asKept
		own.plain = sync.OnceValues(func() (representation, error) { return inflate(a.Content) })
	}
	return own
}

// newDocument returns a document at a path of its own, which is compressed when the
// first client asks for that.
func newDocument(path, contentType string, content []byte) *asset {
	plain := newRepresentation(content)
	return &asset{
		Asset: Asset{Type: contentType}, path: path, caching: "public, max-age=300",
		plain: func() (representation, error) { return plain, nil },
		gzipped: sync.OnceValues(func() (representation, error) {
			return newRepresentation(compressed(Asset{Content: content}).Content), nil
		}),
	}
}

func newDocs(base string) *docs {
	d := &docs{base: base}
	paths := map[string]string{}
	for _, a := range openapi.Assets {
		own := newAsset("/docs/", a)
		paths[a.Name] = own.path
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
		pages = append(pages, page(a.path, "docs", a.serve))
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
	v := view{Here: "problems", Title: titleOf(code), Problem: viewProblem(catalogue[at])}
	for _, op := range operations {
		if slices.Contains(op.problemsByStatus()[v.Problem.Status], catalogue[at]) {
			v.Problem.Operations = append(v.Problem.Operations, operationView{op.id, op.method, op.path, op.summary})
		}
	}
	x.header["Content-Security-Policy"] = pagePolicy
	return d.show(x, "problem.html", v)
}

func viewProblem(known *rolecall.Error) problemView {
	status, _ := statusOf(known)
	return problemView{Code: known.Code, Detail: known.Detail, Status: status, Reason: http.StatusText(status)}
}

// show answers with a page, which is asked for anew each time so that it never
// names files of another version.
func (d *docs) show(x *exchange, name string, v view) error {
	v.Base = d.base
	x.header["Permissions-Policy"] = noFeatures
	x.header["Cross-Origin-Opener-Policy"] = sameOrigin
	rendered := bytes.NewBuffer(x.out)
	if err := d.templates.ExecuteTemplate(rendered, name, v); err != nil {
		return err
	}
	x.out = rendered.Bytes()
	return x.content("text/html; charset=utf-8", "no-cache", secret.ETag(x.out))
}

// serve answers with the content, compressed if the client takes that.
func (a *asset) serve(x *exchange) error {
	form := a.plain
	if a.gzipped != nil {
		x.header["Vary"] = append(x.header["Vary"], "Accept-Encoding")
		if takesGzip(x.request.Header["Accept-Encoding"]) {
			x.header["Content-Encoding"] = []string{"gzip"}
			form = a.gzipped
		}
	}
	sent, err := form()
	if err != nil {
		return err
	}
	x.out = append(x.out, sent.content...)
	return x.content(a.Type, a.caching, sent.tag)
}

// content answers with what is in out under its entity tag, or with 304 if the
// client has it.
func (x *exchange) content(contentType, caching, tag string) error {
	x.header["Content-Type"] = []string{contentType}
	x.header["Cache-Control"] = []string{caching}
	x.header["Etag"] = []string{tag}
	var have tags
	readTags(&have, x.request.Header.Get("If-None-Match")) // one that cannot be read matches nothing
	if have.matchesWeakly(tag) {
		x.out = x.out[:0]
		delete(x.header, "Content-Encoding")
		x.write(http.StatusNotModified)
		return nil
	}
	x.write(http.StatusOK)
	return nil
}

// takesGzip reports whether the Accept-Encoding lines name gzip, and not with a
// weight of zero.
func takesGzip(lines []string) bool {
	for _, line := range lines {
		for element := range strings.SplitSeq(line, ",") {
			coding, parameters, _ := strings.Cut(element, ";")
			if strings.EqualFold(strings.TrimSpace(coding), "gzip") {
				return !isZeroWeight(parameters)
			}
		}
	}
	return false
}
