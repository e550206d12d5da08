package service

import (
	"context"

	"github.com/rolecall/rolecall"
)

// AuthenticateBearer returns the principal for whom the token or key of an
// Authorization header speaks in the tenant. It returns ErrUnauthenticated if it is
// none, and ErrTenantSuspended for one of a suspended tenant.
func (s *Service) AuthenticateBearer(_ context.Context, _ rolecall.Tenant, _ string) (*rolecall.Principal, error) {
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
