package httpapi

import (
	"context"
	"net/http"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/operation"
)

func (s *Server) exportOperations() []*operation.Operation {
	return []*operation.Operation{
		{
			Method: http.MethodGet, Path: "/exports/users", ID: "ExportsController_exportUsers", Summary: "Export users",
			Description: "Exports the users that the caller may read as a CSV file, with the filters of GET /users. The columns are the ID and the members that the caller may read of some user. A cell is empty if the caller may not read the member of this user. " + aboutExports,
			Policy:      authz.ListUsers,
			Answers:     operation.Answers{{http.StatusOK, "The users.", []string{"Content-Disposition"}}},
			Problems:    problems{rolecall.ErrFieldNotReadable},
			Handler:     operation.CSV(s.exportUsers),
		},
		{
			Method: http.MethodGet, Path: "/exports/roles/{id}/users", ID: "ExportsController_exportRoleUsers", Summary: "Export the users with a role",
			Description: "Exports the users with the role as a CSV file, with the columns of GET /exports/users and the filters of GET /roles/{id}/users. " + aboutExports,
			Policy:      authz.ListRoleUsers,
			Answers:     operation.Answers{{http.StatusOK, "The users.", []string{"Content-Disposition"}}},
			Problems:    problems{rolecall.ErrNotFound, rolecall.ErrFieldNotReadable},
			Handler:     operation.CSV(s.exportRoleUsers),
		},
		{
			Method: http.MethodGet, Path: "/exports/events", ID: "ExportsController_exportEvents", Summary: "Export events",
			Description: "Exports the events of the tenant as a CSV file, newest first, with the filters of GET /events. The columns before and after have JSON. The columns actor.name and subject.name have the names of the actor and of the user, role or service account that the event is about, if the caller may read them. " + aboutExports,
			Policy:      authz.ReadEvents,
			Answers:     operation.Answers{{http.StatusOK, "The events.", []string{"Content-Disposition"}}},
			Handler:     operation.CSV(s.exportEvents),
		},
	}
}

// aboutExports is the part of the description that all exports share.
const aboutExports = "The first row has the names of the columns. So that spreadsheets do not calculate a cell, an apostrophe is inserted before =, +, - and @ (also in full width) at the beginning of a cell, and after a semicolon, a tab or a line break in it. So =x and '=x are exported alike, and +49 30 becomes '+49 30. Programs send raw=true and get the text of the API. Rolecall reads the data in pages, so the file can miss changes that are made during the export. An event records the export, but not a HEAD request. If it fails after the response has begun, the connection is aborted. While too many exports are running, the answer is 503."

type exportUsersRequest struct {
	userFilters
	operation.RawQuery
	Status string          `query:"status" enum:"pending,active,suspended" doc:"Only users with this status."`
	Role   rolecall.RoleID `query:"role" doc:"Only users with this role. It needs the permission roles:read."`
	groupQuery
}

func (s *Server) exportUsers(ctx context.Context, c access.Caller, in *exportUsersRequest) (*rolecall.Table, error) {
	listing := in.listing(in.Status, in.Role)
	listing.Group = in.Group
	return s.directory.ExportUsers(ctx, c, listing)
}

type exportRoleUsersRequest struct {
	rolePath
	userFilters
	operation.RawQuery
	directQuery
	Status string `query:"status" enum:"pending,active,suspended" doc:"Only users with this status."`
}

func (s *Server) exportRoleUsers(ctx context.Context, c access.Caller, in *exportRoleUsersRequest) (*rolecall.Table, error) {
	listing := in.listing(in.Status, rolecall.RoleID{})
	listing.Direct = in.Direct
	return s.directory.ExportRoleUsers(ctx, c, in.ID, listing)
}

type exportEventsRequest struct {
	eventFilters
	operation.RawQuery
	Subject rolecall.AnyID `query:"subject" doc:"Only events about this user, role, service account or tenant."`
}

func (s *Server) exportEvents(ctx context.Context, c access.Caller, in *exportEventsRequest) (*rolecall.Table, error) {
	return s.directory.ExportEvents(ctx, c, in.listing(in.Subject))
}
