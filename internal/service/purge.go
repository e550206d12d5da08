package service

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/audit"
	"github.com/rolecall/rolecall/internal/store"
)

const purgeBatch = 500 // rows of one transaction, so that no other write waits long

const (
	// purgeFirst is after the start, when also what a process was at that died is due.
	// A process may never get as old as the interval.
	purgeFirst    = settleTime + 30*time.Second
	purgeInterval = 10 * time.Minute
	purgePage     = 100 // tenants listed at once
)

// Run has the store watched, sends mail, records what was refused, every second,
// and removes what is over, in bounded batches, until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	var beside sync.WaitGroup
	beside.Go(func() { s.invalidation.Watch(ctx, s.store, s.log) })
	beside.Go(func() { s.outbox.Run(ctx, s.checkLink) })
	beside.Go(func() { s.purgeRepeatedly(ctx) })
	defer beside.Wait()
	flush := time.NewTicker(audit.Interval)
	defer flush.Stop()
	for {
		select {
		case <-ctx.Done():
			ctx, cancel := outliving(ctx)
			defer cancel()
			return s.refusals.Flush(ctx)
		case <-flush.C:
			if err := s.refusals.Flush(ctx); err != nil && ctx.Err() == nil {
				s.log.WarnContext(ctx, "refusals could not be recorded", "error", err)
			}
		}
	}
}

func (s *Service) purgeRepeatedly(ctx context.Context) {
	for pause := purgeFirst; ; pause = purgeInterval {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		if err := s.Purge(ctx); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "what is over could not be removed; it will be tried again", "error", err)
		}
	}
}

// settleTime is how long after its time a deleted tenant is purged, and a person who
// was erased looked for again: no node whose clock is behind restores the tenant, or
// had the person cached and writes into what was purged.
const settleTime = time.Minute

// Purge removes what is over now: expired keys, sessions, invitations and counters,
// mail that could not be sent, old tombstones and events, and the rows of deleted
// tenants. What fails for one tenant does not keep the others from being purged.
func (s *Service) Purge(ctx context.Context) error {
	failures := []error{
		s.purgeAll(ctx, rolecall.TenantID{}, func(tx *store.Tx) (int, error) { return tx.PurgeAttempts(s.now(), purgeBatch) }),
		s.purgeAll(ctx, rolecall.TenantID{}, func(tx *store.Tx) (int, error) { return tx.PurgeRequests(s.now(), purgeBatch) }),
		s.purgeAll(ctx, nowhere, func(tx *store.Tx) (int, error) { return tx.PurgeExpired(s.now(), s.now(), purgeBatch) }),
		s.purgeDeletedTenants(ctx),
		s.outbox.GiveUp(ctx),
	}
	for after := ""; ctx.Err() == nil; {
		tenants, err := s.Tenants(ctx, "", after, purgePage)
		if err != nil || len(tenants) == 0 {
			failures = append(failures, err)
			break
		}
		for _, tenant := range tenants {
			failures = append(failures, s.purgeAll(ctx, tenant.ID, func(tx *store.Tx) (int, error) {
				return tx.PurgeExpired(s.now(), s.now().Add(-tenant.Settings.EventLifetime()), purgeBatch)
			}))
		}
		after = tenants[len(tenants)-1].Name
	}
	return errors.Join(failures...)
}

// purgeAll repeats a batch until it removes nothing more.
func (s *Service) purgeAll(ctx context.Context, tenant rolecall.TenantID, batch func(*store.Tx) (int, error)) error {
	for removed := purgeBatch; removed >= purgeBatch; {
		err := s.store.Update(ctx, tenant, func(tx *store.Tx) (err error) {
			removed, err = batch(tx)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Service) purgeDeletedTenants(ctx context.Context) error {
	before := s.now().Add(-settleTime)
	var due []rolecall.TenantID
	err := s.store.View(ctx, rolecall.TenantID{}, func(tx *store.Tx) (err error) {
		due, err = tx.TenantsToPurge(before, purgePage)
		return err
	})
	failures := []error{err}
	for _, tenant := range due {
		failures = append(failures, s.purgeTenant(ctx, tenant, before))
	}
	return errors.Join(failures...)
}

func (s *Service) purgeTenant(ctx context.Context, tenant rolecall.TenantID, before rolecall.Time) error {
	for done := false; !done; {
		err := s.store.Update(ctx, tenant, func(tx *store.Tx) error {
			due, err := tx.BeginPurge(before)
			if err != nil || !due { // it was restored
				done = true
				return err
			}
			done, err = tx.PurgeTenant(purgeBatch)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
