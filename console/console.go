// Package console is the admin web console: an http.Handler of pages for people. A page
// stands for an operation of the API: it has the policy of the operation, and calls the same
// service with the principal who is signed in. The package decides nothing about who may do
// what. It imports directory, signin and package web, and not the API.
package console

import (
	"embed"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/web"
)

// Path is where the console is served, below the base.
const Path = "/console"

// assetsPath is where the files are served, below Path. No tenant has this name.
const assetsPath = "/-/"

// console is the pages over a service.
type console struct {
	access    *access.Service
	directory *directory.Service
	signin    *signin.Service
	site      *web.Site
	assets    map[string]string // addresses of the files, by their names
}

// New returns the console. The policies are those of the operations of the
// API, by their ids.
func New(a *access.Service, d *directory.Service, in *signin.Service, site *web.Site, policies map[string]web.Policy) http.Handler {
	c := &console{access: a, directory: d, signin: in, site: site, assets: map[string]string{}}
	var routes []web.Route
	for _, a := range assets() {
		c.assets[a.name] = site.Base + a.Path
		routes = append(routes, web.Route{Method: http.MethodGet, Path: a.Path, Label: "console", Handler: a})
	}
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

// Header values of pages. Under no-referrer browsers send forms with the origin null.
var (
	pagePolicy   = []string{"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"}
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

// isAsset reports whether the request is for a file instead of a page.
func isAsset(site *web.Site, r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, site.Base+Path+assetsPath)
}

// pages returns every page: each file of pages adds its own.
func (c *console) pages() []page {
	return slices.Concat(
		c.signInPages(),
		c.linkPages(),
		c.accountPages(),
		c.factorPages(),
		c.settingsPages(),
		c.usersPages(),
		c.newUserPages(),
		c.selectedPages(),
		c.userPages(),
		c.editPages(),
		c.actionPages(),
		c.sessionPages(),
		c.rolePages(),
		c.roleFormPages(),
		c.assignmentPages(),
		c.tokenPages(),
		c.serviceAccountPages(),
		c.serviceAccountActionPages(),
		c.eventPages(),
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

//go:embed assets/*.js assets/*.css assets/*.svg assets/*.txt
var files embed.FS

// mediaTypes are those of the assets.
var mediaTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
	".txt": "text/plain; charset=utf-8",
}

// namedAsset is a file that pages load.
type namedAsset struct {
	name string
	*web.Asset
}

// assets returns the files that pages load.
func assets() (list []namedAsset) {
	entries, err := files.ReadDir("assets")
	if err != nil {
		panic(err) // they are part of the program
	}
	for _, entry := range entries {
		content, err := files.ReadFile("assets/" + entry.Name())
		if err != nil {
			panic(err)
		}
		mediaType := mediaTypes[path.Ext(entry.Name())]
		list = append(list, namedAsset{entry.Name(), web.NewAsset(Path+assetsPath, entry.Name(), mediaType, web.Gzip(content), true)})
	}
	return list
}
