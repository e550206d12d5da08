package httpapi

import (
	"net/http"
	"strconv"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/service"
)

func listRoles(x *exchange) error {
	page, err := x.server.service.Roles(x.ctx, x.call, x.roleListing())
	if err != nil {
		return err
	}
	x.out = append(appendPage(x, x.out, &page, appendWholeRole), '}')
	return x.json(http.StatusOK)
}

func (x *exchange) roleListing() service.RoleListing {
	in := &x.in
	return service.RoleListing{
		Key: in.roleKey, Words: in.words, ByName: in.sort.by == "name", Desc: in.sort.desc,
		After: in.after, Limit: in.limit, Count: in.count,
	}
}

func createRole(x *exchange) error {
	draft, err := x.roleDraft()
	if err != nil {
		return err
	}
	created, err := x.server.service.CreateRole(x.ctx, x.call, x.key(), draft)
	if err != nil {
		return err
	}
	x.created("/roles/", rolecall.AnyID(created.Value.ID), created.Replayed)
	return x.role(http.StatusCreated, &created.Value, x.readsRoles() && !created.Erased)
}

func getRole(x *exchange) error {
	role, err := x.server.service.Role(x.ctx, x.call, x.in.role)
	if err != nil {
		return err
	}
	return x.role(http.StatusOK, &role, x.readsRoles())
}

func updateRole(x *exchange) error {
	patch, err := x.rolePatch()
	if err != nil {
		return err
	}
	role, err := x.server.service.UpdateRole(x.ctx, x.call, x.in.role, patch, x.matchRole())
	if err != nil {
		return err
	}
	return x.role(http.StatusOK, &role, x.readsRoles())
}

func deleteRole(x *exchange) error {
	if err := x.server.service.DeleteRole(x.ctx, x.call, x.in.role, x.in.force, x.matchRole()); err != nil {
		return err
	}
	return x.nothing()
}

func listRoleUsers(x *exchange) error {
	page, err := x.server.service.RoleUsers(x.ctx, x.call, x.in.role, x.userListing())
	if err != nil {
		return err
	}
	return x.userPage(&page)
}

func (x *exchange) roleDraft() (draft rolecall.RoleDraft, err error) {
	err = x.decode(
		member{"key", false, readNullable(&draft.Key)},
		member{"name", true, readString(&draft.Name)},
		member{"description", false, readStringOrNull(&draft.Description)},
		member{"permissions", false, readStrings(&draft.Permissions)},
		member{"grants", false, readStrings(&draft.Grants)},
	).err(func() rolecall.Faults {
		_, faults := draft.Role(x.server.service.Now())
		return faults
	})
	return draft, err
}

func (x *exchange) rolePatch() (patch rolecall.RolePatch, err error) {
	err = x.decode(
		member{"key", false, immutable},
		member{"name", false, optional(&patch.Name, readString)},
		member{"description", false, optional(&patch.Description, readStringOrNull)},
		member{"permissions", false, optional(&patch.Permissions, readStrings)},
		member{"grants", false, optional(&patch.Grants, readStrings)},
	).err(patch.Check)
	return patch, err
}

// readsRoles reports whether the caller may read roles; who may not sees no more
// of them than the id.
func (x *exchange) readsRoles() bool { return !x.call.Reach(rolecall.RolesRead).IsNowhere() }

// role answers with the role, or with its id alone.
func (x *exchange) role(status int, r *rolecall.Role, readable bool) error {
	x.out = appendRole(x.out, r, readable)
	if !readable {
		x.header["Withheld-Fields"] = roleFields
		return x.json(status)
	}
	return x.tagged(status)
}

var roleFields = []string{"key, name, description, permissions, grants, system, createdAt, updatedAt"}

// appendWholeRole appends the role with all of its members.
func appendWholeRole(b []byte, r *rolecall.Role) []byte { return appendRole(b, r, true) }

// appendRole appends the role, or its id alone if it is not readable.
func appendRole(b []byte, r *rolecall.Role, readable bool) []byte {
	b = append(b, `{"id":`...)
	b = appendID(b, r.ID)
	if !readable {
		return append(b, '}')
	}
	b = append(b, `,"key":`...)
	b = appendTextOrNull(b, r.Key)
	b = append(b, `,"name":`...)
	b = appendText(b, r.Name)
	b = append(b, `,"description":`...)
	b = appendText(b, r.Description)
	b = append(b, `,"permissions":`...)
	b = appendList(b, r.Permissions, appendPermission)
	b = append(b, `,"grants":`...)
	b = appendList(b, r.Grants, appendPermission)
	b = append(b, `,"system":`...)
	b = strconv.AppendBool(b, r.System)
	b = append(b, `,"createdAt":`...)
	b = appendTime(b, r.CreatedAt)
	b = append(b, `,"updatedAt":`...)
	b = appendTime(b, r.UpdatedAt)
	return append(b, '}')
}

// appendRoleName appends what names a role.
func appendRoleName(b []byte, r *rolecall.Role) []byte {
	b = append(b, `{"id":`...)
	b = appendID(b, r.ID)
	b = append(b, `,"key":`...)
	b = appendTextOrNull(b, r.Key)
	b = append(b, `,"name":`...)
	b = appendText(b, r.Name)
	return append(b, '}')
}
