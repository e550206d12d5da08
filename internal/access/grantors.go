package access

import (
	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/store"
)

// IsStillAuthorized reports whether a link for a user may still be used. The
// argument id is the id of the user. The argument by is the id of the user or service
// account that requested the link. The link may be used if the policy still allows this
// requester to perform the operation on the user. For example, the user may have more
// permissions now, or the requester fewer. If by is zero, an operator requested the link,
// and IsStillAuthorized returns true.
func (s *Service) IsStillAuthorized(tx *store.Tx, tenant rolecall.Tenant, policy *authz.Policy, by, id rolecall.UserID) (bool, error) {
	if by.IsZero() {
		return true, nil
	}
	grantor, err := s.Grantor(tx, tenant, by)
	if err == nil {
		_, _, err = s.AuthorizedUser(tx, Caller{Principal: grantor}, policy, id)
	}
	if kind := rolecall.KindOf(err); kind == rolecall.NotFound || kind == rolecall.Forbidden {
		return false, nil
	}
	return err == nil, err
}

// Grantor returns the principal of the user or service account with the id, with its
// current permissions. It returns ErrNotFound if no active user or service account has the
// id.
func (s *Service) Grantor(tx *store.Tx, tenant rolecall.Tenant, id rolecall.UserID) (*authz.Principal, error) {
	user, err := tx.UserByID(id)
	if ok, err := Found(err); err != nil {
		return nil, err
	} else if !ok {
		return s.grantingAccount(tx, tenant, rolecall.ServiceAccountID(id))
	}
	if user.Status != rolecall.UserActive {
		return nil, rolecall.ErrNotFound
	}
	assignments, err := tx.Assignments(rolecall.HolderOf(id))
	return authz.NewPrincipal(tenant, user, rolecall.Session{}, assignments, s.Now()), err
}

func (s *Service) grantingAccount(tx *store.Tx, tenant rolecall.Tenant, id rolecall.ServiceAccountID) (*authz.Principal, error) {
	account, err := tx.ServiceAccountByID(id)
	if err != nil {
		return nil, err
	}
	if account.Status != rolecall.ServiceAccountActive {
		return nil, rolecall.ErrNotFound
	}
	roles, err := tx.Assignments(rolecall.HolderOf(id))
	return authz.NewPrincipal(tenant, rolecall.User{ID: rolecall.UserID(id)}, rolecall.Session{}, roles, s.Now()), err
}
