package rolecall_test

import (
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
