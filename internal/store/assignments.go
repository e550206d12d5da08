package store

import (
	"bytes"
	"cmp"
	"database/sql/driver"
	"errors"
	"slices"
	"strings"

	"github.com/rolecall/rolecall"
)

const (
	assignmentColumns = `a.user_id, ` + heldColumns + `, null, ''`

	// throughColumns are assignmentColumns of an assignment a to a group g, for a member m of it.
	throughColumns = `m.user_id, ` + heldColumns + `, g.id, g.name`

	// A left join, such as that of selectSession, returns one row of nulls for a holder
	// without roles. The calls of coalesce make it possible to scan these nulls. The
	// scanned role id is then zero.
	heldColumns = `a.departments, coalesce(a.expires_at, 0), a.granted_by, coalesce(a.granted_at, 0),
		o.id, o."key", coalesce(o.name, ''), coalesce(o.description, ''), coalesce(o.permissions, '[]'),
		coalesce(o.grants, '[]'), coalesce(o.system, 0), coalesce(o.created_at, 0), coalesce(o.updated_at, 0),
		coalesce(o.version, 0)`

	// followsAssignment is an SQL condition: the user of the assignment a has another one, whose role id is less.
	followsAssignment = `exists (select 1 from assignments f where f.tenant_id = $1 and f.user_id = a.user_id and f.role_id < a.role_id)`

	// followsAccountRole is the same for a service account.
	followsAccountRole = `exists (select 1 from service_account_roles f
			where f.tenant_id = $1 and f.service_account_id = a.service_account_id and f.role_id < a.role_id)`

	selectDirectAssignments = `select ` + assignmentColumns + `
		from assignments a join roles o on o.tenant_id = a.tenant_id and o.id = a.role_id and o.deletion is null
		where a.tenant_id = $1 and a.user_id = $2`

	selectAssignments = selectDirectAssignments + `
		union all
		select ` + throughColumns + `
		from group_members m join group_roles a on a.tenant_id = m.tenant_id and a.group_id = m.group_id
		join groups g on g.tenant_id = a.tenant_id and g.id = a.group_id
		join roles o on o.tenant_id = a.tenant_id and o.id = a.role_id and o.deletion is null
		where m.tenant_id = $1 and m.user_id = $2`

	// rolesThrough joins a membership m with its group and the roles of the group.
	rolesThrough = `join groups g on g.tenant_id = m.tenant_id and g.id = m.group_id and g.deletion is null
		left join group_roles a on a.tenant_id = m.tenant_id and a.group_id = m.group_id
		left join roles o on o.tenant_id = a.tenant_id and o.id = a.role_id and o.deletion is null`

	selectGroupRolesOf = `select a.group_id, ` + heldColumns + `, null, ''
		from group_roles a join roles o on o.tenant_id = a.tenant_id and o.id = a.role_id and o.deletion is null
		where a.tenant_id = $1 and a.group_id = $2`

	selectGroupRole = selectGroupRolesOf + ` and a.role_id = $3`

	upsertGroupRole = `insert into group_roles (tenant_id, group_id, role_id, departments, expires_at, granted_by, granted_at)
		values ($1, $2, $3, $4, $5, $6, $7)
		on conflict (tenant_id, group_id, role_id) do update set departments = excluded.departments,
			expires_at = excluded.expires_at, granted_by = excluded.granted_by, granted_at = excluded.granted_at`

	deleteGroupRole = `delete from group_roles where tenant_id = $1 and group_id = $2 and role_id = $3 returning role_id`

	deleteRolesOfGroup = `delete from group_roles where tenant_id = $1 and group_id = $2`

	deleteGroupRoles = `delete from group_roles where tenant_id = $1 and role_id = $2
		returning group_id, departments, expires_at, granted_by, granted_at`

	selectAssignment = `select ` + assignmentColumns + `
		from assignments a join roles o on o.tenant_id = a.tenant_id and o.id = a.role_id and o.deletion is null
		where a.tenant_id = $1 and a.user_id = $2 and a.role_id = $3`

	countAssignments = `select departments from assignments where tenant_id = $1 and user_id = $2 limit $3`

	insertAssignments = `insert into assignments (tenant_id, user_id, role_id, departments, expires_at, granted_by, granted_at)
		values `

	upsertAssignment = insertAssignments + `($1, $2, $3, $4, $5, $6, $7)
		on conflict (tenant_id, user_id, role_id) do update set departments = excluded.departments,
			expires_at = excluded.expires_at, granted_by = excluded.granted_by, granted_at = excluded.granted_at, started_at = null`

	deleteAssignment = `delete from assignments where tenant_id = $1 and user_id = $2 and role_id = $3 returning role_id`

	selectHolders = `select user_id from assignments where tenant_id = $1 and role_id = $2 order by user_id limit $3`

	deleteAssignments = `delete from assignments where tenant_id = $1 and role_id = $2 and user_id <= $3
		returning user_id, departments, expires_at, granted_by, granted_at`

	selectRoleInUse = `select 1 from (
			select count(*) as n, max(expires_at) as latest from (
				select * from (
					select expires_at from assignments where tenant_id = $1 and role_id = $2 order by user_id limit 5001) u
				union all
				select * from (
					select expires_at from service_account_roles
					where tenant_id = $1 and role_id = $2 order by service_account_id limit 5001) s
				union all
				select expires_at from group_roles where tenant_id = $1 and role_id = $2) a) c
		where c.latest > $3 or c.n > 5000`

	lockOwners = `update tenant_guards set n = n + 1 where tenant_id = $1`

	countOwners = `select count(*) from (
			select 1 from (
				select a.user_id from roles o
				join assignments a on a.tenant_id = o.tenant_id and a.role_id = o.id
				where o.tenant_id = $1 and o."key" = $2 and a.expires_at = $3 and a.departments is null
				limit 5000) c
			cross join users u
			where u.tenant_id = $1 and u.id = c.user_id and u.status = $4
			limit 2) owners`
)

