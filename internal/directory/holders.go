package directory

import (
	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/store"
)

// policyFor returns the policy for holders of this kind.
func policyFor(h rolecall.Holder, ofUser, ofAccount *authz.Policy) *authz.Policy {
	if h.IsAccount {
		return ofAccount
	}
	return ofUser
}

// authorizeHolder returns nil if the caller may perform the operation of the policy on the
// holder, ErrNotFound if the caller may not know of them.
func (s *Service) authorizeHolder(tx *store.Tx, c access.Caller, policy *authz.Policy, h rolecall.Holder) (err error) {
	if h.IsAccount {
		_, _, err = s.authorizedAccount(tx, c, policy, h.ServiceAccountID())
	} else {
		_, _, err = s.access.AuthorizedUser(tx, c, policy, h.UserID())
	}
	return err
}
