package directory

import (
	"context"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/store"
)

// ServiceAccounts returns a page of the service accounts that q selects. ServiceAccounts
// can fail with ErrPermissionDenied.
func (s *Service) ServiceAccounts(ctx context.Context, c access.Caller, q rolecall.ServiceAccountQuery) (page rolecall.Page[rolecall.ServiceAccount], err error) {
	if err := authz.ReadServiceAccounts.Authorize(c.Principal); err != nil {
		return page, err
	}
	return access.Read(ctx, s.access, c, func(tx *store.Tx) (rolecall.Page[rolecall.ServiceAccount], error) { return tx.ServiceAccounts(q) })
}

// ServiceAccount returns the service account with the id. ServiceAccount can fail with
// ErrNotFound or ErrPermissionDenied.
func (s *Service) ServiceAccount(ctx context.Context, c access.Caller, id rolecall.ServiceAccountID) (account rolecall.ServiceAccount, err error) {
	if err := authz.ReadServiceAccounts.Authorize(c.Principal); err != nil {
		return account, err
	}
	return access.Read(ctx, s.access, c, func(tx *store.Tx) (rolecall.ServiceAccount, error) { return tx.ServiceAccountByID(id) })
}

// CreateServiceAccount creates a service account without roles and tokens, once for each
// idempotency key. CreateServiceAccount can fail with ErrPermissionDenied, ErrValidation,
// ErrAccountNameTaken, ErrTooManyAccounts, ErrKeyReused, ErrKeyInProgress or
// ErrTooManyKeys.
func (s *Service) CreateServiceAccount(ctx context.Context, c access.Caller, key idempotency.Key, draft rolecall.ServiceAccountDraft) (created idempotency.Created[rolecall.ServiceAccount], err error) {
	if err := authz.CreateServiceAccount.Authorize(c.Principal); err != nil {
		return created, err
	}
	if err := draft.Check(c.Tenant.Settings.NameMinimum()).Err(); err != nil {
		return created, err
	}
	account := draft.ServiceAccount(s.now())
	return access.Create(ctx, s.access, c, key, idempotency.Creation[rolecall.ServiceAccount]{
		Operation: "createServiceAccount", ID: rolecall.AnyID(account.ID), Value: account,
		Event: s.access.Event(c, rolecall.EventServiceAccountCreated, rolecall.About(account.ID)),
		Insert: func(tx *store.Tx) error {
			tx.LockOwners()
			stored, err := tx.ServiceAccounts(rolecall.ServiceAccountQuery{Limit: 1, Count: true})
			if err != nil {
				return err
			}
			if stored.Total.Count >= rolecall.ServiceAccountsMax {
				return rolecall.ErrTooManyAccounts
			}
			tx.InsertServiceAccount(account)
			return nil
		},
		OnlyID: func(id rolecall.AnyID) rolecall.ServiceAccount {
			return rolecall.ServiceAccount{ID: rolecall.ServiceAccountID(id)}
		},
	})
}

// UpdateServiceAccount applies the patch to the stored account. After a concurrent change,
// it applies the patch to the new version. UpdateServiceAccount can fail with
// ErrPermissionDenied, ErrValidation, ErrNotFound, ErrPreconditionFailed or
// ErrAccountNameTaken.
func (s *Service) UpdateServiceAccount(ctx context.Context, c access.Caller, id rolecall.ServiceAccountID, patch rolecall.ServiceAccountPatch, match Match[rolecall.ServiceAccount]) (account rolecall.ServiceAccount, err error) {
	if err := authz.UpdateServiceAccount.Authorize(c.Principal); err != nil {
		return account, err
	}
	if err := patch.Check(c.Tenant.Settings.NameMinimum()).Err(); err != nil {
		return account, err
	}
	err = s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		old, err := tx.ServiceAccountByID(id)
		if err != nil {
			return nil, err
		}
		if err := match.Check(&old); err != nil {
			return nil, err
		}
		changed, members := patch.Apply(old, s.now())
		if account = changed; members == nil {
			return nil, nil
		}
		if err := store.CheckVersion(tx.UpdateServiceAccount(old, changed)); err != nil {
			return nil, err
		}
		return changeEvent(s, c, rolecall.EventServiceAccountUpdated, rolecall.About(id), &old, &changed, members)
	})
	if err != nil {
		return rolecall.ServiceAccount{}, err
	}
	return account, nil
}

// DeleteServiceAccount deletes the service account with its tokens and its role
// assignments. DeleteServiceAccount can fail with ErrNotFound, ErrPermissionDenied,
// ErrBeyondOwnPermissions or ErrPreconditionFailed.
func (s *Service) DeleteServiceAccount(ctx context.Context, c access.Caller, id rolecall.ServiceAccountID, match Match[rolecall.ServiceAccount]) error {
	if err := authz.DeleteServiceAccount.Authorize(c.Principal); err != nil {
		return err
	}
	return s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		old, err := s.protectedAccount(tx, c, authz.DeleteServiceAccount, id, match)
		if err != nil {
			return nil, err
		}
		if err := store.CheckVersion(tx.DeleteServiceAccount(old)); err != nil {
			return nil, err
		}
		return changeEvent(s, c, rolecall.EventServiceAccountDeleted, rolecall.About(id), &old, nil, nil)
	})
}

