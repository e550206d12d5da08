package store

import "github.com/rolecall/rolecall"

const (
	insertEvent = `insert into events (tenant_id, id, type, occurred_at, actor_type, actor_id, actor_via, subject_type,
			subject_id, members, request_id, session_id, source, reason)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`

	insertEventValues = `insert into event_values (tenant_id, event_id, subject_id, before, after) values ($1, $2, $3, $4, $5)`

	selectEventsAbout = `select e.id, e.type, e.occurred_at, e.actor_type, e.actor_id, e.actor_via, e.subject_type, e.subject_id,
			e.members, e.request_id, e.session_id, e.source, e.reason, v.event_id, v.before, v.after
		from events e left join event_values v on v.tenant_id = e.tenant_id and v.event_id = e.id
		where e.tenant_id = $1 and e.subject_id = $2 order by e.id desc limit $3`
)

// InsertEvent writes the event, and its values apart.
func (t *Tx) InsertEvent(e rolecall.Event) {
	t.q.Exec(insertEvent, t.tenant, e.ID, string(e.Type), e.OccurredAt, string(e.Actor.Type), e.Actor.ID, e.Actor.Via,
		string(e.Subject.Type), e.Subject.ID, asJSON(&e.Members), e.RequestID, e.SessionID, e.Source, e.Reason)
	if e.Values != nil {
		t.q.Exec(insertEventValues, t.tenant, e.ID, e.Subject.ID, textOf(e.Values.Before), textOf(e.Values.After))
	}
}

// EventsAbout returns the newest events about a subject, newest first, with their
// values.
func (t *Tx) EventsAbout(subject rolecall.AnyID, limit int) ([]rolecall.Event, error) {
	var events []rolecall.Event
	err := t.q.Query(selectEventsAbout, []any{t.tenant, subject, limit}, func(scan func(dest ...any) error) error {
		var e rolecall.Event
		var valuesOf rolecall.EventID
		var values rolecall.EventValues
		err := scan(&e.ID, &e.Type, &e.OccurredAt, &e.Actor.Type, &e.Actor.ID, &e.Actor.Via, &e.Subject.Type, &e.Subject.ID,
			asJSON(&e.Members), &e.RequestID, &e.SessionID, &e.Source, &e.Reason, &valuesOf, &values.Before, &values.After)
		if !valuesOf.IsZero() {
			e.Values = &values
		}
		events = append(events, e)
		return err
	})
	return events, err
}
