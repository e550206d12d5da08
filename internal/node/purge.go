package node

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/feed"
	"github.com/rolecall/rolecall/internal/invalidation"
	"github.com/rolecall/rolecall/internal/store"
)

const (
	// purgeFirst is the time from the start of a process to its first purge. After this
	// time, tenants that a dead process has left behind can be purged too. purgeInterval
	// would be too long, because a process may end earlier.
	purgeFirst    = access.SettleTime + 30*time.Second
	purgeInterval = 10 * time.Minute
	purgePage     = 100 // tenants per page
)

// Run does the background work of the node until ctx ends. It watches the store, sends
// mail and the items of webhooks, runs jobs, numbers events, builds the Merkle logs, writes counted
// refusals as events every second, finishes the deletion of
// roles, and purges expired data in batches of limited size.
func (n *Node) Run(ctx context.Context) error {
	var background sync.WaitGroup
	background.Go(func() {
		n.Access.Invalidation.Watch(ctx, n.watch, func(err error) { n.Access.Outages.Report(ctx, lostNotifications, err) })
	})
	background.Go(func() { n.Access.Outbox.Run(ctx, n.SignIn.CheckLink) })
	background.Go(func() { n.Directory.RunJobs(ctx) })
	background.Go(func() { n.Access.Feed.Run(ctx) })
	background.Go(func() { n.numberRest(ctx) })
	background.Go(func() { n.Webhooks.Run(ctx) })
	background.Go(func() { n.Access.AuditLog.Run(ctx) })
	background.Go(func() { n.finishDeletions(ctx) })
	background.Go(func() { n.purgeRepeatedly(ctx) })
	defer background.Wait()
	flush := time.NewTicker(access.RefusalInterval)
	defer flush.Stop()
	for {
		select {
		case <-ctx.Done():
			return n.recordRequests(ctx)
		case <-flush.C:
			if err := n.recordRequests(ctx); ctx.Err() == nil {
				n.Access.Outages.Report(ctx, "cannot record refused requests or requests of directories; will retry", err)
			}
		}
	}
}

// numberRest numbers the events that other processes have left without a number, such as a process that
// was killed. The readers of the changes of all tenants do not know of them. After an error, the next
// purge does it.
func (n *Node) numberRest(ctx context.Context) {
	if err := n.Access.Feed.Number(ctx, rolecall.OperatorsTenant); err != nil && ctx.Err() == nil {
		n.Access.Outages.Warn(ctx, "cannot number events of other processes for the operators' log; the next purge does it", err)
	}
	for _, status := range []rolecall.TenantStatus{"", rolecall.TenantDeleted} {
		for after := ""; ctx.Err() == nil; {
			tenants, err := n.Directory.Tenants(ctx, status, after, purgePage)
			for _, tenant := range tenants {
				err = errors.Join(err, n.Access.Feed.Number(ctx, tenant.ID))
				after = tenant.Name
			}
			if err != nil && ctx.Err() == nil {
				n.Access.Outages.Warn(ctx, "cannot number events of other processes for the change feed; the next purge does it", err)
			}
			if err != nil || len(tenants) < purgePage {
				break
			}
		}
	}
}

// recordRequests writes the counted refusals as events, and the requests of directories. The end of ctx does not interrupt
// the write. After an interrupted write, it would be unknown whether the refusals were
// written, and they would be written again.
func (n *Node) recordRequests(ctx context.Context) error {
	refusals, cancel := access.Detached(ctx)
	defer cancel()
	err := n.Access.Refusals.Flush(refusals)
	requests, cancelRequests := access.Detached(ctx)
	defer cancelRequests()
	return errors.Join(err, n.Directory.FlushDirectoryRequests(requests))
}

// lostNotifications is the warning of a watch that failed.
const lostNotifications = "lost notifications of changes by other processes; reading the database more often until they return"

// watch passes changes by other processes to the table of invalidations and to the feed, until
// ctx ends or the watch fails.
func (n *Node) watch(ctx context.Context) error {
	return n.Access.Store.Watch(ctx, watcher{n.Access.Invalidation, n.Access.Feed, func() { n.Access.Outages.Report(ctx, lostNotifications, nil) }})
}

// watcher passes invalidations to the table, and changes to the feed.
type watcher struct {
	*invalidation.Table
	feed  *feed.Feed
	works func() // is called while notifications arrive
}

// CaughtUp records that notifications arrive (store.Watcher).
func (w watcher) CaughtUp(behind time.Duration) {
	w.works()
	w.Table.CaughtUp(behind)
}

