package node_test

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/png"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
)

// setting returns a patch of one setting. A nil value restores the default.
func setting(name string, value *int64) rolecall.TenantPatch {
	return rolecall.TenantPatch{Settings: rolecall.SettingsPatch{Numbers: map[string]*int64{name: value}}}
}

// patchTenant changes the tenant as the owner, and uses the changed tenant in later
// requests.
func (f *fixture) patchTenant(patch rolecall.TenantPatch) rolecall.Tenant {
	f.Helper()
	changed, err := f.Directory.UpdateTenant(f.Context(), f.owner, patch, nil)
	f.ok(err)
	f.tenant, err = f.Directory.Tenant(f.Context(), f.tenant.Name)
	f.ok(err)
	if f.tenant.Version != changed.Version || f.tenant.DisplayName != changed.DisplayName || f.tenant.UpdatedAt != changed.UpdatedAt {
		f.Errorf("the next request sees %+v, not %+v", f.tenant, changed)
	}
	return changed
}

func TestTheSettingsOfATenantHaveBounds(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.patchTenant(setting("sessionAbsoluteSeconds", new(int64(30*86400)))) // otherwise, sessions expire before they can be idle for the maximum
		for _, n := range rolecall.NumberSettings {
			for _, beyond := range []int64{n.Min - 1, n.Max + 1} {
				_, err := f.Directory.UpdateTenant(f.Context(), f.owner, setting(n.Name, &beyond), nil)
				f.is(err, rolecall.ErrValidation)
				if got := faultsOf(err); !slices.Equal(got, []string{"/settings/" + n.Name + " range"}) {
					t.Errorf("%s of %d: the faults are %q", n.Name, beyond, got)
				}
			}
			before := f.tenant.Settings
			least := n.Min
			if n.Name == "passwordMinimum" {
				least = n.Default() // without a second factor; the minimum with one is tested below
			}
			for _, value := range []*int64{&least, &n.Max, nil} {
				want := n.Default()
				if value != nil {
					want = *value
				}
				if got := n.InForce(f.patchTenant(setting(n.Name, value)).Settings); got != want {
					t.Errorf("%s is %d, not %d", n.Name, got, want)
				}
			}
			f.settings(before)
		}
	})
}

func TestSettingsThatMustFitTogether(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		update := func(patch rolecall.TenantPatch) []string {
			_, err := f.Directory.UpdateTenant(f.Context(), f.owner, patch, nil)
			f.is(err, rolecall.ErrValidation)
			return faultsOf(err)
		}
		factor := func(scope string, roles ...rolecall.RoleID) rolecall.TenantPatch {
			var patch rolecall.TenantPatch
			patch.Settings.SecondFactor.Required = rolecall.Some(scope)
			for _, role := range roles {
				named := &patch.Settings.SecondFactor.Roles
				*named = rolecall.Some(append(named.Value, role.String()))
			}
			return patch
		}
		short := setting("passwordMinimum", new(int64(8)))
		if got := update(short); !slices.Equal(got, []string{"/settings/passwordMinimum conflict"}) {
			t.Errorf("a short password alone: %q", got)
		}
		f.patchTenant(factor("all"))
		f.patchTenant(short)
		if got := update(factor("none")); !slices.Equal(got, []string{"/settings/secondFactor/required conflict"}) {
			t.Errorf("no factor for short passwords: %q", got)
		}
		f.patchTenant(setting("passwordMinimum", nil))
		role := f.role("Guarded")
		if got := update(factor("roles", role.ID, rolecall.NewID[rolecall.Role](start))); !slices.Equal(got, []string{"/settings/secondFactor/roles/1 unknown-role"}) {
			t.Errorf("roles that are none: %q", got)
		}
		if got := f.patchTenant(factor("roles", role.ID, role.ID)).Settings.SecondFactor; got.Required != rolecall.SecondFactorOfRoles || !slices.Equal(got.Roles, []rolecall.RoleID{role.ID}) {
			t.Errorf("the rule is %+v", got)
		}
	})
}

