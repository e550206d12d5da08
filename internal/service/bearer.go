package service

import (
	"context"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
)

// AuthenticateBearer returns the principal for whom the token or key of an
// Authorization header speaks in the tenant; source is where it comes from. It
// returns ErrUnauthenticated if it is none, ErrTenantSuspended for a token of a
// suspended tenant, and what AuthenticateOperator does.
func (s *Service) AuthenticateBearer(ctx context.Context, tenant rolecall.Tenant, bearer, source string) (*rolecall.Principal, error) {
	if key, ok := secret.ParseOperatorKey(bearer); ok {
		return s.operatorIn(ctx, tenant, key, source)
	}
	return nil, rolecall.ErrUnauthenticated
}

// NeedRecent returns ErrNotRecent if the principal is a person who signed in, or
// confirmed to be that person, longer ago than the tenant allows.
func (s *Service) NeedRecent(p *rolecall.Principal) error {
	age := p.Tenant.Settings.ReauthenticationAge()
	if p.Interactive() && age > 0 && s.now().Sub(p.Session.ConfirmedSince()) > age {
		return rolecall.ErrNotRecent
	}
	return nil
}
