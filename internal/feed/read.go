package feed

import (
	"context"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// Query selects a page of changes. If After is nil, the page begins with the oldest event that
// is kept. If Type is empty, the page has events of all types.
type Query struct {
	After *rolecall.FeedPosition
	Type  rolecall.EventType
	Limit int
}

// Page is a page of changes. Next is the position after it. If UpToDate is true, the feed had
// no further changes when the page was read.
type Page struct {
	Changes  []rolecall.Change
	Next     rolecall.FeedPosition
	UpToDate bool
}

// End returns an empty page with the position after all changes that have a number now.
func (f *Feed) End(ctx context.Context, tenant rolecall.TenantID) (page Page, err error) {
	all, err := f.catchUp(ctx, tenant)
	if err != nil {
		return page, err
	}
	err = f.store.View(ctx, tenant, func(tx *store.Tx) error {
		state, err := tx.Feed(0)
		if err == nil && state.Last > 0 {
			page.Next.Number = state.Last
			state, err = tx.Feed(state.Last)
			page.Next.Event = state.At
		}
		return err
	})
	page.UpToDate = all
	return page, err
}

// Read returns a page of changes of the tenant. It returns ErrChangesExpired if events after the
// position were deleted, or if the feed does not have the position.
func (f *Feed) Read(ctx context.Context, tenant rolecall.TenantID, q Query) (page Page, err error) {
	all, err := f.catchUp(ctx, tenant)
	if err != nil {
		return page, err
	}
	err = f.store.View(ctx, tenant, func(tx *store.Tx) (err error) {
		page, err = read(tx, q)
		return err
	})
	page.UpToDate = page.UpToDate && all
	return page, err
}

func read(tx *store.Tx, q Query) (page Page, err error) {
	var at int64
	if q.After != nil {
		at = q.After.Number
	}
	state, err := tx.Feed(at)
	if err != nil {
		return page, err
	}
	if q.After == nil {
		page.Next.Number = state.First - 1
	} else if page.Next = *q.After; !has(&state, *q.After) {
		return page, rolecall.ErrChangesExpired
	}
	after := page.Next.Number
	scan := int64(rolecall.MaxScan)
	if q.Type == "" {
		scan = int64(q.Limit)
	}
	to := min(state.Last, after+scan)
	if to == after {
		page.UpToDate = true
		return page, nil
	}
	changes, full, err := tx.Changes(rolecall.ChangeQuery{After: after, To: to, Type: q.Type, Limit: q.Limit, Room: rolecall.MaxPageBytes})
	if err != nil {
		return page, err
	}
	page.Changes = changes
	if full || len(changes) == q.Limit {
		to = changes[len(changes)-1].Number
	}
	// Events of this range may have been deleted since the first statement.
	end, err := tx.Feed(to)
	switch {
	case err != nil:
		return page, err
	case end.First > after+1 || q.Type == "" && int64(len(page.Changes)) != to-after:
		return page, rolecall.ErrChangesExpired
	}
	page.Next = rolecall.FeedPosition{Number: to, Event: end.At}
	page.UpToDate = to == state.Last
	return page, nil
}

// has reports whether all events after the position are in the feed. After a failover that has lost
// commits, a number can be missing, or belong to another event.
func has(state *rolecall.Feed, at rolecall.FeedPosition) bool {
	switch {
	case at.Number < state.First-1 || at.Number > state.Last:
		return false
	case at.Event.IsZero() || state.At.IsZero():
		return true
	}
	return at.Event == state.At
}
