package webhooks

import (
	"context"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/feed"
	"github.com/rolecall/rolecall/internal/outbound"
	"github.com/rolecall/rolecall/internal/store"
)

const (
	// placesAtOnce is the maximum number of places of which a page is made. Each needs a read in its
	// tenant.
	placesAtOnce = 100

	// placePause is the time between two batches of new places. followPause is how often a process checks
	// whether operators have webhooks, while they have none.
	placePause  = 25 * time.Millisecond
	followPause = time.Second
)

// ForOperators returns the caller, who has an operator key, with the webhooks of operators in place of
// those of a tenant.
func ForOperators(c access.Caller) access.Caller {
	inside := *c.Principal
	inside.Tenant = rolecall.Tenant{ID: rolecall.OperatorsTenant}
	c.Principal = &inside
	return c
}

// operatorsFeed is the change feed of all tenants, for the webhooks of operators. A position has the bits
// of rolecall.PlaceAt.
type operatorsFeed struct{ *Service }

func (f operatorsFeed) sender() *outbound.Client { return f.access.OperatorOutbound }

func (f operatorsFeed) checkURL(url string) error { return f.access.OperatorOutbound.CheckURL(url) }

func (f operatorsFeed) catchUp(ctx context.Context) error { return f.access.Feed.PlaceAll(ctx) }

func (f operatorsFeed) begin(tx *store.Tx) (last int64, webhooks int, err error) {
	if _, webhooks, err = tx.LockFeed(); err == nil {
		_, err = tx.GivePlaces(f.now())
	}
	if err == nil {
		last, err = tx.LockPlaces()
	}
	return last, webhooks, err
}

func (f operatorsFeed) lock(tx *store.Tx) (int64, error) { return tx.LockPlaces() }

func (f operatorsFeed) end(tx *store.Tx) (int64, error) {
	state, err := tx.FeedOfTenants()
	return state.End(), err
}

// before uses the times of the marks. A place is given after its events have occurred.
func (f operatorsFeed) before(tx *store.Tx, at rolecall.Time) (int64, error) {
	state, err := tx.FeedOfTenants()
	low, high := int64(1), state.Last+1
	for err == nil && low < high {
		middle := low + (high-low)/2
		var place []rolecall.FeedPlace // the next one, if it was deleted
		if place, err = tx.FeedPlaces(middle, state.Last, 1); len(place) == 0 || place[0].Mark.CreatedAt() >= at {
			high = middle
		} else {
			low = place[0].Place + 1
		}
	}
	return rolecall.PositionBefore(low), err
}

func (f operatorsFeed) isBehind(ctx context.Context, end int64) (bool, error) {
	all, err := f.access.Feed.GivePlaces(ctx)
	if err != nil {
		return false, err
	}
	last, err := store.Read(ctx, f.access.Store, rolecall.TenantID{}, func(tx *store.Tx) (int64, error) { return f.end(tx) })
	return last > end || !all, err
}

func (f operatorsFeed) open(ctx context.Context, g *group, next *selection) error {
	var last int64
	var places []rolecall.FeedPlace
	var names map[rolecall.TenantID]string
	err := f.view(ctx, g, func(tx *store.Tx) (err error) {
		if next.webhook, err = tx.Webhook(g.WebhookID); err != nil {
			return err
		}
		if last, err = f.end(tx); err != nil {
			return err
		}
		if g.Until > 0 {
			last = min(last, g.Until)
		}
		from, _ := rolecall.PlaceAt(g.Number)
		to, _ := rolecall.PlaceAt(last)
		if places, err = tx.FeedPlaces(from, to-1, placesAtOnce); err != nil {
			return err
		}
		var ids []rolecall.TenantID
		for _, p := range places {
			ids = append(ids, p.Tenant)
		}
		names, err = tx.TenantNames(ids)
		return err
	})
	if len(places) == 0 { // after a failover that has lost commits, the place can be behind the end
		next.end = last
	}
	for rest := int64(page); err == nil && rest > 0 && len(places) > 0; places = places[1:] {
		var read int64
		read, err = f.selectItems(ctx, g, next, &places[0], names[places[0].Tenant], rest)
		rest -= read
	}
	next.more = next.end < last
	return err
}

