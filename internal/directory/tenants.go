package directory

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/maypok86/otter/v2/stats"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/invalidation"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// CreatedTenant is a new tenant with the invitation of its first owner.
type CreatedTenant struct {
	Tenant     rolecall.Tenant
	Owner      rolecall.User // in a replay, has only the ID if the owner was deleted
	Invitation rolecall.Invitation
	Token      secret.Token // token of the invitation; empty in a replay
}

// keptTenant is a new tenant in the form in which the idempotency key and the event of the
// creation store it. It has no personal data.
type keptTenant struct {
	TenantID    rolecall.TenantID `json:"tenantId"`
	Name        string            `json:"name"`
	DisplayName string            `json:"displayName"`
	OwnerID     rolecall.UserID   `json:"ownerId"`
	CreatedAt   rolecall.Time     `json:"createdAt"`
	InvitedTo   rolecall.Time     `json:"invitationExpiresAt"`
	Delivery    rolecall.Delivery `json:"delivery,omitempty"` // of the invitation; empty: by mail
	NameMinimum *int64            `json:"nameMinimum,omitempty"`
}

// CreateTenant creates a tenant in one transaction, once for each idempotency key. The
// tenant has the built-in roles and an owner, who is invited by mail unless draft.Delivery is
// DeliverInResponse. If the key was used
// before, the result has no token. CreateTenant can fail with ErrPermissionDenied,
// ErrValidation, ErrTenantExists, ErrKeyReused, ErrKeyInProgress or ErrTooManyKeys.
func (s *Service) CreateTenant(ctx context.Context, c access.Caller, key idempotency.Key, draft rolecall.TenantDraft) (created idempotency.Created[CreatedTenant], err error) {
	if err := authz.CreateTenant.Authorize(c.Principal); err != nil {
		return created, err
	}
	draft.NameMin = cmp.Or(draft.NameMin, s.access.NameMinimum)
	if err := draft.Check().Err(); err != nil {
		return created, err
	}
	now, token := s.now(), secret.NewToken()
	tenant, owner := draft.Tenant(now), draft.Owner.User(now)
	tenant.Settings.EventsAtLeast = s.store.EventsAtLeast()
	invitation := rolecall.Invitation{UserID: owner.ID, CreatedAt: now, ExpiresAt: now.Add(tenant.Settings.InvitationLifetime()), Origin: c.Origin()}
	kept := keptTenant{tenant.ID, tenant.Name, tenant.DisplayName, owner.ID, now, invitation.ExpiresAt, draft.Delivery, tenant.Settings.NameMin}
	event := s.access.Event(c, rolecall.EventTenantCreated, rolecall.About(tenant.ID))
	stored, err := access.Create(ctx, s.access, c, key, idempotency.Creation[keptTenant]{
		Operation: "foundTenant", ID: rolecall.AnyID(tenant.ID), Value: kept,
		Event: event, Tenant: tenant.ID,
		Insert: func(tx *store.Tx) error {
			if err := s.insertTenant(tx, c, tenant, owner); err != nil {
				return err
			}
			if err := logForOperators(tx, *event, &tenant); err != nil {
				return err
			}
			tx.UpsertInvitation(invitation, token.Hash())
			tx.InsertEvent(*s.access.Event(c, rolecall.EventUserInvited, rolecall.About(owner.ID)))
			if draft.Delivery == rolecall.DeliverInResponse {
				return nil
			}
			return s.mailInvitation(tx, tenant.ID, &owner, token, invitation.ExpiresAt)
		},
	})
	switch {
	case err != nil:
		return created, err
	case stored.Replayed:
		return s.replayedTenant(ctx, stored.Value)
	}
	return idempotency.Created[CreatedTenant]{Value: CreatedTenant{tenant, owner, invitation, token}}, nil
}

// valuesAfter returns the values for the event of a new object: only After is set.
func valuesAfter(value any) (*rolecall.EventValues, error) {
	after, err := json.Marshal(value)
	return &rolecall.EventValues{After: after}, err
}

