package rolecall

import (
	"fmt"
	"slices"
	"strings"
)

// Permission is the right to perform an action. Its text form is
// [application/]resource[.field]:action. Each part is a name or *, which stands for every
// name. A permission without an application is one of Rolecall's own. Rolecall stores and
// compares permissions of applications, but does not know their meaning.
type Permission struct {
	Application string // "" for Rolecall's own permissions, "*" for all applications
	Resource    string
	Field       string // "" for the whole resource
	Action      string
}

// PermissionLength is the maximum length of the text form, in characters.
const PermissionLength = 200

// ParsePermission parses the text form of a permission. The text of a returned error can be
// shown to the user who wrote the permission.
func ParsePermission(text string) (Permission, error) {
	var p Permission
	if len(text) > PermissionLength {
		return p, fmt.Errorf("must have at most %d characters", PermissionLength)
	}
	rest, hasApplication := text, false
	if application, after, ok := strings.Cut(text, "/"); ok {
		p.Application, rest, hasApplication = application, after, true
	}
	object, action, ok := strings.Cut(rest, ":")
	if !ok {
		return Permission{}, fmt.Errorf("must have the form [application/]resource[.field]:action")
	}
	resource, field, hasField := strings.Cut(object, ".")
	p.Resource, p.Field, p.Action = resource, field, action
	if hasApplication && !isPermissionPart(p.Application) || !isPermissionPart(resource) ||
		hasField && !isPermissionPart(field) || !isPermissionPart(action) {
		return Permission{}, fmt.Errorf("must have the form [application/]resource[.field]:action, each part * or a letter a to z followed by at most 63 letters, digits, _ or -")
	}
	return p, nil
}

