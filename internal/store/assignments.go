package store

import (
	"database/sql/driver"

	"github.com/rolecall/rolecall"
)

const (
	assignmentColumns = `a.user_id, ` + heldColumns

	// For a holder without roles, a left join such as that of selectSession returns one
	// row of nulls. With coalesce, the nulls can be scanned. The scanned role id is then
	// zero.
	heldColumns = `a.departments, coalesce(a.expires_at, 0), a.granted_by, coalesce(a.granted_at, 0),
		o.id, o."key", coalesce(o.name, ''), coalesce(o.description, ''), coalesce(o.permissions, '[]'),
		coalesce(o.grants, '[]'), coalesce(o.system, 0), coalesce(o.created_at, 0), coalesce(o.updated_at, 0),
		coalesce(o.version, 0)`

	selectAssignments = `select ` + assignmentColumns + `
		from assignments a join roles o on o.tenant_id = a.tenant_id and o.id = a.role_id and o.deletion is null
		where a.tenant_id = $1 and a.user_id = $2 order by a.role_id`

	selectAssignment = `select ` + assignmentColumns + `
		from assignments a join roles o on o.tenant_id = a.tenant_id and o.id = a.role_id and o.deletion is null
		where a.tenant_id = $1 and a.user_id = $2 and a.role_id = $3`

	insertAssignments = `insert into assignments (tenant_id, user_id, role_id, departments, expires_at, granted_by, granted_at)
		values `

	upsertAssignment = insertAssignments + `($1, $2, $3, $4, $5, $6, $7)
		on conflict (tenant_id, user_id, role_id) do update set departments = excluded.departments,
			expires_at = excluded.expires_at, granted_by = excluded.granted_by, granted_at = excluded.granted_at`

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
					where tenant_id = $1 and role_id = $2 order by service_account_id limit 5001) s) a) c
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

// departments reads and writes the column of an assignment's reach: a JSON array of
// department names, or null for the whole tenant.
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
	return append([]any{&a.Holder.ID, departments{&a.Reach}, &a.ExpiresAt, &a.GrantedBy, &a.GrantedAt}, roleDest(&a.Role)...)
}

// statementFor returns the statement for this kind of holder. The assignments of
// service accounts have a separate table.
func statementFor(h rolecall.Holder, ofUser, ofAccount string) string {
	if h.IsAccount {
		return ofAccount
	}
	return ofUser
}

// Assignments returns the holder's assignments with their roles, sorted by role id. It
// includes expired assignments.
func (t *Tx) Assignments(h rolecall.Holder) ([]rolecall.Assignment, error) {
	var all []rolecall.Assignment
	_, err := t.q.Query(statementFor(h, selectAssignments, selectServiceAccountRoles), []any{t.tenant, h.ID}, into(&all, assignmentDest))
	for i := range all {
		all[i].Holder = h
	}
	return all, err
}

// Assignment returns the assignment with its role, or ErrNotFound.
func (t *Tx) Assignment(h rolecall.Holder, role rolecall.RoleID) (a rolecall.Assignment, err error) {
	err = t.row(statementFor(h, selectAssignment, selectServiceAccountRole), []any{t.tenant, h.ID, role}, assignmentDest(&a)...)
	a.Holder = h
	return a, err
}

// UpsertAssignment inserts or replaces the assignment. Update returns ErrNotFound if
// the holder or the role does not exist.
func (t *Tx) UpsertAssignment(a rolecall.Assignment) {
	t.q.Exec(statementFor(a.Holder, upsertAssignment, upsertServiceAccountRole), t.tenant, a.Holder.ID, a.Role.ID, departments{&a.Reach}, a.ExpiresAt, a.GrantedBy, a.GrantedAt)
	t.invalidate(a.Holder.ID)
}

// DeleteAssignment deletes the assignment and reports whether it existed.
func (t *Tx) DeleteAssignment(h rolecall.Holder, role rolecall.RoleID) (bool, error) {
	ok, err := t.changed(statementFor(h, deleteAssignment, deleteServiceAccountRole), t.tenant, h.ID, role)
	return t.invalidateIf(ok, err, h.ID)
}

