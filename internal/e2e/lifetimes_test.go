package e2e

import (
	"testing"
	"time"
)

// testLifetimesOfRoles checks that sessions have shorter lifetimes while the user has a role
// that requires a second factor.
func testLifetimesOfRoles(t *testing.T, w *world) {
	role := w.role(t, "Board", "users:read")
	w.demand(t, `{"required":"roles","roles":[`+quoted(role)+`]}`)
	ada, other := w.member(t, "ada", ""), w.member(t, "other", "")
	app, _ := ada.enrol(t)
	old := w.anonymous().do(t, completes, answerTo(w.factorChallenge(t, ada.email), "code", code(t, app, 1))).expect(t, 200)
	session := ada.with(old.session(t))
	lives := func(a *answer, at string, idle, absolute time.Duration) {
		t.Helper()
		began := timestamp(t, a, at+"/authenticatedAt")
		if got := timestamp(t, a, at+"/expiresAt").Sub(began); got != absolute {
			t.Errorf("%s: the session lives for %v, want %v", a.line, got, absolute)
		}
		if got := timestamp(t, a, at+"/idleExpiresAt").Sub(began); got < idle || got > idle+time.Since(began) {
			t.Errorf("%s: the session lives for %v without a request, want %v", a.line, got, idle)
		}
	}
	const day = 24 * time.Hour
	lives(old, "/session", 12*time.Hour, 7*day)
	w.assign(t, ada.id, role, "")
	who := session.do(t, "GET /auths/session", "").expect(t, 200)
	lives(who, "/session", time.Hour, day)
	lives(other.do(t, "GET /auths/session", "").expect(t, 200), "/session", 12*time.Hour, 7*day)
	refreshed := session.do(t, "POST /auths/refresh", "").expect(t, 200)
	lives(refreshed, "/session", time.Hour, day)
	for _, cookie := range refreshed.cookies {
		if cookie.Name == "session" && (cookie.MaxAge > 86400 || cookie.MaxAge < 86000) {
			t.Errorf("the cookie lives for %d seconds", cookie.MaxAge)
		}
	}
	listed := w.owner.do(t, "GET /users/"+ada.id+"/sessions", "").expect(t, 200)
	if got, want := listed.text("/items/0/expiresAt"), who.text("/session/expiresAt"); got != want {
		t.Errorf("listed is a session until %s, want %s", got, want)
	}
	w.owner.do(t, "DELETE /users/"+ada.id+"/roles/"+role, "").expect(t, 204)
	lives(session.do(t, "GET /auths/session", "").expect(t, 200), "/session", 12*time.Hour, 7*day)
}