// Changed wakes the readers that wait for changes of the tenant (store.Watcher).
func (w watcher) Changed(tenant rolecall.TenantID) { w.feed.Changed(tenant) }

// finishDeletions waits for requests that delete a role or a group with many users, and removes it
// from the remaining users. It returns when ctx ends.
func (n *Node) finishDeletions(ctx context.Context) {
	for {
		tenant, ok := n.Access.NextUnfinished(ctx)
		if !ok {
			return
		}
		if err := n.purgeAll(ctx, tenant, n.Directory.ContinueDeletions); err != nil && ctx.Err() == nil {
			n.Access.Outages.Warn(ctx, "cannot remove a deleted role or group from all users; will retry", err, "tenant", tenant)
		}
	}
}

func (n *Node) purgeRepeatedly(ctx context.Context) {
	for pause := purgeFirst; ; pause = purgeInterval {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if err := n.Purge(ctx); err != nil && ctx.Err() == nil {
			n.Access.Outages.Warn(ctx, "cannot delete expired data; will retry", err)
		}
	}
}

// Purge deletes expired data: idempotency keys, sessions, links, API tokens, counters of
// attempts, unsent mail, tombstones and events. It also deletes what remains of deleted
// roles and tenants. If it fails for one tenant, it still purges the others.
func (n *Node) Purge(ctx context.Context) error {
	failures := []error{
		n.Access.Feed.Number(ctx, rolecall.OperatorsTenant),
		n.Access.Feed.Purge(ctx, access.BatchSize),
		n.purgeAll(ctx, rolecall.TenantID{}, func(tx *store.Tx) (int, error) { return tx.PurgeAttempts(n.Access.Now(), access.BatchSize) }),
		n.purgeAll(ctx, rolecall.TenantID{}, func(tx *store.Tx) (int, error) { return tx.PurgeRequests(n.Access.Now(), access.BatchSize) }),
		n.purgeAll(ctx, access.UnknownTenant, func(tx *store.Tx) (int, error) {
			return tx.PurgeExpired(n.Access.Now(), n.Access.Now(), access.BatchSize)
		}),
		n.purgeDeletedTenants(ctx),
		n.Access.Outbox.GiveUp(ctx),
	}
	for after := ""; ctx.Err() == nil; {
		tenants, err := n.Directory.Tenants(ctx, "", after, purgePage)
		if err != nil || len(tenants) == 0 {
			failures = append(failures, err)
			break
		}
		for _, tenant := range tenants {
			failures = append(failures, n.purgeAll(ctx, tenant.ID, func(tx *store.Tx) (int, error) {
				expired, err := tx.PurgeExpired(n.Access.Now(), n.Access.Now().Add(-tenant.Settings.EventLifetime()), access.BatchSize)
				if err != nil {
					return expired, err
				}
				if _, err := n.Directory.WarnDirectoryTokens(tenant.ID, tx); err != nil {
					return expired, err
				}
				taken, err := n.Directory.ContinueDeletions(tx)
				return expired + taken, err
			}))
		}
		after = tenants[len(tenants)-1].Name
	}
	return errors.Join(failures...)
}

// purgeAll runs batch in one transaction after another, until batch reports fewer than
// access.BatchSize removed rows.
func (n *Node) purgeAll(ctx context.Context, tenant rolecall.TenantID, batch func(*store.Tx) (int, error)) error {
	for removed := access.BatchSize; removed >= access.BatchSize; {
		err := n.Access.Store.Update(ctx, tenant, func(tx *store.Tx) (err error) {
			removed, err = batch(tx)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (n *Node) purgeDeletedTenants(ctx context.Context) error {
	before := n.Access.Now().Add(-access.SettleTime)
	due, err := store.Read(ctx, n.Access.Store, rolecall.TenantID{}, func(tx *store.Tx) ([]rolecall.TenantID, error) { return tx.TenantsToPurge(before, purgePage) })
	failures := []error{err}
	for _, tenant := range due {
		failures = append(failures, n.purgeTenant(ctx, tenant, before))
	}
	return errors.Join(failures...)
}

func (n *Node) purgeTenant(ctx context.Context, tenant rolecall.TenantID, before rolecall.Time) error {
	for done := false; !done; {
		err := n.Access.Store.Update(ctx, tenant, func(tx *store.Tx) error {
			due, err := tx.BeginPurge(before)
			if err != nil || !due { // it was restored
				done = true
				return err
			}
			done, err = tx.PurgeTenant(n.Access.Now(), access.BatchSize)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
