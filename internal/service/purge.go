package service

import (
	"context"
	"sync"
	"time"

	"github.com/rolecall/rolecall"
)

const (
	purgeInterval = 10 * time.Minute
	purgeBatch    = 500 // rows of one transaction, so that no other write waits long
	purgePage     = 100 // tenants listed at once
)

// Run has the store watched, records what was refused, every second, and removes
// what is over, in bounded batches, until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	var watching sync.WaitGroup
	watching.Go(func() { s.watch(ctx) })
	defer watching.Wait()
	timer, flush := time.NewTicker(purgeInterval), time.NewTicker(tallyInterval)
	defer timer.Stop()
	defer flush.Stop()
	for {
		select {
		case <-ctx.Done():
			return s.Flush(context.WithoutCancel(ctx))
		case <-flush.C:
			if err := s.Flush(ctx); err != nil && ctx.Err() == nil {
				s.log.WarnContext(ctx, "refusals could not be recorded", "error", err)
			}
		case <-timer.C:
			if err := s.Purge(ctx); err != nil && ctx.Err() == nil {
				s.log.WarnContext(ctx, "what is over could not be removed; it will be tried again", "error", err)
			}
		}
	}
}

// Purge removes what is over now: expired keys, sessions and counters, old
// tombstones, and the rows of deleted tenants.
func (s *Service) Purge(ctx context.Context) error {
	if err := s.purgeAll(ctx, rolecall.TenantID{}, func(tx Tx) (int, error) { return tx.PurgeAttempts(s.now(), purgeBatch) }); err != nil {
		return err
	}
	for after := ""; ; {
		tenants, err := s.Tenants(ctx, after, purgePage)
		if err != nil {
			return err
		}
		if len(tenants) == 0 {
			return s.purgeDeletedTenants(ctx)
		}
		for _, tenant := range tenants {
			if err := s.purgeAll(ctx, tenant.ID, func(tx Tx) (int, error) {
				return tx.PurgeExpired(s.now(), s.now().Add(-tenant.Settings.EventLifetime()), purgeBatch)
			}); err != nil {
				return err
			}
		}
		after = tenants[len(tenants)-1].Name
	}
}

// purgeAll repeats a batch until it removes nothing more.
func (s *Service) purgeAll(ctx context.Context, tenant rolecall.TenantID, batch func(Tx) (int, error)) error {
	for removed := purgeBatch; removed >= purgeBatch; {
		err := s.store.Update(ctx, tenant, func(tx Tx) (err error) {
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
	var deleted []rolecall.TenantID
	err := s.store.View(ctx, rolecall.TenantID{}, func(tx Tx) (err error) {
		deleted, err = tx.DeletedTenants(purgePage)
		return err
	})
	if err != nil {
		return err
	}
	for _, tenant := range deleted {
		for empty := false; !empty; {
			err := s.store.Update(ctx, tenant, func(tx Tx) (err error) {
				empty, err = tx.PurgeTenant(purgeBatch)
				return err
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
