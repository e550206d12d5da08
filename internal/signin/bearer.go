package signin

import (
	"context"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// AuthenticateBearer returns the principal of the API token or operator key in an
// Authorization header, and records its use. The argument source is the address of the
// client. AuthenticateBearer returns ErrUnauthenticated for every invalid token,
// ErrTenantSuspended for a valid API token of a suspended tenant, and ErrUnavailable if
// the store is unreachable. For an operator key, it returns the errors of
// AuthenticateOperator.
func (s *Service) AuthenticateBearer(ctx context.Context, tenant rolecall.Tenant, bearer, source string) (*authz.Principal, error) {
	if key, ok := secret.ParseOperatorKey(bearer); ok {
		return s.operatorIn(ctx, tenant, key, source)
	}
	token, ok := secret.ParseAPIToken(bearer)
	if !ok {
		return nil, rolecall.ErrUnauthenticated
	}
	e, err := s.apiToken(ctx, tenant, token)
	if ok, err := access.Found(err); err != nil {
		return nil, err
	} else if !ok {
		return nil, rolecall.ErrUnauthenticated
	}
	switch {
	case !access.AcceptsToken(e.principal, e.guarded, s.now()):
		return nil, rolecall.ErrUnauthenticated
	case tenant.Status == rolecall.TenantSuspended:
		return nil, rolecall.ErrTenantSuspended
	}
	s.touch(ctx, e)
	return e.principal, nil
}

// apiToken returns the cache entry of the API token, and loads the token if no fresh
// entry exists. It returns ErrNotFound if the token is unknown.
func (s *Service) apiToken(ctx context.Context, tenant rolecall.Tenant, token secret.Token) (*principalEntry, error) {
	key := principalKey{tenant.ID, [32]byte(token.Hash())}
	current := func(e *principalEntry) bool {
		now, p := s.now(), e.principal
		return p.Tenant.Version == tenant.Version && now < p.ValidUntil && s.invalidation.IsFresh(e.stamp, now, tenant.ID, p.User.ID, p.Token.ID)
	}
	if e, ok := s.principals.GetIfPresent(key); ok && current(e) {
		return e, nil
	}
	return s.load(ctx, key, current, func(ctx context.Context, limit int) (*principalEntry, error) {
		e := &principalEntry{stamp: s.invalidation.Stamp()}
		state, err := store.Read(ctx, s.store, key.tenant, func(tx *store.Tx) (rolecall.APITokenState, error) { return tx.APITokenByHash(key.hash[:], limit) })
		if err != nil {
			return nil, err
		}
		e.principal, e.guarded = authz.NewTokenPrincipal(tenant, state, e.stamp.At), state.Guarded
		return e, nil
	})
}
