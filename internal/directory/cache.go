package directory

import (
	"context"

	"github.com/maypok86/otter/v2"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/invalidation"
	"github.com/rolecall/rolecall/internal/store"
)

const cachedTenants = 20_000

// tenantCache has copies of stored tenants, by name. For a name that no tenant has, it has
// the zero Tenant, so that repeated requests with this name do not read the store.
type tenantCache = otter.Cache[string, tenantEntry]

type tenantEntry struct {
	tenant rolecall.Tenant
	name   rolecall.AnyID
	stamp  invalidation.Stamp
}

func newTenantCache() *tenantCache {
	return otter.Must(&otter.Options[string, tenantEntry]{MaximumSize: cachedTenants})
}

// Tenant returns the tenant with the name, or the zero Tenant if no tenant has the name.
// The result comes from a cache, and can be up to one second out of date.
func (s *Service) Tenant(ctx context.Context, name string) (rolecall.Tenant, error) {
	if e, ok := s.tenants.GetIfPresent(name); ok && s.isCurrentTenant(e) {
		return e.tenant, nil
	}
	e, err := invalidation.Load(ctx, s.tenants, name, s.isCurrentTenant, s.loadTenant)
	return e.tenant, err
}

// isCurrentTenant reports whether the cache entry may still be used.
func (s *Service) isCurrentTenant(e tenantEntry) bool {
	now := s.now()
	if e.tenant.ID.IsZero() {
		return s.invalidation.IsFreshAbsence(e.stamp, now, e.name)
	}
	return s.invalidation.IsFresh(e.stamp, now, e.tenant.ID)
}

func (s *Service) loadTenant(ctx context.Context, name string) (tenantEntry, error) {
	e := tenantEntry{name: rolecall.TenantNameID(name), stamp: s.invalidation.Stamp()}
	err := s.store.View(ctx, rolecall.TenantID{}, func(tx *store.Tx) (err error) {
		e.tenant, err = tx.TenantByName(name)
		return err
	})
	if ok, err := access.Found(err); !ok {
		return tenantEntry{name: e.name, stamp: e.stamp}, err
	}
	return e, nil
}
