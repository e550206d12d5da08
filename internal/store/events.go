package store

import (
	"bytes"
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/rolecall/rolecall"
)

const insertEvent = `insert into events (tenant_id, id, type, occurred_at, actor_type, actor_id, actor_via, actor_token,
		subject_type, subject_id, members, request_id, session_id, source, reason, before, after, salts, arrival)
	values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, null)`

// queuedEvent is an event that waits for its number, with the hash of its leaf in the Merkle log.
type queuedEvent struct {
	id   rolecall.EventID
	leaf tlog.Hash
}

// InsertEvent inserts the event and its values before and after the change. At the end of the
// Update, it also queues the event for its number in the feed.
func (t *Tx) InsertEvent(e rolecall.Event) {
	var values rolecall.EventValues
	if e.Values != nil {
		values = *e.Values
	}
	salts := rolecall.NewEventSalts()
	t.q.Exec(insertEvent, t.tenant, e.ID, string(e.Type), e.OccurredAt, string(e.Actor.Type), e.Actor.ID, e.Actor.Via,
		e.Actor.Token, string(e.Subject.Type), e.Subject.ID, asJSON(&e.Members), e.RequestID, e.SessionID, e.Source, e.Reason,
		textOf(values.Before), textOf(values.After), salts.Stored())
	t.events = append(t.events, queuedEvent{e.ID, e.LeafHash(&salts)})
}

// InsertOperatorEvent inserts the event into the operators' log at the end of the Update.
func (t *Tx) InsertOperatorEvent(e rolecall.Event) { t.log = append(t.log, e) }

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

