package service

import (
	"context"
	"encoding/json"

	"github.com/rolecall/rolecall"
)

// CurrentTenant returns the caller's tenant as it is stored.
func (s *Service) CurrentTenant(ctx context.Context, c Call) (rolecall.Tenant, error) {
	if err := NeedReadTenant(c.Principal, rolecall.UserID{}); err != nil {
		return rolecall.Tenant{}, err
	}
	return s.named(ctx, c.Tenant.Name)
}

// UpdateTenant applies the patch to the caller's tenant. It returns
// ErrPermissionDenied, ErrValidation and ErrPreconditionFailed.
func (s *Service) UpdateTenant(ctx context.Context, c Call, patch rolecall.TenantPatch, match Match[rolecall.Tenant]) (tenant rolecall.Tenant, err error) {
	if err := NeedUpdateTenant(c.Principal, rolecall.UserID{}); err != nil {
		return tenant, err
	}
	if err := patch.Check().Err(); err != nil {
		return tenant, err
	}
	err = s.mutate(ctx, c, func(tx Tx) (*rolecall.Event, error) {
		for range attempts {
			old, err := tx.TenantByName(c.Tenant.Name)
			if err != nil {
				return nil, err
			}
			if err := match.check(&old); err != nil {
				return nil, err
			}
			changed, members := patch.Apply(old, s.now())
			if tenant = changed; members == nil {
				return nil, nil
			}
			if ok, err := tx.UpdateTenant(old, changed); err != nil {
				return nil, err
			} else if ok {
				return s.tenantEvent(c, &old, &changed, members)
			}
		}
		return nil, rolecall.ErrUnavailable
	})
	if err != nil {
		return rolecall.Tenant{}, err
	}
	return tenant, nil
}

func (s *Service) tenantEvent(c Call, old, changed *rolecall.Tenant, members []string) (*rolecall.Event, error) {
	type values struct {
		DisplayName string                  `json:"displayName"`
		Settings    rolecall.TenantSettings `json:"settings"`
	}
	before, err := json.Marshal(values{old.DisplayName, old.Settings})
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(values{changed.DisplayName, changed.Settings})
	event := s.event(c, rolecall.EventTenantUpdated, aboutTenant(c.Tenant.ID))
	event.Members, event.Values = members, &rolecall.EventValues{Before: before, After: after}
	return event, err
}
