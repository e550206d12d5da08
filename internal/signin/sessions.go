package signin

import (
	"cmp"
	"context"
	"errors"
	"math"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/maypok86/otter/v2/stats"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/invalidation"
	"github.com/rolecall/rolecall/internal/limiter"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// Authenticate returns the principal of the session to which the tokens belong. If touch
// is true, it also records the use of the session. Authenticate returns
// ErrUnauthenticated if no token belongs to a live session, and ErrAmbiguousSession if
// the tokens belong to two or more live sessions. It returns ErrTenantSuspended for a
// live session of a suspended tenant, and ErrUnavailable if the store is unreachable.
func (s *Service) Authenticate(ctx context.Context, tenant rolecall.Tenant, tokens []secret.Token, touch bool) (*authz.Principal, error) {
	e, _, err := s.session(ctx, tenant, tokens)
	if err != nil {
		return nil, err
	}
	if tenant.Status == rolecall.TenantSuspended {
		return nil, rolecall.ErrTenantSuspended
	}
	if touch {
		s.touch(ctx, e)
	}
	return e.principal, nil
}

// session returns the only live session to which the tokens belong, and the newest of its
// tokens. It returns ErrUnauthenticated and ErrAmbiguousSession as Authenticate does.
func (s *Service) session(ctx context.Context, tenant rolecall.Tenant, tokens []secret.Token) (*principalEntry, secret.Token, error) {
	var live *principalEntry
	var by secret.Token
	for _, token := range tokens {
		e, err := s.resolve(ctx, tenant, token)
		switch ok, err := access.Found(err); {
		case err != nil:
			return nil, "", err
		case !ok:
			continue
		case live != nil && live.principal.Session.ID != e.principal.Session.ID:
			return nil, "", rolecall.ErrAmbiguousSession
		}
		if live == nil || e.token.Generation > live.token.Generation {
			live, by = e, token
		}
	}
	if live == nil {
		return nil, "", rolecall.ErrUnauthenticated
	}
	return live, by, nil
}

// resolve returns the live session of the token, or ErrNotFound. The first use of a
// successor token retires its predecessor. A retired token still works for a grace
// period. If it is used later, resolve ends the session, because the token may be stolen.
func (s *Service) resolve(ctx context.Context, tenant rolecall.Tenant, token secret.Token) (*principalEntry, error) {
	e, err := s.lookUp(ctx, tenant, token)
	if err != nil {
		return nil, err
	}
	now := s.now()
	switch {
	case !access.AcceptsSession(e.principal, now):
		return nil, rolecall.ErrNotFound
	case isReused(&e.token, &tenant, now):
		return nil, s.endReused(ctx, e)
	case e.token.Generation > e.generation:
		return s.confirm(ctx, tenant, token, e)
	}
	return e, nil
}

// isReused reports whether the use of the token at the time now is after its grace period.
func isReused(token *rolecall.SessionToken, tenant *rolecall.Tenant, now rolecall.Time) bool {
	return token.RetiredAt != rolecall.Never && now >= expiryOf(token, tenant)
}

// expiryOf returns when the grace period of a retired token ends.
func expiryOf(token *rolecall.SessionToken, tenant *rolecall.Tenant) rolecall.Time {
	return token.RetiredAt.Add(tenant.Settings.Grace())
}

// lookUp returns the entry of the token. It uses the cached entry if that is fresh and
// its session is unexpired. Otherwise, it reads the session from the store.
func (s *Service) lookUp(ctx context.Context, tenant rolecall.Tenant, token secret.Token) (*principalEntry, error) {
	key := principalKey{tenant.ID, [32]byte(token.Hash())}
	if e, ok := s.principals.GetIfPresent(key); ok && s.isCurrentSession(e, &tenant) {
		return e, nil
	}
	return s.loadSession(ctx, tenant, key)
}

func (s *Service) isCurrentSession(e *principalEntry, tenant *rolecall.Tenant) bool {
	now, p := s.now(), e.principal
	return p.Tenant.Version == tenant.Version && now < p.ValidUntil && p.Session.Live(now, tenant.Settings.For(p.Assignments, now)) &&
		s.invalidation.IsFresh(e.stamp, now, tenant.ID, p.User.ID, p.Session.ID)
}

func (s *Service) loadSession(ctx context.Context, tenant rolecall.Tenant, key principalKey) (*principalEntry, error) {
	current := func(e *principalEntry) bool { return s.isCurrentSession(e, &tenant) }
	return s.load(ctx, key, current, func(ctx context.Context, limit int) (*principalEntry, error) {
		e := &principalEntry{stamp: s.invalidation.Stamp()}
		state, err := store.Read(ctx, s.store, key.tenant, func(tx *store.Tx) (rolecall.SessionState, error) { return tx.SessionWithRoles(key.hash[:], limit) })
		if err != nil {
			return nil, err
		}
		e.principal = authz.NewPrincipal(tenant, state.User, state.Session, state.Assignments, e.stamp.At)
		e.principal.Groups = state.Groups
		e.token, e.generation = state.Token, state.Generation
		if e.token.RetiredAt != rolecall.Never {
			e.principal.SessionTokenExpiresAt = expiryOf(&e.token, &tenant)
		}
		return e, nil
	})
}

// confirm records the first use of a token that Refresh has created. From then on, the
// previous token works only for the grace period.
func (s *Service) confirm(ctx context.Context, tenant rolecall.Tenant, token secret.Token, e *principalEntry) (*principalEntry, error) {
	err := s.store.Update(ctx, tenant.ID, func(tx *store.Tx) error {
		tx.ConfirmGeneration(e.principal.Session.ID, e.token.Generation, s.now())
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s.lookUp(ctx, tenant, token)
}

// endReused ends a session because a retired token of the session was used after the
// grace period. Either the client or an attacker has the newer token, and the server
// cannot distinguish them. endReused notifies the user by mail and returns ErrNotFound.
func (s *Service) endReused(ctx context.Context, e *principalEntry) error {
	c := access.Caller{Principal: e.principal}
	err := s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		if ok, err := tx.DeleteSession(e.principal.Session.ID); !ok {
			return nil, err
		}
		access.VoidLinks(tx, e.principal.Session.ID)
		event := s.access.Event(c, rolecall.EventTokenReused, rolecall.About(e.principal.User.ID))
		event.Actor = access.AnonymousActor
		return event, s.notifyOfSession(tx, c.Tenant.ID, &c.User, rolecall.MailTokenReused, &c.Session)
	})
	if err != nil {
		return err
	}
	return rolecall.ErrNotFound
}

// touch writes the time of the last use of the session or the API token, at most once per
// TouchInterval. It logs errors and does not return them, because their only effect is that a
// session can expire earlier.
func (s *Service) touch(ctx context.Context, e *principalEntry) {
	now, p := s.now(), e.principal
	lastUsed, interval := p.Session.LastUsedAt, p.Tenant.Settings.TouchInterval()
	if p.Token != nil {
		lastUsed, interval = p.Token.LastUsedAt, rolecall.TouchInterval
	}
	touched := e.touched.Load()
	if now.Sub(max(lastUsed, rolecall.Time(touched))) < interval || !e.touched.CompareAndSwap(touched, int64(now)) {
		return
	}
	err := s.store.Update(ctx, p.Tenant.ID, func(tx *store.Tx) error {
		if p.Token != nil {
			tx.TouchAPIToken(p.Token.ID, now)
		} else {
			tx.TouchSession(p.Session.ID, now, interval)
		}
		return nil
	})
	if err != nil {
		e.touched.Store(touched)
		s.log.WarnContext(ctx, "cannot record the last use of a session or token", "principal", p.User.ID, "error", err)
	}
}

// cachedPrincipals is the approximate maximum size of the principal cache in bytes. It is
// enough for 13,000 users with one role. Principals that are not in the cache are read
// from the store at each request.
const cachedPrincipals = 28 << 20

// principalCache caches the principals of session tokens and API tokens by the hash of
// the token. An entry is used only while the data that it depends on is unchanged.
type principalCache = otter.Cache[principalKey, *principalEntry]

type principalKey struct {
	tenant rolecall.TenantID
	hash   [32]byte
}

// principalEntry is an entry of principalCache. Only the member touched changes after
// the entry was created.
type principalEntry struct {
	principal  *authz.Principal
	token      rolecall.SessionToken
	generation int64 // generation of the newest session token that a client has sent
	guarded    bool  // for an API token: its holder has a second factor
	stamp      invalidation.Stamp
	touched    atomic.Int64 // the last use that touch has written, a rolecall.Time
}

// The limits of loads of callers with more than largeCaller permissions in their roles. Such a caller can have
// 100,000, which take 20 MB, and more through groups.
const (
	largeCaller      = 4000
	largeLoadsQueue  = 7 // loads that wait, per core
	largeLoadMaxWait = time.Second
)

// errManyLoads refuses the load of a large caller.
var errManyLoads = rolecall.ErrUnavailable.With("Too many callers with thousands of permissions send requests. Nothing was done. Repeat the request shortly.")

// newLargeLoads returns the limiter of the loads of large callers. One load per core runs at a time.
func newLargeLoads() *limiter.Shared[rolecall.TenantID] {
	cores := runtime.GOMAXPROCS(0)
	return limiter.NewShared[rolecall.TenantID](cores, largeLoadsQueue*cores, largeLoadMaxWait)
}

// load returns the cached entry with the key if it is current. Otherwise, it calls read, which must return
// store.ErrManyPermissions if the roles of the caller have more permissions than limit. Then load waits for a slot
// of the limiter of large callers and reads the caller again, without a limit.
func (s *Service) load(ctx context.Context, key principalKey, current func(*principalEntry) bool, read func(ctx context.Context, limit int) (*principalEntry, error)) (*principalEntry, error) {
	return invalidation.Load(ctx, s.principals, key, current, func(ctx context.Context, key principalKey) (*principalEntry, error) {
		e, err := read(ctx, largeCaller)
		if !errors.Is(err, store.ErrManyPermissions) {
			return e, err
		}
		release, ok := s.largeLoads.AcquireFor(ctx, key.tenant)
		if !ok {
			return nil, cmp.Or(ctx.Err(), error(errManyLoads))
		}
		defer release()
		return read(ctx, math.MaxInt)
	})
}

func newPrincipalCache() *principalCache {
	return otter.Must(&otter.Options[principalKey, *principalEntry]{
		MaximumWeight: cachedPrincipals,
		Weigher:       func(_ principalKey, e *principalEntry) uint32 { return uint32(e.principal.Size()) },
		StatsRecorder: stats.NewCounter(),
	})
}

// CacheStats returns the statistics of the cache of sessions and API tokens.
func (s *Service) CacheStats() invalidation.CacheStats { return invalidation.StatsOf(s.principals) }
