package store

import (
	"time"

	"github.com/rolecall/rolecall"
)

const (
	insertEvent = `insert into events (tenant_id, id, type, occurred_at, actor_type, actor_id, actor_via, subject_type,
			subject_id, members, request_id, session_id, source, reason)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`

	insertEventValues = `insert into event_values (tenant_id, event_id, subject_id, before, after) values ($1, $2, $3, $4, $5)`
)

// InsertEvent writes the event, and its values apart.
func (t *Tx) InsertEvent(e rolecall.Event) {
	t.q.Exec(insertEvent, t.tenant, e.ID, string(e.Type), e.OccurredAt, string(e.Actor.Type), e.Actor.ID, e.Actor.Via,
		string(e.Subject.Type), e.Subject.ID, asJSON(&e.Members), e.RequestID, e.SessionID, e.Source, e.Reason)
	if e.Values != nil {
		t.q.Exec(insertEventValues, t.tenant, e.ID, e.Subject.ID, textOf(e.Values.Before), textOf(e.Values.After))
	}
}

// eventColumns reads the values and the subject's department along, for the rows
// of a page only.
const eventColumns = `r.id, r.type, r.occurred_at, r.actor_type, r.actor_id, r.actor_via, r.subject_type, r.subject_id,
	r.members, r.request_id, r.session_id, r.source, r.reason,
	(select v.event_id from event_values v where v.tenant_id = r.tenant_id and v.event_id = r.id),
	(select v.before from event_values v where v.tenant_id = r.tenant_id and v.event_id = r.id),
	(select v.after from event_values v where v.tenant_id = r.tenant_id and v.event_id = r.id),
	(select u.department from users u where u.tenant_id = r.tenant_id and u.id = r.subject_id)`

// eventRow is an event and what tells whether it has values.
type eventRow struct {
	rolecall.Event
	valuesOf rolecall.EventID
	values   rolecall.EventValues
}

func eventDest(e *eventRow) []any {
	return []any{&e.ID, &e.Type, &e.OccurredAt, &e.Actor.Type, &e.Actor.ID, &e.Actor.Via, &e.Subject.Type, &e.Subject.ID,
		asJSON(&e.Members), &e.RequestID, &e.SessionID, &e.Source, &e.Reason, &e.valuesOf, &e.values.Before, &e.values.After,
		&e.SubjectDepartment}
}

// Events returns a page of the events that q selects, newest first.
func (t *Tx) Events(q rolecall.EventQuery) (rolecall.Page[rolecall.Event], error) {
	l := &listing[eventRow]{
		tx: t, table: "events", columns: eventColumns, dest: eventDest,
		id:   func(e *eventRow) rolecall.AnyID { return rolecall.AnyID(e.ID) },
		desc: true, after: q.After, limit: q.Limit, walk: source{table: "events", id: "id"},
	}
	if !q.Subject.IsZero() {
		l.walk.conditions = append(l.walk.conditions, where("subject_id = ?", q.Subject))
	}
	if q.From != 0 {
		l.walk.conditions = append(l.walk.conditions, where("id >= ?", rolecall.FirstID[rolecall.Event](q.From)))
		l.conditions = append(l.conditions, where("r.occurred_at >= ?", q.From))
	}
	if q.To != 0 {
		l.walk.conditions = append(l.walk.conditions, where("id < ?", rolecall.FirstID[rolecall.Event](q.To.Add(time.Millisecond))))
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
		row := &rows.Items[i]
		page.Items[i] = row.Event
		if !row.valuesOf.IsZero() {
			page.Items[i].Values = &row.values
		}
	}
	return page, err
}