// departments converts between the reach of an assignment and its column. The column is a
// JSON array of department names, or null for the whole tenant.
type departments struct{ reach *rolecall.Reach }

// Value returns the JSON text (driver.Valuer).
func (d departments) Value() (driver.Value, error) {
	if d.reach.IsEverywhere() {
		return nil, nil
	}
	names := d.reach.Departments()
	return asJSON(&names).Value()
}

// Scan reads the JSON text (sql.Scanner).
func (d departments) Scan(src any) error {
	if src == nil {
		*d.reach = rolecall.Everywhere()
		return nil
	}
	var names []string
	err := asJSON(&names).Scan(src)
	*d.reach = rolecall.Within(names...)
	return err
}

func assignmentDest(a *rolecall.Assignment) []any {
	dest := append([]any{&a.Holder.ID, departments{&a.Reach}, &a.ExpiresAt, &a.GrantedBy, &a.GrantedAt}, roleDest(&a.Role)...)
	return append(dest, &a.Through.ID, &a.Through.Name)
}

// ErrManyPermissions is returned if the roles of a holder have more permissions than the caller wants to read.
var ErrManyPermissions = errors.New("store: the roles have more permissions than the limit")

// heldRoles are the assignments of one holder, and the groups, that a statement reads.
type heldRoles struct {
	all    []rolecall.Assignment
	groups []rolecall.GroupName
	limit  int // of the permissions of all roles
}

// add adds an assignment that was read, and its group. It ignores the zero role, which a left join returns for a
// holder or a group without roles. It returns ErrManyPermissions if the limit is exceeded.
func (h *heldRoles) add(a *rolecall.Assignment) error {
	if !a.Through.ID.IsZero() && !slices.Contains(h.groups, a.Through) {
		h.groups = append(h.groups, a.Through)
	}
	if a.Role.ID.IsZero() {
		return nil
	}
	if h.limit -= len(a.Role.Permissions) + len(a.Role.Grants); h.limit < 0 {
		return ErrManyPermissions
	}
	h.all = append(h.all, *a)
	return nil
}

// sort sorts the assignments by the id of the role, then by that of the group, and the groups by id. The direct
// assignment of a role comes first.
func (h *heldRoles) sort() {
	sortAssignments(h.all)
	slices.SortFunc(h.groups, func(a, b rolecall.GroupName) int { return bytes.Compare(a.ID[:], b.ID[:]) })
}

func sortAssignments(all []rolecall.Assignment) { slices.SortFunc(all, compareWays) }

func compareWays(a, b rolecall.Assignment) int {
	return cmp.Or(bytes.Compare(a.Role.ID[:], b.Role.ID[:]), bytes.Compare(a.Through.ID[:], b.Through.ID[:]))
}

// statementFor returns the statement for the kind of the holder. Users, service accounts and groups have separate
// tables of assignments.
func statementFor(h rolecall.Holder, ofUser, ofAccount, ofGroup string) string {
	return [...]string{rolecall.HolderUser: ofUser, rolecall.HolderAccount: ofAccount, rolecall.HolderGroup: ofGroup}[h.Kind]
}

// Assignments returns all assignments of the holder with their roles, sorted by role id. Those of a user include the
// roles of the user's groups, one item for each way in which the user has the role: the direct one first, and then
// those through groups, sorted by the id of the group. The result includes expired assignments.
func (t *Tx) Assignments(h rolecall.Holder) ([]rolecall.Assignment, error) {
	return t.assignments(h, statementFor(h, selectAssignments, selectServiceAccountRoles, selectGroupRolesOf))
}

// DirectAssignments is like Assignments, without the roles of the user's groups.
func (t *Tx) DirectAssignments(user rolecall.UserID) ([]rolecall.Assignment, error) {
	return t.assignments(rolecall.HolderOf(user), selectDirectAssignments)
}