func TestAChangeOfATenantIsRecordedOnce(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		before, err := f.Directory.CurrentTenant(f.Context(), f.owner)
		f.ok(err)
		same := setting("refreshGraceSeconds", nil)
		same.DisplayName = rolecall.Some(before.DisplayName)
		f.clock.advance(time.Second)
		if got := f.patchTenant(same); got.UpdatedAt != before.UpdatedAt || got.Version != before.Version {
			t.Errorf("a patch to what it is makes it %+v", got)
		}
		patch := setting("refreshGraceSeconds", new(rolecall.Seconds(0)))
		patch.DisplayName = rolecall.Some("ACME & Söhne")
		if got := f.patchTenant(patch); got.DisplayName != "ACME & Söhne" || got.Settings.Grace() != 0 || got.UpdatedAt != f.clock.Now() || got.Name != "acme" {
			t.Errorf("the changed tenant is %+v", got)
		}
		events := f.events(f.owner, directory.EventListing{Type: string(rolecall.EventTenantUpdated)})
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

// notDefault returns a value of the setting that is not the default.
func notDefault(n rolecall.NumberSetting) int64 {
	if n.Default() == n.Max {
		return n.Default() - 1
	}
	return n.Default() + 1
}

func TestNoChangeOfATenantIsLost(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		var running sync.WaitGroup
		for i := range 20 {
			running.Go(func() {
				n := rolecall.NumberSettings[i%len(rolecall.NumberSettings)]
				patch := setting(n.Name, new(notDefault(n)))
				if i == 0 {
					patch.DisplayName = rolecall.Some("Renamed")
				}
				if _, err := f.Directory.UpdateTenant(f.Context(), f.owner, patch, nil); err != nil {
					t.Error(err)
				}
			})
		}
		running.Wait()
		tenant, err := f.Directory.CurrentTenant(f.Context(), f.owner)
		f.ok(err)
		for _, n := range rolecall.NumberSettings {
			if got, want := n.InForce(tenant.Settings), notDefault(n); got != want {
				t.Errorf("%s is %d, not %d", n.Name, got, want)
			}
		}
		if tenant.DisplayName != "Renamed" {
			t.Errorf("it is called %s", tenant.DisplayName)
		}
		stale := func(*rolecall.Tenant) bool { return false }
		f.is(errorOf(f.Directory.UpdateTenant(f.Context(), f.owner, rolecall.TenantPatch{}, stale)), rolecall.ErrPreconditionFailed)
	})
}

func TestReadingAndChangingTheTenantIsAuthorized(t *testing.T) {
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
			if _, err := f.Directory.CurrentTenant(f.Context(), caller); !errors.Is(err, c.read) {
				t.Errorf("%v reads: %v", c.held, err)
			}
			patch := rolecall.TenantPatch{DisplayName: rolecall.Some(fmt.Sprint(c.held))}
			if _, err := f.Directory.UpdateTenant(f.Context(), caller, patch, nil); !errors.Is(err, c.change) {
				t.Errorf("%v changes: %v", c.held, err)
			}
		}
	})
}

func TestNewLifetimesApplyToTheNextRequest(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		before := f.signIn("owner")
		f.patchTenant(setting("sessionAbsoluteSeconds", new(rolecall.Seconds(3600))))
		after := f.signIn("owner")
		if b, a := before.Principal.Session.ExpiresAt, after.Principal.Session.ExpiresAt; b != start.Add(rolecall.DefaultSessionAbsolute) || a != start.Add(time.Hour) {
			t.Errorf("a session of before ends at %v, and one of after at %v", b, a)
		}

		f.clock.advance(10 * time.Minute)
		f.patchTenant(setting("sessionIdleSeconds", new(rolecall.Seconds(600))))
		f.is(errorOf(f.authenticate(f.Node, before.Token)), rolecall.ErrUnauthenticated)
		f.patchTenant(setting("sessionIdleSeconds", new(rolecall.Seconds(601))))
		f.ok(errorOf(f.authenticate(f.Node, before.Token)))

		next := f.refresh(f.Node, before.Token)
		f.ok(errorOf(f.authenticate(f.Node, next)))
		f.clock.advance(9 * time.Second)
		f.ok(errorOf(f.authenticate(f.Node, before.Token)))
		f.patchTenant(setting("refreshGraceSeconds", new(rolecall.Seconds(0))))
		f.is(errorOf(f.authenticate(f.Node, before.Token)), rolecall.ErrUnauthenticated)

		f.patchTenant(setting("idempotencyKeptSeconds", new(rolecall.Seconds(2*86400))))
		f.owner.Principal = f.signIn("owner").Principal
		key, draft := newKey(), rolecall.RoleDraft{Name: "Keyed"}
		f.ok(errorOf(f.Directory.CreateRole(f.Context(), f.owner, key, draft)))
		f.clock.advance(2*aDay - time.Microsecond)
		if again, err := f.Directory.CreateRole(f.Context(), f.owner, key, draft); err != nil || !again.Replayed {
			t.Errorf("after almost two days the key answers %+v, %v", again, err)
		}
	})
}

