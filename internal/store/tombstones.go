package store

import (
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/rolecall/rolecall"
)

const (
	// deletedColumns has the beginning of the content, which is long enough for the largest user. The
	// assignments after it can have megabytes.
	deletedColumns = `r.id, r.deleted_at, substr(r.content, 1, 65536)`

	selectDeleted = `select ` + deletedColumns + ` from tombstones r where r.tenant_id = $1`

	selectTombstone = `select r.id, r.deleted_at, r.content from tombstones r where r.tenant_id = $1 and r.user_id = $2 and r.deleted_at > $3`

	insertTombstone = `insert into tombstones (tenant_id, user_id, id, deleted_at, department, department_key, content)
		values ($1, $2, $3, $4, $5, $6, $7)`

	deleteTombstone = `delete from tombstones where tenant_id = $1 and user_id = $2 and deleted_at > $3
		returning id, deleted_at, content`
)

// tombstone is the JSON content of a row of the table tombstones: a deleted user with the
// user's groups and direct assignments, which must be the last members.
type tombstone struct {
	User        rolecall.User      `json:"user"`
	Version     int64              `json:"version"`
	Groups      []rolecall.GroupID `json:"groups,omitempty"`
	Assignments []tombstoneHolder  `json:"assignments"`
}

type tombstoneHolder struct {
	RoleID      rolecall.RoleID `json:"roleId"`
	Departments []string        `json:"departments,omitempty"` // empty for the whole tenant
	ExpiresAt   int64           `json:"expiresAt"`             // microseconds, as in the table
	GrantedBy   rolecall.UserID `json:"grantedBy,omitzero"`
	GrantedAt   int64           `json:"grantedAt"`
}