func (t *Tx) assignments(h rolecall.Holder, statement string) ([]rolecall.Assignment, error) {
	var all []rolecall.Assignment
	_, err := t.q.Query(statement, []any{t.tenant, h.ID}, into(&all, assignmentDest))
	for i := range all {
		all[i].Holder = h
	}
	sortAssignments(all)
	return all, err
}

// Assignment returns the holder's direct assignment of the role, with the role. It returns
// ErrNotFound if the assignment does not exist, or if the role is being deleted. An expired assignment still exists.
func (t *Tx) Assignment(h rolecall.Holder, role rolecall.RoleID) (a rolecall.Assignment, err error) {
	err = t.row(statementFor(h, selectAssignment, selectServiceAccountRole, selectGroupRole), []any{t.tenant, h.ID, role}, assignmentDest(&a)...)
	a.Holder = h
	return a, err
}

// CountAssignments returns the number of direct assignments of a user or a service account, with the expired ones, and
// the number of departments in them. It counts at most AssignmentsMax assignments.
func (t *Tx) CountAssignments(h rolecall.Holder) (n, departmentsOfAll int, err error) {
	_, err = t.q.Query(statementFor(h, countAssignments, countServiceAccountRoles, ""), []any{t.tenant, h.ID, rolecall.AssignmentsMax}, func(scan func(dest ...any) error) error {
		var reach rolecall.Reach
		err := scan(departments{&reach})
		n++
		departmentsOfAll += reach.Count()
		return err
	})
	return n, departmentsOfAll, err
}

// UpsertAssignment inserts the assignment, or replaces the holder's existing assignment of
// the same role. Update returns ErrNotFound if the holder or the role does not exist.
func (t *Tx) UpsertAssignment(a rolecall.Assignment) {
	t.endAssignment(a.Holder, a.Role.ID, a.GrantedAt)
	t.q.Exec(statementFor(a.Holder, upsertAssignment, upsertServiceAccountRole, upsertGroupRole), t.tenant, a.Holder.ID, a.Role.ID, departments{&a.Reach}, a.ExpiresAt, a.GrantedBy, a.GrantedAt)
	t.invalidate(t.affected(a.Holder))
}

// endAssignment records that the holder's assignment of the role ends at the time. Those of service accounts are not
// recorded.
func (t *Tx) endAssignment(h rolecall.Holder, role rolecall.RoleID, at rolecall.Time) {
	if statement := statementFor(h, endAssignment, "", endGroupRole); statement != "" {
		t.q.Exec(statement, at, t.tenant, h.ID, role)
	}
}

// affected returns the id to invalidate when the roles of the holder change. It is the tenant for a group, whose
// members can be many.
func (t *Tx) affected(h rolecall.Holder) rolecall.AnyID {
	if h.Kind == rolecall.HolderGroup {
		return rolecall.AnyID(t.tenant)
	}
	return h.ID
}

// DeleteAssignment deletes the holder's assignment of the role at the time and reports whether
// the assignment existed.
func (t *Tx) DeleteAssignment(h rolecall.Holder, role rolecall.RoleID, at rolecall.Time) (bool, error) {
	t.endAssignment(h, role, at)
	ok, err := t.changed(statementFor(h, deleteAssignment, deleteServiceAccountRole, deleteGroupRole), t.tenant, h.ID, role)
	return t.invalidateIf(ok, err, t.affected(h))
}

// DeleteAssignments deletes up to limit assignments of the role to users, which end at the
// time, and returns the deleted assignments. In their Role, only the id is set. DeleteAssignments invalidates no
// cached data, because HideRole has already invalidated the cached data of the tenant.
func (t *Tx) DeleteAssignments(role rolecall.RoleID, at rolecall.Time, limit int) ([]rolecall.Assignment, error) {
	return t.deleteAssignments(selectHolders, deleteAssignments, rolecall.Assignment{Role: rolecall.Role{ID: role}}, at, limit)
}

// DeleteGroupRoles deletes the assignments of the role to groups, which end at the time, and returns the deleted
// assignments. There are at most GroupRolesMax. In their Role, only the id is set. Like DeleteAssignments, it
// invalidates no cached data.
func (t *Tx) DeleteGroupRoles(role rolecall.RoleID, at rolecall.Time) (deleted []rolecall.Assignment, err error) {
	t.q.Exec(endGroupsOfRole, at, t.tenant, role)
	_, err = t.q.Query(deleteGroupRoles, []any{t.tenant, role}, into(&deleted, func(a *rolecall.Assignment) []any {
		a.Holder.Kind, a.Role.ID = rolecall.HolderGroup, role
		return []any{&a.Holder.ID, departments{&a.Reach}, &a.ExpiresAt, &a.GrantedBy, &a.GrantedAt}
	}))
	return deleted, err
}

