package service_test

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/service"
)

// setting is a patch of one setting; a nil value is the default again.
func setting(name string, value *rolecall.Seconds) rolecall.TenantPatch {
	return rolecall.TenantPatch{Settings: map[string]*rolecall.Seconds{name: value}}
}

// patchTenant changes the tenant by the owner and has the next request see it.
func (f *fixture) patchTenant(patch rolecall.TenantPatch) rolecall.Tenant {
	f.Helper()
	changed, err := f.service.UpdateTenant(f.Context(), f.owner, patch, nil)
	f.ok(err)
	f.tenant, err = f.service.Tenant(f.Context(), f.tenant.Name)
	f.ok(err)
	if f.tenant.Version != changed.Version || f.tenant.DisplayName != changed.DisplayName || f.tenant.UpdatedAt != changed.UpdatedAt {
		f.Errorf("the next request sees %+v, not %+v", f.tenant, changed)
	}
	return changed
}

func TestTheSettingsOfATenantHaveBounds(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		for name, bounds := range map[string][2]rolecall.Seconds{
			"sessionIdleSeconds":     {60, 30 * 86400},
			"sessionAbsoluteSeconds": {300, 90 * 86400},
			"refreshGraceSeconds":    {0, 300},
			"idempotencyKeptSeconds": {86400, 30 * 86400},
			"eventsKeptSeconds":      {86400, 10 * 366 * 86400},
		} {
			for _, beyond := range []rolecall.Seconds{bounds[0] - 1, bounds[1] + 1} {
				_, err := f.service.UpdateTenant(f.Context(), f.owner, setting(name, &beyond), nil)
				f.is(err, rolecall.ErrValidation)
				if got := faultsOf(err); !slices.Equal(got, []string{"/settings/" + name + " range"}) {
					t.Errorf("%s of %d: the faults are %q", name, beyond, got)
				}
			}
			standard := rolecall.TenantSettings{}.Effective(name)
			for _, value := range []*rolecall.Seconds{&bounds[0], &bounds[1], nil} {
				want := standard
				if value != nil {
					want = *value
				}
				if got := f.patchTenant(setting(name, value)).Settings.Effective(name); got != want {
					t.Errorf("%s is %d, not %d", name, got, want)
				}
			}
		}
	})
}

func TestAChangeOfATenantIsRecordedOnce(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		before, err := f.service.CurrentTenant(f.Context(), f.owner)
		f.ok(err)
		same := rolecall.TenantPatch{DisplayName: rolecall.Some(before.DisplayName), Settings: map[string]*rolecall.Seconds{"refreshGraceSeconds": nil}}
		f.clock.advance(time.Second)
		if got := f.patchTenant(same); got.UpdatedAt != before.UpdatedAt || got.Version != before.Version {
			t.Errorf("a patch to what it is makes it %+v", got)
		}
		patch := setting("refreshGraceSeconds", new(rolecall.Seconds(0)))
		patch.DisplayName = rolecall.Some("ACME & Söhne")
		if got := f.patchTenant(patch); got.DisplayName != "ACME & Söhne" || got.Settings.Grace() != 0 || got.UpdatedAt != f.clock.Now() || got.Name != "acme" {
			t.Errorf("the changed tenant is %+v", got)
		}
		events := f.events(f.owner, service.EventListing{Type: string(rolecall.EventTenantUpdated)})
		if len(events) != 1 {
			t.Fatalf("there are %d events", len(events))
		}
		e := events[0]
		if !slices.Equal(e.Members, []string{"displayName", "settings"}) || e.Actor.ID != f.owner.User.ID || e.Subject.ID != rolecall.AnyID(f.tenant.ID) ||
			string(e.Values.Before) != `{"displayName":"acme","settings":{}}` || string(e.Values.After) != `{"displayName":"ACME \u0026 Söhne","settings":{"refreshGraceSeconds":0}}` {
			t.Errorf("the event is %+v, before %s, after %s", e, e.Values.Before, e.Values.After)
		}
	})
}

