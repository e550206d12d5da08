package directory

import (
	"context"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/audit"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/store"
)

// CurrentTenant returns the caller's tenant, read from the store and not from a cache.
// CurrentTenant can fail with ErrPermissionDenied.
func (s *Service) CurrentTenant(ctx context.Context, c access.Caller) (rolecall.Tenant, error) {
	if err := authz.ReadTenant.Authorize(c.Principal); err != nil {
		return rolecall.Tenant{}, err
	}
	return s.access.TenantNamed(ctx, c.Tenant.Name)
}

// UpdateTenant applies the patch to the caller's tenant. UpdateTenant can fail with
// ErrPermissionDenied, ErrValidation or ErrPreconditionFailed.
func (s *Service) UpdateTenant(ctx context.Context, c access.Caller, patch rolecall.TenantPatch, match Match[rolecall.Tenant]) (tenant rolecall.Tenant, err error) {
	if err := authz.UpdateTenant.Authorize(c.Principal); err != nil {
		return tenant, err
	}
	err = s.access.Mutate(ctx, c, func(tx *store.Tx) (event *rolecall.Event, err error) {
		tenant, event, err = s.patchTenant(tx, c, c.Tenant.Name, patch, match)
		return event, err
	})
	if err != nil {
		return rolecall.Tenant{}, err
	}
	return tenant, nil
}

// patchTenant applies the patch to the tenant with the name, and returns the changed
// tenant. It also returns the event of the change, or nil if nothing changed.
func (s *Service) patchTenant(tx *store.Tx, c access.Caller, name string, patch rolecall.TenantPatch, match Match[rolecall.Tenant]) (rolecall.Tenant, *rolecall.Event, error) {
	for range access.MaxRetries {
		old, err := tx.TenantByName(name)
		if err != nil {
			return old, nil, err
		}
		if err := checkTenantPatch(tx, &patch, &old); err != nil {
			return old, nil, err
		}
		if err := match.check(&old); err != nil {
			return old, nil, err
		}
		changed, members := patch.Apply(old, s.now())
		if members == nil {
			return changed, nil, nil
		}
		if ok, err := tx.UpdateTenant(old, changed); err != nil {
			return old, nil, err
		} else if ok {
			event, err := s.tenantEvent(c, &old, &changed, members)
			return changed, event, err
		}
	}
	return rolecall.Tenant{}, nil, rolecall.ErrUnavailable
}

// checkTenantPatch returns ErrValidation with all field errors of the patch. It checks the
// patch itself, the patch together with the stored settings of old, and whether the roles
// in the patch exist.
func checkTenantPatch(tx *store.Tx, patch *rolecall.TenantPatch, old *rolecall.Tenant) error {
	faults := patch.CheckOn(old.Settings)
	if named := patch.Settings.SecondFactor.RoleIDs(); len(named) > 0 && len(named) <= rolecall.SecondFactorRolesMax {
		roles, err := tx.RolesByID(named)
		if err != nil {
			return err
		}
		patch.Settings.SecondFactor.CheckRoles(&faults, roles)
	}
	return faults.Err()
}

func (s *Service) tenantEvent(c access.Caller, old, changed *rolecall.Tenant, members []string) (*rolecall.Event, error) {
	type values struct {
		DisplayName string                  `json:"displayName"`
		Settings    rolecall.TenantSettings `json:"settings"`
	}
	event := s.access.Event(c, rolecall.EventTenantUpdated, audit.AboutTenant(old.ID))
	event.Members = members
	var err error
	event.Values, err = audit.Values(values{old.DisplayName, old.Settings}, values{changed.DisplayName, changed.Settings})
	return event, err
}
