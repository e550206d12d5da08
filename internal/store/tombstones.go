package store

import (
	"github.com/rolecall/rolecall"
)

const (
	tombstoneColumns = `r.id, r.deleted_at, r.content`

	selectTombstones = `select ` + tombstoneColumns + ` from tombstones r where r.tenant_id = $1`

	insertTombstone = `insert into tombstones (tenant_id, user_id, id, deleted_at, department, department_key, content)
		values ($1, $2, $3, $4, $5, $6, $7)`

	takeTombstone = `delete from tombstones where tenant_id = $1 and user_id = $2 and deleted_at > $3
		returning id, deleted_at, content`
)

// tombstone is how a tombstone is stored.
type tombstone struct {
	User        rolecall.User     `json:"user"`
	Version     int64             `json:"version"`
	Assignments []tombstoneHolder `json:"assignments"`
}

type tombstoneHolder struct {
	RoleID      rolecall.RoleID `json:"roleId"`
	Departments []string        `json:"departments,omitempty"` // none: everywhere
	ExpiresAt   int64           `json:"expiresAt"`             // microseconds, as in the table
	GrantedBy   rolecall.UserID `json:"grantedBy,omitzero"`
	GrantedAt   int64           `json:"grantedAt"`
}

// insertTombstone keeps what a restore needs of the user.
func (t *Tx) insertTombstone(u rolecall.User, assignments []rolecall.Assignment, at rolecall.Time) {
	content := tombstone{User: u, Version: u.Version}
	for _, a := range assignments {
		content.Assignments = append(content.Assignments, tombstoneHolder{
			a.Role.ID, a.Reach.Departments(), int64(a.ExpiresAt), a.GrantedBy, int64(a.GrantedAt),
		})
	}
	t.q.Exec(insertTombstone, t.tenant, u.ID, rolecall.NewID[rolecall.Tombstone](at), at, u.Department, u.DepartmentKey(), asJSON(&content))
}

func (stored *tombstone) restorable() (u rolecall.User, assignments []rolecall.Assignment) {
	u = stored.User
	u.Version = stored.Version
	for _, h := range stored.Assignments {
		a := rolecall.Assignment{
			Holder: rolecall.HolderOf(u.ID), Role: rolecall.Role{ID: h.RoleID}, Reach: rolecall.Everywhere(),
			ExpiresAt: rolecall.Time(h.ExpiresAt), GrantedBy: h.GrantedBy, GrantedAt: rolecall.Time(h.GrantedAt),
		}
		if h.Departments != nil {
			a.Reach = rolecall.Within(h.Departments...)
		}
		assignments = append(assignments, a)
	}
	return u, assignments
}

// TakeTombstone deletes the tombstone of the user and returns it. It returns
// ErrNotFound if the user was not deleted after since.
func (t *Tx) TakeTombstone(id rolecall.UserID, since rolecall.Time) (taken rolecall.Tombstone, err error) {
	var stored tombstone
	err = t.row(takeTombstone, []any{t.tenant, id, since}, &taken.ID, &taken.DeletedAt, asJSON(&stored))
	taken.User, taken.Assignments = stored.restorable()
	return taken, err
}

// tombstoneRow is a tombstone as it is read.
type tombstoneRow struct {
	rolecall.Tombstone
	stored tombstone
}

func tombstoneDest(r *tombstoneRow) []any { return []any{&r.ID, &r.DeletedAt, asJSON(&r.stored)} }

// tombstonesOf returns the tombstones of the rows.
func tombstonesOf(rows []tombstoneRow) []rolecall.Tombstone {
	list := make([]rolecall.Tombstone, len(rows))
	for i := range rows {
		list[i] = rows[i].Tombstone
		list[i].User, list[i].Assignments = rows[i].stored.restorable()
	}
	return list
}

// TombstonesByUser returns the tombstones of the users that were deleted after
// since, in no particular order.
func (t *Tx) TombstonesByUser(ids []rolecall.UserID, since rolecall.Time) ([]rolecall.Tombstone, error) {
	rows, err := among(t, selectTombstones, "r.user_id", ids, tombstoneDest, where("r.deleted_at > ?", since))
	return tombstonesOf(rows), err
}

// Tombstones returns a page of the tombstones that q selects, the last deleted
// first, in bounded work.
func (t *Tx) Tombstones(q rolecall.TombstoneQuery) (rolecall.Page[rolecall.Tombstone], error) {
	if q.Within.IsNowhere() {
		return rolecall.Page[rolecall.Tombstone]{}, nil
	}
	l := &listing[tombstoneRow]{
		tx: t, table: "tombstones", columns: tombstoneColumns, dest: tombstoneDest,
		id:   func(r *tombstoneRow) rolecall.AnyID { return rolecall.AnyID(r.ID) },
		desc: true, after: q.After, limit: q.Limit, walk: source{table: "tombstones", id: "id"},
		conditions: []condition{where("r.deleted_at > ?", q.Since)},
	}
	if !q.Within.IsEverywhere() {
		l.conditions = append(l.conditions, inReach(q.Within))
	}
	rows, err := l.page(nil)
	return rolecall.Page[rolecall.Tombstone]{Items: tombstonesOf(rows.Items), Next: rows.Next}, err
}