// deleteAssignments deletes up to limit assignments of the role of a, in the order of the
// ids of their holders. It first reads the greatest of these ids, and then deletes all
// assignments up to that id. With a subquery instead, PostgreSQL would evaluate the
// subquery again for each row of the table.
func (t *Tx) deleteAssignments(holders, statement string, a rolecall.Assignment, at rolecall.Time, limit int) ([]rolecall.Assignment, error) {
	var last rolecall.UserID
	_, err := t.q.Query(holders, []any{t.tenant, a.Role.ID, limit}, func(scan func(dest ...any) error) error { return scan(&last) })
	if err != nil || last.IsZero() {
		return nil, err
	}
	if a.Holder.Kind == rolecall.HolderUser {
		t.q.Exec(endAssignmentsOfRole, at, t.tenant, a.Role.ID, last)
	}
	var deleted []rolecall.Assignment
	_, err = t.q.Query(statement, []any{t.tenant, a.Role.ID, last}, func(scan func(dest ...any) error) error {
		err := scan(&a.Holder.ID, departments{&a.Reach}, &a.ExpiresAt, &a.GrantedBy, &a.GrantedAt)
		deleted = append(deleted, a)
		return err
	})
	return deleted, err
}

// RoleInUse reports whether a user, a service account or a group has an assignment of the role that
// has not expired at now. RoleInUse also returns true if the role has more than MaxScan
// assignments, because it does not read them all.
func (t *Tx) RoleInUse(id rolecall.RoleID, now rolecall.Time) (bool, error) {
	n, err := t.countRows(selectRoleInUse, t.tenant, id, now)
	return n > 0, err
}

// LockOwners locks the tenant until the end of this Update, against all other Updates that
// call LockOwners. An Update must call it before it does one of the following: remove an
// owner, make a decision that depends on the assignments of other users, or count rows to
// enforce a limit.
func (t *Tx) LockOwners() { t.q.Exec(lockOwners, t.tenant) }

// Owners returns the number of active users who have the owner role in the whole tenant
// and without expiry. The result is at most two. Owners reads at most MaxScan assignments.
func (t *Tx) Owners() (n int, err error) {
	err = t.row(countOwners, []any{t.tenant, rolecall.OwnerKey, rolecall.Never, string(rolecall.UserActive)}, &n)
	return n, err
}

// OldestOwners returns the owners that Owners counts, those who became users first, and at most limit of them. It reads
// at most MaxScan assignments.
func (t *Tx) OldestOwners(limit int) (owners []rolecall.User, err error) {
	_, err = t.q.Query(selectOwners, []any{t.tenant, rolecall.OwnerKey, rolecall.Never, string(rolecall.UserActive), limit}, into(&owners, userDest))
	return owners, err
}

// grantTable describes the rows of assignments in an SQL statement. Each is an assignment a. The text from is the from
// clause, and joined its conditions.
type grantTable struct {
	table, id             string // of an index scan of the holders of a role; empty if no single table has them
	from, joined          string // from the holder to the roles
	byRole                string // from a role to its holders; empty if from serves both
	holder, throughColumn string
}

// grantTables are all assignments of a kind of holders.
type grantTables []grantTable

var (
	grantsOfUsers = grantTable{"assignments", "user_id", "assignments a", "a.tenant_id = $1", "", "a.user_id", "null, ''"}
	grantsThrough = grantTable{
		from:   "group_members m cross join group_roles a cross join groups g",
		joined: "m.tenant_id = $1 and a.tenant_id = $1 and a.group_id = m.group_id and g.tenant_id = $1 and g.id = m.group_id",
		byRole: "group_roles a cross join group_members m cross join groups g",
		holder: "m.user_id", throughColumn: "g.id, g.name",
	}

	tablesOfAccounts = grantTables{{"service_account_roles", "service_account_id", "service_account_roles a", "a.tenant_id = $1", "", "a.service_account_id", "null, ''"}}
)

// tablesOfUsers returns the assignments of users. They include those through groups if the argument is true.
func tablesOfUsers(throughGroups bool) grantTables {
	if throughGroups {
		return grantTables{grantsOfUsers, grantsThrough}
	}
	return grantTables{grantsOfUsers}
}

// exists reports whether the statement, whose first placeholder is the tenant, returns a row.
func (t *Tx) exists(query string, args ...any) (bool, error) {
	n, err := t.countRows(query, append([]any{t.tenant}, args...)...)
	return n > 0, err
}

var selectOwners = `select ` + userColumns + ` from (
			select a.user_id from roles o
			join assignments a on a.tenant_id = o.tenant_id and a.role_id = o.id
			where o.tenant_id = $1 and o."key" = $2 and a.expires_at = $3 and a.departments is null
			order by a.user_id limit 5000) c
		cross join users r
		where r.tenant_id = $1 and r.id = c.user_id and r.status = $4
		order by r.id limit $5`

// covering returns an SQL condition that is true if the column, a JSON array of
// permissions, contains a permission that covers p. The condition compares whole JSON
// strings with their quotes. It does not use "like", because "like" ignores case on SQLite
// and treats the _ of a permission as a wildcard.
func covering(column string, p rolecall.Permission) condition {
	var has condition
	for i, q := range p.CoveredBy() {
		one := where("replace("+column+", ?, '') <> "+column, `"`+q.String()+`"`)
		if i == 0 {
			has = one
		} else {
			has = condition{has.sql + " or " + one.sql, append(has.args, one.args...)}
		}
	}
	return condition{"(" + has.sql + ")", has.args}
}

