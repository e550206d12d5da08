// Package console is the admin web console: pages for people, rendered here and
// served by the edge below /console. A page stands for an operation of the contract,
// is let in by its need, and acts through its verb with the principal who is signed
// in; nothing is decided here about who may do what.
package console

import (
	"embed"
	"path"
	"slices"

	"github.com/rolecall/rolecall/internal/httpapi"
	"github.com/rolecall/rolecall/internal/service"
)

// console is the pages over a service.
type console struct{ service *service.Service }

// New returns the console of the service.
func New(s *service.Service) *httpapi.Console {
	c := &console{service: s}
	return &httpapi.Console{Pages: c.pages(), Assets: assets(), Refuse: c.refuse}
}

// pages returns every page: each file of pages adds its own.
func (c *console) pages() []httpapi.Page {
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
		[]httpapi.Page{
			{Path: "", Show: toRoot},
			{Path: "/{tenant}", Operation: "AuthsController_getSession", Show: toHome},
			{Path: "/{tenant}/", Operation: "AuthsController_getSession", Show: toHome},
			{Path: "/{tenant}/{rest...}", Operation: "AuthsController_getSession", Show: notFound},
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

// assets returns the files that pages load.
func assets() []httpapi.Asset {
	entries, err := files.ReadDir("assets")
	if err != nil {
		panic(err) // they are part of the program
	}
	var list []httpapi.Asset
	for _, entry := range entries {
		content, err := files.ReadFile("assets/" + entry.Name())
		if err != nil {
			panic(err)
		}
		list = append(list, httpapi.Asset{Name: entry.Name(), Type: mediaTypes[path.Ext(entry.Name())], Content: content})
	}
	return list
}