// aLogo returns a PNG with the width and a height of 32 pixels.
func aLogo(t testing.TB, width int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, 32))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestALogoIsPublicByItsHashOnly(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		set := func(width int) rolecall.Logo {
			f.Helper()
			logo, err := f.Directory.SetLogo(f.Context(), f.owner, rolecall.LogoFile{MediaType: "image/png", Content: aLogo(f, width)}, nil)
			f.ok(err)
			return logo
		}
		f.newTenant("other")
		first := set(64)
		public := func(name, hash string) ([]byte, error) {
			file, err := f.Directory.PublicLogo(f.Context(), name, hash)
			return file.Content, err
		}
		if got, err := public(f.tenant.Name, first.Hash); err != nil || !bytes.Equal(got, aLogo(f, 64)) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		for _, name := range []string{"other", "nobody", ""} {
			f.is(errorOf(public(name, first.Hash)), rolecall.ErrNotFound)
			f.is(errorOf(public(name, "")), rolecall.ErrNotFound)
		}
		f.is(errorOf(public(f.tenant.Name, "")), rolecall.ErrNotFound)
		f.is(errorOf(public(f.tenant.Name, first.Hash[1:])), rolecall.ErrNotFound)

		second := set(65)
		f.is(errorOf(public(f.tenant.Name, first.Hash)), rolecall.ErrNotFound)
		if got, err := public(f.tenant.Name, second.Hash); err != nil || !bytes.Equal(got, aLogo(f, 65)) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		f.ok(f.Directory.RemoveLogo(f.Context(), f.owner, nil))
		f.is(errorOf(public(f.tenant.Name, second.Hash)), rolecall.ErrNotFound)
		f.is(f.Directory.RemoveLogo(f.Context(), f.owner, nil), rolecall.ErrNotFound)
	})
}

func TestAChangeOfTheLogoIsRecordedOnce(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		file := rolecall.LogoFile{MediaType: "image/png", Content: aLogo(f, 64)}
		before, err := f.Directory.CurrentTenant(f.Context(), f.owner)
		f.ok(err)
		matches := func(hash string) directory.Match[rolecall.Logo] {
			return func(l *rolecall.Logo) bool { return l != nil && l.Hash == hash }
		}
		f.is(errorOf(f.Directory.SetLogo(f.Context(), f.owner, file, matches(""))), rolecall.ErrPreconditionFailed)
		logo, err := f.Directory.SetLogo(f.Context(), f.owner, file, nil)
		f.ok(err)
		f.clock.advance(time.Second)
		again, err := f.Directory.SetLogo(f.Context(), f.owner, file, matches(logo.Hash))
		f.ok(err)
		after, err := f.Directory.CurrentTenant(f.Context(), f.owner)
		f.ok(err)
		if again != logo || *after.Logo != logo || after.Version != before.Version+1 || after.UpdatedAt <= before.UpdatedAt {
			t.Errorf("%+v, then %+v in %+v", logo, again, after)
		}
		f.is(f.Directory.RemoveLogo(f.Context(), f.owner, matches("")), rolecall.ErrPreconditionFailed)
		f.ok(f.Directory.RemoveLogo(f.Context(), f.owner, matches(logo.Hash)))
		described := `{"logo":{"mediaType":"image/png","width":64,"height":32,"size":` + fmt.Sprint(len(file.Content)) + `,"hash":"` + logo.Hash + `","updatedAt":"` + logo.UpdatedAt.String() + `"}}`
		for kind, want := range map[rolecall.EventType][2]string{rolecall.EventLogoChanged: {`{"logo":null}`, described}, rolecall.EventLogoRemoved: {described, ""}} {
			events := f.events(f.owner, directory.EventListing{Type: string(kind)})
			if len(events) != 1 || string(events[0].Values.Before) != want[0] || string(events[0].Values.After) != want[1] || !slices.Equal(events[0].Members, []string{"logo"}) || events[0].Subject.ID != rolecall.AnyID(f.tenant.ID) {
				t.Errorf("%s: %d events, %s, %s, want %q", kind, len(events), events[0].Values.Before, events[0].Values.After, want)
			}
		}
	})
}