func TestNoChangeOfATenantIsLost(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		names := rolecall.SettingNames()
		var running sync.WaitGroup
		for i := range 20 {
			running.Go(func() {
				value := rolecall.TenantSettings{}.Effective(names[i%len(names)]) + 1
				patch := setting(names[i%len(names)], &value)
				if i == 0 {
					patch.DisplayName = rolecall.Some("Renamed")
				}
				if _, err := f.service.UpdateTenant(f.Context(), f.owner, patch, nil); err != nil {
					t.Error(err)
				}
			})
		}
		running.Wait()
		tenant, err := f.service.CurrentTenant(f.Context(), f.owner)
		f.ok(err)
		for _, name := range names {
			if got, want := tenant.Settings.Effective(name), (rolecall.TenantSettings{}).Effective(name)+1; got != want {
				t.Errorf("%s is %d, not %d", name, got, want)
			}
		}
		if tenant.DisplayName != "Renamed" {
			t.Errorf("it is called %s", tenant.DisplayName)
		}
		stale := func(*rolecall.Tenant) bool { return false }
		f.is(errorOf(f.service.UpdateTenant(f.Context(), f.owner, rolecall.TenantPatch{}, stale)), rolecall.ErrPreconditionFailed)
	})
}

func TestWhoMayReadAndChangeTheTenant(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		for _, c := range []struct {
			held         held
			read, change error
		}{
			{holding("users:read"), rolecall.ErrPermissionDenied, rolecall.ErrPermissionDenied},
			{holding("tenant:read"), nil, rolecall.ErrPermissionDenied},
			{holding("tenant:update"), rolecall.ErrPermissionDenied, nil},
			{holding("tenant:*"), nil, nil},
			{holding("*:*").within("Sales"), rolecall.ErrPermissionDenied, rolecall.ErrPermissionDenied},
			{holding("*/*:*"), rolecall.ErrPermissionDenied, rolecall.ErrPermissionDenied},
		} {
			caller := f.caller(c.held)
			if _, err := f.service.CurrentTenant(f.Context(), caller); !errors.Is(err, c.read) {
				t.Errorf("%v reads: %v", c.held, err)
			}
			patch := rolecall.TenantPatch{DisplayName: rolecall.Some(fmt.Sprint(c.held))}
			if _, err := f.service.UpdateTenant(f.Context(), caller, patch, nil); !errors.Is(err, c.change) {
				t.Errorf("%v changes: %v", c.held, err)
			}
		}
	})
}

func TestNewLifetimesHoldFromTheNextRequestOn(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		before := f.signIn("owner")
		f.patchTenant(setting("sessionAbsoluteSeconds", new(rolecall.Seconds(3600))))
		after := f.signIn("owner")
		if b, a := before.Principal.Session.ExpiresAt, after.Principal.Session.ExpiresAt; b != start.Add(rolecall.DefaultSessionAbsolute) || a != start.Add(time.Hour) {
			t.Errorf("a session of before ends at %v, and one of after at %v", b, a)
		}

		f.clock.advance(10 * time.Minute)
		f.patchTenant(setting("sessionIdleSeconds", new(rolecall.Seconds(600))))
		f.is(errorOf(f.authenticate(f.service, before.Token)), rolecall.ErrUnauthenticated)
		f.patchTenant(setting("sessionIdleSeconds", new(rolecall.Seconds(601))))
		f.ok(errorOf(f.authenticate(f.service, before.Token)))

		next := f.refresh(f.service, before.Token)
		f.ok(errorOf(f.authenticate(f.service, next)))
		f.clock.advance(9 * time.Second)
		f.ok(errorOf(f.authenticate(f.service, before.Token)))
		f.patchTenant(setting("refreshGraceSeconds", new(rolecall.Seconds(0))))
		f.is(errorOf(f.authenticate(f.service, before.Token)), rolecall.ErrUnauthenticated)

		f.patchTenant(setting("idempotencyKeptSeconds", new(rolecall.Seconds(2*86400))))
		f.owner.Principal = f.signIn("owner").Principal
		key, draft := newKey(), rolecall.RoleDraft{Name: "Keyed"}
		f.ok(errorOf(f.service.CreateRole(f.Context(), f.owner, key, draft)))
		f.clock.advance(2*aDay - time.Microsecond)
		if again, err := f.service.CreateRole(f.Context(), f.owner, key, draft); err != nil || !again.Replayed {
			t.Errorf("after almost two days the key answers %+v, %v", again, err)
		}
	})
}