// giving returns SQL conditions on an assignment a and its role o. All of them are true if
// the assignment gives its holder the permission of q.
func giving(q *rolecall.AccessQuery) []condition {
	all := []condition{where("a.expires_at > ?", q.Now), where("o.deletion is null"), covering("o.permissions", q.Permission)}
	if !q.Scoped() {
		all = append(all, where("a.departments is null"))
	}
	return all
}

// given returns an SQL condition that is true if the holder in row r of a list has the
// permission of q. The case expression makes the database evaluate the other conditions
// only for the roles of r.
func (tables grantTables) given(q *rolecall.AccessQuery) condition {
	var ways []condition
	for _, g := range tables {
		c := condition{sql: "(select max(case when o.id = a.role_id"}
		for _, part := range giving(q) {
			c.sql, c.args = c.sql+" and "+part.sql, append(c.args, part.args...)
		}
		c.sql += " then 1 end) from " + g.from + " cross join roles o where " + g.joined + " and " + g.holder +
			" = r.id and o.tenant_id = $1 and o.id = a.role_id) = 1"
		ways = append(ways, c)
	}
	c := ways[0]
	for _, way := range ways[1:] {
		c = either(c, way)
	}
	return c
}

// source returns the source that contains all holders of the roles with the permission of
// q. It returns ok = false if more than MaxLimit roles have the permission.
func (tables grantTables) source(t *Tx, q *rolecall.AccessQuery) (s source, ok bool, err error) {
	roles, err := t.Roles(rolecall.RoleQuery{Permission: &q.Permission, Limit: rolecall.MaxLimit})
	if err != nil || roles.Next != nil {
		return source{}, false, err
	}
	ids := make([]rolecall.RoleID, 1, len(roles.Items)+1) // starts with the zero id, which no role has, because the list must not be empty
	for _, role := range roles.Items {
		ids = append(ids, role.ID)
	}
	return tables.holders(oneOf("role_id", ids)), true, nil
}

// holders returns the source with the holders of those roles that meet the condition on the column role_id.
func (tables grantTables) holders(roles condition) source {
	if len(tables) == 1 {
		return source{table: tables[0].table, id: tables[0].id, conditions: []condition{roles}}
	}
	var rows []string
	for _, g := range tables {
		rows = append(rows, "select a.tenant_id, a.role_id, "+g.holder+" as holder_id from "+cmp.Or(g.byRole, g.from)+" where "+g.joined)
	}
	return source{table: "(" + strings.Join(rows, " union all ") + ") h", id: "holder_id", conditions: []condition{roles}}
}

// UsersWithAccess returns a page of the users that q selects. If few users have the roles
// with the permission of q, it reads only these users. Otherwise, it scans the users of
// the tenant. In both cases, it reads a bounded number of rows.
func (t *Tx) UsersWithAccess(q rolecall.AccessQuery) (rolecall.Page[rolecall.User], error) {
	if q.Within.IsNowhere() {
		return rolecall.Page[rolecall.User]{}, nil
	}
	within := rolecall.UserQuery{Within: q.Within}
	l := &listing[rolecall.User]{
		tx: t, table: "users", columns: userColumns, dest: userDest,
		id:    func(u *rolecall.User) rolecall.AnyID { return rolecall.AnyID(u.ID) },
		after: q.After, limit: q.Limit,
	}
	throughGroups, err := t.exists(selectRolesOfGroups)
	if err != nil {
		return rolecall.Page[rolecall.User]{}, err
	}
	tables := tablesOfUsers(throughGroups)
	l.conditions = append(userConditions(&within), tables.given(&q))
	var candidates []source
	l.indexScan, candidates = userSources(&within)
	return l.serveGranted(tables, &q, candidates)
}

// ServiceAccountsWithAccess returns a page of the service accounts that q selects. It
// reads at most rolecall.MaxScan accounts, and the assignments of these accounts. So a page
// can have fewer items than the limit although other pages follow. Service accounts have
// no department, so Within does not restrict them.
func (t *Tx) ServiceAccountsWithAccess(q rolecall.AccessQuery) (rolecall.Page[rolecall.ServiceAccount], error) {
	l := &listing[rolecall.ServiceAccount]{
		tx: t, table: "service_accounts", columns: serviceAccountColumns, dest: serviceAccountDest,
		id:    func(a *rolecall.ServiceAccount) rolecall.AnyID { return rolecall.AnyID(a.ID) },
		after: q.After, limit: q.Limit,
		indexScan:  source{table: "service_accounts", id: "id"},
		conditions: []condition{tablesOfAccounts.given(&q)},
	}
	return l.serveGranted(tablesOfAccounts, &q, nil)
}

