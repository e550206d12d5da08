package directory

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/secret"
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
	return s.updateTenant(ctx, c, patch, match)
}

func (s *Service) updateTenant(ctx context.Context, c access.Caller, patch rolecall.TenantPatch, match Match[rolecall.Tenant]) (tenant rolecall.Tenant, err error) {
	err = s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		old, err := tx.TenantByName(c.Tenant.Name)
		if err != nil {
			return nil, err
		}
		if err := checkTenantPatch(tx, &patch, &old); err != nil {
			return nil, err
		}
		if err := match.Check(&old); err != nil {
			return nil, err
		}
		changed, members := patch.Apply(old, s.now())
		if tenant = changed; members == nil {
			return nil, nil
		}
		if err := store.CheckVersion(tx.UpdateTenant(old, changed)); err != nil {
			return nil, err
		}
		if err := s.mailShorterRetention(tx, &old, &changed); err != nil {
			return nil, err
		}
		return s.tenantEvent(c, &old, &changed, members)
	})
	if err != nil {
		return rolecall.Tenant{}, err
	}
	return tenant, nil
}

// mailShorterRetention mails the owners if the tenant keeps events for a shorter time than before, because
// this deletes evidence.
func (s *Service) mailShorterRetention(tx *store.Tx, old, changed *rolecall.Tenant) error {
	kept := changed.Settings.EventLifetime()
	if kept >= old.Settings.EventLifetime() {
		return nil
	}
	what := fmt.Sprintf("%d hours", kept/time.Hour)
	if day := 24 * time.Hour; kept >= 2*day {
		what = fmt.Sprintf("%d days", kept/day)
	}
	return s.access.NotifyOwners(tx, old.ID, rolecall.Mail{Kind: rolecall.MailEventsKept, What: what})
}

// checkTenantPatch returns ErrValidation with all field errors of the patch. It checks the
// patch itself, the patch together with the stored settings of old, and whether the roles
// in the patch exist.
func checkTenantPatch(tx *store.Tx, patch *rolecall.TenantPatch, old *rolecall.Tenant) error {
	faults := patch.CheckOn(old.Settings)
	if named := patch.Settings.SecondFactor.RoleIDs(); len(named) > 0 && len(named) <= rolecall.SecondFactorRolesMax {
		tx.LockOwners() // so that no role is deleted before the change
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
	event := s.access.Event(c, rolecall.EventTenantUpdated, rolecall.About(old.ID))
	event.Members = members
	var err error
	event.Values, err = access.EventValues(values{old.DisplayName, old.Settings}, values{changed.DisplayName, changed.Settings})
	return event, err
}

// TenantLogo returns the file of the logo of the caller's tenant. TenantLogo can fail with
// ErrPermissionDenied, or with ErrNotFound if the tenant has no logo.
func (s *Service) TenantLogo(ctx context.Context, c access.Caller) (file rolecall.LogoFile, err error) {
	if err := authz.ReadTenant.Authorize(c.Principal); err != nil {
		return file, err
	}
	return access.Read(ctx, s.access, c, (*store.Tx).LogoFile)
}

// PublicLogo returns the file of the logo with the hash, for callers who need not be signed
// in. It returns ErrNotFound if the tenant does not exist or has no logo with this hash.
// Without such a logo, PublicLogo usually reads only the cache of tenants.
func (s *Service) PublicLogo(ctx context.Context, name, hash string) (file rolecall.LogoFile, err error) {
	tenant, err := s.Tenant(ctx, name)
	if err != nil {
		return file, err
	}
	if tenant.Logo == nil || tenant.Logo.Hash != hash {
		return file, rolecall.ErrNotFound
	}
	file, err = store.Read(ctx, s.store, tenant.ID, (*store.Tx).LogoFile)
	if err == nil && LogoHash(file.Content) != hash { // it was replaced, and the cache does not know it yet
		err = rolecall.ErrNotFound
	}
	return file, err
}

// LogoHash returns the hash of the content of a logo. It is part of the address of the logo
// in the console, and is its entity tag.
func LogoHash(content []byte) string { return strings.Trim(secret.ETag(content), `"`) }

// SetLogo stores the image as the logo of the caller's tenant, and returns the description
// of the logo. If the tenant already has this logo, nothing changes. The argument of match
// is the current logo, which is nil if the tenant has none. SetLogo can fail with
// ErrPermissionDenied, ErrValidation or ErrPreconditionFailed.
func (s *Service) SetLogo(ctx context.Context, c access.Caller, file rolecall.LogoFile, match Match[rolecall.Logo]) (logo rolecall.Logo, err error) {
	if err := authz.UpdateTenant.Authorize(c.Principal); err != nil {
		return logo, err
	}
	logo, faults := file.Logo(LogoHash(file.Content), s.now())
	if err := faults.Err(); err != nil {
		return logo, err
	}
	changed, err := s.changeLogo(ctx, c, &logo, &file, match)
	if err != nil {
		return rolecall.Logo{}, err
	}
	return *changed, nil
}

// RemoveLogo removes the logo of the caller's tenant. RemoveLogo can fail with
// ErrPermissionDenied, ErrPreconditionFailed, or ErrNotFound if the tenant has no logo.
func (s *Service) RemoveLogo(ctx context.Context, c access.Caller, match Match[rolecall.Logo]) error {
	if err := authz.UpdateTenant.Authorize(c.Principal); err != nil {
		return err
	}
	_, err := s.changeLogo(ctx, c, nil, nil, match)
	return err
}

// changeLogo replaces the logo of the caller's tenant, and returns the stored logo. Without
// logo and file, it removes the logo.
func (s *Service) changeLogo(ctx context.Context, c access.Caller, logo *rolecall.Logo, file *rolecall.LogoFile, match Match[rolecall.Logo]) (stored *rolecall.Logo, err error) {
	err = s.access.Mutate(ctx, c, func(tx *store.Tx) (*rolecall.Event, error) {
		old, err := tx.TenantByName(c.Tenant.Name)
		if err != nil {
			return nil, err
		}
		if logo == nil && old.Logo == nil {
			return nil, rolecall.ErrNotFound
		}
		if err := match.Check(old.Logo); err != nil {
			return nil, err
		}
		if stored = old.Logo; logo != nil && old.Logo != nil && logo.Hash == old.Logo.Hash {
			return nil, nil
		}
		if err := store.CheckVersion(tx.UpdateLogo(old, old.WithLogo(logo, s.now()), file)); err != nil {
			return nil, err
		}
		stored = logo
		return s.logoEvent(c, old.ID, old.Logo, logo)
	})
	return stored, err
}

func (s *Service) logoEvent(c access.Caller, tenant rolecall.TenantID, before, after *rolecall.Logo) (*rolecall.Event, error) {
	type value struct {
		Logo *rolecall.Logo `json:"logo"`
	}
	values, err := access.EventValues(value{before}, value{after})
	if err != nil {
		return nil, err
	}
	kind := rolecall.EventLogoChanged
	if after == nil {
		kind, values.After = rolecall.EventLogoRemoved, nil
	}
	event := s.access.Event(c, kind, rolecall.About(tenant))
	event.Members, event.Values = []string{"logo"}, values
	return event, nil
}
