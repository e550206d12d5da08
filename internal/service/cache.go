package service

import (
	"context"
	"encoding/binary"
	"errors"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/rolecall/rolecall"
)

const (
	// cacheLifetime bounds how long a change made by another process goes
	// unseen. A node's own changes are seen at once.
	cacheLifetime = time.Second

	cachedTenants    = 20_000
	cachedPrincipals = 50_000
)

// changes remembers when something last changed: each change takes the next
// number, and a slot keeps the number of the last change of the ids that share
// it. The slots are fixed, so memory does not grow with what is served.
type changes struct {
	last  atomic.Uint64
	slots [4096]atomic.Uint64
}

func (c *changes) slot(id [16]byte) *atomic.Uint64 {
	return &c.slots[binary.BigEndian.Uint16(id[14:])%uint16(len(c.slots))] // the tail of an id is random
}

// mark records a change of what id names. It comes after the commit and before
// the answer.
func (c *changes) mark(id [16]byte) {
	number, slot := c.last.Add(1), c.slot(id)
	for old := slot.Load(); old < number && !slot.CompareAndSwap(old, number); old = slot.Load() {
	}
}

// since reports whether id may have changed after the change of that number.
func (c *changes) since(id [16]byte, number uint64) bool { return c.slot(id).Load() > number }

// tenantCache keeps tenants by name, unknown ones too: those resolve to the zero
// tenant.
type tenantCache struct {
	entries *otter.Cache[string, tenantEntry]
}

type tenantEntry struct {
	tenant   rolecall.Tenant
	loadedAt rolecall.Time
}

func newTenantCache() *tenantCache {
	return &tenantCache{otter.Must(&otter.Options[string, tenantEntry]{MaximumSize: cachedTenants})}
}

// Tenant returns the tenant of that name, the zero Tenant if there is none. The
// answer may be a second old.
func (s *Service) Tenant(ctx context.Context, name string) (rolecall.Tenant, error) {
	if e, ok := s.tenants.entries.GetIfPresent(name); ok {
		if s.now().Sub(e.loadedAt) < cacheLifetime {
			return e.tenant, nil
		}
		s.tenants.entries.Invalidate(name)
	}
	e, err := s.tenants.entries.Get(ctx, name, otter.LoaderFunc[string, tenantEntry](s.loadTenant))
	if errors.Is(err, context.Canceled) && ctx.Err() == nil { // another caller's load, and that caller left
		e, err = s.loadTenant(ctx, name)
	}
	return e.tenant, err
}

func (s *Service) loadTenant(ctx context.Context, name string) (tenantEntry, error) {
	e := tenantEntry{loadedAt: s.now()}
	err := s.store.View(ctx, rolecall.TenantID{}, func(tx Tx) (err error) {
		e.tenant, err = tx.TenantByName(name)
		return err
	})
	if ok, err := found(err); !ok {
		return tenantEntry{loadedAt: e.loadedAt}, err
	}
	return e, nil
}

// principalCache keeps who a token is, as long as nothing that it depends on has
// changed.
type principalCache struct {
	entries *otter.Cache[principalKey, *principalEntry]
	changes changes
}

type principalKey struct {
	tenant rolecall.TenantID
	hash   [32]byte
}

// principalEntry is immutable but for touching.
type principalEntry struct {
	principal  *rolecall.Principal
	token      rolecall.SessionToken
	generation int64 // the newest that was presented
	loadedAt   rolecall.Time
	loadedWith uint64 // the last change before it was loaded
	touching   atomic.Bool
}

func newPrincipalCache() *principalCache {
	return &principalCache{entries: otter.Must(&otter.Options[principalKey, *principalEntry]{MaximumSize: cachedPrincipals})}
}

// fresh reports whether the entry still says what the store says, as far as this
// node can know.
func (c *principalCache) fresh(e *principalEntry, now rolecall.Time) bool {
	return now.Sub(e.loadedAt) < cacheLifetime && now < e.principal.ValidUntil &&
		!c.changes.since(e.principal.Tenant.ID, e.loadedWith) && !c.changes.since(e.principal.User.ID, e.loadedWith)
}

// userChanged voids what is cached of the user's sessions.
func (s *Service) userChanged(id rolecall.UserID) { s.principals.changes.mark(id) }

// rolesChanged voids what is cached of all the tenant's sessions.
func (s *Service) rolesChanged(id rolecall.TenantID) { s.principals.changes.mark(id) }
