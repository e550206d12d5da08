package rolecall

import (
	"fmt"
	"slices"
)

// The limits of a role.
const (
	RoleNameMax        = 128
	RoleDescriptionMax = 1024
	RolePermissionsMax = 256      // maximum number of permissions, and also of grants
	RolesMax           = MaxCount // maximum number of roles in a tenant
	AssignmentsMax     = 200      // maximum number of direct assignments of a holder, with the expired ones
	HolderReachMax     = 1000     // maximum number of departments in all direct assignments of a holder
)

// OwnerKey is the key of the built-in role Owner. At least one user of each tenant always
// has this role.
const OwnerKey = "owner"

// Role is a named set of permissions and grants. The holders of the role have its
// permissions. They may assign to others roles that consist of these permissions and of the
// grants.
type Role struct {
	ID          RoleID       `json:"id" doc:"ID of the role."`
	Key         *string      `json:"key" doc:"Stable name of the role for programs. Null without one."`
	Name        string       `json:"name" doc:"Name of the role."`
	Description string       `json:"description" doc:"Description of the role."`
	Permissions []Permission `json:"permissions" doc:"The permissions of the role. Each has the form [application/]resource[.field]:action. Each part is a name or *."`
	Grants      []Permission `json:"grants" doc:"Permissions that users with the role may assign to others without having them."`
	System      bool         `json:"system" doc:"Whether this is a system role, which cannot be changed or deleted."` // cannot be changed or deleted
	CreatedAt   Time         `json:"createdAt" doc:"When the role was created."`
	UpdatedAt   Time         `json:"updatedAt" doc:"When the role was changed last."`
	Version     int64        `json:"-"`
}

// NameKey returns the key of the role's name. It is the sort key of roles, and is unique in
// a tenant.
func (r *Role) NameKey() string { return sortedKey(r.Name) }

// Covering returns those permissions of the role that cover p.
func (r *Role) Covering(p Permission) []Permission {
	var covering []Permission
	for _, held := range r.Permissions {
		if held.Covers(p) {
			covering = append(covering, held)
		}
	}
	return covering
}

// RoleDraft describes a role to create.
type RoleDraft struct {
	Key         *string  `json:"key" pattern:"^[a-z][a-z0-9-]{0,62}$" doc:"Stable name of the role for programs. It never changes. Null for none."`
	Name        string   `json:"name" required:"true" minLength:"1" maxLength:"128" doc:"Name of the role, unique in the tenant. It must have at least nameMinimum characters, a setting of the tenant."`
	Description string   `json:"description" nullable:"true" minLength:"0" maxLength:"1024" doc:"Description of the role."`
	Permissions []string `json:"permissions" nullable:"true" maxItems:"256" format:"permission" doc:"The permissions of the role. Each has the form [application/]resource[.field]:action. Each part is a name or *. Null or empty for none."`
	Grants      []string `json:"grants" nullable:"true" maxItems:"256" format:"permission" doc:"Permissions that users with the role may assign to others without having them. Null or empty for none."`
}

// Check validates the draft. The name must have at least nameMinimum characters. Check returns
// nil if the draft is valid.
func (d *RoleDraft) Check(nameMinimum int) FieldErrors {
	_, faults := d.Role(0, nameMinimum)
	return faults
}

// Role returns a new role with the values of the draft. If the draft is invalid, Role
// returns the field errors of Check instead.
func (d *RoleDraft) Role(now Time, nameMinimum int) (Role, FieldErrors) {
	var faults FieldErrors
	if d.Key != nil && !isRoleKey(*d.Key) {
		faults.Add("/key", "format", "must have 1 to 63 characters of a to z, 0 to 9 and -, and begin with a letter")
	}
	checkNaming(&faults, nameMinimum, Some(d.Name), Some(d.Description))
	role := Role{
		Key: d.Key, Name: TrimName(d.Name), Description: d.Description,
		Permissions: parsePermissions(&faults, "/permissions", d.Permissions),
		Grants:      parsePermissions(&faults, "/grants", d.Grants),
		CreatedAt:   now, UpdatedAt: now, Version: 1,
	}
	if faults != nil {
		return Role{}, faults
	}
	role.ID = NewID[Role](now)
	return role, nil
}

// RolePatch changes a role. Absent members keep their values (RFC 7396). Permissions and
// Grants replace the whole lists.
type RolePatch struct {
	Name        Optional[string]   `json:"name" minLength:"1" maxLength:"128" doc:"Name of the role, unique in the tenant. It must have at least nameMinimum characters, a setting of the tenant."`
	Description Optional[string]   `json:"description" nullable:"true" minLength:"0" maxLength:"1024" doc:"Description of the role."`
	Permissions Optional[[]string] `json:"permissions" nullable:"true" maxItems:"256" format:"permission" doc:"The permissions of the role. Each has the form [application/]resource[.field]:action. Each part is a name or *. Null or empty for none."`
	Grants      Optional[[]string] `json:"grants" nullable:"true" maxItems:"256" format:"permission" doc:"Permissions that users with the role may assign to others without having them. Null or empty for none."`
}

