package nodetest

import (
	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// NewTenant creates a tenant whose owner is owner@example.com.
func (f *Fixture) NewTenant(name string) rolecall.Tenant {
	f.Helper()
	tenant, _, err := f.Directory.CreateTenantWithPassword(f.Context(), rolecall.TenantDraft{Name: name, Owner: rolecall.UserDraft{Email: Address("owner"), Name: "Olga Owner"}}, Password)
	f.OK(err)
	return tenant
}

// SetSettings writes the settings of the tenant to the store, without authorization and events.
func (f *Fixture) SetSettings(settings rolecall.TenantSettings) {
	f.Helper()
	changed := f.Tenant
	changed.Settings, changed.Version = settings, f.Tenant.Version+1
	f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
		_, err := tx.UpdateTenant(f.Tenant, changed)
		return err
	}))
	f.Tenant = changed
}

// InNewTenant returns the fixture with another tenant.
func (f *Fixture) InNewTenant(name string) *Fixture {
	f.Helper()
	other := *f
	other.Tenant = f.NewTenant(name)
	other.Owner = other.CallerOf(other.LogIn("owner"))
	return &other
}

// Setting returns a patch of one setting. A nil value restores the default.
func Setting(name string, value *int64) rolecall.TenantPatch {
	return rolecall.TenantPatch{Settings: rolecall.SettingsPatch{Numbers: map[string]*int64{name: value}}}
}

// PatchTenant changes the tenant as the owner, and uses the changed tenant in later
// requests.
func (f *Fixture) PatchTenant(patch rolecall.TenantPatch) rolecall.Tenant {
	f.Helper()
	changed, err := f.Directory.UpdateTenant(f.Context(), f.Owner, patch, nil)
	f.OK(err)
	f.Tenant, err = f.Directory.Tenant(f.Context(), f.Tenant.Name)
	f.OK(err)
	if f.Tenant.Version != changed.Version || f.Tenant.DisplayName != changed.DisplayName || f.Tenant.UpdatedAt != changed.UpdatedAt {
		f.Errorf("the next request sees %+v, not %+v", f.Tenant, changed)
	}
	return changed
}
