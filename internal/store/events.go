package store

import (
	"slices"
	"strings"
	"time"

	"github.com/rolecall/rolecall"
)

const insertEvent = `insert into events (tenant_id, id, type, occurred_at, actor_type, actor_id, actor_via, actor_token,
		subject_type, subject_id, members, request_id, session_id, source, reason, before, after)
	values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)`

// InsertEvent inserts the event and its values before and after the change.
func (t *Tx) InsertEvent(e rolecall.Event) {
	var values rolecall.EventValues
	if e.Values != nil {
		values = *e.Values
	}
	t.q.Exec(insertEvent, t.tenant, e.ID, string(e.Type), e.OccurredAt, string(e.Actor.Type), e.Actor.ID, e.Actor.Via,
		e.Actor.Token, string(e.Subject.Type), e.Subject.ID, asJSON(&e.Members), e.RequestID, e.SessionID, e.Source, e.Reason,
		textOf(values.Before), textOf(values.After))
}

// For an event about a user, the last column says in which table the user is now, users or
// tombstones, and names the user's department. This lookup runs only for the rows of a
// page.
const eventColumns = `r.id, r.type, r.occurred_at, r.actor_type, r.actor_id, r.actor_via, r.actor_token, r.subject_type,
	r.subject_id, r.members, r.request_id, r.session_id, r.source, r.reason, r.before, r.after, coalesce(
		(select 'user' || coalesce(':' || u.department, '') from users u where u.tenant_id = $1 and u.id = r.subject_id),
		(select 'tombstone' || coalesce(':' || t.department, '') from tombstones t where t.tenant_id = $1 and t.user_id = r.subject_id))`

// eventRow is an event as it is stored.
type eventRow struct {
	rolecall.Event
	values rolecall.EventValues
	place  *string // the table with the user ("user" or "tombstone") and the department; nil if neither table has the user
}

// event returns the event. It sets Values only if the row has values. It also omits them
// if the event is about a user who is in neither table any more, because the data of such
// a user must not be shown.
func (r *eventRow) event() rolecall.Event {
	e := r.Event
	if r.place != nil {
		table, department, has := strings.Cut(*r.place, ":")
		e.SubjectDeleted = table == "tombstone"
		if has {
			e.SubjectDepartment = &department
		}
	}
	gone := e.Subject.Type == rolecall.SubjectUser && r.place == nil
	if !gone && (r.values.Before != nil || r.values.After != nil) {
		e.Values = &r.values
	}
	return e
}

func eventDest(e *eventRow) []any {
	return []any{&e.ID, &e.Type, &e.OccurredAt, &e.Actor.Type, &e.Actor.ID, &e.Actor.Via, &e.Actor.Token,
		&e.Subject.Type, &e.Subject.ID, asJSON(&e.Members), &e.RequestID, &e.SessionID, &e.Source, &e.Reason, &e.values.Before, &e.values.After,
		&e.place}
}

// Events returns a page of the events that q selects, newest first. It reads a bounded
// number of rows.
func (t *Tx) Events(q rolecall.EventQuery) (rolecall.Page[rolecall.Event], error) {
	l := &listing[eventRow]{
		tx: t, table: "events", columns: eventColumns, dest: eventDest,
		id:   func(e *eventRow) rolecall.AnyID { return rolecall.AnyID(e.ID) },
		desc: true, after: q.After, limit: q.Limit, indexScan: source{table: "events", id: "id"},
	}
	if !q.Subject.IsZero() {
		l.indexScan.conditions = append(l.indexScan.conditions, where("subject_id = ?", q.Subject))
	}
	if q.From != 0 {
		l.indexScan.conditions = append(l.indexScan.conditions, where("id >= ?", rolecall.FirstID[rolecall.Event](q.From)))
		l.conditions = append(l.conditions, where("r.occurred_at >= ?", q.From))
	}
	if q.To != 0 {
		l.indexScan.conditions = append(l.indexScan.conditions, where("id < ?", rolecall.FirstID[rolecall.Event](q.To.Add(time.Millisecond))))
		l.conditions = append(l.conditions, where("r.occurred_at < ?", q.To))
	}
	if q.Type != "" {
		l.conditions = append(l.conditions, where("r.type = ?", string(q.Type)))
	}
	if !q.Actor.IsZero() {
		l.conditions = append(l.conditions, where("r.actor_id = ?", q.Actor))
	}
	rows, err := l.page(nil)
	page := rolecall.Page[rolecall.Event]{Items: make([]rolecall.Event, len(rows.Items)), Next: rows.Next}
	for i := range rows.Items {
		page.Items[i] = rows.Items[i].event()
	}
	return page, err
}

// Deletion is the event of the deletion of a role or a service account.
type Deletion struct {
	Subject rolecall.Subject
	Before  []byte // the role or the service account as a JSON object
}

// Deletions returns the deletions of those roles and service accounts whose ids are among ids, in no
// particular order. It reads the newest event about each id: nothing happens to an object after its
// deletion.
func (t *Tx) Deletions(ids []rolecall.AnyID) (found []Deletion, err error) {
	for chunk := range slices.Chunk(ids, rowsAtOnce) {
		b := newBuilder(t.tenant)
		b.write("select r.subject_type, r.subject_id, r.before from events r where r.tenant_id = $1 and r.type in (?, ?) and r.id in (",
			string(rolecall.EventRoleDeleted), string(rolecall.EventServiceAccountDeleted))
		for i, id := range chunk {
			if i > 0 {
				b.write(", ")
			}
			b.write("(select e.id from events e where e.tenant_id = $1 and e.subject_id = ? order by e.id desc limit 1)", id)
		}
		b.write(")")
		if _, err := b.query(t.q, into(&found, func(d *Deletion) []any { return []any{&d.Subject.Type, &d.Subject.ID, &d.Before} })); err != nil {
			return nil, err
		}
	}
	return found, nil
}
