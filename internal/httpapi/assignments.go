package httpapi

import (
	"net/http"

	"github.com/rolecall/rolecall"
)

func listUserRoles(x *exchange) error {
	live, expired, err := x.server.service.UserRoles(x.ctx, x.call, x.in.user)
	return x.assignments(live, expired, err)
}

// assignments answers with the live assignments, and with the expired ones if the
// request asks for them.
func (x *exchange) assignments(live, expired []rolecall.Assignment, err error) error {
	if err != nil {
		return err
	}
	if x.in.expired {
		live = append(live, expired...)
	}
	page := rolecall.Page[rolecall.Assignment]{Items: live}
	x.out = append(appendPage(x, x.out, &page, appendAssignment), '}')
	return x.json(http.StatusOK)
}

func assignRole(x *exchange) error {
	draft, err := x.assignmentDraft()
	if err != nil {
		return err
	}
	assignment, created, err := x.server.service.AssignRole(x.ctx, x.call, x.in.user, x.in.role, draft)
	if err != nil {
		return err
	}
	return x.assignment(&assignment, created)
}

// assignment answers with the assignment as far as the caller may read roles.
func (x *exchange) assignment(a *rolecall.Assignment, created bool) error {
	if !x.readsRoles() {
		a.Role = rolecall.Role{ID: a.Role.ID}
	}
	x.out = appendAssignment(x.out, a)
	if created {
		return x.json(http.StatusCreated)
	}
	return x.json(http.StatusOK)
}

func unassignRole(x *exchange) error {
	if err := x.server.service.UnassignRole(x.ctx, x.call, x.in.user, x.in.role); err != nil {
		return err
	}
	return x.nothing()
}

func (x *exchange) assignmentDraft() (draft rolecall.AssignmentDraft, err error) {
	err = x.decode(
		member{"reach", false, readObject(member{"departments", true, readStrings(&draft.Departments)})},
		member{"expiresAt", false, readTime(&draft.ExpiresAt)},
	).err(func() rolecall.Faults { return draft.Check(x.server.service.Now()) })
	return draft, err
}

func appendAssignment(b []byte, a *rolecall.Assignment) []byte {
	b = append(b, `{"role":`...)
	if a.Role.Name == "" {
		b = appendRole(b, &a.Role, false)
	} else {
		b = appendRoleName(b, &a.Role)
	}
	b = append(b, `,"reach":`...)
	b = appendReach(b, a.Reach)
	b = append(b, `,"expiresAt":`...)
	b = appendTimeOrNull(b, a.ExpiresAt)
	b = append(b, `,"grantedBy":`...)
	b = appendIDOrNull(b, a.GrantedBy)
	b = append(b, `,"grantedAt":`...)
	b = appendTime(b, a.GrantedAt)
	return append(b, '}')
}
