package signin

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/invalidation"
	"github.com/rolecall/rolecall/internal/ratelimit"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// cachedOperators is the maximum number of operator keys in the cache of a process.
const cachedOperators = 1000

// operatorCache caches operator keys by the hash of the key. The entry under the zero
// hash answers whether any operator key exists. It contains one of the stored keys, or
// the zero key if no key is stored.
type operatorCache = otter.Cache[[32]byte, *operatorEntry]

// operatorEntry is an entry of operatorCache. Only the member touching changes after the
// entry was created.
type operatorEntry struct {
	key      rolecall.OperatorKey
	stamp    invalidation.Stamp
	touching atomic.Bool
}

func newOperatorCache() *operatorCache {
	return otter.Must(&otter.Options[[32]byte, *operatorEntry]{MaximumSize: cachedOperators})
}

// Operated reports whether any operator key exists. The result can be up to one second
// out of date.
func (s *Service) Operated(ctx context.Context) (bool, error) {
	e, err := invalidation.Load(ctx, s.operators, [32]byte{}, s.isCurrentOperator, func(ctx context.Context, _ [32]byte) (*operatorEntry, error) {
		e := &operatorEntry{stamp: s.invalidation.Stamp()}
		err := s.store.View(ctx, rolecall.TenantID{}, func(tx *store.Tx) error {
			keys, err := tx.OperatorKeys(rolecall.OperatorKeyID{}, 1)
			if len(keys) > 0 {
				e.key = keys[0]
			}
			return err
		})
		return e, err
	})
	return err == nil && !e.key.ID.IsZero(), err
}

// isCurrentOperator reports whether the cached entry is fresh, so that it can be used
// without a read from the store.
func (s *Service) isCurrentOperator(e *operatorEntry) bool {
	now := s.now()
	if e.key.ID.IsZero() {
		return s.invalidation.IsFreshAbsence(e.stamp, now)
	}
	return s.invalidation.IsFresh(e.stamp, now, e.key.ID)
}

// AuthenticateOperator returns the principal of the operator key, without a tenant. The
// argument source is the address of the client. AuthenticateOperator returns
// ErrUnauthenticated if the key is invalid, ErrTooManyAttempts if the source has sent too
// many unknown keys, and ErrUnavailable if the store is unreachable.
func (s *Service) AuthenticateOperator(ctx context.Context, bearer, source string) (*authz.Principal, error) {
	token, ok := secret.ParseOperatorKey(bearer)
	if !ok {
		return nil, rolecall.ErrUnauthenticated
	}
	key, err := s.operatorKey(ctx, token, source)
	if err != nil {
		return nil, err
	}
	return authz.NewOperatorPrincipal(rolecall.Tenant{}, key, s.now()), nil
}

// operatorIn returns the principal of the operator key in the tenant. It accepts a
// suspended tenant, because operators suspend and resume tenants. If the key is not valid
// for the tenant, operatorIn returns the same ErrUnauthenticated as for an unknown
// tenant.
func (s *Service) operatorIn(ctx context.Context, tenant rolecall.Tenant, token secret.Token, source string) (*authz.Principal, error) {
	key, err := s.operatorKey(ctx, token, source)
	if err != nil {
		return nil, err
	}
	if tenant.ID.IsZero() || !key.IsFor(tenant.Name) {
		return nil, rolecall.ErrUnauthenticated
	}
	return authz.NewOperatorPrincipal(tenant, key, s.now()), nil
}

// operatorKey returns the unexpired operator key with this token and records its use.
// Each unknown key costs one read from the store and is counted for the source. After too
// many unknown keys, the source can use only the keys that are in the cache of this
// process. For other keys, operatorKey returns ErrTooManyAttempts.
func (s *Service) operatorKey(ctx context.Context, token secret.Token, source string) (*rolecall.OperatorKey, error) {
	hash := [32]byte(token.Hash())
	buckets := []rolecall.Bucket{s.limiter.Bucket("operator keys", s.limiter.Limits.Source, 10*time.Minute, ratelimit.NetworkOf(source))}
	if _, seen := s.operators.GetIfPresent(hash); !seen {
		if wait := s.limiter.Wait(buckets); wait > 0 {
			return nil, rolecall.ErrTooManyAttempts.After(wait)
		}
	}
	e, err := invalidation.Load(ctx, s.operators, hash, s.isCurrentOperator, s.loadOperator)
	switch known, err := access.Found(err); {
	case err != nil:
		return nil, err
	case !known:
		if _, err := s.limiter.Count(ctx, buckets); err != nil {
			return nil, err
		}
		return nil, rolecall.ErrUnauthenticated
	case !e.key.Live(s.now()):
		return nil, rolecall.ErrUnauthenticated
	}
	s.touchOperator(ctx, e)
	return &e.key, nil
}

