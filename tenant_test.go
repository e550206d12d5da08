package rolecall_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
)

func TestIsTenantName(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "demo": true, "0": true, "acme-eu_1": true, "a-": true, strings.Repeat("a", 63): true,
		"": false, "Acme": false, "-acme": false, "_acme": false, "acme.eu": false, "acme eu": false, "acmé": false,
		"acme\n": false, strings.Repeat("a", 64): false,
	} {
		if got := rolecall.IsTenantName(name); got != want {
			t.Errorf("IsTenantName(%q) = %v", name, got)
		}
	}
}

func TestSessionLifetimes(t *testing.T) {
	standard := rolecall.TenantSettings{}
	short := rolecall.TenantSettings{SessionIdle: new(rolecall.Seconds(60)), SessionAbsolute: new(rolecall.Seconds(90)), RefreshGrace: new(rolecall.Seconds(0)), IdempotencyKept: new(rolecall.Seconds(30))}
	if standard.Grace() != 10*time.Second || short.Grace() != 0 {
		t.Errorf("grace %v, and %v where it is set to nothing", standard.Grace(), short.Grace())
	}
	if standard.KeyLifetime() != 24*time.Hour || short.KeyLifetime() != 30*time.Second {
		t.Errorf("keys live %v, %v", standard.KeyLifetime(), short.KeyLifetime())
	}
	for name, test := range map[string]struct {
		settings rolecall.TenantSettings
		used     time.Duration // after sign-in
		idleEnd  time.Duration
	}{
		"standard":                            {standard, time.Hour, 13 * time.Hour},
		"short":                               {short, 0, time.Minute},
		"never idle longer than the absolute": {short, time.Minute, 90 * time.Second},
	} {
		s := rolecall.Session{
			AuthenticatedAt: aMoment, LastUsedAt: aMoment.Add(test.used),
			ExpiresAt: aMoment.Add(test.settings.AbsoluteLifetime()),
		}
		end := aMoment.Add(test.idleEnd)
		if got := s.IdleExpiresAt(test.settings); got != end {
			t.Errorf("%s: idle end %v, want %v", name, got, end)
		}
		if !s.Live(end-1, test.settings) || s.Live(end, test.settings) {
			t.Errorf("%s: it must live until %v, and not from then on", name, end)
		}
	}
}

func TestTenantPatches(t *testing.T) {
	old := rolecall.Tenant{
		Name: "acme", DisplayName: "Acme", UpdatedAt: aMoment, Version: 3,
		Settings: rolecall.TenantSettings{RefreshGrace: new(rolecall.Seconds(0)), SessionIdle: new(rolecall.Seconds(60))},
	}
	for what, c := range map[string]struct {
		patch   rolecall.TenantPatch
		changed []string
		grace   time.Duration
		idle    time.Duration
	}{
		"nothing":                      {rolecall.TenantPatch{}, nil, 0, time.Minute},
		"what it is":                   {rolecall.TenantPatch{DisplayName: rolecall.Some("Acme"), Settings: numbers(map[string]*int64{"refreshGraceSeconds": new(int64(0)), "eventsKeptSeconds": nil})}, nil, 0, time.Minute},
		"another name":                 {rolecall.TenantPatch{DisplayName: rolecall.Some("ACME")}, []string{"displayName"}, 0, time.Minute},
		"another setting":              {patchOf(number("refreshGraceSeconds", 5)), []string{"settings"}, 5 * time.Second, time.Minute},
		"the default again":            {patchOf(numbers(map[string]*int64{"sessionIdleSeconds": nil})), []string{"settings"}, 0, 12 * time.Hour},
		"the default, said in seconds": {patchOf(number("sessionIdleSeconds", 12*3600)), []string{"settings"}, 0, 12 * time.Hour},
	} {
		got, changed := c.patch.Apply(old, aMoment)
		if !slices.Equal(changed, c.changed) || got.Settings.Grace() != c.grace || got.Settings.IdleLifetime() != c.idle || got.Name != "acme" {
			t.Errorf("%s: changed %q, into %+v", what, changed, got)
		}
		if wasChanged := changed != nil; (got.Version == 4) != wasChanged || (got.UpdatedAt == aMoment+1) != wasChanged {
			t.Errorf("%s: version %d of %v", what, got.Version, got.UpdatedAt)
		}
	}
	if old.Settings.Grace() != 0 || old.Settings.IdleLifetime() != time.Minute {
		t.Errorf("what was patched is changed itself: %+v", old.Settings)
	}
	for name, good := range map[string]bool{"A": true, strings.Repeat("é", 255): true, "": false, " ": false, "a\nb": false, strings.Repeat("a", 256): false} {
		patch := rolecall.TenantPatch{DisplayName: rolecall.Some(name)}
		if faults := patch.Check(); (faults == nil) != good || !good && faults[0].Pointer != "/displayName" {
			t.Errorf("%q: %+v", name, faults)
		}
	}
}
