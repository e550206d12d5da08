package access

import (
	"errors"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/store"
)

// AcceptsSession reports whether the session of the principal is accepted: its user is active, it has
// not expired, and it was started with a second factor if the tenant requires one.
func AcceptsSession(p *authz.Principal, now rolecall.Time) bool {
	settings := p.Tenant.Settings.For(p.Assignments, now)
	return p.User.Status == rolecall.UserActive && p.Session.Live(now, settings) && (p.Session.SecondFactor || !settings.RequireFactor())
}

// AcceptsToken reports whether the API token of the principal is accepted: its holder is active, and
// it has not expired. The token of a user without a second factor is not accepted if the tenant
// requires one, because the user could not sign in either. The argument guarded is true if the user
// has a second factor.
func AcceptsToken(p *authz.Principal, guarded bool, now rolecall.Time) bool {
	if p.User.Status != rolecall.UserActive || !p.Token.Live(now) {
		return false
	}
	return p.Kind != authz.PrincipalUser || guarded || !p.Tenant.Settings.SecondFactor.Demands(p.Assignments, now)
}

// Authenticate returns the caller of an earlier request, with its current permissions. It locks the
// credential of the request until the end of the Update, like LockCredential. It returns
// ErrUnauthenticated if the credential is no longer accepted.
func (s *Service) Authenticate(tx *store.Tx, tenant rolecall.Tenant, r rolecall.JobRequest) (Caller, error) {
	principal, err := s.principalOf(tx, tenant, r)
	if errors.Is(err, rolecall.ErrNotFound) {
		err = rolecall.ErrUnauthenticated
	}
	c := Caller{Principal: principal, RequestID: r.ID, Source: r.Source}
	if err == nil {
		err = LockCredential(tx, c)
	}
	return c, err
}

// principalOf returns the principal of the credential, or ErrNotFound.
func (s *Service) principalOf(tx *store.Tx, tenant rolecall.Tenant, r rolecall.JobRequest) (*authz.Principal, error) {
	now := s.Now()
	switch {
	case !r.Session.IsZero():
		return sessionPrincipal(tx, tenant, r.Session, now)
	case !r.Token.IsZero():
		return tokenPrincipal(tx, tenant, r.Token, now)
	}
	key, err := tx.OperatorKeyByID(r.OperatorKey)
	if err == nil && (!key.Live(now) || !key.IsFor(tenant.Name)) {
		err = rolecall.ErrNotFound
	}
	return authz.NewOperatorPrincipal(tenant, &key, now), err
}

func sessionPrincipal(tx *store.Tx, tenant rolecall.Tenant, id rolecall.SessionID, now rolecall.Time) (*authz.Principal, error) {
	session, err := tx.SessionByID(id)
	if err != nil {
		return nil, err
	}
	user, err := tx.UserByID(session.UserID)
	if err != nil {
		return nil, err
	}
	assignments, err := tx.Assignments(rolecall.HolderOf(user.ID))
	if err != nil {
		return nil, err
	}
	p := authz.NewPrincipal(tenant, user, session, assignments, now)
	if !AcceptsSession(p, now) {
		return nil, rolecall.ErrNotFound
	}
	return p, nil
}

func tokenPrincipal(tx *store.Tx, tenant rolecall.Tenant, id rolecall.APITokenID, now rolecall.Time) (*authz.Principal, error) {
	token, err := tx.APIToken(id)
	if err != nil {
		return nil, err
	}
	state := rolecall.APITokenState{Token: token}
	holder := rolecall.HolderOf(token.UserID)
	if !token.ServiceAccountID.IsZero() {
		holder = rolecall.HolderOf(token.ServiceAccountID)
		account, err := tx.ServiceAccountByID(token.ServiceAccountID)
		if err != nil {
			return nil, err
		}
		state.Holder = rolecall.User{ID: rolecall.UserID(account.ID), Name: account.Name, Status: rolecall.UserStatus(account.Status)}
	} else {
		if state.Holder, err = tx.UserByID(token.UserID); err != nil {
			return nil, err
		}
		factors, err := tx.Factors(token.UserID)
		if err != nil {
			return nil, err
		}
		state.Guarded = factors.TOTP.Sealed != nil || len(factors.Passkeys) > 0
	}
	if state.Assignments, err = tx.Assignments(holder); err != nil {
		return nil, err
	}
	p := authz.NewTokenPrincipal(tenant, state, now)
	if !AcceptsToken(p, state.Guarded, now) {
		return nil, rolecall.ErrNotFound
	}
	return p, nil
}
