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

// assignmentsOf returns all assignments of the holder, sorted by role id.
func assignmentsOf(tx *store.Tx, h rolecall.Holder) ([]rolecall.Assignment, error) {
	if h.IsAccount {
		return tx.ServiceAccountRoles(h.ServiceAccountID())
	}
	return tx.Assignments(h.UserID())
}

// assignmentOf returns the holder's assignment of the role, or ErrNotFound.
func assignmentOf(tx *store.Tx, h rolecall.Holder, role rolecall.RoleID) (rolecall.Assignment, error) {
	if h.IsAccount {
		return tx.ServiceAccountRole(h.ServiceAccountID(), role)
	}
	return tx.Assignment(h.UserID(), role)
}

// putAssignment inserts or replaces the assignment of the holder.
func putAssignment(tx *store.Tx, h rolecall.Holder, a rolecall.Assignment) {
	if h.IsAccount {
		tx.PutServiceAccountRole(a)
	} else {
		tx.PutAssignment(a)
	}
}

// deleteAssignment deletes the holder's assignment of the role and reports whether it
// existed.
func deleteAssignment(tx *store.Tx, h rolecall.Holder, role rolecall.RoleID) (bool, error) {
	if h.IsAccount {
		return tx.DeleteServiceAccountRole(h.ServiceAccountID(), role)
	}
	return tx.DeleteAssignment(h.UserID(), role)
}
