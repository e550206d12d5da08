package webhooks

import (
	"context"
	"fmt"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/feed"
	"github.com/rolecall/rolecall/internal/outbound"
	"github.com/rolecall/rolecall/internal/store"
)

// tenantFeed is the change feed of a tenant, for its webhooks. A position is the number of an event.
type tenantFeed struct {
	*Service
	tenant rolecall.TenantID
}

func (f tenantFeed) sender() *outbound.Client { return f.access.Outbound }

func (f tenantFeed) checkURL(url string) error {
	if err := outbound.CheckURL(url); err != nil {
		return fmt.Errorf("%w. Items are sent to hosts on the internet only. While you develop, read GET /changes", err)
	}
	return nil
}

func (f tenantFeed) catchUp(ctx context.Context) error { return f.access.Feed.Number(ctx, f.tenant) }

func (f tenantFeed) begin(tx *store.Tx) (last int64, webhooks int, err error) {
	if _, err := tx.NumberEvents(f.now()); err != nil {
		return 0, 0, err
	}
	return tx.LockFeed()
}

func (f tenantFeed) lock(tx *store.Tx) (int64, error) {
	last, _, err := tx.LockFeed()
	return last, err
}

func (f tenantFeed) end(tx *store.Tx) (int64, error) {
	state, err := tx.Feed(0)
	return state.Last, err
}

// before returns the number of the last event before the time. It searches by halves, so the times of events must be
// in the order of their numbers.
func (f tenantFeed) before(tx *store.Tx, at rolecall.Time) (int64, error) {
	state, err := tx.Feed(0)
	low, high := state.First-1, state.Last
	for err == nil && low < high {
		middle := low + (high-low)/2
		var head []rolecall.ChangeHead
		if head, err = tx.ChangeHeads(middle, middle+1); len(head) == 0 || head[0].OccurredAt >= at {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low, err
}

func (f tenantFeed) isBehind(ctx context.Context, end int64) (bool, error) {
	state, err := f.access.Feed.End(ctx, f.tenant)
	return state.Next.Number > end || !state.UpToDate, err
}

func (f tenantFeed) open(ctx context.Context, g *group, next *selection) error {
	return f.view(ctx, g, func(tx *store.Tx) (err error) {
		if next.webhook, err = tx.Webhook(g.WebhookID); err != nil {
			return err
		}
		tenant, err := tx.TenantByID(f.tenant)
		if found, err := access.Found(err); err != nil {
			return err
		} else if !found || tenant.Status == rolecall.TenantSuspended {
			next.wait = true
			return nil
		}
		_, err = tx.ServiceAccountByID(next.webhook.ServiceAccountID)
		found, err := access.Found(err)
		if next.orphan = !found; err != nil {
			return err
		}
		return f.selectItems(tx, g, next)
	})
}

func (f tenantFeed) selectItems(tx *store.Tx, g *group, next *selection) error {
	state, err := tx.Feed(0)
	if err != nil {
		return err
	}
	last := state.Last
	if g.Until > 0 {
		last = min(last, g.Until)
	}
	// Deleted events are skipped. After a failover that has lost commits, the place can be behind the end.
	after := min(max(g.Number, state.First-1), last)
	next.end = min(last, after+page)
	next.more = next.end < last
	heads, err := tx.ChangeHeads(after, next.end)
	for _, head := range heads {
		next.add(g, change{ChangeHead: head})
	}
	return err
}

func (f tenantFeed) render(ctx context.Context, g *group, c *change) (d delivery, err error) {
	err = f.view(ctx, g, func(tx *store.Tx) error {
		w, tenant, err := f.current(tx, g)
		if err != nil || tenant == nil || !w.Enabled {
			d.stop = true
			return err
		}
		if d.skip = !w.Sends(&c.ChangeHead); d.skip {
			return nil
		}
		principal, failure, err := f.reader(tx, *tenant, w)
		if found, err := access.Found(err); !found {
			d.stop, d.orphan = true, true
			return err
		}
		if d.failure = failure; failure != "" {
			return nil
		}
		changes, _, err := tx.Changes(rolecall.ChangeQuery{After: c.Number - 1, To: c.Number, Limit: 1})
		if err != nil {
			return err
		}
		if d.skip = len(changes) == 0; d.skip {
			return nil
		}
		item, err := f.item(principal, *tenant, changes)
		if err == nil {
			f.complete(&d, f.tenant, w, &item)
		}
		return err
	})
	return d, err
}

func (f tenantFeed) test(tx *store.Tx, g *group) (w *rolecall.Webhook, tenant, source string, err error) {
	w, of, err := f.current(tx, g)
	if of == nil {
		return nil, "", "", err
	}
	return w, of.Name, feed.SourceOf(f.access.PublicURL, of.Name), nil
}

// current returns the webhook and its tenant. The tenant is nil if it is suspended or deleted, or if
// the webhook was deleted.
func (f tenantFeed) current(tx *store.Tx, g *group) (*rolecall.Webhook, *rolecall.Tenant, error) {
	w, err := tx.Webhook(g.WebhookID)
	if found, err := access.Found(err); !found {
		return nil, nil, err
	}
	tenant, err := tx.TenantByID(f.tenant)
	if found, err := access.Found(err); !found || tenant.Status == rolecall.TenantSuspended {
		return &w, nil, err
	}
	return &w, &tenant, nil
}
