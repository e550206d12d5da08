package directory_test

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
	"github.com/rolecall/rolecall/internal/nodetest"
)

func TestTheSettingsOfATenantHaveBounds(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.PatchTenant(nodetest.Setting("sessionAbsoluteSeconds", new(int64(30*86400)))) // otherwise, sessions expire before they can be idle for the maximum
		for _, n := range rolecall.NumberSettings {
			for _, beyond := range []int64{n.Min - 1, n.Max + 1} {
				_, err := f.Directory.UpdateTenant(f.Context(), f.Owner, nodetest.Setting(n.Name, &beyond), nil)
				f.Is(err, rolecall.ErrValidation)
				if got := nodetest.FaultsOf(err); !slices.Equal(got, []string{"/settings/" + n.Name + " range"}) {
					t.Errorf("%s of %d: the faults are %q", n.Name, beyond, got)
				}
			}
			before := f.Tenant.Settings
			least := n.Min
			if n.Name == "passwordMinimum" {
				least = n.Default() // without a second factor; the minimum with one is tested below
			}
			for _, value := range []*int64{&least, &n.Max, nil} {
				want := n.Default()
				if value != nil {
					want = *value
				}
				if got := n.InForce(f.PatchTenant(nodetest.Setting(n.Name, value)).Settings); got != want {
					t.Errorf("%s is %d, not %d", n.Name, got, want)
				}
			}
			f.SetSettings(before)
		}
	})
}

func TestSettingsThatMustFitTogether(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		update := func(patch rolecall.TenantPatch) []string {
			_, err := f.Directory.UpdateTenant(f.Context(), f.Owner, patch, nil)
			f.Is(err, rolecall.ErrValidation)
			return nodetest.FaultsOf(err)
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
		short := nodetest.Setting("passwordMinimum", new(int64(8)))
		if got := update(short); !slices.Equal(got, []string{"/settings/passwordMinimum conflict"}) {
			t.Errorf("a short password alone: %q", got)
		}
		f.PatchTenant(factor("all"))
		f.PatchTenant(short)
		if got := update(factor("none")); !slices.Equal(got, []string{"/settings/secondFactor/required conflict"}) {
			t.Errorf("no factor for short passwords: %q", got)
		}
		f.PatchTenant(nodetest.Setting("passwordMinimum", nil))
		role := f.NewRole("Guarded")
		if got := update(factor("roles", role.ID, rolecall.NewID[rolecall.Role](nodetest.Start))); !slices.Equal(got, []string{"/settings/secondFactor/roles/1 unknown-role"}) {
			t.Errorf("roles that are none: %q", got)
		}
		if got := f.PatchTenant(factor("roles", role.ID, role.ID)).Settings.SecondFactor; got.Required != rolecall.SecondFactorOfRoles || !slices.Equal(got.Roles, []rolecall.RoleID{role.ID}) {
			t.Errorf("the rule is %+v", got)
		}
	})
}