// serveGranted returns a page of a list of holders. It adds one candidate for the source
// of the page: the holders of the roles with the permission of q.
func (l *listing[T]) serveGranted(tables grantTables, q *rolecall.AccessQuery, candidates []source) (rolecall.Page[T], error) {
	s, ok, err := tables.source(l.tx, q)
	if err != nil {
		return rolecall.Page[T]{}, err
	}
	if ok {
		candidates = append(candidates, s)
	}
	return l.serve(candidates, false)
}

// AccessAssignments returns the assignments that give the permission of q to one of the users, also through groups,
// sorted by the ids of the user, of the role and of the group. Of a role, only the id, the key, the name and the permissions
// that cover the one of q are set. The result full is true if the assignments of all users would be larger than
// a page. Then it has those of the first users, and all of these users, but at least those of one user.
func (t *Tx) AccessAssignments(q rolecall.AccessQuery, users []rolecall.UserID) (all []rolecall.Assignment, full bool, err error) {
	throughGroups, err := t.exists(selectRolesOfGroups)
	if err != nil {
		return nil, false, err
	}
	return accessAssignments(t, tablesOfUsers(throughGroups), &q, users)
}

// AccountAccessAssignments does for service accounts what AccessAssignments does for users.
func (t *Tx) AccountAccessAssignments(q rolecall.AccessQuery, accounts []rolecall.ServiceAccountID) (all []rolecall.Assignment, full bool, err error) {
	all, full, err = accessAssignments(t, tablesOfAccounts, &q, accounts)
	for i := range all {
		all[i].Holder.Kind = rolecall.HolderAccount
	}
	return all, full, err
}

func accessAssignments[ID any](t *Tx, tables grantTables, q *rolecall.AccessQuery, holders []ID) (all []rolecall.Assignment, full bool, err error) {
	if len(holders) == 0 {
		return nil, false, nil
	}
	first, size := 0, 0 // of the assignments of the current holder, and of all
	covering := q.Permission.CoveredBy()
	rows, err := selectGrants(t, tables, q, covering, holders).query(t.q, func(scan func(dest ...any) error) error {
		if full {
			return nil
		}
		var a rolecall.Assignment
		var has string
		if err := scan(&a.Holder.ID, departments{&a.Reach}, &a.ExpiresAt, &a.GrantedBy, &a.GrantedAt, &a.Role.ID, &a.Role.Key, &a.Role.Name, &a.Through.ID, &a.Through.Name, &has); err != nil {
			return err
		}
		for i := range has {
			if has[i] == '1' {
				a.Role.Permissions = append(a.Role.Permissions, covering[i])
			}
		}
		a.Role.Permissions = rolecall.NormalPermissions(a.Role.Permissions)
		if len(all) > 0 && all[first].Holder.ID != a.Holder.ID {
			first = len(all)
		}
		if size += a.Size() + sizeOfPermissions(a.Role.Permissions); size > rolecall.MaxPageBytes && first > 0 {
			full, all = true, all[:first]
			return nil
		}
		all = append(all, a)
		return nil
	})
	if rows == rolecall.MaxScan && !full && err == nil {
		full = true
		if first > 0 {
			all = all[:first]
		}
	}
	slices.SortStableFunc(all, func(a, b rolecall.Assignment) int { // the databases sort the null of direct assignments in different places
		return cmp.Or(bytes.Compare(a.Holder.ID[:], b.Holder.ID[:]), compareWays(a, b))
	})
	return all, full, err
}

// selectGrants builds the statement of accessAssignments. Its last column has a 1 for each of the covering
// permissions that the role has, and a 0 for each of the others. It names the tenant, because the
// placeholders must begin with $1.
func selectGrants[ID any](t *Tx, tables grantTables, q *rolecall.AccessQuery, covering []rolecall.Permission, holders []ID) *builder {
	b := newBuilder(t.tenant)
	for n, g := range tables {
		b.write([]string{"", " union all "}[min(n, 1)] + "select " + g.holder + `, a.departments, a.expires_at, a.granted_by, a.granted_at, o.id, o."key", o.name, ` + g.throughColumn)
		for i, p := range covering {
			b.write([]string{", ", " || "}[min(i, 1)]+"case when o.tenant_id = $1 and replace(o.permissions, ?, '') <> o.permissions then '1' else '0' end", `"`+p.String()+`"`)
		}
		b.write(" from " + g.from + " cross join roles o where " + g.joined + " and o.tenant_id = $1 and o.id = a.role_id")
		b.all(append(giving(q), oneOf(g.holder, holders)))
	}
	b.write(" order by 1, 6")
	b.limit(rolecall.MaxScan)
	return b
}

