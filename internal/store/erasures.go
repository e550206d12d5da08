package store

import (
	"errors"

	"github.com/rolecall/rolecall"
)

const (
	insertErasures = `insert into erasures (tenant_id, user_id, due_at) values `

	insertErasure = insertErasures + `($1, $2, $3)`

	selectErasure = `select user_id, seen from erasures where tenant_id = $1 and due_at <= $2 order by due_at limit 1`

	updateErasure = `update erasures set seen = $1 where tenant_id = $2 and user_id = $3`

	deleteErasure = `delete from erasures where tenant_id = $1 and user_id = $2`

	selectEventsAfter = `select id from events where tenant_id = $1 and subject_id = $2 and id > $3 order by id limit $4`

	// The address is the person's own where they acted, or where nobody knows who did.
	eraseValues = `update events set before = null, after = null, reason = '',
			source = case when actor_id is null or actor_id = subject_id then '' else source end
		where tenant_id = $1 and subject_id = $2 and id > $3 and id <= $4
			and (before is not null or after is not null or reason <> '' or source <> '')`

	// eraseActs leaves of what the person did to others that they did it. What it has
	// gone through is in the index no more.
	eraseActs = `update events set source = '' where tenant_id = $1 and id in (
			select id from events where tenant_id = $1 and actor_id = $2 and actor_id <> subject_id and source <> '' limit $3)
		returning id`

	selectKeysOf = `select operation, hash from idempotency_keys where tenant_id = $1 and user_id = $2
		order by operation, hash limit $3`

	eraseKeys = `delete from idempotency_keys where tenant_id = $1 and user_id = $2 and (operation, hash) <= ($3, $4)`
)

// beforeAll is smaller than the id of every event.
var beforeAll = rolecall.EventID{15: 1}

// InsertErasure schedules the erasure of what is left of a deleted user:
// PurgeExpired does it from due on.
func (t *Tx) InsertErasure(id rolecall.UserID, due rolecall.Time) {
	t.q.Exec(insertErasure, t.tenant, id, due)
}

// EraseTraces erases what is left of a deleted user. It removes the content of up to
// limit events about the user that follow the given event, the sources of up to
// limit events that the user caused, up to limit idempotency keys that the user
// sent, and the user's other rows. It returns the last event about the user that it
// has seen and the number of rows that it changed, which is at least limit if there
// can be more.
func (t *Tx) EraseTraces(id rolecall.UserID, after rolecall.EventID, limit int) (last rolecall.EventID, taken int, err error) {
	if after.IsZero() {
		after = beforeAll
	}
	last = after
	_, err = t.q.Query(selectEventsAfter, []any{t.tenant, id, after, limit}, func(scan func(dest ...any) error) error {
		taken++
		return scan(&last)
	})
	if err != nil {
		return after, 0, err
	}
	if taken > 0 {
		t.q.Exec(eraseValues, t.tenant, id, after, last)
	}
	t.DeleteAllOneTimeTokens(id)
	t.q.Exec(deleteMailsOfUser, t.tenant, id)
	t.EraseResource(rolecall.AnyID(id))
	acts, err := t.returned(eraseActs, t.tenant, id, limit)
	if err != nil {
		return after, 0, err
	}
	keys, err := t.eraseKeys(id, limit)
	return last, taken + acts + keys, err
}

// eraseKeys removes up to limit of the idempotency keys that the user sent, and
// returns how many.
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

// purgeErasures goes on with the erasures that are due, and returns how many rows it
// took: at least limit if there may be more.
func (t *Tx) purgeErasures(now rolecall.Time, limit int) (taken int, err error) {
	for taken < limit {
		var id rolecall.UserID
		var seen rolecall.EventID
		err := t.row(selectErasure, []any{t.tenant, now}, &id, &seen)
		if errors.Is(err, rolecall.ErrNotFound) {
			return taken, nil
		}
		if err != nil {
			return taken, err
		}
		last, n, err := t.EraseTraces(id, seen, limit)
		if err != nil {
			return taken, err
		}
		if n < limit {
			t.q.Exec(deleteErasure, t.tenant, id)
		} else {
			t.q.Exec(updateErasure, last, t.tenant, id)
		}
		taken += n + 1
	}
	return taken, nil
}
