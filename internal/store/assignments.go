package store

import (
	"database/sql/driver"
	"errors"

	"github.com/rolecall/rolecall"
)

const (
	assignmentColumns = `a.user_id, ` + heldColumns

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

	selectAssignments = `select ` + assignmentColumns + `
		from assignments a join roles o on o.tenant_id = a.tenant_id and o.id = a.role_id and o.deletion is null
		where a.tenant_id = $1 and a.user_id = $2 order by a.role_id`

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
	return append([]any{&a.Holder.ID, departments{&a.Reach}, &a.ExpiresAt, &a.GrantedBy, &a.GrantedAt}, roleDest(&a.Role)...)
}

// ErrManyPermissions is returned if the roles of a holder have more permissions than the caller wants to read.
var ErrManyPermissions = errors.New("store: the roles have more permissions than the limit")

// heldRoles are the assignments of one holder that a statement reads.
type heldRoles struct {
	all   []rolecall.Assignment
	limit int // of the permissions of all roles
}

// add adds an assignment that was read. It ignores the zero assignment, which a left join returns for a
// holder without roles. It returns ErrManyPermissions if the limit is exceeded.
func (h *heldRoles) add(a *rolecall.Assignment) error {
	if a.Role.ID.IsZero() {
		return nil
	}
	if h.limit -= len(a.Role.Permissions) + len(a.Role.Grants); h.limit < 0 {
		return ErrManyPermissions
	}
	h.all = append(h.all, *a)
	return nil
}

// statementFor returns ofAccount if the holder is a service account, otherwise ofUser.
// Users and service accounts have separate tables of assignments.
func statementFor(h rolecall.Holder, ofUser, ofAccount string) string {
	if h.IsAccount {
		return ofAccount
	}
	return ofUser
}

// Assignments returns all assignments of the holder with their roles, sorted by role id.
// The result includes expired assignments.
func (t *Tx) Assignments(h rolecall.Holder) ([]rolecall.Assignment, error) {
	var all []rolecall.Assignment
	_, err := t.q.Query(statementFor(h, selectAssignments, selectServiceAccountRoles), []any{t.tenant, h.ID}, into(&all, assignmentDest))
	for i := range all {
		all[i].Holder = h
	}
	return all, err
}

// Assignment returns the holder's assignment of the role, with the role. It returns
// ErrNotFound if the assignment does not exist, or if the role is being deleted. An expired assignment still exists.
func (t *Tx) Assignment(h rolecall.Holder, role rolecall.RoleID) (a rolecall.Assignment, err error) {
	err = t.row(statementFor(h, selectAssignment, selectServiceAccountRole), []any{t.tenant, h.ID, role}, assignmentDest(&a)...)
	a.Holder = h
	return a, err
}