const (
	// endAssignments copies assignments to the table of past ones. The caller then deletes or
	// replaces them. If the clock was set back, an assignment can end before it started. It is not
	// copied.
	endAssignments = `insert into past_assignments
			(tenant_id, user_id, role_id, role_key, role_name, departments, expires_at, granted_by, granted_at, started_at, ended_at)
		select a.tenant_id, a.user_id, a.role_id, o."key", o.name, a.departments, a.expires_at, a.granted_by, a.granted_at,
			coalesce(a.started_at, a.granted_at), cast($1 as bigint)
		from assignments a join roles o on o.tenant_id = a.tenant_id and o.id = a.role_id
		where a.tenant_id = $2 and coalesce(a.started_at, a.granted_at) < $1`

	endAssignment        = endAssignments + ` and a.user_id = $3 and a.role_id = $4 on conflict do nothing`
	endAssignmentsOfUser = endAssignments + ` and a.user_id = $3 on conflict do nothing`
	endAssignmentsOfRole = endAssignments + ` and a.role_id = $3 and a.user_id <= $4 on conflict do nothing`

	endGroupRolesOf = `insert into past_group_roles
			(tenant_id, group_id, role_id, role_key, role_name, departments, expires_at, granted_by, granted_at, ended_at)
		select a.tenant_id, a.group_id, a.role_id, o."key", o.name, a.departments, a.expires_at, a.granted_by, a.granted_at, cast($1 as bigint)
		from group_roles a join roles o on o.tenant_id = a.tenant_id and o.id = a.role_id
		where a.tenant_id = $2 and a.granted_at < $1`

	endGroupRole    = endGroupRolesOf + ` and a.group_id = $3 and a.role_id = $4 on conflict do nothing`
	endRolesOfGroup = endGroupRolesOf + ` and a.group_id = $3 on conflict do nothing`
	endGroupsOfRole = endGroupRolesOf + ` and a.role_id = $3 on conflict do nothing`

	startAssignments = `update assignments set started_at = $1 where tenant_id = $2 and user_id = $3`

	selectHistoryBegin = `select min(applied_at) from compatibility` // only this migration and later ones have a time

	selectCurrentAt = `select ` + assignmentColumns + `, o.deletion
		from assignments a join roles o on o.tenant_id = a.tenant_id and o.id = a.role_id
		where a.tenant_id = $1 and a.user_id = $2 and coalesce(a.started_at, a.granted_at) <= $3 and a.expires_at > $3 order by a.role_id`

	selectPastAt = `select p.user_id, p.role_id, coalesce(o."key", p.role_key), coalesce(o.name, p.role_name), p.departments, p.expires_at, p.granted_by, p.granted_at
		from past_assignments p left join roles o on o.tenant_id = p.tenant_id and o.id = p.role_id and o.deletion is null
		where p.tenant_id = $1 and p.user_id = $2 and p.started_at <= $3 and p.ended_at > $3 and p.expires_at > $3 order by p.role_id`

	selectPastRole = `select 1 from past_assignments where tenant_id = $1 and role_id = $2
		union all select 1 from past_group_roles where tenant_id = $1 and role_id = $2 limit 1`
)

// AssignmentHistoryBegin returns the time since which past assignments are recorded.
func (t *Tx) AssignmentHistoryBegin() (began rolecall.Time, err error) {
	err = t.row(selectHistoryBegin, nil, &began)
	return began, err
}

// StartAssignments records that the assignments of a restored user apply since the time at,
// although they were granted earlier.
func (t *Tx) StartAssignments(id rolecall.UserID, at rolecall.Time) {
	t.q.Exec(startAssignments, at, t.tenant, id)
}