func TestAChangeOfATenantIsRecordedOnce(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		before, err := f.Directory.CurrentTenant(f.Context(), f.Owner)
		f.OK(err)
		same := nodetest.Setting("refreshGraceSeconds", nil)
		same.DisplayName = rolecall.Some(before.DisplayName)
		f.Clock.Advance(time.Second)
		if got := f.PatchTenant(same); got.UpdatedAt != before.UpdatedAt || got.Version != before.Version {
			t.Errorf("a patch to what it is makes it %+v", got)
		}
		patch := nodetest.Setting("refreshGraceSeconds", new(rolecall.Seconds(0)))
		patch.DisplayName = rolecall.Some("ACME & Söhne")
		if got := f.PatchTenant(patch); got.DisplayName != "ACME & Söhne" || got.Settings.Grace() != 0 || got.UpdatedAt != f.Clock.Now() || got.Name != "acme" {
			t.Errorf("the changed tenant is %+v", got)
		}
		events := f.Events(f.Owner, directory.EventListing{Type: string(rolecall.EventTenantUpdated)})
		if len(events) != 1 {
			t.Fatalf("there are %d events", len(events))
		}
		e := events[0]
		if !slices.Equal(e.Members, []string{"displayName", "settings"}) || e.Actor.ID != f.Owner.User.ID || e.Subject.ID != rolecall.AnyID(f.Tenant.ID) ||
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
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		var running sync.WaitGroup
		for i := range 20 {
			running.Go(func() {
				n := rolecall.NumberSettings[i%len(rolecall.NumberSettings)]
				patch := nodetest.Setting(n.Name, new(notDefault(n)))
				if i == 0 {
					patch.DisplayName = rolecall.Some("Renamed")
				}
				if _, err := f.Directory.UpdateTenant(f.Context(), f.Owner, patch, nil); err != nil {
					t.Error(err)
				}
			})
		}
		running.Wait()
		tenant, err := f.Directory.CurrentTenant(f.Context(), f.Owner)
		f.OK(err)
		for _, n := range rolecall.NumberSettings {
			if got, want := n.InForce(tenant.Settings), notDefault(n); got != want {
				t.Errorf("%s is %d, not %d", n.Name, got, want)
			}
		}
		if tenant.DisplayName != "Renamed" {
			t.Errorf("it is called %s", tenant.DisplayName)
		}
		stale := func(*rolecall.Tenant) bool { return false }
		f.Is(nodetest.ErrorOf(f.Directory.UpdateTenant(f.Context(), f.Owner, rolecall.TenantPatch{}, stale)), rolecall.ErrPreconditionFailed)
	})
}

func TestReadingAndChangingTheTenantIsAuthorized(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		for _, c := range []struct {
			held         nodetest.Held
			read, change error
		}{
			{nodetest.Holding("users:read"), rolecall.ErrPermissionDenied, rolecall.ErrPermissionDenied},
			{nodetest.Holding("tenant:read"), nil, rolecall.ErrPermissionDenied},
			{nodetest.Holding("tenant:update"), rolecall.ErrPermissionDenied, nil},
			{nodetest.Holding("tenant:*"), nil, nil},
			{nodetest.Holding("*:*").Within("Sales"), rolecall.ErrPermissionDenied, rolecall.ErrPermissionDenied},
			{nodetest.Holding("*/*:*"), rolecall.ErrPermissionDenied, rolecall.ErrPermissionDenied},
		} {
			caller := f.CallerWith(c.held)
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
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		before := f.LogIn("owner")
		f.PatchTenant(nodetest.Setting("sessionAbsoluteSeconds", new(rolecall.Seconds(3600))))
		after := f.LogIn("owner")
		if b, a := before.Principal.Session.ExpiresAt, after.Principal.Session.ExpiresAt; b != nodetest.Start.Add(rolecall.DefaultSessionAbsolute) || a != nodetest.Start.Add(time.Hour) {
			t.Errorf("a session of before ends at %v, and one of after at %v", b, a)
		}

		f.Clock.Advance(10 * time.Minute)
		f.PatchTenant(nodetest.Setting("sessionIdleSeconds", new(rolecall.Seconds(600))))
		f.Is(nodetest.ErrorOf(f.Authenticate(f.Node, before.Token)), rolecall.ErrUnauthenticated)
		f.PatchTenant(nodetest.Setting("sessionIdleSeconds", new(rolecall.Seconds(601))))
		f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, before.Token)))

		next := f.Refresh(f.Node, before.Token)
		f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, next)))
		f.Clock.Advance(9 * time.Second)
		f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, before.Token)))
		f.PatchTenant(nodetest.Setting("refreshGraceSeconds", new(rolecall.Seconds(0))))
		f.Is(nodetest.ErrorOf(f.Authenticate(f.Node, before.Token)), rolecall.ErrUnauthenticated)

		f.PatchTenant(nodetest.Setting("idempotencyKeptSeconds", new(rolecall.Seconds(2*86400))))
		f.Owner.Principal = f.LogIn("owner").Principal
		key, draft := nodetest.NewKey(), rolecall.RoleDraft{Name: "Keyed"}
		f.OK(nodetest.ErrorOf(f.Directory.CreateRole(f.Context(), f.Owner, key, draft)))
		f.Clock.Advance(2*nodetest.Day - time.Microsecond)
		if again, err := f.Directory.CreateRole(f.Context(), f.Owner, key, draft); err != nil || !again.Replayed {
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
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		set := func(width int) rolecall.Logo {
			f.Helper()
			logo, err := f.Directory.SetLogo(f.Context(), f.Owner, rolecall.LogoFile{MediaType: "image/png", Content: aLogo(f, width)}, nil)
			f.OK(err)
			return logo
		}
		f.NewTenant("other")
		first := set(64)
		public := func(name, hash string) ([]byte, error) {
			file, err := f.Directory.PublicLogo(f.Context(), name, hash)
			return file.Content, err
		}
		if got, err := public(f.Tenant.Name, first.Hash); err != nil || !bytes.Equal(got, aLogo(f, 64)) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		for _, name := range []string{"other", "nobody", ""} {
			f.Is(nodetest.ErrorOf(public(name, first.Hash)), rolecall.ErrNotFound)
			f.Is(nodetest.ErrorOf(public(name, "")), rolecall.ErrNotFound)
		}
		f.Is(nodetest.ErrorOf(public(f.Tenant.Name, "")), rolecall.ErrNotFound)
		f.Is(nodetest.ErrorOf(public(f.Tenant.Name, first.Hash[1:])), rolecall.ErrNotFound)

		second := set(65)
		f.Is(nodetest.ErrorOf(public(f.Tenant.Name, first.Hash)), rolecall.ErrNotFound)
		if got, err := public(f.Tenant.Name, second.Hash); err != nil || !bytes.Equal(got, aLogo(f, 65)) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		f.OK(f.Directory.RemoveLogo(f.Context(), f.Owner, nil))
		f.Is(nodetest.ErrorOf(public(f.Tenant.Name, second.Hash)), rolecall.ErrNotFound)
		f.Is(f.Directory.RemoveLogo(f.Context(), f.Owner, nil), rolecall.ErrNotFound)
	})
}