// insertTenant stores the tenant, the built-in roles, and the first owner with the role
// Owner. It also stores the events of the owner's creation and of the assignment.
func (s *Service) insertTenant(tx *store.Tx, c access.Caller, tenant rolecall.Tenant, owner rolecall.User) (err error) {
	tx.InsertTenant(tenant)
	tx.InsertUser(owner)
	event := s.access.Event(c, rolecall.EventUserCreated, rolecall.About(owner.ID))
	if event.Values, err = valuesAfter(owner); err != nil {
		return err
	}
	tx.InsertEvent(*event)
	roles := rolecall.BuiltInRoles(tenant.CreatedAt)
	for _, role := range roles {
		tx.InsertRole(role)
	}
	a := rolecall.Assignment{Holder: rolecall.HolderOf(owner.ID), Role: roles[0], Reach: rolecall.Everywhere(), ExpiresAt: rolecall.Never, GrantedAt: tenant.CreatedAt}
	tx.UpsertAssignment(a)
	if event, err = s.assignmentEvent(c, rolecall.EventRoleAssigned, rolecall.About(owner.ID), nil, &a); err == nil {
		tx.InsertEvent(*event)
	}
	return err
}

// replayedTenant returns the result for an idempotency key that was used before. The result
// has the tenant as it was created, and the first owner as the owner is now.
func (s *Service) replayedTenant(ctx context.Context, kept keptTenant) (created idempotency.Created[CreatedTenant], err error) {
	created = idempotency.Created[CreatedTenant]{Replayed: true, Value: CreatedTenant{
		Tenant: rolecall.Tenant{
			ID: kept.TenantID, Name: kept.Name, DisplayName: kept.DisplayName, Status: rolecall.TenantActive,
			Settings:  rolecall.TenantSettings{EventsAtLeast: s.store.EventsAtLeast(), NameMin: kept.NameMinimum},
			CreatedAt: kept.CreatedAt, UpdatedAt: kept.CreatedAt, Version: 1,
		},
		Invitation: rolecall.Invitation{UserID: kept.OwnerID, ExpiresAt: kept.InvitedTo},
	}}
	created.Value.Owner, err = store.Read(ctx, s.store, kept.TenantID, func(tx *store.Tx) (rolecall.User, error) { return tx.UserByID(kept.OwnerID) })
	if ok, err := access.Found(err); err != nil {
		return created, err
	} else if !ok {
		created.Value.Owner, created.Erased = rolecall.User{ID: kept.OwnerID}, true
	}
	return created, nil
}

// OperatedTenants returns a page of the tenants with the status, sorted by name. It lists
// only tenants that the caller's operator key can access. An empty status selects all
// tenants that are not deleted. The argument after is the last name of the previous page.
func (s *Service) OperatedTenants(ctx context.Context, c access.Caller, status rolecall.TenantStatus, after string, limit int) (page rolecall.Page[rolecall.Tenant], err error) {
	page.Items, err = store.Read(ctx, s.store, rolecall.TenantID{}, func(tx *store.Tx) ([]rolecall.Tenant, error) {
		return tx.Tenants(rolecall.TenantQuery{Among: c.Operator.Tenants, Status: status, Now: s.now(), After: after, Limit: limit + 1})
	})
	if len(page.Items) > limit {
		page.Items = page.Items[:limit]
		last := &page.Items[limit-1]
		page.Next = &rolecall.Position{Key: last.Name, ID: rolecall.AnyID(last.ID)}
	}
	return page, err
}

// searchesPerMinute is how many searches for an address an operator key can do in a minute. A stolen key
// could otherwise find out quickly which addresses of a long list have an account.
const searchesPerMinute = 600

