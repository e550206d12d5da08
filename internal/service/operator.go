package service

import (
	"context"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/audit"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/store"
)

// Command is who acts on the command line: an operator without a key.
var Command = Call{Principal: &authz.Principal{Kind: authz.PrincipalOperator}}

// errUserChanged is of a command that somebody else has come before.
var errUserChanged = rolecall.ErrPreconditionFailed.With("Somebody else changed the user at this moment. Run the command again.")

// errNoSuchAddress is of a command that names a user who does not exist.
var errNoSuchAddress = rolecall.ErrNotFound.With("The tenant has no user of this address.")

// operatorEvent returns what an operator did to the subject.
func (s *Service) operatorEvent(kind rolecall.EventType, subject rolecall.Subject) *rolecall.Event {
	return s.event(Command, kind, subject)
}

// operate is mutate for an operator.
func (s *Service) operate(ctx context.Context, tenant rolecall.TenantID, fn func(*store.Tx) (*rolecall.Event, error)) error {
	return s.mutate(ctx, Call{Principal: &authz.Principal{Tenant: rolecall.Tenant{ID: tenant}}}, fn)
}

// CreateTenant makes a tenant with the built-in roles and its first owner, who
// signs in with the password, in one transaction. It returns ErrTenantExists,
// ErrValidation.
func (s *Service) CreateTenant(ctx context.Context, draft rolecall.TenantDraft, password string) (rolecall.Tenant, rolecall.User, error) {
	now := s.now()
	tenant, user := draft.Tenant(now), draft.Owner.User(now)
	faults, err := s.passwordFaults("/password", password, &user, &tenant)
	if err != nil {
		return rolecall.Tenant{}, rolecall.User{}, err
	}
	if err := append(draft.Check(), faults...).Err(); err != nil {
		return rolecall.Tenant{}, rolecall.User{}, err
	}
	hash, err := s.passwords.Hash(ctx, password)
	if err != nil {
		return rolecall.Tenant{}, rolecall.User{}, err
	}
	user.Status = rolecall.UserActive
	err = s.operate(ctx, tenant.ID, func(tx *store.Tx) (*rolecall.Event, error) {
		if err := s.insertTenant(tx, Command, tenant, user); err != nil {
			return nil, err
		}
		tx.SetPassword(user.ID, hash, now)
		return s.operatorEvent(rolecall.EventTenantCreated, audit.AboutTenant(tenant.ID)), nil
	})
	return tenant, user, err
}

// Tenants returns up to limit tenants of the status by name, after the given one.
// Without a status it returns those that are not deleted.
func (s *Service) Tenants(ctx context.Context, status rolecall.TenantStatus, after string, limit int) (tenants []rolecall.Tenant, err error) {
	err = s.store.View(ctx, rolecall.TenantID{}, func(tx *store.Tx) (err error) {
		tenants, err = tx.Tenants(rolecall.TenantQuery{Status: status, Now: s.now(), After: after, Limit: limit})
		return err
	})
	return tenants, err
}

// named returns the tenant of that name as it is stored, or ErrNotFound.
func (s *Service) named(ctx context.Context, name string) (tenant rolecall.Tenant, err error) {
	err = s.store.View(ctx, rolecall.TenantID{}, func(tx *store.Tx) (err error) {
		tenant, err = tx.TenantByName(name)
		return err
	})
	if ok, err := found(err); !ok && err == nil {
		return tenant, noSuchTenant
	}
	return tenant, err
}

// onUser runs fn on the user of the address in the named tenant.
func (s *Service) onUser(ctx context.Context, tenantName, email string, fn func(*store.Tx, *rolecall.Tenant, rolecall.User) (*rolecall.Event, error)) error {
	tenant, err := s.named(ctx, tenantName)
	if err != nil {
		return err
	}
	return s.operate(ctx, tenant.ID, func(tx *store.Tx) (*rolecall.Event, error) {
		user, _, err := tx.UserByEmail(rolecall.EmailKey(email))
		if ok, err := found(err); err != nil {
			return nil, err
		} else if !ok {
			return nil, errNoSuchAddress
		}
		return fn(tx, &tenant, user)
	})
}

// AddOwner makes the user of the address an owner, without end and without reach:
// the way back in. It returns ErrNotFound.
func (s *Service) AddOwner(ctx context.Context, tenantName, email string) error {
	return s.onUser(ctx, tenantName, email, func(tx *store.Tx, _ *rolecall.Tenant, user rolecall.User) (*rolecall.Event, error) {
		role, err := tx.RoleByKey(rolecall.OwnerKey)
		if err != nil {
			return nil, err
		}
		a := rolecall.Assignment{UserID: user.ID, Role: role, Reach: rolecall.Everywhere(), ExpiresAt: rolecall.Never, GrantedAt: s.now()}
		tx.PutAssignment(a)
		event := s.operatorEvent(rolecall.EventRoleAssigned, audit.AboutUser(user.ID))
		event.Members = []string{"roles"}
		return event, nil
	})
}

// SetPassword gives the user of the address a password and ends all their sessions
// and API tokens; a pending user becomes active. It returns ErrNotFound, ErrValidation.
func (s *Service) SetPassword(ctx context.Context, tenantName, email, password string) error {
	tenant, err := s.named(ctx, tenantName)
	if err != nil {
		return err
	}
	var user rolecall.User
	err = s.store.View(ctx, tenant.ID, func(tx *store.Tx) (err error) {
		user, _, err = tx.UserByEmail(rolecall.EmailKey(email))
		return err
	})
	if ok, err := found(err); err != nil {
		return err
	} else if !ok {
		return errNoSuchAddress
	}
	if err := s.checkNewPassword("/password", password, &user, &tenant); err != nil {
		return err
	}
	hash, err := s.passwords.Hash(ctx, password)
	if err != nil {
		return err
	}
	return s.onUser(ctx, tenantName, email, func(tx *store.Tx, tenant *rolecall.Tenant, user rolecall.User) (*rolecall.Event, error) {
		if user.Status == rolecall.UserPending {
			changed := user
			changed.Status = rolecall.UserActive
			changed.Stamp(s.now())
			if ok, err := tx.UpdateUser(user, changed); err != nil {
				return nil, err
			} else if !ok {
				return nil, errUserChanged
			}
		}
		event := s.operatorEvent(rolecall.EventPasswordChanged, audit.AboutUser(user.ID))
		return event, s.setPassword(tx, tenant.ID, &user, hash, event)
	})
}

// SetEmail changes the user's address, ends all their sessions and tells the old
// address, unless only its letters change. It returns ErrNotFound, ErrValidation, ErrEmailTaken.
func (s *Service) SetEmail(ctx context.Context, tenantName, email, newEmail string) error {
	if err := checkEmail(newEmail); err != nil {
		return err
	}
	return s.onUser(ctx, tenantName, email, func(tx *store.Tx, tenant *rolecall.Tenant, user rolecall.User) (*rolecall.Event, error) {
		changed := user
		changed.Email = newEmail
		if user.Differences(changed) == 0 {
			return nil, nil
		}
		changed.Stamp(s.now())
		if ok, err := tx.UpdateUser(user, changed); err != nil {
			return nil, err
		} else if !ok {
			return nil, errUserChanged
		}
		event, err := s.userEvent(Command, rolecall.EventUserUpdated, &user, &changed)
		if err != nil {
			return nil, err
		}
		return event, s.emailChanged(tx, tenant.ID, &user, &changed, rolecall.SessionID{}, event)
	})
}
