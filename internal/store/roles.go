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

	updateRole = `update roles set name = $1, name_key = $2, words = $3, description = $4, permissions = $5, grants = $6,
			updated_at = $7, version = $8
		where tenant_id = $9 and id = $10 and version = $11 and deletion is null returning version`

	deleteRole = `delete from roles where tenant_id = $1 and id = $2 and version = $3 and deletion is null returning version`

	// hideRole frees the name and the key for new roles. The replacement name begins with
	// a space, which no valid name does.
	hideRole = `update roles set "key" = null, name_key = $1, deletion = $2
		where tenant_id = $3 and id = $4 and version = $5 and deletion is null returning version`

	// The event may have been purged. Then its type is empty.
	selectHiddenRole = `select r.id, coalesce(e.type, ''), coalesce(e.actor_type, ''), e.actor_id, coalesce(e.actor_via, ''), e.actor_token,
			coalesce(e.request_id, ''), e.session_id, coalesce(e.source, '')
		from roles r left join events e on e.tenant_id = r.tenant_id and e.id = r.deletion
		where r.tenant_id = $1 and r.deletion is not null order by r.id limit 1`

	deleteHiddenRole = `delete from roles where tenant_id = $1 and id = $2 and deletion is not null`
)

func roleDest(r *rolecall.Role) []any {
	return []any{&r.ID, &r.Key, &r.Name, &r.Description, asJSON(&r.Permissions), asJSON(&r.Grants), (*flag)(&r.System),
		&r.CreatedAt, &r.UpdatedAt, &r.Version}
}

// RoleByID returns the role, or ErrNotFound.
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
	return among(t, selectRoles, "r.id", ids, roleDest)
}

// among returns the rows of the selection whose column has one of the ids and that meet
// the conditions, in no particular order.
func among[T, ID any](t *Tx, selection, column string, ids []ID, dest func(*T) []any, conditions ...condition) ([]T, error) {
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

// nameWords returns the words of a name in the form of the words column of roles and
// service accounts.
func nameWords(name string) string { return words(rolecall.Words(name)).text() }

// nameWord returns an SQL condition that is true if the name has a word that begins with
// word.
func nameWord(word string) condition { return where("r.words like ?", "% "+word+"%") }

// InsertRole inserts a role. Update returns ErrRoleNameTaken or ErrRoleKeyTaken on a
// conflict.
func (t *Tx) InsertRole(r rolecall.Role) {
	t.q.Exec(insertRole, t.tenant, r.ID, r.Key, r.Name, r.NameKey(), nameWords(r.Name), r.Description,
		asJSON(&r.Permissions), asJSON(&r.Grants), flag(r.System), r.CreatedAt, r.UpdatedAt, r.Version)
}

// UpdateRole replaces old with changed. It reports false if the stored version differs
// from that of old. Update returns the same errors as for InsertRole. It invalidates the
// tenant, because any user can have the role.
func (t *Tx) UpdateRole(old, changed rolecall.Role) (bool, error) {
	ok, err := t.updateVersioned(updateRole, old.ID, old.Version, changed.Name, changed.NameKey(), nameWords(changed.Name), changed.Description,
		asJSON(&changed.Permissions), asJSON(&changed.Grants), changed.UpdatedAt, changed.Version)
	return t.invalidateIf(ok, err, t.tenant)
}

// DeleteRole deletes the role with its assignments, and invalidates the tenant. It
// reports false if the stored version differs from that of r. It deletes all assignments at
// once. For roles with many assignments, use HideRole.
func (t *Tx) DeleteRole(r rolecall.Role) (bool, error) {
	ok, err := t.updateVersioned(deleteRole, r.ID, r.Version)
	return t.invalidateIf(ok, err, t.tenant)
}

// HideRole is DeleteRole for a role with many assignments. After HideRole, only
// HiddenRole finds the role, and only the methods that delete the assignments of a role
// find its assignments. The argument deletion is the id of the event of the deletion.
func (t *Tx) HideRole(r rolecall.Role, deletion rolecall.EventID) (bool, error) {
	ok, err := t.updateVersioned(hideRole, r.ID, r.Version, " "+r.ID.String(), deletion)
	return t.invalidateIf(ok, err, t.tenant)
}

// HiddenRole returns a hidden role and the event of its deletion, or ErrNotFound. The
// event has only the type, the actor and the request. It is empty if it was purged.
func (t *Tx) HiddenRole() (id rolecall.RoleID, deletion rolecall.Event, err error) {
	e := &deletion
	err = t.row(selectHiddenRole, []any{t.tenant}, &id, &e.Type, &e.Actor.Type, &e.Actor.ID, &e.Actor.Via, &e.Actor.Token,
		&e.RequestID, &e.SessionID, &e.Source)
	return id, deletion, err
}

// DeleteHiddenRole deletes a hidden role with its remaining assignments.
func (t *Tx) DeleteHiddenRole(id rolecall.RoleID) { t.q.Exec(deleteHiddenRole, t.tenant, id) }
