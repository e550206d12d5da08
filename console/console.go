// Package console is the admin console for the web, an http.Handler of HTML pages. Each
// page corresponds to an operation of the API: the page has the policy of the operation,
// and calls the same service method with the signed-in principal. The package makes no
// authorization decisions. It imports directory, signin and package web, but not the API.
package console

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/typeface"
	"github.com/rolecall/rolecall/internal/web"
	"github.com/rolecall/rolecall/internal/webhooks"
)

// Path is the path of the console. The base path of the site precedes it.
const Path = "/console"

// assetsPath follows Path in the addresses of the assets. "-" is not a valid tenant name,
// so the addresses do not collide with those of tenants.
const assetsPath = "/-/"

// console holds the services that the pages call.
type console struct {
	access    *access.Service
	directory *directory.Service
	signin    *signin.Service
	webhooks  *webhooks.Service
	site      *web.Site
	assets    map[string]string // addresses of the assets, by file name
	policies  map[string]web.Policy
}

// New returns the handler of the console. policies maps the ids of API operations to their
// policies. New panics if a page names an operation that is not in policies.
func New(a *access.Service, d *directory.Service, in *signin.Service, hooks *webhooks.Service, site *web.Site, policies map[string]web.Policy) http.Handler {
	c := &console{access: a, directory: d, signin: in, webhooks: hooks, site: site, assets: map[string]string{}, policies: policies}
	var routes []web.Route
	for _, a := range assets() {
		c.assets[a.name] = site.Base + a.Path
		routes = append(routes, web.Route{Method: http.MethodGet, Path: a.Path, Label: "console", Handler: a})
	}
	routes = append(routes,
		web.Route{Method: http.MethodGet, Path: Path + brandPath + "{name}", Label: "console", Handler: http.HandlerFunc(c.serveBrandStyle)},
		web.Route{Method: http.MethodGet, Path: Path + logoPath + "{owner}/{hash}", Label: "console", Handler: http.HandlerFunc(c.serveLogo)})
	for _, p := range c.pages() {
		if _, known := policies[p.operation]; !known && p.operation != "" {
			panic("console: no operation is called " + p.operation)
		}
		routes = append(routes, c.routes(&p, policies)...)
	}
	router := site.NewRouter(c.fail)
	router.AllowSlash = true
	router.Handle(routes, nil)
	return site.Handler(c.pageHeaders(router), c.fail)
}

// Header values of pages. The referrer policy cannot be no-referrer, because browsers would
// then send forms with the origin null.
var (
	pagePolicy   = []string{"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"}
	pageReferrer = []string{"same-origin"}
)

// pageHeaders sets the headers of pages.
func (c *console) pageHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isAsset(c.site, r) {
			h := w.Header()
			h["Content-Security-Policy"] = pagePolicy
			h["Referrer-Policy"] = pageReferrer
			h["Permissions-Policy"] = web.NoFeatures
			h["Cross-Origin-Opener-Policy"] = web.SameOrigin
			web.OwnPagesOnly(h)
		}
		next.ServeHTTP(w, r)
	})
}

// isAsset reports whether the request is for an asset, and not for a page.
func isAsset(site *web.Site, r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, site.Base+Path+assetsPath)
}

// pages returns all pages of the console.
func (c *console) pages() []page {
	return slices.Concat(
		c.signInPages(),
		c.connectionSignInPages(),
		c.linkPages(),
		c.accountPages(),
		c.factorPages(),
		c.homePages(),
		c.findPages(),
		c.settingsPages(),
		c.logoPages(),
		c.webhookPages(),
		c.connectionPages(),
		c.directoryPages(),
		c.checkpointPages(),
		c.usersPages(),
		c.newUserPages(),
		c.selectedPages(),
		c.jobPages(),
		c.userPages(),
		c.editPages(),
		c.actionPages(),
		c.sessionPages(),
		c.rolePages(),
		c.accessPages(),
		c.comparePages(),
		c.roleFormPages(),
		c.groupPages(),
		c.memberPages(),
		c.assignmentPages(),
		c.copyRolesPages(),
		c.tokenPages(),
		c.serviceAccountPages(),
		c.serviceAccountActionPages(),
		c.eventPages(),
		c.exportPages(),
		c.deletedPages(),
		c.invitationPages(),
		[]page{
			{path: "", show: toRoot},
			{path: "/{tenant}", operation: "AuthsController_getSession", show: toHome},
			{path: "/{tenant}/", operation: "AuthsController_getSession", show: toHome},
			{path: "/{tenant}/{rest...}", operation: "AuthsController_getSession", show: notFound},
		},
	)
}

//go:embed assets/*.js assets/styles/*.css assets/*.svg assets/*.txt
var files embed.FS

// mediaTypes maps the file extensions of assets to media types.
var mediaTypes = map[string]string{
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
	".txt": "text/plain; charset=utf-8",
}

// styles are the names of the style sheets, in the order in which console.css contains
// them. Each sheet is a layer, so its rules override the rules of the sheets before it.
var styles = []string{"tokens", "base", "parts", "lists", "pages", "narrow"}

