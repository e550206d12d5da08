package store

import (
	"slices"

	"github.com/rolecall/rolecall"
)

const (
	roleColumns = `r.id, r."key", r.name, r.description, r.permissions, r.grants, r.system, r.created_at, r.updated_at, r.version`

	selectRoles = `select ` + roleColumns + ` from roles r where r.tenant_id = $1 and r.deletion is null`

	selectRole = selectRoles + ` and r.id = $2`

	selectRoleByKey = selectRoles + ` and r."key" = $2`

	insertRole = `insert into roles (tenant_id, id, "key", name, name_key, words, description, permissions, grants,
			system, created_at, updated_at, version)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)`

	updateRole = `update roles set name = $1, name_key = case when name = $1 then name_key else $2 end, words = $3, description = $4, permissions = $5, grants = $6,
			updated_at = $7, version = $8
		where tenant_id = $9 and id = $10 and version = $11 and deletion is null returning version`

	deleteRole = `delete from roles where tenant_id = $1 and id = $2 and version = $3 and deletion is null returning version`

	// hideRole makes the name and the key of the role available to other roles. It
	// replaces the name with one that begins with a space, which a valid name cannot do.
	hideRole = `update roles set "key" = null, name_key = $1, deletion = $2
		where tenant_id = $3 and id = $4 and version = $5 and deletion is null returning version`

	// If the event was purged, its type is empty.
	selectHiddenRole = `select r.id, r.deletion, coalesce(e.type, ''), coalesce(e.actor_type, ''), e.actor_id, coalesce(e.actor_via, ''), e.actor_token,
			coalesce(e.request_id, ''), e.session_id, coalesce(e.source, '')
		from roles r left join events e on e.tenant_id = r.tenant_id and e.id = r.deletion
		where r.tenant_id = $1 and r.deletion is not null order by r.id limit 1`

	releaseRoleName = `update roles set name_key = $1 where tenant_id = $2 and name_key = (
		select min(name_key) from roles where tenant_id = $2 and name_key > $3 and name_key < $4)`

	deleteHiddenRole = `delete from roles where tenant_id = $1 and id = $2 and deletion is not null`
)

func roleDest(r *rolecall.Role) []any {
	return []any{&r.ID, &r.Key, &r.Name, &r.Description, asJSON(&r.Permissions), asJSON(&r.Grants), (*flag)(&r.System),
		&r.CreatedAt, &r.UpdatedAt, &r.Version}
}

// RoleByID returns the role with this id, or ErrNotFound.
func (t *Tx) RoleByID(id rolecall.RoleID) (r rolecall.Role, err error) {
	err = t.row(selectRole, []any{t.tenant, id}, roleDest(&r)...)
	return r, err
}

// RoleByKey returns the role with this key, or ErrNotFound.
func (t *Tx) RoleByKey(key string) (r rolecall.Role, err error) {
	err = t.row(selectRoleByKey, []any{t.tenant, key}, roleDest(&r)...)
	return r, err
}

// RolesByID returns the roles with these ids that exist, in no particular order.
func (t *Tx) RolesByID(ids []rolecall.RoleID) ([]rolecall.Role, error) {
	return byIDs(t, selectRoles, "r.id", ids, roleDest)
}

