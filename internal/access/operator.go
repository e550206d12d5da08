package access

import (
	"context"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/store"
)

// Command is the caller of all commands of the command line: an operator without an
// operator key.
var Command = Caller{Principal: &authz.Principal{Kind: authz.PrincipalOperator}}

// ErrNoSuchAddress is the error of a command that names an email address that no user has.
var ErrNoSuchAddress = rolecall.ErrNotFound.With("No user of this tenant has this email address. Check the address and the tenant.")

// OperatorEvent returns a new event of the type kind about the subject. Its actor is an
// operator on the command line.
func (s *Service) OperatorEvent(kind rolecall.EventType, subject rolecall.Subject) *rolecall.Event {
	return s.Event(Command, kind, subject)
}

// Operate is like Mutate in the tenant with the id, for a command of the command line.
func (s *Service) Operate(ctx context.Context, tenant rolecall.TenantID, fn func(*store.Tx) (*rolecall.Event, error)) error {
	return s.Mutate(ctx, Caller{Principal: &authz.Principal{Tenant: rolecall.Tenant{ID: tenant}}}, fn)
}

// TenantNamed returns the stored tenant with the name, or ErrNoSuchTenant.
func (s *Service) TenantNamed(ctx context.Context, name string) (tenant rolecall.Tenant, err error) {
	tenant, err = store.Read(ctx, s.Store, rolecall.TenantID{}, func(tx *store.Tx) (rolecall.Tenant, error) { return tx.TenantByName(name) })
	if ok, err := Found(err); !ok && err == nil {
		return tenant, ErrNoSuchTenant
	}
	return tenant, err
}

// OnUser runs fn in a transaction of the tenant with the name. It passes fn the user with
// the email address, and stores the event that fn returns if it is not nil. OnUser returns
// ErrNoSuchTenant if the tenant does not exist, and ErrNoSuchAddress if the user does not
// exist.
func (s *Service) OnUser(ctx context.Context, tenantName, email string, fn func(*store.Tx, *rolecall.Tenant, rolecall.User) (*rolecall.Event, error)) error {
	tenant, err := s.TenantNamed(ctx, tenantName)
	if err != nil {
		return err
	}
	return s.Operate(ctx, tenant.ID, func(tx *store.Tx) (*rolecall.Event, error) {
		user, _, err := tx.UserByEmail(email)
		if ok, err := Found(err); err != nil {
			return nil, err
		} else if !ok {
			return nil, ErrNoSuchAddress
		}
		return fn(tx, &tenant, user)
	})
}

// ErrNoSuchTenant is the error of a command that names a tenant that does not exist.
var ErrNoSuchTenant = rolecall.ErrNotFound.With("No tenant has this name. Check the name.")