// namedAsset is a file that pages load.
type namedAsset struct {
	name string
	*web.Asset
}

// assets returns the files that pages load.
func assets() (list []namedAsset) {
	names, err := fs.Glob(files, "assets/*.*")
	if err != nil {
		panic(err) // cannot happen: the pattern is valid
	}
	add := func(name, contentType string, content []byte) *web.Asset {
		asset := web.NewAsset(Path+assetsPath, name, contentType, content)
		list = append(list, namedAsset{name, asset})
		return asset
	}
	for _, name := range names {
		name := path.Base(name)
		add(name, mediaTypes[path.Ext(name)], embedded(name))
	}
	font := add(typeface.Name, "font/woff2", typeface.Font)
	add("inter-license.txt", mediaTypes[".txt"], typeface.License)
	add("console.css", "text/css; charset=utf-8", bytes.ReplaceAll(styleSheet(), []byte(typeface.Name), []byte(path.Base(font.Path))))
	return list
}

// styleSheet returns all style sheets as one.
func styleSheet() (css []byte) {
	for _, name := range styles {
		css = append(css, embedded("styles/"+name+".css")...)
	}
	return css
}

// embedded returns the content of a file in the folder of the assets, without comments. The comments
// are 2.6 of the 100 KB that the first page of a browser loads.
func embedded(name string) []byte {
	content, err := files.ReadFile("assets/" + name)
	if err != nil {
		panic(err) // cannot happen: the files are embedded
	}
	if comment := comments[path.Ext(name)]; comment != nil && !strings.HasSuffix(name, ".min.js") {
		return comment.ReplaceAll(content, nil)
	}
	return content
}

// comments match the comments of our own files by file extension. In scripts, they are whole lines.
var comments = map[string]*regexp.Regexp{
	".css": regexp.MustCompile(`(?s)/\*.*?\*/\n?`),
	".js":  regexp.MustCompile(`(?m)^[ \t]*//.*\n`),
}

// page is one address of the console.
type page struct {
	path      string // without the prefix Path, such as /{tenant}/users/{id}
	operation string // id of the API operation that the page corresponds to; it gives the page its policy and its name in the metrics
	query     []parameter
	needsKey  bool // the form has an idempotency key
	takesFile bool // the form can have a file
	isShared  bool // a sign-in on this page sets the session cookie of the API, not of the console

	// show answers GET requests. It also answers a POST request if act failed. Then
	// pageContext.problem has the reason.
	show func(*pageContext) error
	// act answers POST requests: it performs the operation with the values of the form. It
	// is nil if the page has no form.
	act func(*pageContext) error

	policy      web.Policy   // of the operation
	pathReaders []pathReader // of the parameters in the path
}

// label returns the name of the page in the metrics: the id of its operation, or "console".
func (p *page) label() string { return cmp.Or(p.operation, "console") }

// routes returns the routes of the page.
func (c *console) routes(p *page, policies map[string]web.Policy) []web.Route {
	p.policy, p.pathReaders = web.Policy{Policy: authz.Anyone}, readersOf(p.path)
	if policy, ok := policies[p.operation]; ok {
		p.policy = policy
	}
	path := Path + p.path
	if strings.HasSuffix(path, "/") {
		path += "{$}"
	}
	route := web.Route{Method: http.MethodGet, Path: path, Label: "console/" + p.label(), Handler: c.handler(p)}
	if p.act == nil {
		return []web.Route{route}
	}
	form := route
	form.Method = http.MethodPost
	return []web.Route{route, form}
}

// handler returns the handler of the page.
func (c *console) handler(p *page) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isAsset(c.site, r) { // no such file
			c.site.RespondProblem(w, r, web.ErrUnknownPath)
			return
		}
		v := c.newContext(p, w, r)
		defer v.end()
		if err := v.serve(); err != nil {
			v.fail(err)
		}
	})
}

// fail answers a request for which no page exists.
func (c *console) fail(w http.ResponseWriter, r *http.Request, err error) {
	if isAsset(c.site, r) {
		c.site.RespondProblem(w, r, err)
		return
	}
	v := c.newContext(nil, w, r)
	defer v.end()
	v.fail(err)
}

// newContext returns the page context of the request.
func (c *console) newContext(p *page, w http.ResponseWriter, r *http.Request) *pageContext {
	v := &pageContext{console: c, page: p, request: r, response: w, web: web.RequestOf(r), ctx: r.Context(), zone: zoneOf(r), status: http.StatusOK}
	v.call.RequestID, v.call.Source = v.web.ID, v.web.Source
	if tenant := r.PathValue("tenant"); rolecall.IsTenantName(tenant) {
		v.tenant = tenant
	}
	return v
}

// end adds the tenant and the caller to the request's log entry.
func (v *pageContext) end() { v.web.Tenant, v.web.Principal = v.tenant, v.call.Principal }

