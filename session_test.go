package rolecall

import (
	"testing"
	"time"
)

func TestSessionsOfUsersWhoNeedASecondFactorAreShorter(t *testing.T) {
	role, other := Role{ID: NewID[Role](1)}, Role{ID: NewID[Role](2)}
	rule := SecondFactorRule{Required: SecondFactorOfRoles, Roles: []RoleID{role.ID}}
	now := TimeOf(time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC))
	held := func(r Role, until Time) []Assignment { return []Assignment{{Role: r, ExpiresAt: until}} }
	session := Session{AuthenticatedAt: now, LastUsedAt: now, ExpiresAt: now.Add(DefaultSessionAbsolute)}
	seconds := func(d time.Duration) *Seconds { return new(int64(d / time.Second)) }
	for name, c := range map[string]struct {
		settings       TenantSettings
		assignments    []Assignment
		idle, absolute time.Duration // lifetimes of a session that began under the default settings
		isNew          time.Duration // absolute lifetime of a new session
	}{
		"no rule":                      {TenantSettings{}, held(role, Never), 12 * time.Hour, 7 * 24 * time.Hour, 7 * 24 * time.Hour},
		"all":                          {TenantSettings{SecondFactor: SecondFactorRule{Required: SecondFactorOfAll}}, nil, time.Hour, 24 * time.Hour, 24 * time.Hour},
		"a role that is held":          {TenantSettings{SecondFactor: rule}, held(role, Never), time.Hour, 24 * time.Hour, 24 * time.Hour},
		"a role that is held for now":  {TenantSettings{SecondFactor: rule}, held(role, now+1), time.Hour, 24 * time.Hour, 24 * time.Hour},
		"a role that was held":         {TenantSettings{SecondFactor: rule}, held(role, now), 12 * time.Hour, 7 * 24 * time.Hour, 7 * 24 * time.Hour},
		"a role that is not held":      {TenantSettings{SecondFactor: rule}, held(other, Never), 12 * time.Hour, 7 * 24 * time.Hour, 7 * 24 * time.Hour},
		"lifetimes that are set":       {TenantSettings{SecondFactor: rule, SessionIdle: seconds(2 * time.Hour), SessionAbsolute: seconds(48 * time.Hour)}, held(role, Never), 2 * time.Hour, 7 * 24 * time.Hour, 48 * time.Hour},
		"an idle lifetime that is set": {TenantSettings{SecondFactor: rule, SessionIdle: seconds(48 * time.Hour)}, held(role, Never), 24 * time.Hour, 24 * time.Hour, 24 * time.Hour},
	} {
		settings := c.settings.For(c.assignments, now)
		if idle, absolute, isNew := session.IdleExpiresAt(settings).Sub(now), session.EndsAt(settings).Sub(now), settings.AbsoluteLifetime(); idle != c.idle || absolute != c.absolute || isNew != c.isNew {
			t.Errorf("%s: %v idle, %v at most, a new one %v", name, idle, absolute, isNew)
		}
		for _, lived := range []time.Duration{0, c.idle - time.Microsecond, c.idle, c.absolute - time.Microsecond, c.absolute} {
			used, began := settings.SessionsSince(now.Add(lived))
			stored := session.ExpiresAt > now.Add(lived) && session.LastUsedAt > used && session.AuthenticatedAt > began
			if live := session.Live(now.Add(lived), settings); live != stored {
				t.Errorf("%s: after %v it lives: %v, and the store says %v", name, lived, live, stored)
			}
		}
	}
	guarded := TenantSettings{SecondFactor: rule}.For(held(role, Never), now)
	if again := guarded.For(held(other, Never), now); again.RequireFactor() {
		t.Error("the settings of one user are those of another")
	}
}