// DeleteAssignments deletes up to limit assignments of the role to users, and returns
// them. The roles of the returned assignments have only the id. DeleteAssignments
// invalidates no cached data, because the deletion of the role has already invalidated
// the tenant.
func (t *Tx) DeleteAssignments(role rolecall.RoleID, limit int) ([]rolecall.Assignment, error) {
	return t.deleteAssignments(selectHolders, deleteAssignments, rolecall.Assignment{Role: rolecall.Role{ID: role}}, limit)
}

// deleteAssignments deletes up to limit assignments of the role of a, in the order of the
// ids of their holders. It deletes a range of ids, because PostgreSQL would evaluate a
// subquery again for each row of the table.
func (t *Tx) deleteAssignments(holders, statement string, a rolecall.Assignment, limit int) ([]rolecall.Assignment, error) {
	var last rolecall.UserID
	_, err := t.q.Query(holders, []any{t.tenant, a.Role.ID, limit}, func(scan func(dest ...any) error) error { return scan(&last) })
	if err != nil || last.IsZero() {
		return nil, err
	}
	var deleted []rolecall.Assignment
	_, err = t.q.Query(statement, []any{t.tenant, a.Role.ID, last}, func(scan func(dest ...any) error) error {
		err := scan(&a.Holder.ID, departments{&a.Reach}, &a.ExpiresAt, &a.GrantedBy, &a.GrantedAt)
		deleted = append(deleted, a)
		return err
	})
	return deleted, err
}

// RoleInUse reports whether a user or service account has an unexpired assignment of
// the role. It also reports true if the role has more than MaxScan assignments.
func (t *Tx) RoleInUse(id rolecall.RoleID, now rolecall.Time) (bool, error) {
	n, err := t.returned(selectRoleInUse, t.tenant, id, now)
	return n > 0, err
}

// LockOwners makes this Update wait for all other Updates of the tenant that call it.
// An Update calls it before it removes an owner, before it makes a decision that depends on
// the assignments of others, and before it counts rows to enforce a limit.
func (t *Tx) LockOwners() { t.q.Exec(lockOwners, t.tenant) }

// Owners returns the number of active users with a permanent assignment of the owner
// role in the whole tenant. It counts to two at most and reads at most MaxScan assignments.
func (t *Tx) Owners() (n int, err error) {
	err = t.row(countOwners, []any{t.tenant, rolecall.OwnerKey, rolecall.Never, string(rolecall.UserActive)}, &n)
	return n, err
}

// grantTable is a table of assignments. The grants of users and those of service accounts
// have separate tables of the same form.
type grantTable struct{ name, holder string }

var (
	grantsOfUsers    = grantTable{"assignments", "user_id"}
	grantsOfAccounts = grantTable{"service_account_roles", "service_account_id"}
)

// covering returns the condition that the column, a JSON array of permissions, contains a
// permission that covers p. It compares whole strings with their quotes. "like" would
// ignore case on SQLite, and would read the _ of a permission as a wildcard.
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

// giving returns SQL conditions. Together, they are true if the assignment a of the role
// o gives the permission of q.
func giving(q *rolecall.AccessQuery) []condition {
	all := []condition{where("a.expires_at > ?", q.Now), where("o.deletion is null"), covering("o.permissions", q.Permission)}
	if !q.Scoped() {
		all = append(all, where("a.departments is null"))
	}
	return all
}

// given returns an SQL condition. It is true if the holder in row r of a list has the
// permission. The case expression makes the database evaluate the conditions only for the
// roles of r.
func (g grantTable) given(q *rolecall.AccessQuery) condition {
	c := condition{sql: "(select max(case when o.id = a.role_id"}
	for _, part := range giving(q) {
		c.sql, c.args = c.sql+" and "+part.sql, append(c.args, part.args...)
	}
	c.sql += " then 1 end) from " + g.name + " a cross join roles o where a.tenant_id = $1 and a." + g.holder +
		" = r.id and o.tenant_id = $1 and o.id = a.role_id) = 1"
	return c
}