// event returns the event. It sets Values only if the row has values. If the event is about a user
// who is in neither table any more, it omits the values that an erasure removes, because the data
// of such a user must not be shown.
func (r *eventRow) event() rolecall.Event {
	e := r.Event
	if r.place != nil {
		table, department, has := strings.Cut(*r.place, ":")
		e.SubjectDeleted = table == "tombstone"
		if has {
			e.SubjectDepartment = &department
		}
	}
	if r.values.Before != nil || r.values.After != nil {
		e.Values = &r.values
	}
	if e.Subject.Type == rolecall.SubjectUser && r.place == nil {
		e.Values = e.ErasedValues()
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

// EventByID returns the event with the id, or ErrNotFound.
func (t *Tx) EventByID(id rolecall.EventID) (rolecall.Event, error) {
	var r eventRow
	err := t.row("select "+eventColumns+" from events r where r.tenant_id = $1 and r.id = $2", []any{t.tenant, id}, eventDest(&r)...)
	return r.event(), err
}

// Deletion is the event of the deletion of a role, a group or a service account.
type Deletion struct {
	Subject rolecall.Subject
	Before  []byte // the object as JSON
}

// Deletions returns the deletions of those roles, groups and service accounts whose ids are among ids, in no
// particular order. It reads the newest event about each id: nothing happens to an object after its
// deletion.
func (t *Tx) Deletions(ids []rolecall.AnyID) (found []Deletion, err error) {
	for chunk := range slices.Chunk(ids, rowsAtOnce) {
		b := newBuilder(t.tenant)
		b.write("select r.subject_type, r.subject_id, r.before from events r where r.tenant_id = $1 and r.type in (?, ?, ?) and r.id in (",
			string(rolecall.EventRoleDeleted), string(rolecall.EventGroupDeleted), string(rolecall.EventServiceAccountDeleted))
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

const (
	queueEvents = `insert into event_queue (tenant_id, event_id, leaf) values `
	queueEvent  = queueEvents + `($1, $2, $3)`

	// lockFeed changes nothing. It makes other transactions wait that give numbers.
	lockFeed = `insert into feeds (tenant_id, last) values ($1, 0)
		on conflict (tenant_id) do update set last = feeds.last returning last, published, webhooks`

	// numberEvents gives numbers to the oldest events without one. The events that are not in the
	// queue are older than the migration, or were written by an older program.
	numberEvents = `insert into changes (tenant_id, number, event_id, arrival, leaf)
		select p.tenant_id, $1 + row_number() over (order by p.arrival, p.event_id), p.event_id, p.arrival, p.leaf from (
			select tenant_id, event_id, arrival, leaf from (
				select tenant_id, event_id, n as arrival, leaf from event_queue where tenant_id = $2 order by n limit ` + numbersAtOnce + `) q
			union all
			select tenant_id, event_id, arrival, null from (
				select tenant_id, id as event_id, arrival from events where tenant_id = $2 and arrival is not null order by arrival, id limit ` + numbersAtOnce + `) e
			order by arrival, event_id limit ` + numbersAtOnce + `) p
		returning number`

	dequeueEvents = `delete from event_queue where tenant_id = $1
		and n in (select arrival from changes where tenant_id = $1 and number > $2 and number <= $3) returning n`

	forgetArrivals = `update events set arrival = null where tenant_id = $1 and arrival is not null
		and id in (select event_id from changes where tenant_id = $1 and number > $2 and number <= $3)`

	updateFeed = `update feeds set last = $1, published = $2 where tenant_id = $3`

	selectUnpublished = `select last from feeds where tenant_id = $1 and published < last`

	// insertNews does nothing for events without a tenant, such as those of requests with an unknown
	// name of a tenant.
	insertNews = `insert into feed_news (tenant, first_number, last_number)
		select id, cast($1 as bigint), cast($2 as bigint) from tenants where id = $3 and status <> 'purged'`

	selectUnnumbered = `select e.occurred_at from (select n, event_id from event_queue where tenant_id = $1 order by n limit 1) q
			join events e on e.tenant_id = $1 and e.id = q.event_id
		union all
		select occurred_at from (select occurred_at from events where tenant_id = $1 and arrival is not null order by arrival, id limit 1) e`

	selectFeed = `select f.last, coalesce((select c.number from changes c where c.tenant_id = $1 order by c.number limit 1), f.last + 1),
			(select c.event_id from changes c where c.tenant_id = $1 and c.number = $2)
		from feeds f where f.tenant_id = $1`

	// lockPlaces changes nothing. It makes other transactions wait that give places.
	lockPlaces = `insert into feed_of_tenants (id, last, begin_place, begin_number) values (1, 0, 0, 0)
		on conflict (id) do update set last = feed_of_tenants.last returning last`

	takeNews = `delete from feed_news where n in (select n from feed_news where n > 0 order by n limit ` + numbersAtOnce + `)
		returning n, tenant, first_number, last_number`

	insertPlaces = `insert into feed_places (place, tenant, first_number, last_number, mark) values `

	updatePlaces = `update feed_of_tenants set last = $1 where id = 1`

	selectNews = `select n from feed_news where n > 0 order by n limit 1`

	selectFeedOfTenants = `select last, begin_place, begin_number from feed_of_tenants where id = 1`

	selectPlaces = `select place, tenant, first_number, last_number, mark from feed_places where place >= $1 and place <= $2 order by place limit $3`

	selectPlaceOf = `select place, last_number from feed_places where tenant = $1 and first_number <= $2 order by first_number desc limit 1`

	beginAfter = `update feed_of_tenants set begin_place = $1, begin_number = $2
		where id = 1 and (begin_place < $1 or begin_place = $1 and begin_number < $2)`

	// oldestPlaces are the places that one purgePlaces looks at.
	oldestPlaces = `(select place, mark from feed_places where place < (select begin_place from feed_of_tenants where id = 1) order by place limit $1)`

	// purgePlaces keeps the places that webhooks of operators have not read, except for old ones. A replay
	// that is not complete needs its places also while its webhook is disabled. The divisor is the number of
	// positions of a place.
	purgePlaces = `delete from feed_places where place in (
			select place from ` + oldestPlaces + ` o where place < coalesce((
				select min(place) from ` + oldestPlaces + ` k where mark >= $2 and place >= (
					select min(number) / 16777216 from webhook_cursors where tenant = $3 and (part < 4 or part < 8 and number < until_number))
			), 9223372036854775807))
		returning place`
)

// NumbersAtOnce is the maximum number of events to which one call of NumberEvents gives numbers of the feed.
const NumbersAtOnce = 500

const numbersAtOnce = "500" // the same, as text

// queueEvents queues the events of the transaction. It is called at the end of the transaction,
// because then every change that the transaction has read or overwritten was committed, and its event
// is before these in the queue or has a number.
func (t *Tx) queueEvents() {
	if len(t.events) > 0 {
		t.queue()
		t.effects.Recorded = true
	}
	if len(t.log) > 0 {
		tenant := t.tenant
		t.tenant = rolecall.OperatorsTenant
		t.q.SetTenant(t.tenant)
		for _, e := range t.log {
			t.InsertEvent(e)
		}
		t.queue()
		t.tenant = tenant
		t.q.SetTenant(tenant) // of another transaction that this one is a part of
		t.log, t.effects.OperatorEvents = nil, true
	}
}

// queue queues the events in the order of their ids. In this order, the process made them: an event about the
// creation of an object can be inserted after others about the object.
func (t *Tx) queue() {
	slices.SortFunc(t.events, func(a, b queuedEvent) int { return bytes.Compare(a.id[:], b.id[:]) })
	switch len(t.events) {
	case 1:
		t.q.Exec(queueEvent, t.tenant, t.events[0].id, t.events[0].leaf[:])
	default:
		insertRows(t, queueEvents, t.events, func(b *builder, e queuedEvent) { b.write("($1, ?, ?)", e.id, e.leaf[:]) })
	}
	t.events = nil
}

// NumberEvents gives the next numbers of the feed to the oldest events without a number, at most
// to NumbersAtOnce. It returns how many events got one. Until the end of the transaction, other
// transactions cannot give numbers in this tenant. The webhooks of the tenant are due at now.
func (t *Tx) NumberEvents(now rolecall.Time) (int, error) {
	last, published, webhooks, err := t.lockFeed()
	if err != nil {
		return 0, err
	}
	numbered, err := t.countRows(numberEvents, last, t.tenant)
	if err != nil || numbered == 0 && published == last {
		return 0, err
	}
	newest := last + int64(numbered)
	if webhooks > 0 {
		t.q.Exec(wakeCursors, now, t.tenant)
		t.webhooksDue()
	}
	if err := t.publish(published, last, newest); err != nil || numbered == 0 {
		return 0, err
	}
	queued, err := t.countRows(dequeueEvents, t.tenant, last, newest)
	if err != nil {
		return 0, err
	}
	if queued < numbered {
		t.q.Exec(forgetArrivals, t.tenant, last, newest)
	}
	return numbered, nil
}

// publish stores that the feed of the tenant has the numbers up to newest, and that they need places in
// the feed of all tenants. The numbers up to published have been there before. If published is less than
// last, an older program has given numbers, and some of their events may have been deleted.
func (t *Tx) publish(published, last, newest int64) error {
	first := published + 1
	if published < last {
		feed, err := t.Feed(0)
		if err != nil {
			return err
		}
		first = max(first, feed.First)
	}
	if first <= newest {
		t.q.Exec(insertNews, first, newest, t.tenant)
	}
	t.q.Exec(updateFeed, newest, newest, t.tenant)
	t.q.AnnounceChanges(t.tenant)
	if t.effects != nil {
		t.effects.Numbered = true
	}
	return nil
}

// IsPublished reports whether all numbers of the tenant have a place in the feed of all tenants, or wait
// for one. After an older program has given numbers, it is false until the next NumberEvents.
func (t *Tx) IsPublished() (bool, error) {
	n, err := t.countRows(selectUnpublished, t.tenant)
	return n == 0, err
}

// GivePlaces gives the next places in the feed of all tenants to numbers without one, those of at most
// NumbersAtOnce batches. It returns of how many batches. Until the end of the transaction, other
// transactions cannot give places. The webhooks of operators are due at now.
func (t *Tx) GivePlaces(now rolecall.Time) (int, error) {
	var last int64
	if err := t.row(lockPlaces, nil, &last); err != nil {
		return 0, err
	}
	type batch struct {
		n int64
		rolecall.FeedPlace
	}
	var batches []batch
	taken, err := t.q.Query(takeNews, nil, into(&batches, func(b *batch) []any { return []any{&b.n, &b.Tenant, &b.First, &b.Last} }))
	if err != nil || taken == 0 {
		return 0, err
	}
	slices.SortFunc(batches, func(a, b batch) int { return cmp.Compare(a.n, b.n) })
	of := map[rolecall.TenantID]*rolecall.FeedPlace{}
	var places []*rolecall.FeedPlace
	for i := range batches {
		for next := batches[i].FeedPlace; next.First <= next.Last; {
			p := of[next.Tenant]
			if p == nil || p.Last+1 != next.First || p.Last-p.First+1 == rolecall.PlaceNumbersMax {
				p = &rolecall.FeedPlace{Tenant: next.Tenant, First: next.First}
				of[next.Tenant], places = p, append(places, p)
			}
			p.Last = min(next.Last, p.First+rolecall.PlaceNumbersMax-1)
			next.First = p.Last + 1
		}
	}
	t.insertPlaces(last, places, rolecall.NewID[any](now))
	woken, err := t.countRows(wakeCursors+" returning part", now, rolecall.OperatorsTenant)
	if woken > 0 {
		t.webhooksDue()
	}
	return taken, err
}

// insertPlaces inserts the places with the numbers after last, and with the mark.
func (t *Tx) insertPlaces(last int64, places []*rolecall.FeedPlace, mark rolecall.AnyID) {
	var b builder
	b.write(insertPlaces)
	for i, p := range places {
		if i > 0 {
			b.write(", ")
		}
		b.write("(?, ?, ?, ?, ?)", last+1+int64(i), p.Tenant, p.First, p.Last, mark)
	}
	b.exec(t.q)
	t.q.Exec(updatePlaces, last+int64(len(places)))
}

// LockPlaces returns the position after all places in the feed of all tenants. Until the end of the
// transaction, no place is given.
func (t *Tx) LockPlaces() (end int64, err error) {
	var f rolecall.FeedOfTenants
	err = t.row(lockPlaces, nil, &f.Last)
	return f.End(), err
}

// HasNews reports whether there are numbers without a place in the feed of all tenants.
func (t *Tx) HasNews() (bool, error) {
	n, err := t.countRows(selectNews)
	return n > 0, err
}

// FeedOfTenants returns the state of the feed of all tenants. The mark of its beginning is zero.
func (t *Tx) FeedOfTenants() (f rolecall.FeedOfTenants, err error) {
	err = t.row(selectFeedOfTenants, nil, &f.Last, &f.Begin.Place, &f.Begin.Number)
	if errors.Is(err, rolecall.ErrNotFound) {
		err = nil // no number has a place yet
	}
	return f, err
}

// FeedPlaces returns up to limit places in the feed of all tenants, from the place from to the place to.
func (t *Tx) FeedPlaces(from, to int64, limit int) (places []rolecall.FeedPlace, err error) {
	_, err = t.q.Query(selectPlaces, []any{from, to, limit}, into(&places, func(p *rolecall.FeedPlace) []any {
		return []any{&p.Place, &p.Tenant, &p.First, &p.Last, &p.Mark}
	}))
	return places, err
}

// PurgePlaces deletes up to limit places from before the beginning of the feed of all tenants, and
// returns how many. It keeps places that webhooks of operators have not read for rolecall.PlacesKept.
func (t *Tx) PurgePlaces(now rolecall.Time, limit int) (int, error) {
	return t.countRows(purgePlaces, limit, rolecall.FirstID[any](now.Add(-rolecall.PlacesKept)), rolecall.OperatorsTenant)
}

// beginAfter stores that the events of the tenant with numbers up to last were deleted. The feed of all
// tenants begins after them, so that followers who have not read them get ErrChangesExpired.
func (t *Tx) beginAfter(last int64, now rolecall.Time) error {
	for given := NumbersAtOnce; given == NumbersAtOnce; {
		var err error
		if given, err = t.GivePlaces(now); err != nil {
			return err
		}
	}
	var place, number int64
	switch err := t.row(selectPlaceOf, []any{t.tenant, last}, &place, &number); {
	case errors.Is(err, rolecall.ErrNotFound):
		return nil
	case err != nil:
		return err
	}
	t.q.Exec(beginAfter, place, min(number, last))
	return nil
}

// Unnumbered returns when the oldest event without a number occurred. It returns ErrNotFound if all
// events have a number.
func (t *Tx) Unnumbered() (oldest rolecall.Time, err error) {
	var times []rolecall.Time
	if _, err = t.q.Query(selectUnnumbered, []any{t.tenant}, into(&times, oneColumn)); err != nil {
		return 0, err
	}
	if len(times) == 0 {
		return 0, rolecall.ErrNotFound
	}
	return slices.Min(times), nil
}

// Feed returns the state of the feed, and the event with the number at. The event is zero if the feed
// does not have this number.
func (t *Tx) Feed(at int64) (rolecall.Feed, error) {
	f := rolecall.Feed{First: 1}
	err := t.row(selectFeed, []any{t.tenant, at}, &f.Last, &f.First, &f.At)
	if errors.Is(err, rolecall.ErrNotFound) {
		err = nil // no event has a number yet
	}
	return f, err
}

// ChangeHeads returns the changes with the numbers after after and up to to, without their values. It
// reads at most MaxScan of them.
func (t *Tx) ChangeHeads(after, to int64) (all []rolecall.ChangeHead, err error) {
	b := newBuilder(t.tenant)
	b.write("select c.number, r.id, r.type, r.subject_id, r.actor_id, r.occurred_at from (select number, event_id from changes where tenant_id = $1 and number > ? and number <= ? order by number", after, to)
	b.limit(rolecall.MaxScan)
	b.write(") c join events r on r.tenant_id = $1 and r.id = c.event_id order by c.number")
	_, err = b.query(t.q, into(&all, func(h *rolecall.ChangeHead) []any {
		return []any{&h.Number, &h.ID, (*string)(&h.Type), &h.Subject, &h.Actor, &h.OccurredAt}
	}))
	return all, err
}

// Changes returns the events that q selects, in the order of their numbers. The result full is true if it
// ends before a change for which there was no room. Changes does not check whether events of this range
// were deleted.
func (t *Tx) Changes(q rolecall.ChangeQuery) (all []rolecall.Change, full bool, err error) {
	b := newBuilder(t.tenant)
	b.write("select c.number, "+eventColumns+" from (select number, event_id from changes where tenant_id = $1 and number > ? and number <= ? order by number", q.After, q.To)
	b.limit(rolecall.MaxScan)
	b.write(") c join events r on r.tenant_id = $1 and r.id = c.event_id")
	if q.Type != "" {
		b.write(" where r.type = ?", string(q.Type))
	}
	b.write(" order by c.number")
	b.limit(q.Limit)
	all = make([]rolecall.Change, 0, min(int64(q.Limit), q.To-q.After))
	room := q.Room
	_, err = b.query(t.q, func(scan func(dest ...any) error) error {
		if full {
			return nil
		}
		var number int64
		var row eventRow // the events must not share memory
		if err := scan(append([]any{&number}, eventDest(&row)...)...); err != nil {
			return err
		}
		change := rolecall.Change{Number: number, Event: row.event()}
		if room -= change.Size(); room < 0 && len(all) > 0 {
			full = true
			return nil
		}
		all = append(all, change)
		return nil
	})
	return all, full, err
}

// numberRest calls NumberEvents if it would have an effect.
func (t *Tx) numberRest(now rolecall.Time) (int, error) {
	_, err := t.Unnumbered()
	switch {
	case err == nil:
		return t.NumberEvents(now)
	case !errors.Is(err, rolecall.ErrNotFound):
		return 0, err
	}
	if published, err := t.IsPublished(); published || err != nil {
		return 0, err
	}
	return t.NumberEvents(now)
}