func isPermissionPart(part string) bool {
	if part == "*" {
		return true
	}
	if len(part) == 0 || len(part) > 64 || part[0] < 'a' || part[0] > 'z' {
		return false
	}
	for _, c := range []byte(part[1:]) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

// mustPermission is like ParsePermission, for constants. It panics if the text is invalid.
func mustPermission(text string) Permission {
	p, err := ParsePermission(text)
	if err != nil {
		panic(text + " " + err.Error())
	}
	return p
}

// String returns the text form of the permission.
func (p Permission) String() string { return string(p.append(nil)) }

// MarshalText returns the text form of the permission (encoding.TextMarshaler).
func (p Permission) MarshalText() ([]byte, error) { return p.append(nil), nil }

// AppendText appends the text form of the permission (encoding.TextAppender).
func (p Permission) AppendText(b []byte) ([]byte, error) { return p.append(b), nil }

func (p Permission) append(b []byte) []byte {
	if p.Application != "" {
		b = append(append(b, p.Application...), '/')
	}
	b = append(b, p.Resource...)
	if p.Field != "" {
		b = append(append(b, '.'), p.Field...)
	}
	return append(append(b, ':'), p.Action...)
}

// UnmarshalText sets the permission from its text form (encoding.TextUnmarshaler).
func (p *Permission) UnmarshalText(text []byte) error {
	parsed, err := ParsePermission(string(text))
	if err == nil {
		*p = parsed
	}
	return err
}

// Own reports whether the permission is one of Rolecall's own, and not one of an
// application.
func (p Permission) Own() bool { return p.Application == "" }

// HasWildcard reports whether a part of the permission is *.
func (p Permission) HasWildcard() bool {
	return p.Application == "*" || p.Resource == "*" || p.Field == "*" || p.Action == "*"
}

// Covers reports whether a holder of p may do everything that q allows. No permission of
// Rolecall covers a permission of an application, even with wildcards. No permission of an
// application covers one of Rolecall.
func (p Permission) Covers(q Permission) bool {
	return (p.Application == q.Application || p.Application == "*" && q.Application != "") &&
		(p.Resource == q.Resource || p.Resource == "*") &&
		(p.Action == q.Action || p.Action == "*") &&
		(p.Field == "" || p.Field == "*" || p.Field == q.Field)
}

// CoveredBy returns all permissions that cover p, at most 24. The first one is p itself.
func (p Permission) CoveredBy() []Permission {
	orAny := func(part string) []string {
		if part == "*" {
			return []string{part}
		}
		return []string{part, "*"}
	}
	applications, fields := []string{""}, []string{"", "*"}
	if !p.Own() {
		applications = orAny(p.Application)
	}
	if p.Field != "" && p.Field != "*" {
		fields = []string{p.Field, "", "*"}
	} else if p.Field == "*" {
		fields = []string{"*", ""}
	}
	var all []Permission
	for _, application := range applications {
		for _, resource := range orAny(p.Resource) {
			for _, action := range orAny(p.Action) {
				for _, field := range fields {
					all = append(all, Permission{application, resource, field, action})
				}
			}
		}
	}
	return all
}

// Meet returns the intersection of p and q: the permission that covers exactly the
// permissions that p and q both cover. It returns false if p and q cover no common
// permission.
func (p Permission) Meet(q Permission) (Permission, bool) {
	narrower := func(a, b string) (string, bool) {
		switch {
		case a == b || b == "*":
			return a, true
		case a == "*":
			return b, true
		}
		return "", false
	}
	if p.Own() != q.Own() {
		return Permission{}, false
	}
	application, ok1 := narrower(p.Application, q.Application)
	resource, ok2 := narrower(p.Resource, q.Resource)
	action, ok3 := narrower(p.Action, q.Action)
	field, ok4 := p.Field, true
	switch {
	case p.Field == "":
		field = q.Field
	case q.Field != "":
		field, ok4 = narrower(p.Field, q.Field)
	}
	if !ok1 || !ok2 || !ok3 || !ok4 {
		return Permission{}, false
	}
	return Permission{application, resource, field, action}, true
}

// Known reports whether the permission can have an effect. It returns true for every
// permission of an application. It returns true for one of Rolecall's own if the permission
// covers at least one permission that an operation needs.
func (p Permission) Known() bool {
	return !p.Own() || slices.ContainsFunc(ownPermissions, p.Covers)
}

// Rolecall's own permissions that operations need, without wildcards, and the two
// permissions of the role Owner. The methods Read and Update of UserMember return the
// permissions for single members of a user.
var (
	UsersCreate    = mustPermission("users:create")
	UsersRead      = mustPermission("users:read")
	UsersUpdate    = mustPermission("users:update")
	UsersDelete    = mustPermission("users:delete")
	UsersSuspend   = mustPermission("users:suspend")
	UsersInvite    = mustPermission("users:invite")
	UsersLinks     = mustPermission("users:issue-links")
	UsersRestore   = mustPermission("users:restore")
	UsersErase     = mustPermission("users:erase")
	UsersEmail     = mustPermission("users.email:update") // change the address with a confirmation by mail; PATCH cannot change the address
	UsersFactors   = mustPermission("users:reset-factors")
	RolesRead      = mustPermission("roles:read")
	RolesCreate    = mustPermission("roles:create")
	RolesUpdate    = mustPermission("roles:update")
	RolesDelete    = mustPermission("roles:delete")
	RolesAssign    = mustPermission("roles:assign")
	GroupsRead     = mustPermission("groups:read")
	GroupsCreate   = mustPermission("groups:create")
	GroupsUpdate   = mustPermission("groups:update")
	GroupsDelete   = mustPermission("groups:delete")
	GroupsMembers  = mustPermission("groups:members")
	SessionsRead   = mustPermission("sessions:read")
	SessionsRevoke = mustPermission("sessions:revoke")
	EventsRead     = mustPermission("events:read")
	ChangesRead    = mustPermission("changes:read")
	TenantRead     = mustPermission("tenant:read")
	TenantUpdate   = mustPermission("tenant:update")

	ServiceAccountsRead   = mustPermission("service-accounts:read")
	ServiceAccountsCreate = mustPermission("service-accounts:create")
	ServiceAccountsUpdate = mustPermission("service-accounts:update")
	ServiceAccountsDelete = mustPermission("service-accounts:delete")

	WebhooksRead   = mustPermission("webhooks:read")
	WebhooksCreate = mustPermission("webhooks:create")
	WebhooksUpdate = mustPermission("webhooks:update")
	WebhooksDelete = mustPermission("webhooks:delete")

	ConnectionsRead   = mustPermission("connections:read")
	ConnectionsCreate = mustPermission("connections:create")
	ConnectionsUpdate = mustPermission("connections:update")
	ConnectionsDelete = mustPermission("connections:delete")
	IdentitiesRead    = mustPermission("identities:read")
	IdentitiesDelete  = mustPermission("identities:delete")

	// AllOwn and AllApplications are the permissions of the role Owner.
	AllOwn          = mustPermission("*:*")
	AllApplications = mustPermission("*/*:*")
)

// opens has the text of Permission.Opens for each of Rolecall's own permissions, except
// those for single members of a user.
var opens = []struct {
	Permission
	words string
}{
	{UsersRead, "read all members of users"},
	{UsersCreate, "create users"},
	{UsersUpdate, "update all members of users that can be changed"},
	{UsersDelete, "delete users"},
	{UsersSuspend, "suspend and resume users"},
	{UsersInvite, "invite users, and send them password reset links"},
	{UsersLinks, "get the links of invitations and password resets instead of having them mailed; only for service accounts, and together with users:invite"},
	{UsersRestore, "list and restore deleted users"},
	{UsersErase, "erase users and their personal data permanently"},
	{UsersFactors, "reset the second factors of users"},
	{RolesRead, "read roles and their assignments"},
	{RolesCreate, "create roles"},
	{RolesUpdate, "update roles"},
	{RolesDelete, "delete roles"},
	{RolesAssign, "assign and remove roles"},
	{GroupsRead, "read groups, with their members and roles"},
	{GroupsCreate, "create groups"},
	{GroupsUpdate, "update groups"},
	{GroupsDelete, "delete groups"},
	{GroupsMembers, "add users to groups and remove them"},
	{SessionsRead, "read the sessions and API tokens of users"},
	{SessionsRevoke, "revoke the sessions and API tokens of users"},
	{ServiceAccountsRead, "read service accounts, with their roles and API tokens"},
	{ServiceAccountsCreate, "create service accounts"},
	{ServiceAccountsUpdate, "update service accounts, with their roles and API tokens"},
	{ServiceAccountsDelete, "delete service accounts"},
	{EventsRead, "read all events of the tenant"},
	{ChangesRead, "follow the changes of the tenant"},
	{WebhooksRead, "read webhooks and their deliveries"},
	{WebhooksCreate, "create webhooks"},
	{WebhooksUpdate, "update, test and replay webhooks, and rotate their secrets"},
	{WebhooksDelete, "delete webhooks"},
	{ConnectionsRead, "read and test connections to identity providers"},
	{ConnectionsCreate, "create connections to identity providers; only together with *:* and */*:*"},
	{ConnectionsUpdate, "update connections to identity providers; only together with *:* and */*:*"},
	{ConnectionsDelete, "delete connections to identity providers; only together with *:* and */*:*"},
	{IdentitiesRead, "read the identities of users at identity providers"},
	{IdentitiesDelete, "delete the identities of users at identity providers"},
	{TenantRead, "read the tenant and its settings"},
	{TenantUpdate, "update the tenant and its settings"},
	{AllOwn, "everything in Rolecall"},
	{AllApplications, "everything in every application"},
}

var ownPermissions = func() (list []Permission) {
	for _, o := range opens {
		if o.Own() && o.Permission != AllOwn {
			list = append(list, o.Permission)
		}
	}
	list = append(list, UsersEmail)
	for m := range UserMemberCount {
		list = append(list, m.Read())
		if m.Updatable() {
			list = append(list, m.Update())
		}
	}
	return list
}()

// Opens returns a text about the effect of the permission, such as "create users".
// docs/permissions.md has the same text. The text is empty for permissions of applications
// and for permissions with wildcards, except *:* and */*:*.
func (p Permission) Opens() string {
	for _, o := range opens {
		if o.Permission == p {
			return o.words
		}
	}
	switch {
	case p.Resource != "users" || !p.Own() || p.Field == "" || p.Field == "*":
		return ""
	case p.Action == "read":
		return "read one member: " + p.Field
	case p == UsersEmail:
		return "update one member: email, after the user confirms the new address"
	case p.Action == "update":
		return "update one member: " + p.Field
	}
	return ""
}

// OwnPermissions returns the list of Rolecall's own permissions that operations need. The
// list has no wildcards.
func OwnPermissions() []Permission { return slices.Clone(ownPermissions) }

// BoundByReach reports whether one of Rolecall's own permissions can be limited to the
// users of some departments. These are the permissions on users, sessions and identities, and
// roles:assign, roles:read and groups:members. In an assignment that is limited to departments, Rolecall's
// other permissions have no effect.
func (p Permission) BoundByReach() bool {
	return p.Resource == "users" || p.Resource == "sessions" || p.Resource == "identities" || p == RolesAssign || p == RolesRead || p == GroupsMembers
}

// CountsWithin reports whether the permission has an effect in an assignment that is
// limited to departments. For one of Rolecall's own, possibly with wildcards, it returns
// true if the permission covers one for which BoundByReach is true. It returns true for
// every permission of an application.
func (p Permission) CountsWithin() bool {
	return !p.Own() || slices.ContainsFunc(ownPermissions, func(q Permission) bool { return q.BoundByReach() && p.Covers(q) })
}

// NormalPermissions returns a sorted copy of the permissions without duplicates. The
// permissions are sorted by their text form.
func NormalPermissions(permissions []Permission) []Permission {
	sorted := slices.Clone(permissions)
	slices.SortFunc(sorted, func(a, b Permission) int { return strings.Compare(a.String(), b.String()) })
	return slices.Compact(sorted)
}

// Reach is the set of users that a permission or an assignment applies to: all users of the
// tenant, the users of some departments, or no users. Departments are the same if their
// names have the same TextKey. The zero Reach contains no users.
type Reach struct {
	all         bool
	departments []department // sorted by key, without duplicates
}

type department struct{ key, name string }

// Everywhere returns the reach that contains all users of the tenant.
func Everywhere() Reach { return Reach{all: true} }

// Nowhere returns the reach that contains no users.
func Nowhere() Reach { return Reach{} }

// Within returns the reach that contains the users of the departments.
func Within(departments ...string) Reach {
	var r Reach
	for _, name := range departments {
		r.departments = append(r.departments, department{TextKey(name), name})
	}
	r.sort()
	return r
}

// IsEverywhere reports whether the reach contains all users of the tenant.
func (r Reach) IsEverywhere() bool { return r.all }

// IsNowhere reports whether the reach contains no users.
func (r Reach) IsNowhere() bool { return !r.all && len(r.departments) == 0 }

// Count returns the number of departments of the reach.
func (r Reach) Count() int { return len(r.departments) }

// Size returns about how many bytes of memory the departments of the reach use.
func (r Reach) Size() int {
	size := 0
	for _, d := range r.departments {
		size += 64 + len(d.key) + len(d.name)
	}
	return size
}

// Departments returns the names of the departments of the reach, sorted by their
// keys. It returns nil for Everywhere and Nowhere.
func (r Reach) Departments() []string {
	var names []string
	for _, d := range r.departments {
		names = append(names, d.name)
	}
	return names
}

// DepartmentKeys returns the keys of the departments of the reach, sorted.
func (r Reach) DepartmentKeys() []string {
	var keys []string
	for _, d := range r.departments {
		keys = append(keys, d.key)
	}
	return keys
}

// Includes reports whether the reach contains the users of the department. A nil department
// means the users without a department.
func (r Reach) Includes(department *string) bool {
	if r.all {
		return true
	}
	return department != nil && len(r.departments) > 0 && r.has(TextKey(*department))
}

func (r Reach) has(key string) bool {
	_, found := slices.BinarySearchFunc(r.departments, key, func(d department, key string) int { return strings.Compare(d.key, key) })
	return found
}

// Covers reports whether the reach r contains all users of the reach q.
func (r Reach) Covers(q Reach) bool {
	if r.all {
		return true
	}
	return !q.all && !slices.ContainsFunc(q.departments, func(d department) bool { return !r.has(d.key) })
}

// Union returns the reach that contains the users of r and the users of q.
func (r Reach) Union(q Reach) Reach {
	switch {
	case r.all || q.IsNowhere():
		return r
	case q.all || r.IsNowhere():
		return q
	}
	return UnionOf([]Reach{r, q})
}

// UnionOf returns the reach that contains the users of all the given reaches.
func UnionOf(reaches []Reach) Reach {
	var union Reach
	for _, r := range reaches {
		if r.all {
			return Everywhere()
		}
		union.departments = append(union.departments, r.departments...)
	}
	union.sort()
	return union
}

func (r *Reach) sort() {
	slices.SortStableFunc(r.departments, func(a, b department) int { return strings.Compare(a.key, b.key) })
	r.departments = slices.CompactFunc(r.departments, func(a, b department) bool { return a.key == b.key })
}

// Intersect returns the reach that contains the users who are in both r and q.
func (r Reach) Intersect(q Reach) Reach {
	if r.all {
		return q
	}
	if q.all {
		return r
	}
	var both Reach
	for _, d := range r.departments {
		if q.has(d.key) {
			both.departments = append(both.departments, d)
		}
	}
	return both
}