// UsersWithAddress returns a page of the users with the email address in the tenants that the caller's
// operator key can access, ordered by the IDs of the tenants. It can fail with ErrScopeMissing or ErrTooManyAttempts.
func (s *Service) UsersWithAddress(ctx context.Context, c access.Caller, email string, after rolecall.TenantID, limit int) (page rolecall.Page[rolecall.UserInTenant], err error) {
	if err := authz.FindUsers.Authorize(c.Principal); err != nil {
		return page, err
	}
	bucket := s.access.Limiter.Bucket("searches for addresses", searchesPerMinute, time.Minute, c.Operator.ID.String())
	if _, err := s.access.Limiter.Count(ctx, []rolecall.Bucket{bucket}); err != nil {
		return page, err
	}
	err = s.store.View(ctx, rolecall.TenantID{}, func(tx *store.Tx) error {
		users, err := tx.UsersWithAddress(rolecall.EmailKey(email), c.Operator.Tenants, after, limit+1)
		if err != nil {
			return err
		}
		if len(users) > limit {
			users = users[:limit]
			page.Next = &rolecall.Position{ID: rolecall.AnyID(users[limit-1].Tenant.ID)}
		}
		var ids []rolecall.TenantID
		for _, u := range users {
			ids = append(ids, u.Tenant.ID)
		}
		tenants, err := tx.TenantsByID(ids)
		for _, u := range users {
			i := slices.IndexFunc(tenants, func(t rolecall.Tenant) bool { return t.ID == u.Tenant.ID })
			if i >= 0 {
				u.Tenant = tenants[i]
				page.Items = append(page.Items, u)
			}
		}
		return err
	})
	return page, err
}

// OperatedTenant returns the tenant with the name, which can be a deleted tenant that can
// still be restored. OperatedTenant can fail with ErrNotFound.
func (s *Service) OperatedTenant(ctx context.Context, c access.Caller, name string) (rolecall.Tenant, error) {
	living, err := s.operated(ctx, c, name)
	if errors.Is(err, rolecall.ErrNotFound) {
		if deleted, err := s.operatedDeleted(ctx, c, name); !errors.Is(err, rolecall.ErrNotFound) {
			return deleted.Tenant, err
		}
	}
	return living.Tenant, err
}

// UpdateOperatedTenant applies the patch to the tenant with the name. UpdateOperatedTenant
// can fail with ErrNotFound, ErrValidation or ErrPreconditionFailed.
func (s *Service) UpdateOperatedTenant(ctx context.Context, c access.Caller, name string, patch rolecall.TenantPatch, match Match[rolecall.Tenant]) (rolecall.Tenant, error) {
	if err := patch.Check().Err(); err != nil {
		return rolecall.Tenant{}, err
	}
	c, err := s.operated(ctx, c, name)
	if err != nil {
		return rolecall.Tenant{}, err
	}
	return s.updateTenant(ctx, c, patch, match)
}

// operated returns the caller with the tenant of that name as its tenant, so that an
// operator can act in the tenant. It returns ErrNotFound if the tenant does not exist, or
// if the operator key cannot access it.
func (s *Service) operated(ctx context.Context, c access.Caller, name string) (access.Caller, error) {
	return s.inside(ctx, c, name, access.ErrNoSuchTenant, func(tx *store.Tx) (rolecall.Tenant, error) { return tx.TenantByName(name) })
}

// operatedDeleted is like operated, for a deleted tenant that can still be restored.
func (s *Service) operatedDeleted(ctx context.Context, c access.Caller, name string) (access.Caller, error) {
	return s.inside(ctx, c, name, noDeletedTenant, func(tx *store.Tx) (rolecall.Tenant, error) { return tx.DeletedTenant(name, s.now()) })
}

// inside returns the caller with the tenant that the function read returns as its tenant.
// If the tenant does not exist, or if the operator key cannot access the name, inside
// returns the error none.
func (s *Service) inside(ctx context.Context, c access.Caller, name string, none error, read func(*store.Tx) (rolecall.Tenant, error)) (access.Caller, error) {
	inside := *c.Principal
	c.Principal = &inside
	if inside.Operator != nil && !inside.Operator.IsFor(name) {
		return c, none
	}
	err := s.store.View(ctx, rolecall.TenantID{}, func(tx *store.Tx) (err error) {
		inside.Tenant, err = read(tx)
		return err
	})
	if ok, err := access.Found(err); !ok && err == nil {
		return c, none
	}
	return c, err
}

var noDeletedTenant = rolecall.ErrNotFound.With("No tenant with this name can be restored. A tenant can be restored for 24 hours after it was deleted.")

