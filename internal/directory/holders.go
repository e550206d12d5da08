package directory

import (
	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/store"
)

// policyFor returns the policy ofAccount if the holder is a service account, and ofUser if
// the holder is a user.
func policyFor(h rolecall.Holder, ofUser, ofAccount *authz.Policy) *authz.Policy {
	if h.IsAccount {
		return ofAccount
	}
	return ofUser
}

// authorizeHolder checks whether the policy allows the caller to perform the operation on
// the holder. It returns ErrNotFound if the holder does not exist or is not visible to the
// caller.
func (s *Service) authorizeHolder(tx *store.Tx, c access.Caller, policy *authz.Policy, h rolecall.Holder) (err error) {
	if h.IsAccount {
		_, _, err = s.authorizedAccount(tx, c, policy, h.ServiceAccountID())
	} else {
		_, _, err = s.access.AuthorizedUser(tx, c, policy, h.UserID())
	}
	return err
}
