package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"
)

func testTokens(t *testing.T, p *program) {
	t.Run("parallel refreshes", func(t *testing.T) { testParallelRefreshes(t, newWorld(t, p)) })
	t.Run("lost answers", func(t *testing.T) { testLostAnswers(t, newWorld(t, p)) })
	t.Run("stolen tokens", func(t *testing.T) { testStolenTokens(t, newWorld(t, p)) })
	t.Run("grace", func(t *testing.T) { testGrace(t, newWorld(t, p)) })
	t.Run("fixation", func(t *testing.T) { testFixation(t, newWorld(t, p)) })
}

// timestamp returns the time at a JSON pointer of the response.
func timestamp(t *testing.T, a *answer, pointer string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, a.text(pointer))
	if err != nil {
		t.Fatalf("%s: %v", pointer, err)
	}
	return at
}

// grace sets for how many seconds a replaced session token works after its successor was first
// used.
func (w *world) grace(t *testing.T, seconds int) {
	t.Helper()
	w.owner.do(t, "PATCH /tenant", fmt.Sprintf(`{"settings":{"refreshGraceSeconds":%d}}`, seconds)).expect(t, 200)
}

// refreshed refreshes the session. It returns a caller with the new token, which has not been
// used yet.
func (c *caller) refreshed(t *testing.T) *caller {
	t.Helper()
	return c.with(c.do(t, "POST /auths/refresh", "").expect(t, 200).session(t))
}

// together sends the request n times at once. It returns the n responses.
func (c *caller) together(t *testing.T, n int, line, body string) []*answer {
	t.Helper()
	answers := make([]*answer, n)
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() {
			a, err := c.try(t, line, body)
			if err != nil {
				t.Error(err)
				return
			}
			answers[i] = a
		})
	}
	running.Wait()
	if t.Failed() {
		t.FailNow()
	}
	return answers
}

// testParallelRefreshes refreshes one session with fifty requests at once, as tabs of a
// browser may do. All must get the same new token. Requests with the old and the new token at
// the same time must not end the session.
func testParallelRefreshes(t *testing.T, w *world) {
	c := w.guest(t, "tabs", "")
	for range 3 {
		successors := map[string]bool{}
		for _, a := range c.together(t, 50, "POST /auths/refresh", "") {
			successors[a.expect(t, 200).session(t)] = true
		}
		if len(successors) != 1 {
			t.Fatalf("fifty refreshes answered %d successors", len(successors))
		}
		var next *caller
		for successor := range successors {
			next = c.with(successor)
		}
		var running sync.WaitGroup
		for _, tab := range []*caller{c, next} { // some tabs have the response, others do not
			running.Go(func() {
				for _, a := range tab.together(t, 25, "GET /auths/session", "") {
					if a.status != http.StatusOK {
						t.Errorf("a tab was answered %d: %s", a.status, a.body)
					}
				}
			})
		}
		running.Wait()
		c = next
	}
	overview := w.owner.do(t, "GET /users/"+c.id+"/overview", "").expect(t, 200)
	s := scenario{status: 200, has: map[string]any{"/sessions/count": 1.0}, lacks: []string{"token_reused", "session.ended"}}
	s.check(t, overview)
}

// testLostAnswers refreshes a session repeatedly with the same token, as a client does that
// did not get the response. Until the new token is used, the old token must work, and each
// refresh must return the same new token. This also holds if the grace period is 0.
func testLostAnswers(t *testing.T, w *world) {
	w.grace(t, 0)
	c := w.guest(t, "lossy", "")
	lost := c.refreshed(t)
	for range 3 {
		c.do(t, "GET /auths/session", "").expect(t, 200)
		if again := c.refreshed(t); again.token != lost.token {
			t.Fatal("a repeated refresh answered another successor")
		}
	}
	lost.do(t, "GET /auths/session", "").expect(t, 200)
	if next := lost.refreshed(t); next.token == c.token || next.token == lost.token {
		t.Error("a successor was given twice")
	}
	lost.do(t, "GET /auths/session", "").expect(t, 200)
}