// selectItems reads up to limit changes of the place, and returns how many numbers it has read. Deleted
// events are skipped.
func (f operatorsFeed) selectItems(ctx context.Context, g *group, next *selection, place *rolecall.FeedPlace, name string, limit int64) (int64, error) {
	first, last := place.First, min(place.Last, place.First+rolecall.PlaceNumbersMax-1) // older programs gave places with more
	if from, passed := rolecall.PlaceAt(g.Number); from == place.Place {
		first += passed
	}
	to := min(last, first+limit-1)
	if next.end = place.PositionOf(to); to == last {
		next.end = rolecall.PositionBefore(place.Place + 1)
	}
	if first > to {
		return 0, nil
	}
	return to - first + 1, f.access.Store.View(ctx, place.Tenant, func(tx *store.Tx) error {
		heads, err := tx.ChangeHeads(first-1, to)
		for _, head := range heads {
			c := change{ChangeHead: head, tenant: place.Tenant, name: name, number: head.Number}
			c.Number = place.PositionOf(head.Number)
			next.add(g, c)
		}
		return err
	})
}

// render returns the item with all values, as GET /operator/changes does.
func (f operatorsFeed) render(ctx context.Context, g *group, c *change) (d delivery, err error) {
	var w rolecall.Webhook
	err = f.view(ctx, g, func(tx *store.Tx) (err error) {
		w, err = tx.Webhook(g.WebhookID)
		return err
	})
	if found, err := access.Found(err); !found || !w.Enabled {
		d.stop = true
		return d, err
	}
	if d.skip = !w.Sends(&c.ChangeHead); d.skip {
		return d, nil
	}
	var changes []rolecall.Change
	err = f.access.Store.View(ctx, c.tenant, func(tx *store.Tx) (err error) {
		changes, _, err = tx.Changes(rolecall.ChangeQuery{After: c.number - 1, To: c.number, Limit: 1})
		return err
	})
	if d.skip = len(changes) == 0; d.skip || err != nil {
		return d, err
	}
	operator := authz.NewOperatorPrincipal(rolecall.Tenant{}, &rolecall.OperatorKey{}, f.now())
	if err := authz.RedactChanges(operator, changes); err != nil {
		return d, err
	}
	item := feed.NewItem(&changes[0].Event, feed.SourceOf(f.access.PublicURL, c.name), c.name)
	f.complete(&d, g.TenantID, &w, &item)
	return d, nil
}

func (f operatorsFeed) test(tx *store.Tx, g *group) (w *rolecall.Webhook, tenant, source string, err error) {
	found, err := tx.Webhook(g.WebhookID)
	if ok, err := access.Found(err); !ok {
		return nil, "", "", err
	}
	return &found, "", feed.SourceOfOperators(f.access.PublicURL), nil
}

// givePlaces gives places in the feed of all tenants to new changes while operators have webhooks, until
// ctx ends. This wakes the webhooks. After a process was killed, their look every minute does it.
func (s *Service) givePlaces(ctx context.Context) {
	for ctx.Err() == nil {
		changed, stop := s.access.Feed.WaitForTenants()
		followed, err := store.Read(ctx, s.access.Store, rolecall.TenantID{}, (*store.Tx).IsFollowed)
		if followed && err == nil {
			_, err = s.access.Feed.GivePlaces(ctx)
		}
		if ctx.Err() == nil {
			s.access.Outages.Report(ctx, "cannot give places in the feed of all tenants for webhooks; will retry", err)
		}
		pause := placePause
		if !followed || err != nil {
			pause = followPause
		}
		if err == nil {
			select {
			case <-ctx.Done():
			case <-changed:
			}
		}
		stop()
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}