// CountAssignments returns the number of assignments of the holder, with the expired ones, and the number of
// departments in them. It counts at most AssignmentsMax assignments.
func (t *Tx) CountAssignments(h rolecall.Holder) (n, departmentsOfAll int, err error) {
	_, err = t.q.Query(statementFor(h, countAssignments, countServiceAccountRoles), []any{t.tenant, h.ID, rolecall.AssignmentsMax}, func(scan func(dest ...any) error) error {
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
	if !a.Holder.IsAccount {
		t.q.Exec(endAssignment, a.GrantedAt, t.tenant, a.Holder.ID, a.Role.ID)
	}
	t.q.Exec(statementFor(a.Holder, upsertAssignment, upsertServiceAccountRole), t.tenant, a.Holder.ID, a.Role.ID, departments{&a.Reach}, a.ExpiresAt, a.GrantedBy, a.GrantedAt)
	t.invalidate(a.Holder.ID)
}

// DeleteAssignment deletes the holder's assignment of the role at the time and reports whether
// the assignment existed.
func (t *Tx) DeleteAssignment(h rolecall.Holder, role rolecall.RoleID, at rolecall.Time) (bool, error) {
	if !h.IsAccount {
		t.q.Exec(endAssignment, at, t.tenant, h.ID, role)
	}
	ok, err := t.changed(statementFor(h, deleteAssignment, deleteServiceAccountRole), t.tenant, h.ID, role)
	return t.invalidateIf(ok, err, h.ID)
}

// DeleteAssignments deletes up to limit assignments of the role to users, which end at the
// time, and returns the deleted assignments. In their Role, only the id is set. DeleteAssignments invalidates no
// cached data, because HideRole has already invalidated the cached data of the tenant.
func (t *Tx) DeleteAssignments(role rolecall.RoleID, at rolecall.Time, limit int) ([]rolecall.Assignment, error) {
	return t.deleteAssignments(selectHolders, deleteAssignments, rolecall.Assignment{Role: rolecall.Role{ID: role}}, at, limit)
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
	if !a.Holder.IsAccount {
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

// RoleInUse reports whether a user or a service account has an assignment of the role that
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

// grantTable describes a table of assignments: its name, and its column with the id of the
// holder. There is one such table for users and one for service accounts.
type grantTable struct{ name, holder string }

var (
	grantsOfUsers    = grantTable{"assignments", "user_id"}
	grantsOfAccounts = grantTable{"service_account_roles", "service_account_id"}
)

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
func (g grantTable) given(q *rolecall.AccessQuery) condition {
	c := condition{sql: "(select max(case when o.id = a.role_id"}
	for _, part := range giving(q) {
		c.sql, c.args = c.sql+" and "+part.sql, append(c.args, part.args...)
	}
	c.sql += " then 1 end) from " + g.name + " a cross join roles o where a.tenant_id = $1 and a." + g.holder +
		" = r.id and o.tenant_id = $1 and o.id = a.role_id) = 1"
	return c
}

// source returns the source that contains all holders of the roles with the permission of
// q. It returns ok = false if more than MaxLimit roles have the permission.
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
		conditions: append(userConditions(&within), grantsOfUsers.given(&q)),
	}
	var candidates []source
	l.indexScan, candidates = userSources(&within)
	return l.serveGranted(grantsOfUsers, &q, candidates)
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
		conditions: []condition{grantsOfAccounts.given(&q)},
	}
	return l.serveGranted(grantsOfAccounts, &q, nil)
}

// serveGranted returns a page of a list of holders. It adds one candidate for the source
// of the page: the holders of the roles with the permission of q.
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

// AccessAssignments returns the assignments that give the permission of q to one of the users, sorted by
// the id of the user and then of the role. Of a role, only the id, the key, the name and the permissions
// that cover the one of q are set. The result full is true if the assignments of all users would be larger than
// a page. Then it has those of the first users, and all of these users, but at least those of one user.
func (t *Tx) AccessAssignments(q rolecall.AccessQuery, users []rolecall.UserID) (all []rolecall.Assignment, full bool, err error) {
	return accessAssignments(t, grantsOfUsers, &q, users)
}

// AccountAccessAssignments does for service accounts what AccessAssignments does for users.
func (t *Tx) AccountAccessAssignments(q rolecall.AccessQuery, accounts []rolecall.ServiceAccountID) (all []rolecall.Assignment, full bool, err error) {
	all, full, err = accessAssignments(t, grantsOfAccounts, &q, accounts)
	for i := range all {
		all[i].Holder.IsAccount = true
	}
	return all, full, err
}

func accessAssignments[ID any](t *Tx, g grantTable, q *rolecall.AccessQuery, holders []ID) (all []rolecall.Assignment, full bool, err error) {
	if len(holders) == 0 {
		return nil, false, nil
	}
	first, size := 0, 0 // of the assignments of the current holder, and of all
	covering := q.Permission.CoveredBy()
	rows, err := selectGrants(t, g, q, covering, holders).query(t.q, func(scan func(dest ...any) error) error {
		if full {
			return nil
		}
		var a rolecall.Assignment
		var has string
		if err := scan(&a.Holder.ID, departments{&a.Reach}, &a.ExpiresAt, &a.GrantedBy, &a.GrantedAt, &a.Role.ID, &a.Role.Key, &a.Role.Name, &has); err != nil {
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
	return all, full, err
}

// selectGrants builds the statement of accessAssignments. Its last column has a 1 for each of the covering
// permissions that the role has, and a 0 for each of the others. It names the tenant, because the
// placeholders must begin with $1.
func selectGrants[ID any](t *Tx, g grantTable, q *rolecall.AccessQuery, covering []rolecall.Permission, holders []ID) *builder {
	b := newBuilder(t.tenant)
	b.write("select a." + g.holder + `, a.departments, a.expires_at, a.granted_by, a.granted_at, o.id, o."key", o.name`)
	for i, p := range covering {
		b.write([]string{", ", " || "}[min(i, 1)]+"case when o.tenant_id = $1 and replace(o.permissions, ?, '') <> o.permissions then '1' else '0' end", `"`+p.String()+`"`)
	}
	b.write(" from " + g.name + " a cross join roles o where a.tenant_id = $1 and o.tenant_id = $1 and o.id = a.role_id")
	b.all(append(giving(q), oneOf("a."+g.holder, holders)))
	b.write(" order by a." + g.holder + ", a.role_id")
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

	startAssignments = `update assignments set started_at = $1 where tenant_id = $2 and user_id = $3`

	selectHistoryBegin = `select min(applied_at) from compatibility` // only this migration and later ones have a time

	selectCurrentAt = `select ` + assignmentColumns + `, o.deletion
		from assignments a join roles o on o.tenant_id = a.tenant_id and o.id = a.role_id
		where a.tenant_id = $1 and a.user_id = $2 and coalesce(a.started_at, a.granted_at) <= $3 and a.expires_at > $3 order by a.role_id`

	selectPastAt = `select p.user_id, p.role_id, coalesce(o."key", p.role_key), coalesce(o.name, p.role_name), p.departments, p.expires_at, p.granted_by, p.granted_at
		from past_assignments p left join roles o on o.tenant_id = p.tenant_id and o.id = p.role_id and o.deletion is null
		where p.tenant_id = $1 and p.user_id = $2 and p.started_at <= $3 and p.ended_at > $3 and p.expires_at > $3 order by p.role_id`

	selectPastRole = `select 1 from past_assignments where tenant_id = $1 and role_id = $2 limit 1`
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
	return all, err
}

// HadHolders reports whether a past assignment of the role is recorded.
func (t *Tx) HadHolders(role rolecall.RoleID) (bool, error) {
	n, err := t.countRows(selectPastRole, t.tenant, role)
	return n > 0, err
}

// heldAt returns an SQL condition that is true if the user r had the role at the time.
func heldAt(role rolecall.RoleID, at rolecall.Time) condition {
	// Each part is compared with a value. With "exists", PostgreSQL might read all holders of the role to
	// hash them.
	current := where("(select 1 from assignments a join roles o on o.tenant_id = a.tenant_id and o.id = a.role_id"+
		" where a.tenant_id = $1 and a.user_id = r.id and a.role_id = ? and coalesce(a.started_at, a.granted_at) <= ? and a.expires_at > ?"+
		" and (o.deletion is null or o.deletion > ?)) = 1", role, at, at, rolecall.FirstID[rolecall.Event](at))
	past := where("(select max(p.ended_at) from past_assignments p where p.tenant_id = $1 and p.user_id = r.id and p.role_id = ?"+
		" and p.started_at <= ? and p.expires_at > ?) > ?", role, at, at, at)
	return condition{"(" + current.sql + " or " + past.sql + ")", append(current.args, past.args...)}
}

// heldSource is the source with all users who have the role or had it.
func heldSource(role rolecall.RoleID) source {
	return source{
		table: "(select tenant_id, role_id, user_id from assignments union all select tenant_id, role_id, user_id from past_assignments) h",
		id:    "user_id", conditions: []condition{where("role_id = ?", role)},
	}
}

// InsertAssignments inserts many assignments with few statements. The same Update must
// insert their users, because InsertAssignments invalidates no cached data. Update returns
// ErrNotFound if a user or a role does not exist.
func (t *Tx) InsertAssignments(assignments []rolecall.Assignment) {
	insertRows(t, insertAssignments, assignments, func(b *builder, a rolecall.Assignment) {
		b.write("($1, ?, ?, ?, ?, ?, ?)", a.Holder.ID, a.Role.ID, departments{&a.Reach}, a.ExpiresAt, a.GrantedBy, a.GrantedAt)
	})
}