// testStolenTokens uses session tokens that were replaced, as a thief with a copied cookie
// does. This must end the session for both the thief and the user, and must cause exactly one
// event.
func testStolenTokens(t *testing.T, w *world) {
	w.grace(t, 0)
	for _, theft := range []struct {
		name       string
		generation int // index of the stolen token among five consecutive tokens
		use        string
	}{
		{"the one before, by a request", 3, "GET /auths/session"}, {"the one before, by a refresh", 3, "POST /auths/refresh"}, {"an older one", 1, "GET /users/" + w.owner.id}, {"the first, by a refresh", 0, "POST /auths/refresh"},
	} {
		t.Run(theft.name, func(t *testing.T) {
			generations := []*caller{w.guest(t, fmt.Sprintf("stolen-%d-%d", theft.generation, len(theft.use)), "")}
			bystander := w.signIn(t, generations[0].email)
			for range 4 {
				next := generations[len(generations)-1].refreshed(t)
				next.do(t, "GET /auths/session", "").expect(t, 200)
				generations = append(generations, next)
			}
			stolen, newest := generations[theft.generation], generations[4]
			for _, a := range stolen.together(t, 10, theft.use, "") {
				a.refused(t, 401, "unauthenticated")
			}
			for _, c := range generations {
				c.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")
				c.do(t, "POST /auths/refresh", "").refused(t, 401, "unauthenticated")
			}
			bystander.do(t, "GET /auths/session", "").expect(t, 200)
			events := w.owner.do(t, "GET /users/"+newest.id+"/events?type=session.token_reused", "").expect(t, 200)
			s := scenario{status: 200, has: map[string]any{"/items/0/actor/type": "anonymous", "/items/0/subject/id": newest.id, "/items/1": nil}}
			s.check(t, events)
		})
	}
}

// testGrace checks that a replaced token works within the grace period. If the setting is
// shortened, the new value also applies to tokens that were replaced before.
func testGrace(t *testing.T, w *world) {
	w.grace(t, 300)
	old := w.guest(t, "graceful", "")
	next := old.refreshed(t)
	next.do(t, "GET /auths/session", "").expect(t, 200)
	old.do(t, "GET /auths/session", "").expect(t, 200)
	if again := old.refreshed(t); again.token != next.token {
		t.Error("within the grace another successor was answered")
	}
	w.grace(t, 0)
	old.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")
	next.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")

	w.grace(t, 300)
	first := w.signIn(t, old.email)
	second := first.refreshed(t)
	second.do(t, "GET /auths/session", "").expect(t, 200)
	first.do(t, "POST /auths/logout", "").expect(t, 204)
	second.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")

	both := w.signIn(t, old.email)
	newer := both.refreshed(t)
	newer.do(t, "GET /auths/session", "").expect(t, 200)
	both.do(t, "GET /auths/session", "", "cookie: session="+both.token+"; session="+newer.token).expect(t, 200)
}

// testFixation signs in a user while the request contains the session token of an attacker.
// The new session must have another token, so that the attacker does not get the user's
// session. A token in the query or in the body must have no effect.
func testFixation(t *testing.T, w *world) {
	thief, victim := w.guest(t, "thief", ""), w.guest(t, "fixed", "")
	in := thief.do(t, "POST /auths/login", credentials(victim.email, password)).expect(t, 200)
	if in.session(t) == thief.token {
		t.Error("a sign-in adopted a live token")
	}
	thief.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")
	victim.do(t, "GET /auths/session", "").expect(t, 200)

	again := w.signIn(t, thief.email)
	again.do(t, "POST /auths/invitations/accept", acceptance(w.invite(t, w.owner, w.user(t, "fixed-guest", "")), password)).expect(t, 200)
	again.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")

	again = w.signIn(t, thief.email)
	for _, place := range []string{"?session=" + again.token, "?token=" + again.token} {
		w.anonymous().do(t, "GET /users/"+victim.id+place, "").refused(t, 401, "unauthenticated")
	}
	w.anonymous().do(t, "POST /auths/refresh", `{"session":"`+again.token+`"}`).expect(t, 401)
}
