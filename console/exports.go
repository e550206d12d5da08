package console

import (
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/web"
)

// exportPath follows the path of a list in the address of its CSV file.
const exportPath = "/export"

// exportPages returns the pages that answer with a list as a CSV file. They accept the
// filters of the list.
func (c *console) exportPages() []page {
	return []page{
		{path: "/{tenant}/users/export", operation: "ExportsController_exportUsers", query: exportedUsersQuery, show: c.exportUsers},
		{path: "/{tenant}/roles/{id}/users/export", operation: "ExportsController_exportRoleUsers", query: holdersQuery, show: c.exportHolders},
		{path: "/{tenant}/events/export", operation: "ExportsController_exportEvents", query: eventsQuery, show: c.exportEvents},
	}
}

// exportedUsersQuery has the parameters of usersQuery that select users. The status cannot
// be "deleted", because deleted users are not exported.
var exportedUsersQuery = append([]parameter{
	{"role", readFilterID(func(p *parameters) *rolecall.RoleID { return &p.holds })}, groupParameter,
}, holdersQuery...)

func (c *console) exportUsers(v *pageContext) error {
	return v.export(func() (*rolecall.Table, error) { return c.directory.ExportUsers(v.ctx, v.call, v.userListing()) })
}

func (c *console) exportHolders(v *pageContext) error {
	return v.export(func() (*rolecall.Table, error) {
		return c.directory.ExportRoleUsers(v.ctx, v.call, v.roleID, v.userListing())
	})
}

func (c *console) exportEvents(v *pageContext) error {
	return v.export(func() (*rolecall.Table, error) { return c.directory.ExportEvents(v.ctx, v.call, v.eventListing()) })
}

// export answers with the table as a CSV file. Each export writes an event, so a link on
// another site must not start one: export then redirects to the list.
func (v *pageContext) export(open func() (*rolecall.Table, error)) error {
	switch {
	case !v.isFromOwnPage():
		return v.redirect(strings.TrimSuffix(v.request.URL.Path, exportPath))
	case v.faults != nil:
		return rolecall.ErrMalformed.WithFieldErrors(v.faults...)
	}
	v.web.Tenant, v.web.Principal = v.tenant, v.call.Principal
	return v.console.site.ServeCSV(v.response, v.request, web.CSV{Tenant: v.tenant, Mark: true}, open)
}

// exportAddress returns the address of the CSV file of the list, with the current filters. It is
// empty if a filter is invalid.
func (f frame) exportAddress(parameters []string) string {
	if f.faults != nil {
		return ""
	}
	path := f.request.URL.Path
	return path + exportPath + f.listAddress(parameters)[len(path):]
}

// mayExportEvents reports whether the caller can export the shown events. Events of one
// user cannot be exported.
func (l eventsView) mayExportEvents() bool {
	return l.user == nil && authz.ReadEvents.Authorize(l.call.Principal) == nil
}