// Check validates the patch. The name must have at least nameMinimum characters. Check returns
// nil if the patch is valid.
func (p *RolePatch) Check(nameMinimum int) FieldErrors {
	var faults FieldErrors
	checkNaming(&faults, nameMinimum, p.Name, p.Description)
	parsePermissions(&faults, "/permissions", p.Permissions.Value)
	parsePermissions(&faults, "/grants", p.Grants.Value)
	return faults
}

// Apply returns the role with the changes of the patch, and the names of the members whose
// values changed. If no value changed, the names are nil. The patch must have passed Check.
func (p *RolePatch) Apply(r Role, now Time) (Role, []string) {
	var changed []string
	if name := TrimName(p.Name.Value); p.Name.Set && name != r.Name {
		r.Name, changed = name, append(changed, "name")
	}
	if p.Description.Set && p.Description.Value != r.Description {
		r.Description, changed = p.Description.Value, append(changed, "description")
	}
	var faults FieldErrors
	if next := parsePermissions(&faults, "", p.Permissions.Value); p.Permissions.Set && !slices.Equal(next, r.Permissions) {
		r.Permissions, changed = next, append(changed, "permissions")
	}
	if next := parsePermissions(&faults, "", p.Grants.Value); p.Grants.Set && !slices.Equal(next, r.Grants) {
		r.Grants, changed = next, append(changed, "grants")
	}
	if changed != nil {
		r.UpdatedAt = max(now, r.UpdatedAt+1)
		r.Version++
	}
	return r, changed
}

// checkNaming validates the name and the description of a role or of a service
// account.
func checkNaming(faults *FieldErrors, nameMinimum int, name, description Optional[string]) {
	if name.Set {
		faults.Name("/name", name.Value, nameMinimum, RoleNameMax)
	}
	if description.Set && description.Value != "" {
		faults.Text("/description", description.Value, 0, RoleDescriptionMax)
	}
}

func parsePermissions(faults *FieldErrors, pointer string, texts []string) []Permission {
	if len(texts) > RolePermissionsMax {
		faults.Add(pointer, "too-many", fmt.Sprintf("must have at most %d permissions", RolePermissionsMax))
		return nil
	}
	permissions := make([]Permission, 0, len(texts))
	for i, text := range texts {
		p, err := ParsePermission(text)
		switch at := fmt.Sprintf("%s/%d", pointer, i); {
		case err != nil:
			faults.Add(at, "format", err.Error())
		case !p.Known():
			faults.Add(at, "unknown-permission", "is not one of Rolecall's own permissions; write a permission of an application as application/resource:action")
		default:
			permissions = append(permissions, p)
		}
	}
	return NormalPermissions(permissions)
}

func isRoleKey(key string) bool {
	if len(key) == 0 || len(key) > 63 || key[0] < 'a' || key[0] > 'z' {
		return false
	}
	for _, c := range []byte(key) {
		if !('a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '-') {
			return false
		}
	}
	return true
}

// BuiltInRoles returns the roles that each new tenant gets. The first one is the role
// Owner.
func BuiltInRoles(now Time) []Role {
	built := func(key, name, description string, system bool, permissions, grants []Permission) Role {
		return Role{
			ID: NewID[Role](now), Key: &key, Name: name, Description: description, System: system,
			Permissions: NormalPermissions(permissions), Grants: NormalPermissions(grants),
			CreatedAt: now, UpdatedAt: now, Version: 1,
		}
	}
	var administrator []Permission
	ownersOnly := []Permission{TenantUpdate, ConnectionsCreate, ConnectionsUpdate, ConnectionsDelete}
	for _, p := range ownPermissions {
		if p.Field == "" && !slices.Contains(ownersOnly, p) {
			administrator = append(administrator, p)
		}
	}
	return []Role{
		built(OwnerKey, "Owner", "Everything, in Rolecall and in every application.", true,
			[]Permission{AllOwn, AllApplications}, nil),
		built("administrator", "Administrator", "Manages people and roles.", false,
			administrator, append(slices.Clone(administrator), AllApplications)),
		built("viewer", "Viewer", "Sees people and roles.", false,
			[]Permission{UsersRead, RolesRead}, nil),
	}
}

// RoleQuery selects and sorts roles.
type RoleQuery struct {
	Key        string
	Words      []string    // each must be the beginning of a word of the name
	Permission *Permission // only roles with a permission that covers this one, if set
	ByName     bool        // sort by name; otherwise by id, which is the order of creation
	Desc       bool
	After      *Position
	Limit      int
	Count      bool
}
