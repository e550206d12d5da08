package service

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
)

// How long what is cached counts at most. A process's own changes are seen at once
// and those of others within a second: because they are told, or else because
// nothing older than that counts.
const (
	watchedLifetime   = time.Minute
	unwatchedLifetime = 800 * time.Millisecond // the rest of the second is for the request that finds out

	cachedTenants    = 20_000
	cachedPrincipals = 50_000
)

// tenantCache keeps tenants by name, unknown ones too: those resolve to the zero
// tenant.
type tenantCache = otter.Cache[string, tenantEntry]

type tenantEntry struct {
	tenant rolecall.Tenant
	name   [16]byte // the mark of its name
	loaded loaded
}

// nameMark stands in changes for a tenant's name, because a name that is unknown has
// no id.
func nameMark(name string) [16]byte {
	return [16]byte(secret.Digest([]byte(name))[:16])
}

func newTenantCache() *tenantCache {
	return otter.Must(&otter.Options[string, tenantEntry]{MaximumSize: cachedTenants})
}

// principalCache keeps who a token is, of a session or of an API, as long as nothing
// that it depends on has changed.
type principalCache = otter.Cache[principalKey, *principalEntry]

type principalKey struct {
	tenant rolecall.TenantID
	hash   [32]byte
}

// principalEntry is immutable but for touching.
type principalEntry struct {
	principal  *rolecall.Principal
	token      rolecall.SessionToken
	generation int64 // the newest that was presented
	guarded    bool  // the holder of an API token has a second factor
	loaded     loaded
	touching   atomic.Bool
}

func newPrincipalCache() *principalCache {
	return otter.Must(&otter.Options[principalKey, *principalEntry]{MaximumSize: cachedPrincipals})
}

// loaded is when something was read from the store.
type loaded struct {
	at    rolecall.Time
	after uint64 // the last change then
}

// loading is a read that begins now.
func (s *Service) loading() loaded { return loaded{s.now(), s.changes.last.Load()} }

// counts reports whether what was read, of the ids, still is what the store says,
// as far as this process can know.
func (s *Service) counts(l loaded, now rolecall.Time, ids ...[16]byte) bool {
	lifetime := unwatchedLifetime
	if s.changes.watched(now) {
		lifetime = watchedLifetime
	}
	return now.Sub(l.at).Abs() < lifetime && !s.changes.since(l.after, ids...) // Abs: a clock that is set back ends it too
}

// Tenant returns the tenant of that name, the zero Tenant if there is none. The
// answer may be a second old.
func (s *Service) Tenant(ctx context.Context, name string) (rolecall.Tenant, error) {
	if e, ok := s.tenants.GetIfPresent(name); ok && s.isCurrentTenant(e) {
		return e.tenant, nil
	}
	e, err := load(ctx, s.tenants, name, s.isCurrentTenant, s.loadTenant)
	return e.tenant, err
}

// isCurrentTenant reports whether the entry counts. A new or restored tenant is not
// announced to other processes under its name, so a name is unknown for less than a
// second only.
func (s *Service) isCurrentTenant(e tenantEntry) bool {
	now := s.now()
	if e.tenant.ID.IsZero() {
		return now.Sub(e.loaded.at).Abs() < unwatchedLifetime && !s.changes.since(e.loaded.after, e.name)
	}
	return s.counts(e.loaded, now, e.tenant.ID)
}

func (s *Service) loadTenant(ctx context.Context, name string) (tenantEntry, error) {
	e := tenantEntry{name: nameMark(name), loaded: s.loading()}
	err := s.store.View(ctx, rolecall.TenantID{}, func(tx Tx) (err error) {
		e.tenant, err = tx.TenantByName(name)
		return err
	})
	if ok, err := found(err); !ok {
		return tenantEntry{name: e.name, loaded: e.loaded}, err
	}
	return e, nil
}

// load returns what is cached under the key if that is current, else what read
// finds, which runs once at a time for each key.
func load[K comparable, E any](ctx context.Context, cache *otter.Cache[K, E], key K, current func(E) bool, read func(context.Context, K) (E, error)) (E, error) {
	for {
		own := false
		e, err := cache.Get(ctx, key, otter.LoaderFunc[K, E](func(ctx context.Context, key K) (E, error) {
			own = true
			return read(ctx, key)
		}))
		switch {
		case errors.Is(err, context.Canceled) && ctx.Err() == nil: // another caller's read, and that caller left
			return read(ctx, key)
		case err != nil || own || current(e):
			return e, err
		}
		cache.Invalidate(key) // it is old, or changed while another caller read it
	}
}