// byIDs returns the rows of the selection that meet the conditions and have one of the ids
// in the column. The rows are in no particular order.
func byIDs[T, ID any](t *Tx, selection, column string, ids []ID, dest func(*T) []any, conditions ...condition) ([]T, error) {
	var rows []T
	for chunk := range slices.Chunk(ids, rowsAtOnce) {
		b := newBuilder(t.tenant)
		b.write(selection)
		b.all(append(conditions[:len(conditions):len(conditions)], oneOf(column, chunk)))
		if _, err := b.query(t.q, into(&rows, dest)); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// Roles returns a page of the roles that q selects. It reads a bounded number of rows.
func (t *Tx) Roles(q rolecall.RoleQuery) (rolecall.Page[rolecall.Role], error) {
	l := &listing[rolecall.Role]{
		tx: t, table: "roles", columns: roleColumns, dest: roleDest,
		id:   func(r *rolecall.Role) rolecall.AnyID { return rolecall.AnyID(r.ID) },
		desc: q.Desc, after: q.After, limit: q.Limit,
		indexScan: source{table: "roles", id: "id"}, common: []condition{where("r.deletion is null")},
	}
	if q.ByName {
		l.key = "name_key"
	}
	for _, word := range q.Words {
		l.conditions = append(l.conditions, nameWord(word))
	}
	if q.Permission != nil {
		l.conditions = append(l.conditions, covering("r.permissions", *q.Permission))
	}
	var candidates []source
	if q.Key != "" {
		l.conditions = append(l.conditions, where(`r."key" = ?`, q.Key))
		candidates = []source{{table: "roles", id: "id", conditions: []condition{where(`"key" = ?`, q.Key)}}}
	}
	return l.serve(candidates, q.Count)
}

// NameWords returns the search words of a name, in the form in which the column words of
// roles and service accounts contains them.
func NameWords(name string) string { return Words(rolecall.WordsToFind(name)).Text() }

// nameWord returns an SQL condition that is true if the name of the row r has a word that
// begins with word.
func nameWord(word string) condition { return where("r.words like ?", "% "+word+"%") }

// InsertRole inserts a role. Update returns ErrRoleNameTaken or ErrRoleKeyTaken if another
// role of the tenant has the name or the key.
func (t *Tx) InsertRole(r rolecall.Role) {
	t.q.Exec(insertRole, t.tenant, r.ID, r.Key, r.Name, r.NameKey(), NameWords(r.Name), r.Description,
		asJSON(&r.Permissions), asJSON(&r.Grants), flag(r.System), r.CreatedAt, r.UpdatedAt, r.Version)
}

// UpdateRole stores changed in place of old. It returns false if the stored version is not
// old.Version, or if the role does not exist. Update returns ErrRoleNameTaken if another
// role has the new name. UpdateRole invalidates all cached data of the tenant, because any
// user can have the role.
func (t *Tx) UpdateRole(old, changed rolecall.Role) (bool, error) {
	ok, err := t.updateVersioned(updateRole, old.ID, old.Version, changed.Name, changed.NameKey(), NameWords(changed.Name), changed.Description,
		asJSON(&changed.Permissions), asJSON(&changed.Grants), changed.UpdatedAt, changed.Version)
	if ok && old.NameKey() != changed.NameKey() {
		t.releaseName(releaseRoleName, old.NameKey())
	}
	return t.invalidateIf(ok, err, t.tenant)
}

// releaseName runs a statement that gives the key, which a row of the table had, to the oldest row with a Duplicate of
// it. So a new name is compared with those rows, too. Only a migration makes such rows.
func (t *Tx) releaseName(statement, key string) {
	after, before := rolecall.Duplicates(key)
	t.q.Exec(statement, key, t.tenant, after, before)
}

// DeleteRole deletes the role and all its assignments in one statement, and invalidates
// all cached data of the tenant. It returns false if the stored version is not r.Version,
// or if the role does not exist. For a role with many assignments, use HideRole.
func (t *Tx) DeleteRole(r rolecall.Role) (bool, error) {
	ok, err := t.updateVersioned(deleteRole, r.ID, r.Version)
	if ok {
		t.releaseName(releaseRoleName, r.NameKey())
	}
	return t.invalidateIf(ok, err, t.tenant)
}

// HideRole makes the role disappear at once, so that its many assignments can be deleted
// later, step by step. Like DeleteRole, it invalidates all cached data of the tenant, and
// returns false if the version differs or the role does not exist. From then on, only
// HiddenRole finds the role. Only DeleteAssignments and DeleteServiceAccountRoles find its
// assignments. The argument deletion is the id of the event that records the deletion.
func (t *Tx) HideRole(r rolecall.Role, deletion rolecall.EventID) (bool, error) {
	ok, err := t.updateVersioned(hideRole, r.ID, r.Version, " "+r.ID.String(), deletion)
	if ok {
		t.releaseName(releaseRoleName, r.NameKey())
	}
	return t.invalidateIf(ok, err, t.tenant)
}

// HiddenRole returns the id of a hidden role and the event that records its deletion. It
// returns ErrNotFound if the tenant has no hidden role. Of the event, only the id, the
// type, the actor and the data of the request are set. If the event was purged, only the id is
// set.
func (t *Tx) HiddenRole() (id rolecall.RoleID, deletion rolecall.Event, err error) {
	e := &deletion
	err = t.row(selectHiddenRole, []any{t.tenant}, &id, &e.ID, &e.Type, &e.Actor.Type, &e.Actor.ID, &e.Actor.Via, &e.Actor.Token,
		&e.RequestID, &e.SessionID, &e.Source)
	return id, deletion, err
}

// DeleteHiddenRole deletes the hidden role and its remaining assignments.
func (t *Tx) DeleteHiddenRole(id rolecall.RoleID) { t.q.Exec(deleteHiddenRole, t.tenant, id) }