func TestAChangeOfTheLogoIsRecordedOnce(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		file := rolecall.LogoFile{MediaType: "image/png", Content: aLogo(f, 64)}
		before, err := f.Directory.CurrentTenant(f.Context(), f.Owner)
		f.OK(err)
		matches := func(hash string) directory.Match[rolecall.Logo] {
			return func(l *rolecall.Logo) bool { return l != nil && l.Hash == hash }
		}
		f.Is(nodetest.ErrorOf(f.Directory.SetLogo(f.Context(), f.Owner, file, matches(""))), rolecall.ErrPreconditionFailed)
		logo, err := f.Directory.SetLogo(f.Context(), f.Owner, file, nil)
		f.OK(err)
		f.Clock.Advance(time.Second)
		again, err := f.Directory.SetLogo(f.Context(), f.Owner, file, matches(logo.Hash))
		f.OK(err)
		after, err := f.Directory.CurrentTenant(f.Context(), f.Owner)
		f.OK(err)
		if again != logo || *after.Logo != logo || after.Version != before.Version+1 || after.UpdatedAt <= before.UpdatedAt {
			t.Errorf("%+v, then %+v in %+v", logo, again, after)
		}
		f.Is(f.Directory.RemoveLogo(f.Context(), f.Owner, matches("")), rolecall.ErrPreconditionFailed)
		f.OK(f.Directory.RemoveLogo(f.Context(), f.Owner, matches(logo.Hash)))
		described := `{"logo":{"mediaType":"image/png","width":64,"height":32,"size":` + fmt.Sprint(len(file.Content)) + `,"hash":"` + logo.Hash + `","updatedAt":"` + logo.UpdatedAt.String() + `"}}`
		for kind, want := range map[rolecall.EventType][2]string{rolecall.EventLogoChanged: {`{"logo":null}`, described}, rolecall.EventLogoRemoved: {described, ""}} {
			events := f.Events(f.Owner, directory.EventListing{Type: string(kind)})
			if len(events) != 1 || string(events[0].Values.Before) != want[0] || string(events[0].Values.After) != want[1] || !slices.Equal(events[0].Members, []string{"logo"}) || events[0].Subject.ID != rolecall.AnyID(f.Tenant.ID) {
				t.Errorf("%s: %d events, %s, %s, want %q", kind, len(events), events[0].Values.Before, events[0].Values.After, want)
			}
		}
	})
}