// serve checks the request in the same order as the API: header, session, form, policy,
// parameters. Then it calls show or act of the page.
func (v *pageContext) serve() error {
	if err := v.checkHeader(); err != nil {
		return err
	}
	policy := &v.page.policy
	if v.readSessions(); !policy.Public && len(v.sessions) == 0 {
		return rolecall.ErrUnauthenticated
	}
	isForm, limiter := v.request.Method == http.MethodPost, web.WorkLimiter
	if isForm {
		limiter = policy.Limiter
		if err := v.readForm(); err != nil {
			return err
		}
	}
	isKnownPath := v.readPath()
	v.readQuery()
	if err := v.web.Enter(limiter); err != nil {
		return err
	}
	if err := v.authorize(isForm); err != nil {
		return err
	}
	if !isKnownPath { // after authorize, so that callers without access cannot probe for paths
		return rolecall.ErrNotFound
	}
	if v.cursor != "" {
		v.openCursor()
	}
	if !isForm {
		return v.page.show(v)
	}
	if v.checkKey(); v.faults != nil {
		return rolecall.ErrMalformed.WithFieldErrors(v.faults...)
	}
	return v.page.act(v)
}

// checkHeader checks the address and the header of the request. It refuses forms that other
// origins send, even if those origins may call the API.
func (v *pageContext) checkHeader() error {
	switch {
	case v.tenant != v.request.PathValue("tenant"): // the name in the path is not valid
		return web.ErrUnknownPath
	case v.request.ContentLength > v.page.maxBody():
		return v.page.tooLarge()
	case v.console.site.CheckOwnOrigin(v.request) != nil:
		return web.ErrCrossOrigin
	}
	return nil
}

// readForm parses the form in the request body.
func (v *pageContext) readForm() error {
	contentType := v.request.Header.Get("Content-Type")
	if full, parameters, err := mime.ParseMediaType(contentType); v.page.takesFile && err == nil && full == "multipart/form-data" {
		return v.readFormWithFile(parameters["boundary"])
	}
	mediaType, _, _ := strings.Cut(contentType, ";")
	if !strings.EqualFold(strings.TrimSpace(mediaType), "application/x-www-form-urlencoded") {
		return web.ErrMediaType.With(msg("form.media-type"))
	}
	body, err := web.ReadBody(v.request, nil, web.MaxBody)
	if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
		return web.ErrContentTooLarge
	}
	form, syntaxErr := url.ParseQuery(string(body))
	clear(body) // the body can contain a password
	if err != nil || syntaxErr != nil || !isText(form) {
		return rolecall.ErrMalformed.With(msg("form.broken"))
	}
	v.form = form
	return nil
}

// isText reports whether all names and values of the form are UTF-8.
func isText(form url.Values) bool {
	for name, values := range form {
		if !utf8.ValidString(name) || slices.ContainsFunc(values, func(value string) bool { return !utf8.ValidString(value) }) {
			return false
		}
	}
	return true
}

// authorize identifies the caller, and returns an error if the policy of the page does not
// allow the caller. If a form needs step-up, the sign-in is too old and the form contains
// the password, authorize re-authenticates the caller.
func (v *pageContext) authorize(isForm bool) error {
	policy, s := &v.page.policy, v.console
	if policy.Public {
		return nil
	}
	tenant, err := s.directory.Tenant(v.ctx, v.tenant)
	if err != nil {
		return err
	}
	v.tenantID = tenant.ID
	if err = v.authenticate(tenant); err != nil {
		return err
	}
	if err := policy.AuthorizeFor(v.call.Principal, v.userID); err != nil {
		return err
	}
	v.isAllowed = true
	if !isForm || !policy.StepsUp() {
		return nil
	}
	password := v.form.Get(fieldPassword)
	if err = authz.RequireRecent(v.call.Principal, s.access.Now()); err == nil || password == "" {
		return err
	}
	signIn, err := s.signin.Reauthenticate(v.ctx, v.call, v.sessions, password, v.proof(fieldsOwn))
	if err != nil {
		if known, ok := errors.AsType[*rolecall.Error](err); ok {
			return atOwnFields(known)
		}
		return err
	}
	if signIn.Challenge != nil {
		return signIn.Challenge.Problem
	}
	return v.setSession(&signIn)
}

// fail writes the response to a failed request. A failed form shows its page again. All
// other failed requests show an error page.
func (v *pageContext) fail(err error) {
	p := v.web.ProblemOf(err)
	if p.Kind == rolecall.Forbidden && v.call.Principal != nil && v.page != nil {
		v.console.access.Refused(v.call, v.userID, v.page.label(), p.Code)
	}
	p.SetHeaders(v.response, v.request)
	isPublic := v.page == nil || v.page.policy.Public
	if p.Status == http.StatusUnauthorized {
		v.response.Header()["Www-Authenticate"] = challenges[isPublic]
	}
	v.problem, v.status = p, p.Status
	if v.form != nil && (v.isAllowed || isPublic) && v.page.show(v) == nil {
		return
	}
	if failed := v.console.refuse(v); failed != nil {
		v.web.Cause = errors.Join(v.web.Cause, failed)
		v.console.site.WriteProblem(v.response, v.request, p)
	}
}

// challenges maps whether a page is public to the value of its WWW-Authenticate header. A
// public page needs no session.
var challenges = map[bool][]string{true: {"Session"}, false: {"Session, Bearer"}}