// AssignmentsAt returns the assignments that the user had at the time, sorted by role id. If the role
// was deleted since then, only its id, key and name are set.
func (t *Tx) AssignmentsAt(id rolecall.UserID, at rolecall.Time) ([]rolecall.Assignment, error) {
	var all []rolecall.Assignment
	var a rolecall.Assignment
	var deletion rolecall.EventID // the event of the deletion of a role whose assignments are being removed
	_, err := t.q.Query(selectCurrentAt, []any{t.tenant, id, at}, func(scan func(dest ...any) error) error {
		a, deletion = rolecall.Assignment{}, rolecall.EventID{}
		err := scan(append(assignmentDest(&a), &deletion)...)
		if deletion.IsZero() || at < deletion.CreatedAt() {
			all = append(all, a)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	_, err = t.q.Query(selectPastAt, []any{t.tenant, id, at}, func(scan func(dest ...any) error) error {
		a = rolecall.Assignment{}
		err := scan(&a.Holder.ID, &a.Role.ID, &a.Role.Key, &a.Role.Name, departments{&a.Reach}, &a.ExpiresAt, &a.GrantedBy, &a.GrantedAt)
		all = append(all, a)
		return err
	})
	if err != nil {
		return nil, err
	}
	_, err = t.q.Query(selectThroughAt, []any{t.tenant, id, at}, into(&all, func(a *rolecall.Assignment) []any {
		return []any{&a.Holder.ID, &a.Role.ID, &a.Role.Key, &a.Role.Name, departments{&a.Reach}, &a.ExpiresAt, &a.GrantedBy, &a.GrantedAt, &a.Through.ID, &a.Through.Name}
	}))
	sortAssignments(all)
	return all, err
}

// throughHistory has the ways in which a user had a role through a group: the membership m and the assignment a of the
// group can both be current or past.
var throughHistory = func() (ways []historicWay) {
	for _, m := range []historicRow{{table: "group_members m", name: "''"}, {"past_group_members m", "m.ended_at", "", "m.group_name"}} {
		for _, a := range []historicRow{{table: "group_roles a", key: "null", name: "''"}, {"past_group_roles a", "a.ended_at", "a.role_key", "a.role_name"}} {
			ways = append(ways, historicWay{m, a})
		}
	}
	return ways
}()

// historicRow is a row of a table with current or past rows. The columns key and name have the last names of a role or a
// group that was deleted since then.
type historicRow struct{ table, end, key, name string }

// historicWay is a membership with an assignment of its group.
type historicWay struct{ membership, role historicRow }

// from returns the from clause and the first conditions.
func (w *historicWay) from() string {
	return w.membership.table + " join " + w.role.table + " on a.tenant_id = m.tenant_id and a.group_id = m.group_id"
}

// at returns the SQL condition that both applied at a time. Each placeholder is the time.
func (w *historicWay) at(placeholder string) string {
	sql := "m.added_at <= " + placeholder + " and a.granted_at <= " + placeholder + " and a.expires_at > " + placeholder
	for _, end := range []string{w.membership.end, w.role.end} {
		if end != "" {
			sql += " and " + end + " > " + placeholder
		}
	}
	return sql
}

var selectThroughAt = func() string {
	var ways []string
	for _, w := range throughHistory {
		ways = append(ways, "select m.user_id, a.role_id, coalesce(o.\"key\", "+w.role.key+"), coalesce(o.name, "+w.role.name+
			"), a.departments, a.expires_at, a.granted_by, a.granted_at, m.group_id, coalesce(g.name, "+w.membership.name+") from "+w.from()+
			" left join groups g on g.tenant_id = m.tenant_id and g.id = m.group_id"+
			" left join roles o on o.tenant_id = a.tenant_id and o.id = a.role_id and o.deletion is null where m.tenant_id = $1 and m.user_id = $2 and "+w.at("$3"))
	}
	return strings.Join(ways, " union all ")
}()

// HadHolders reports whether a past assignment of the role to a user or to a group is recorded.
func (t *Tx) HadHolders(role rolecall.RoleID) (bool, error) {
	n, err := t.countRows(selectPastRole, t.tenant, role)
	return n > 0, err
}

// heldAt returns an SQL condition that is true if the user r had the role at the time, directly or through a group. If
// direct is true, groups do not count.
func heldAt(role rolecall.RoleID, at rolecall.Time, direct bool) condition {
	// Each part is compared with a value. With "exists", PostgreSQL might read all holders of the role to
	// hash them.
	current := where("(select 1 from assignments a join roles o on o.tenant_id = a.tenant_id and o.id = a.role_id"+
		" where a.tenant_id = $1 and a.user_id = r.id and a.role_id = ? and coalesce(a.started_at, a.granted_at) <= ? and a.expires_at > ?"+
		" and (o.deletion is null or o.deletion > ?)) = 1", role, at, at, rolecall.FirstID[rolecall.Event](at))
	past := where("(select max(p.ended_at) from past_assignments p where p.tenant_id = $1 and p.user_id = r.id and p.role_id = ?"+
		" and p.started_at <= ? and p.expires_at > ?) > ?", role, at, at, at)
	held := either(current, past)
	if direct {
		return held
	}
	for _, w := range throughHistory {
		during := w.at("?")
		args := []any{role}
		for range strings.Count(during, "?") {
			args = append(args, at)
		}
		held = either(held, where("(select max(1) from "+w.from()+" where m.tenant_id = $1 and a.tenant_id = $1 and m.user_id = r.id and a.role_id = ? and "+during+") = 1", args...))
	}
	return held
}

// heldSource is the source with all users who have the role or had it. If direct is true, groups do not count.
func heldSource(role rolecall.RoleID, direct bool) source {
	rows := "select tenant_id, role_id, user_id from assignments union all select tenant_id, role_id, user_id from past_assignments"
	for _, w := range throughHistory {
		if direct {
			break
		}
		rows += " union all select a.tenant_id, a.role_id, m.user_id from " + w.from() + " where a.tenant_id = $1 and m.tenant_id = $1"
	}
	return source{table: "(" + rows + ") h", id: "user_id", conditions: []condition{where("role_id = ?", role)}}
}

// InsertAssignments inserts many assignments with few statements. The same Update must
// insert their users, because InsertAssignments invalidates no cached data. Update returns
// ErrNotFound if a user or a role does not exist.
func (t *Tx) InsertAssignments(assignments []rolecall.Assignment) {
	insertRows(t, insertAssignments, assignments, func(b *builder, a rolecall.Assignment) {
		b.write("($1, ?, ?, ?, ?, ?, ?)", a.Holder.ID, a.Role.ID, departments{&a.Reach}, a.ExpiresAt, a.GrantedBy, a.GrantedAt)
	})
}