func (s *Service) loadOperator(ctx context.Context, hash [32]byte) (*operatorEntry, error) {
	e := &operatorEntry{stamp: s.invalidation.Stamp()}
	err := s.store.View(ctx, rolecall.TenantID{}, func(tx *store.Tx) (err error) {
		e.key, err = tx.OperatorKeyByToken(hash[:])
		return err
	})
	return e, err
}

// touchOperator writes the time of the last use of the key, at most once a minute. It
// logs errors and does not return them, because the time is only informative.
func (s *Service) touchOperator(ctx context.Context, e *operatorEntry) {
	now := s.now()
	if now.Sub(e.key.LastUsedAt) < rolecall.TouchInterval || !e.touching.CompareAndSwap(false, true) {
		return
	}
	err := s.store.Update(ctx, rolecall.TenantID{}, func(tx *store.Tx) error {
		tx.TouchOperatorKey(e.key.ID, now)
		return nil
	})
	if err != nil {
		e.touching.Store(false)
		s.log.WarnContext(ctx, "cannot record the last use of an operator key", "key", e.key.ID, "error", err)
	} else if e.key.LastUsedAt == 0 {
		s.log.InfoContext(ctx, "operator key used for the first time", "key", e.key.ID, "name", e.key.Name, "tenants", e.key.Tenants)
	}
}

// SetPassword sets the password of the user with the email address, ends the user's
// sessions, and revokes the user's API tokens. A pending user becomes active. SetPassword
// can fail with ErrNotFound, ErrValidation or ErrBusy.
func (s *Service) SetPassword(ctx context.Context, tenantName, email, password string) error {
	tenant, err := s.access.TenantNamed(ctx, tenantName)
	if err != nil {
		return err
	}
	var user rolecall.User
	err = s.store.View(ctx, tenant.ID, func(tx *store.Tx) (err error) {
		user, _, err = tx.UserByEmail(email)
		return err
	})
	if ok, err := access.Found(err); err != nil {
		return err
	} else if !ok {
		return access.ErrNoSuchAddress
	}
	if err := s.access.CheckNewPassword("/password", password, &user, &tenant); err != nil {
		return err
	}
	hash, err := s.passwords.Hash(ctx, password)
	if err != nil {
		return err
	}
	return s.access.OnUser(ctx, tenantName, email, func(tx *store.Tx, tenant *rolecall.Tenant, user rolecall.User) (*rolecall.Event, error) {
		if user.Status == rolecall.UserPending {
			changed := user
			changed.Status = rolecall.UserActive
			changed.Stamp(s.now())
			if err := store.CheckVersion(tx.UpdateUser(user, changed)); err != nil {
				return nil, err
			}
		}
		event := s.access.OperatorEvent(rolecall.EventPasswordChanged, rolecall.About(user.ID))
		return event, s.setPassword(tx, tenant.ID, &user, hash, event, access.Browser{})
	})
}

// ResetFactorsOf is ResetFactors for an operator, who names the user by the email address.
// It can fail with ErrNotFound.
func (s *Service) ResetFactorsOf(ctx context.Context, tenantName, email string) error {
	return s.access.OnUser(ctx, tenantName, email, func(tx *store.Tx, tenant *rolecall.Tenant, user rolecall.User) (*rolecall.Event, error) {
		return s.resetFactors(tx, tenant.ID, &user, s.access.OperatorEvent(rolecall.EventFactorsReset, rolecall.About(user.ID)))
	})
}

// SetEmail changes the user's email address to newEmail and ends all sessions of the user.
// It notifies the old address, unless the two addresses differ only in spelling. SetEmail
// can fail with ErrNotFound, ErrValidation, ErrEmailTaken or ErrManagedByDirectory.
func (s *Service) SetEmail(ctx context.Context, tenantName, email, newEmail string) error {
	if err := checkEmail(newEmail); err != nil {
		return err
	}
	return s.access.OnUser(ctx, tenantName, email, func(tx *store.Tx, tenant *rolecall.Tenant, user rolecall.User) (*rolecall.Event, error) {
		changed := user
		changed.Email = newEmail
		if user.Differences(changed) == 0 {
			return nil, nil
		}
		if err := access.RequireUnmanaged(tx, &user); err != nil {
			return nil, err
		}
		changed.Stamp(s.now())
		if err := store.CheckVersion(tx.UpdateUser(user, changed)); err != nil {
			return nil, err
		}
		event, err := s.access.UserEvent(access.Command, rolecall.EventUserUpdated, &user, &changed)
		if err != nil {
			return nil, err
		}
		return event, s.emailChanged(tx, tenant.ID, &user, &changed, rolecall.SessionID{}, event, access.Browser{})
	})
}