// insertTombstone stores the data that is needed to restore the deleted user.
func (t *Tx) insertTombstone(u rolecall.User, assignments []rolecall.Assignment, memberships []rolecall.Membership, at rolecall.Time) {
	content := tombstone{User: u, Version: u.Version}
	for _, m := range memberships {
		content.Groups = append(content.Groups, m.Group.ID)
	}
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

// Tombstone returns the tombstone of the user. It returns ErrNotFound if the tombstone does not exist,
// or if the user was not deleted after since.
func (t *Tx) Tombstone(id rolecall.UserID, since rolecall.Time) (rolecall.Tombstone, error) {
	return t.tombstone(selectTombstone, id, since)
}

// DeleteTombstone deletes the tombstone of the user and returns it. It returns ErrNotFound
// if the tombstone does not exist, or if the user was not deleted after since.
func (t *Tx) DeleteTombstone(id rolecall.UserID, since rolecall.Time) (rolecall.Tombstone, error) {
	return t.tombstone(deleteTombstone, id, since)
}

func (t *Tx) tombstone(statement string, id rolecall.UserID, since rolecall.Time) (found rolecall.Tombstone, err error) {
	var stored tombstone
	err = t.row(statement, []any{t.tenant, id, since}, &found.ID, &found.DeletedAt, asJSON(&stored))
	found.User, found.Assignments = stored.restorable()
	found.Groups = stored.Groups
	return found, err
}

// deletedUser reads a user from the beginning of the content of a tombstone.
type deletedUser struct{ user *rolecall.User }

// Scan reads the members before the assignments (sql.Scanner).
func (d deletedUser) Scan(src any) error {
	text, ok := src.(string)
	if !ok {
		return fmt.Errorf("store: cannot read a deleted user from %T", src)
	}
	decoder := jsontext.NewDecoder(strings.NewReader(text))
	_, err := decoder.ReadToken()
	for _, member := range []any{d.user, &d.user.Version} { // in the order of the type tombstone
		if err == nil {
			_, err = decoder.ReadToken()
		}
		if err == nil {
			err = json.UnmarshalDecode(decoder, member)
		}
	}
	return err
}

func deletedDest(d *rolecall.Tombstone) []any {
	return []any{&d.ID, &d.DeletedAt, deletedUser{&d.User}}
}

// TombstonesByUser returns the tombstones of the users with these ids, without their assignments, in no
// particular order. It omits users who were not deleted after since.
func (t *Tx) TombstonesByUser(ids []rolecall.UserID, since rolecall.Time) ([]rolecall.Tombstone, error) {
	return byIDs(t, selectDeleted, "r.user_id", ids, deletedDest, where("r.deleted_at > ?", since))
}

// Tombstones returns a page of the tombstones that q selects, without their assignments, the latest
// deletion first. It reads a bounded number of rows.
func (t *Tx) Tombstones(q rolecall.TombstoneQuery) (rolecall.Page[rolecall.Tombstone], error) {
	if q.Within.IsNowhere() {
		return rolecall.Page[rolecall.Tombstone]{}, nil
	}
	l := &listing[rolecall.Tombstone]{
		tx: t, table: "tombstones", columns: deletedColumns, dest: deletedDest,
		id:   func(r *rolecall.Tombstone) rolecall.AnyID { return rolecall.AnyID(r.ID) },
		desc: true, after: q.After, limit: q.Limit, indexScan: source{table: "tombstones", id: "id"},
		conditions: []condition{where("r.deleted_at > ?", q.Since)},
	}
	if !q.Within.IsEverywhere() {
		l.conditions = append(l.conditions, inReach(q.Within))
	}
	return l.page(nil)
}

const (
	insertErasures = `insert into erasures (tenant_id, user_id, due_at) values `

	insertErasure = insertErasures + `($1, $2, $3)`

	selectErasure = `select user_id, seen from erasures where tenant_id = $1 and due_at <= $2 order by due_at limit 1`

	updateErasure = `update erasures set seen = $1 where tenant_id = $2 and user_id = $3`

	deleteErasure = `delete from erasures where tenant_id = $1 and user_id = $2`

	selectEventsAfter = `select id from events where tenant_id = $1 and subject_id = $2 and id > $3 order by id limit $4`

	selectErasable = `select id, type, actor_id, subject_id, source, reason, before, after, salts from events
		where tenant_id = $1 and subject_id = $2 and id > $3 and id <= $4
			and (before is not null or after is not null or reason <> '' or source <> '')`

	// selectActs returns events that the user caused about others. The index that the statement uses
	// contains only events with a source. So the statement does not return an erased event again.
	selectActs = `select id, type, actor_id, subject_id, source, reason, before, after, salts from events
		where tenant_id = $1 and actor_id = $2 and actor_id <> subject_id and source <> '' limit $3`

	updateErased = `update events set source = $1, reason = $2, before = $3, after = $4, salts = $5 where tenant_id = $6 and id = $7`

	selectKeysOf = `select operation, hash from idempotency_keys where tenant_id = $1 and user_id = $2
		order by operation, hash limit $3`

	eraseKeys = `delete from idempotency_keys where tenant_id = $1 and user_id = $2 and (operation, hash) <= ($3, $4)`
)

// beforeAll is smaller than the id of every event.
var beforeAll = rolecall.EventID{15: 1}

// InsertErasure schedules the erasure of the remaining data of a deleted user.
// PurgeExpired erases this data after due.
func (t *Tx) InsertErasure(id rolecall.UserID, due rolecall.Time) {
	t.q.Exec(insertErasure, t.tenant, id, due)
}

// EraseTraces erases remaining data of a deleted user in one step of limited size. Of up
// to limit events about the user that follow the event after, it erases the content. Of up
// to limit events that the user caused about others, it erases the source. It deletes up
// to limit idempotency keys of the user, and the user's one-time tokens and mail.
//
// EraseTraces returns the last event about the user that it has read, and the number of
// rows that it changed. If the number is less than limit, no data is left.
func (t *Tx) EraseTraces(id rolecall.UserID, after rolecall.EventID, limit int) (last rolecall.EventID, changed int, err error) {
	if after.IsZero() {
		after = beforeAll
	}
	last = after
	_, err = t.q.Query(selectEventsAfter, []any{t.tenant, id, after, limit}, func(scan func(dest ...any) error) error {
		changed++
		return scan(&last)
	})
	if err != nil {
		return after, 0, err
	}
	// With this lock, no other transaction erases data of the same event or computes its leaf.
	if _, _, err := t.LockFeed(); err != nil {
		return after, 0, err
	}
	if changed > 0 {
		if _, err := t.eraseEvents((*rolecall.Event).EraseSubject, selectErasable, t.tenant, id, after, last); err != nil {
			return after, 0, err
		}
	}
	t.DeleteAllOneTimeTokens(id)
	t.q.Exec(deleteMailsOfUser, t.tenant, id)
	acts, err := t.eraseEvents((*rolecall.Event).EraseSource, selectActs, t.tenant, id, limit)
	if err != nil {
		return after, 0, err
	}
	keys, err := t.eraseKeys(id, limit)
	return last, changed + acts + keys, err
}

// eraseEvents erases data of the events that the query returns. The function erase removes the data
// from an event and reports whether it had some. The source of an event is the address from which the
// request came. It is personal data of the erased user if the user is the actor, or if the actor is
// unknown. eraseEvents returns the number of changed events.
func (t *Tx) eraseEvents(erase func(*rolecall.Event, *rolecall.EventSalts) bool, query string, args ...any) (n int, err error) {
	var rows []loggedRow
	_, err = t.q.Query(query, args, into(&rows, func(r *loggedRow) []any {
		e := &r.Event
		return []any{&e.ID, &e.Type, &e.Actor.ID, &e.Subject.ID, &e.Source, &e.Reason, &r.values.Before, &r.values.After, &r.salts}
	}))
	if err != nil {
		return 0, err
	}
	for i := range rows {
		e, salts, err := rows[i].parse()
		if err != nil {
			return 0, err
		}
		if !erase(&e, salts) {
			continue
		}
		var values rolecall.EventValues
		if e.Values != nil {
			values = *e.Values
		}
		var stored []byte
		if salts != nil {
			stored = salts.Stored()
		}
		t.q.Exec(updateErased, e.Source, e.Reason, textOf(values.Before), textOf(values.After), stored, t.tenant, e.ID)
		n++
	}
	return n, nil
}

// eraseKeys deletes up to limit idempotency keys of the user, and returns the number of
// deleted keys.
func (t *Tx) eraseKeys(id rolecall.UserID, limit int) (n int, err error) {
	var operation string
	var hash []byte
	_, err = t.q.Query(selectKeysOf, []any{t.tenant, id, limit}, func(scan func(dest ...any) error) error {
		n++
		return scan(&operation, &hash)
	})
	if err == nil && n > 0 {
		t.q.Exec(eraseKeys, t.tenant, id, operation, hash)
	}
	return n, err
}

// purgeErasures continues the erasures that are due at now, and returns the number of
// changed rows. If the number is less than limit, no erasure is due any more.
func (t *Tx) purgeErasures(now rolecall.Time, limit int) (changed int, err error) {
	for changed < limit {
		var id rolecall.UserID
		var seen rolecall.EventID
		err := t.row(selectErasure, []any{t.tenant, now}, &id, &seen)
		if errors.Is(err, rolecall.ErrNotFound) {
			return changed, nil
		}
		if err != nil {
			return changed, err
		}
		last, n, err := t.EraseTraces(id, seen, limit)
		if err != nil {
			return changed, err
		}
		if n < limit {
			t.q.Exec(deleteErasure, t.tenant, id)
		} else {
			t.q.Exec(updateErasure, last, t.tenant, id)
		}
		changed += n + 1
	}
	return changed, nil
}
