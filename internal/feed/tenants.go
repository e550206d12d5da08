package feed

import (
	"context"
	"errors"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// placesAtOnce is the maximum number of places of which a page of the feed of all tenants is made. Each
// needs a read in its tenant.
const placesAtOnce = 100

// batchesOfPlaces is how many batches of places a reader gives itself. It is enough for what two nodes
// record in the ten minutes between two purges, if few tenants change.
const batchesOfPlaces = 100

// TenantsQuery selects a page of the changes of all tenants. If After is nil, the page begins with the
// oldest event after which none was deleted. If Type is empty, the page has events of all types. It has only
// changes of the tenants for which Accepts returns true.
type TenantsQuery struct {
	After   *rolecall.TenantsMark
	Type    rolecall.EventType
	Limit   int
	Accepts func(tenant string) bool
}

// TenantsPage is a page of changes of all tenants. Tenants has the name of the tenant of each change.
type TenantsPage struct {
	Changes  []rolecall.Change
	Tenants  []string
	Next     rolecall.TenantsMark
	UpToDate bool
}

// EndOfTenants returns an empty page with the position after all changes of all tenants that have a number
// now.
func (f *Feed) EndOfTenants(ctx context.Context) (page TenantsPage, err error) {
	all, err := f.GivePlaces(ctx)
	if err != nil {
		return page, err
	}
	err = f.store.View(ctx, rolecall.TenantID{}, func(tx *store.Tx) error {
		state, err := tx.FeedOfTenants()
		if err != nil || state.Last == 0 {
			return err
		}
		places, err := tx.FeedPlaces(state.Last, state.Last, 1)
		if err == nil && len(places) == 0 {
			return rolecall.ErrUnavailable
		}
		if err == nil {
			page.Next = rolecall.TenantsMark{Place: state.Last, Number: places[0].Last, Mark: places[0].Mark}
		}
		return err
	})
	page.UpToDate = all
	return page, err
}

// ReadTenants returns a page of changes of all tenants. It returns ErrChangesExpired if events after the
// position were deleted, or if the feed does not have the position.
func (f *Feed) ReadTenants(ctx context.Context, q TenantsQuery) (page TenantsPage, err error) {
	all, err := f.GivePlaces(ctx)
	if err != nil {
		return page, err
	}
	r := tenantsReader{feed: f, q: q, names: map[rolecall.TenantID]string{}}
	if err := f.store.View(ctx, rolecall.TenantID{}, r.open); err != nil {
		return page, err
	}
	for _, place := range r.places {
		if len(r.page.Changes) >= q.Limit || r.size >= rolecall.MaxPageBytes || r.rest || r.scanned >= rolecall.MaxScan {
			break
		}
		if err := r.read(ctx, place); err != nil {
			return page, err
		}
	}
	page = r.page
	page.UpToDate = all && page.Next.Place == r.last && !r.rest
	return page, nil
}

// tenantsReader reads a page of changes of all tenants.
type tenantsReader struct {
	feed    *Feed
	q       TenantsQuery
	last    int64 // the last place when the page was begun
	places  []rolecall.FeedPlace
	names   map[rolecall.TenantID]string
	page    TenantsPage
	size    int  // of the changes of the page, in bytes
	scanned int  // changes that were read or skipped
	rest    bool // the last place that was read has further numbers
}

// open finds the position of the query and the places after it, and the names of their tenants.
func (r *tenantsReader) open(tx *store.Tx) error {
	state, err := tx.FeedOfTenants()
	if err != nil {
		return err
	}
	at := state.Begin
	if r.q.After != nil {
		at = *r.q.After
	}
	if at.Before(state.Begin) || at.Place > state.Last {
		return rolecall.ErrChangesExpired
	}
	r.last = state.Last
	if r.places, err = tx.FeedPlaces(max(at.Place, 1), state.Last, placesAtOnce); err != nil {
		return err
	}
	for i, place := range r.places { // places before the beginning can be deleted at the same time
		if place.Place != max(at.Place, 1)+int64(i) {
			return rolecall.ErrChangesExpired
		}
	}
	if at.Place > 0 {
		switch {
		case len(r.places) == 0 || r.q.After != nil && r.places[0].Mark != at.Mark:
			return rolecall.ErrChangesExpired
		case at.Number < r.places[0].First-1 || at.Number > r.places[0].Last:
			return rolecall.ErrChangesExpired
		}
		at.Mark = r.places[0].Mark
		if r.places[0].First = at.Number + 1; r.places[0].First > r.places[0].Last {
			r.places = r.places[1:]
		}
	}
	r.page.Next = at
	var ids []rolecall.TenantID
	for _, place := range r.places {
		ids = append(ids, place.Tenant)
	}
	r.names, err = tx.TenantNames(ids)
	return err
}

// read adds the changes of the place to the page.
func (r *tenantsReader) read(ctx context.Context, place rolecall.FeedPlace) error {
	name := r.names[place.Tenant]
	to := place.Last
	if r.q.Accepts(name) {
		scan := int64(rolecall.MaxScan - r.scanned)
		if r.q.Type == "" {
			scan = int64(r.q.Limit - len(r.page.Changes))
		}
		to = min(to, place.First-1+scan)
		q := rolecall.ChangeQuery{After: place.First - 1, To: to, Type: r.q.Type, Limit: r.q.Limit - len(r.page.Changes), Room: rolecall.MaxPageBytes - r.size}
		var changes []rolecall.Change
		var full bool
		err := r.feed.store.View(ctx, place.Tenant, func(tx *store.Tx) (err error) {
			changes, full, err = tx.Changes(q)
			if err != nil || q.Type == "" {
				return err
			}
			// Events of the range may have been deleted. Then the oldest was, and the newest if all were.
			state, err := tx.Feed(q.To)
			if err == nil && (state.First > place.First || state.At.IsZero()) {
				err = rolecall.ErrChangesExpired
			}
			return err
		})
		if err != nil {
			return err
		}
		if full || len(changes) == q.Limit {
			to = changes[len(changes)-1].Number
		}
		if q.Type == "" && int64(len(changes)) != to-place.First+1 {
			return rolecall.ErrChangesExpired
		}
		for _, c := range changes {
			r.size += c.Size()
			r.page.Changes, r.page.Tenants = append(r.page.Changes, c), append(r.page.Tenants, name)
		}
		r.scanned += int(to - place.First + 1)
	}
	r.page.Next = rolecall.TenantsMark{Place: place.Place, Number: to, Mark: place.Mark}
	r.rest = to < place.Last
	return nil
}

// WaitForTenants returns a channel that is closed when any tenant may have new changes after this call.
// The caller must call stop at the end of its wait.
func (f *Feed) WaitForTenants() (changed <-chan struct{}, stop func()) {
	return f.Wait(rolecall.TenantID{})
}

// PlaceAll gives places in the feed of all tenants to the events that this process has recorded so far, and
// to those of other processes that have a number.
func (f *Feed) PlaceAll(ctx context.Context) error {
	err := f.Flush(ctx)
	for all := false; err == nil && !all; {
		all, err = f.GivePlaces(ctx)
	}
	return err
}

// GivePlaces gives places in the feed of all tenants to the numbers without one. It reports whether all
// have a place now.
func (f *Feed) GivePlaces(ctx context.Context) (all bool, err error) {
	if err := f.placing.take(ctx); err != nil { // of many readers that wake at the same time, one does it
		return false, err
	}
	defer f.placing.leave()
	more, err := store.Read(ctx, f.store, rolecall.TenantID{}, (*store.Tx).HasNews)
	for range batchesOfPlaces {
		if err != nil || !more {
			break
		}
		more, err = f.place(ctx)
	}
	return !more, err
}

// place gives a batch of places, and reports whether there may be more numbers without one.
func (f *Feed) place(ctx context.Context) (more bool, err error) {
	err = f.store.Update(ctx, rolecall.TenantID{}, func(tx *store.Tx) error {
		n, err := tx.GivePlaces(f.now())
		more = n == store.NumbersAtOnce
		return err
	})
	return more, err
}

// Purge gives places to all numbers, and deletes the places from before the beginning of the feed of all
// tenants. The argument batch is the maximum number of places that a transaction deletes.
func (f *Feed) Purge(ctx context.Context, batch int) error {
	for more := true; more; {
		err := f.store.Update(ctx, rolecall.TenantID{}, func(tx *store.Tx) error {
			given, err := tx.GivePlaces(f.now())
			if err != nil {
				return err
			}
			purged, err := tx.PurgePlaces(f.now(), batch)
			more = given == store.NumbersAtOnce || purged == batch
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Number numbers the events of the tenant that have no number yet. They can be from a process that has
// ended.
func (f *Feed) Number(ctx context.Context, tenant rolecall.TenantID) error {
	var left bool
	err := f.store.View(ctx, tenant, func(tx *store.Tx) error {
		_, err := tx.Unnumbered()
		if left = err == nil; !errors.Is(err, rolecall.ErrNotFound) {
			return err
		}
		published, err := tx.IsPublished()
		left = !published
		return err
	})
	for err == nil && left {
		left, err = f.number(ctx, tenant)
	}
	return err
}

// Flush numbers the events of which Recorded has told, except those of tenants whose numbering has failed before.
// It waits for a round of Run that has begun.
func (f *Feed) Flush(ctx context.Context) error { return f.round(ctx, f.fresh) }