// SuspendTenant suspends the tenant: its sessions and sign-ins are rejected until the
// tenant is resumed. No data is deleted. SuspendTenant can fail with ErrNotFound.
func (s *Service) SuspendTenant(ctx context.Context, c access.Caller, name, reason string) (rolecall.Tenant, error) {
	return s.setTenantStatus(ctx, c, name, rolecall.TenantSuspended, rolecall.EventTenantSuspended, reason)
}

// ResumeTenant makes a suspended tenant active. ResumeTenant can fail with ErrNotFound.
func (s *Service) ResumeTenant(ctx context.Context, c access.Caller, name, reason string) (rolecall.Tenant, error) {
	return s.setTenantStatus(ctx, c, name, rolecall.TenantActive, rolecall.EventTenantResumed, reason)
}

func (s *Service) setTenantStatus(ctx context.Context, c access.Caller, name string, status rolecall.TenantStatus, kind rolecall.EventType, reason string) (tenant rolecall.Tenant, err error) {
	if c, err = s.operated(ctx, c, name); err != nil {
		return tenant, err
	}
	err = s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		old, err := tx.TenantByName(name)
		if err != nil {
			return nil, err
		}
		if tenant = old; old.Status == status {
			return nil, nil
		}
		tenant.Status, tenant.UpdatedAt, tenant.Version = status, max(s.now(), old.UpdatedAt+1), old.Version+1
		if err := store.CheckVersion(tx.UpdateTenant(old, tenant)); err != nil {
			return nil, err
		}
		event := s.access.Event(c, kind, rolecall.About(old.ID))
		event.Reason = reason
		return event, logForOperators(tx, *event, &old)
	})
	return tenant, err
}

// DeleteTenant deletes the tenant, which is unknown to all requests from then on. The
// tenant can be restored for 24 hours. After that, a background task deletes its rows. Its
// name cannot be used again for 30 days. DeleteTenant can fail with ErrNotFound or
// ErrPreconditionFailed.
func (s *Service) DeleteTenant(ctx context.Context, c access.Caller, name string, match Match[rolecall.Tenant]) error {
	c, err := s.operated(ctx, c, name)
	if err != nil {
		return err
	}
	return s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		old, err := tx.TenantByName(name)
		if err != nil {
			return nil, err
		}
		if err := match.Check(&old); err != nil {
			return nil, err
		}
		if err := store.CheckVersion(tx.DeleteTenant(old, s.now().Add(rolecall.TenantRestorable))); err != nil {
			return nil, err
		}
		event := s.access.Event(c, rolecall.EventTenantDeleted, rolecall.About(old.ID))
		return event, logForOperators(tx, *event, &old)
	})
}

// RestoreTenant restores a deleted tenant with its users, sessions and tokens. If the
// tenant is not deleted, RestoreTenant changes nothing and returns the tenant. It returns
// ErrNotFound if the tenant cannot be restored anymore.
func (s *Service) RestoreTenant(ctx context.Context, c access.Caller, name, reason string) (tenant rolecall.Tenant, err error) {
	deleted, err := s.operatedDeleted(ctx, c, name)
	if errors.Is(err, rolecall.ErrNotFound) {
		if living, err := s.operated(ctx, c, name); !errors.Is(err, rolecall.ErrNotFound) {
			return living.Tenant, err
		}
	}
	if err != nil {
		return tenant, err
	}
	err = s.access.Mutate(ctx, deleted, func(tx *store.Tx) (*rolecall.Event, error) {
		restored, err := tx.RestoreTenant(deleted.Tenant, s.now())
		if err != nil {
			return nil, err
		}
		switch tenant, err = tx.TenantByName(name); {
		case errors.Is(err, rolecall.ErrNotFound):
			return nil, noDeletedTenant
		case err != nil || !restored: // another request restored it
			return nil, err
		}
		event := s.access.Event(deleted, rolecall.EventTenantRestored, rolecall.About(tenant.ID))
		event.Reason = reason
		return event, logForOperators(tx, *event, &tenant)
	})
	return tenant, err
}

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
	return otter.Must(&otter.Options[string, tenantEntry]{MaximumSize: cachedTenants, StatsRecorder: stats.NewCounter()})
}

// CacheStats returns the statistics of the cache of tenants.
func (s *Service) CacheStats() invalidation.CacheStats { return invalidation.StatsOf(s.tenants) }

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