// source returns the holders of the roles that give the permission as the source of a
// list. It returns false if more than MaxLimit roles give it.
func (g grantTable) source(t *Tx, q *rolecall.AccessQuery) (s source, ok bool, err error) {
	roles, err := t.Roles(rolecall.RoleQuery{Permission: &q.Permission, Limit: rolecall.MaxLimit})
	if err != nil || roles.Next != nil {
		return source{}, false, err
	}
	ids := make([]rolecall.RoleID, 1, len(roles.Items)+1) // starts with the zero id, which no role has, because the list must not be empty
	for _, role := range roles.Items {
		ids = append(ids, role.ID)
	}
	return source{table: g.name, id: g.holder, conditions: []condition{oneOf("role_id", ids)}}, true, nil
}

// UsersWithAccess returns a page of the users that q selects. It reads a bounded number
// of rows. It reads the holders of the roles that give the permission if they are few.
// Otherwise it scans the users.
func (t *Tx) UsersWithAccess(q rolecall.AccessQuery) (rolecall.Page[rolecall.User], error) {
	if q.Within.IsNowhere() {
		return rolecall.Page[rolecall.User]{}, nil
	}
	within := rolecall.UserQuery{Within: q.Within}
	l := &listing[rolecall.User]{
		tx: t, table: "users", columns: userColumns, dest: userDest,
		id:    func(u *rolecall.User) rolecall.AnyID { return rolecall.AnyID(u.ID) },
		after: q.After, limit: q.Limit,
		conditions: append(userConditions(&within), grantsOfUsers.given(&q)),
	}
	var candidates []source
	l.indexScan, candidates = userSources(&within)
	return l.serveGranted(grantsOfUsers, &q, candidates)
}

// ServiceAccountsWithAccess returns a page of the service accounts that q selects. It
// reads a bounded number of rows. Service accounts have no department, so Within does not
// restrict them.
func (t *Tx) ServiceAccountsWithAccess(q rolecall.AccessQuery) (rolecall.Page[rolecall.ServiceAccount], error) {
	l := &listing[rolecall.ServiceAccount]{
		tx: t, table: "service_accounts", columns: serviceAccountColumns, dest: serviceAccountDest,
		id:    func(a *rolecall.ServiceAccount) rolecall.AnyID { return rolecall.AnyID(a.ID) },
		after: q.After, limit: q.Limit,
		indexScan:  source{table: "service_accounts", id: "id"},
		conditions: []condition{grantsOfAccounts.given(&q)},
	}
	return l.serveGranted(grantsOfAccounts, &q, nil)
}

// serveGranted returns a page of the list of holders. It adds the holders of the roles
// that give the permission as a candidate for the source of the page.
func (l *listing[T]) serveGranted(g grantTable, q *rolecall.AccessQuery, candidates []source) (rolecall.Page[T], error) {
	s, ok, err := g.source(l.tx, q)
	if err != nil {
		return rolecall.Page[T]{}, err
	}
	if ok {
		candidates = append(candidates, s)
	}
	return l.serve(candidates, false)
}

// AccessAssignments returns the assignments that give these users the permission of q, in no
// particular order.
func (t *Tx) AccessAssignments(q rolecall.AccessQuery, users []rolecall.UserID) ([]rolecall.Assignment, error) {
	return among(t, selectGrants(grantsOfUsers), "a.user_id", users, assignmentDest, giving(&q)...)
}

// AccountAccessAssignments is AccessAssignments for service accounts.
func (t *Tx) AccountAccessAssignments(q rolecall.AccessQuery, accounts []rolecall.ServiceAccountID) ([]rolecall.Assignment, error) {
	all, err := among(t, selectGrants(grantsOfAccounts), "a.service_account_id", accounts, assignmentDest, giving(&q)...)
	for i := range all {
		all[i].Holder.IsAccount = true
	}
	return all, err
}

func selectGrants(g grantTable) string {
	return "select a." + g.holder + ", " + heldColumns + " from " + g.name +
		" a cross join roles o where a.tenant_id = $1 and o.tenant_id = $1 and o.id = a.role_id"
}