// protectedAccount returns the service account for an operation that revokes its access. It
// returns the errors of authorizedAccount, and ErrPreconditionFailed if match is false. It
// also calls LockOwners, so that the assignments do not change concurrently.
func (s *Service) protectedAccount(tx *store.Tx, c access.Caller, policy *authz.Policy, id rolecall.ServiceAccountID, match Match[rolecall.ServiceAccount]) (rolecall.ServiceAccount, error) {
	tx.LockOwners()
	account, _, err := s.authorizedAccount(tx, c, policy, id)
	if err != nil {
		return account, err
	}
	return account, match.Check(&account)
}

// authorizedAccount returns the service account with the id if the policy allows the caller
// to perform the operation on this account. It also returns the account's assignments, or
// nil if the policy does not need them. authorizedAccount returns ErrNotFound and the
// errors of AuthorizeAccount.
func (s *Service) authorizedAccount(tx *store.Tx, c access.Caller, policy *authz.Policy, id rolecall.ServiceAccountID) (rolecall.ServiceAccount, []rolecall.Assignment, error) {
	account, err := tx.ServiceAccountByID(id)
	if err != nil {
		return account, nil, err
	}
	var assignments []rolecall.Assignment
	if policy.NeedsAssignments() {
		if assignments, err = tx.Assignments(rolecall.HolderOf(id)); err != nil {
			return account, nil, err
		}
	}
	return account, assignments, policy.AuthorizeAccount(c.Principal, assignments, s.now())
}

// SuspendServiceAccount suspends the account, so that its tokens do not work until it is
// resumed. SuspendServiceAccount can fail with ErrNotFound, ErrPermissionDenied or
// ErrBeyondOwnPermissions.
func (s *Service) SuspendServiceAccount(ctx context.Context, c access.Caller, id rolecall.ServiceAccountID, reason string) (rolecall.ServiceAccount, error) {
	return s.changeAccountStatus(ctx, c, authz.SuspendServiceAccount, rolecall.ServiceAccountSuspended, rolecall.EventServiceAccountSuspended, reason, func(tx *store.Tx) (rolecall.ServiceAccount, error) {
		return s.protectedAccount(tx, c, authz.SuspendServiceAccount, id, nil)
	})
}

// ResumeServiceAccount resumes a suspended account, so that its tokens work again.
// ResumeServiceAccount can fail with ErrNotFound, ErrPermissionDenied or
// ErrBeyondOwnPermissions.
func (s *Service) ResumeServiceAccount(ctx context.Context, c access.Caller, id rolecall.ServiceAccountID, reason string) (rolecall.ServiceAccount, error) {
	return s.changeAccountStatus(ctx, c, authz.ResumeServiceAccount, rolecall.ServiceAccountActive, rolecall.EventServiceAccountResumed, reason, func(tx *store.Tx) (rolecall.ServiceAccount, error) {
		account, _, err := s.authorizedAccount(tx, c, authz.ResumeServiceAccount, id)
		return account, err
	})
}

// ServiceAccountActions returns the names of the operations that the caller may perform on
// the service account a. The argument assignments has the account's assignments.
func (s *Service) ServiceAccountActions(c access.Caller, a *rolecall.ServiceAccount, assignments []rolecall.Assignment) []string {
	return authz.ServiceAccountActions(c.Principal, a, assignments, s.now())
}

// changeAccountStatus stores the status of the account that the function get returns, and
// an event with the reason. If the account already has the status, it changes nothing.
func (s *Service) changeAccountStatus(ctx context.Context, c access.Caller, policy *authz.Policy, status rolecall.ServiceAccountStatus, kind rolecall.EventType, reason string,
	get func(*store.Tx) (rolecall.ServiceAccount, error)) (account rolecall.ServiceAccount, err error) {
	if err := policy.Authorize(c.Principal); err != nil {
		return account, err
	}
	err = s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		old, err := get(tx)
		if account = old; err != nil || old.Status == status {
			return nil, err
		}
		account = old.WithStatus(status, s.now())
		if err := store.CheckVersion(tx.UpdateServiceAccount(old, account)); err != nil {
			return nil, err
		}
		event, err := changeEvent(s, c, kind, rolecall.About(old.ID), &old, &account, []string{"status"})
		if err == nil {
			event.Reason = reason
		}
		return event, err
	})
	if err != nil {
		return rolecall.ServiceAccount{}, err
	}
	return account, nil
}
