package e2e

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"
)

// testRaces removes access while other requests use it. After the response to the removal, no
// request may be allowed.
func testRaces(t *testing.T, p *program) {
	t.Run("sign-in", func(t *testing.T) { testEndDuringSignIn(t, newWorld(t, p)) })
	t.Run("two passwords", func(t *testing.T) { testTwoPasswords(t, newWorld(t, p)) })
	t.Run("refresh", func(t *testing.T) { testLogoutDuringRefresh(t, newWorld(t, p)) })
	t.Run("use", func(t *testing.T) { testRemovalDuringUse(t, newWorld(t, p)) })
	t.Run("two owners", func(t *testing.T) { testTwoOwners(t, p) })
}

// testEndDuringSignIn signs in with a stolen password again and again while the password is
// changed or the user loses access. Afterwards, none of the sessions may be valid, including
// those of sign-ins in progress.
func testEndDuringSignIn(t *testing.T, w *world) {
	for i, race := range []struct {
		name      string
		end, then func(c *caller)
	}{
		{"a new password", func(c *caller) { c.do(t, "PUT /auths/password", passwords(password, newPassword)).expect(t, 204) }, func(*caller) {}},
		{"a suspension, although it is lifted", func(c *caller) { w.owner.do(t, "POST /users/"+c.id+"/suspend", "").expect(t, 200) },
			func(c *caller) { w.owner.do(t, "POST /users/"+c.id+"/resume", "").expect(t, 200) }},
		{"an invitation", func(c *caller) {
			w.anonymous().do(t, "POST /auths/invitations/accept", acceptance(w.invite(t, w.owner, c.id), newPassword)).expect(t, 200)
		}, func(*caller) {}},
		{"a deletion", func(c *caller) { w.owner.do(t, "DELETE /users/"+c.id, "").expect(t, 204) }, func(*caller) {}},
	} {
		t.Run(race.name, func(t *testing.T) {
			c := w.guest(t, fmt.Sprintf("robbed-%d", i), "")
			over, enough := make(chan struct{}), make(chan struct{}, 100)
			var mu sync.Mutex
			var stolen []string
			var thieves sync.WaitGroup
			for range 4 {
				thieves.Go(func() {
					for {
						a, err := w.anonymous().try(t, "POST /auths/login", credentials(c.email, password))
						if err != nil {
							t.Error(err)
							return
						}
						if a.status == http.StatusOK {
							mu.Lock()
							stolen = append(stolen, a.session(t))
							mu.Unlock()
						}
						select {
						case enough <- struct{}{}:
						case <-over:
							return
						}
					}
				})
			}
			for range 4 {
				<-enough
			}
			race.end(c)
			close(over)
			thieves.Wait()
			race.then(c)
			live := 0
			for _, token := range stolen {
				if a := w.anonymous().with(token).do(t, "GET /auths/session", ""); a.status != http.StatusUnauthorized {
					live++
				}
			}
			if live > 0 || len(stolen) < 4 {
				t.Errorf("of %d stolen sessions %d outlive %s", len(stolen), live, race.name)
			}
		})
	}
}

// testTwoPasswords changes a user's password in two browsers at once. Only one change may
// succeed. That browser stays signed in, and its new password must work.
func testTwoPasswords(t *testing.T, w *world) {
	w.guest(t, "twice", "")
	current := password
	for round := range 3 {
		browsers := []*caller{w.login(t, "twice", current), w.login(t, "twice", current)}
		wanted := []string{fmt.Sprintf("%s %d a", newPassword, round), fmt.Sprintf("%s %d b", newPassword, round)}
		answers := make([]*answer, 2)
		var running sync.WaitGroup
		for i, browser := range browsers {
			running.Go(func() {
				a, err := browser.try(t, "PUT /auths/password", passwords(current, wanted[i]))
				if err != nil {
					t.Error(err)
					return
				}
				answers[i] = a
			})
		}
		running.Wait()
		won := 0
		for i, a := range answers {
			if a == nil || a.status != http.StatusNoContent {
				continue
			}
			won++
			current = wanted[i]
			if got := browsers[i].do(t, "GET /auths/session", ""); got.status != http.StatusOK {
				t.Errorf("who changed the password is answered %d", got.status)
			}
			if got := w.anonymous().do(t, "POST /auths/login", credentials(address("twice"), current)); got.status != http.StatusOK {
				t.Errorf("the password that was set is answered %d", got.status)
			}
		}
		if won != 1 {
			t.Fatalf("%d of two changes at once were made", won)
		}
	}
}

// login is like signIn, for a user with the given password.
func (w *world) login(t *testing.T, name, password string) *caller {
	t.Helper()
	a := w.anonymous().do(t, "POST /auths/login", credentials(address(name), password)).expect(t, 200)
	return &caller{world: w, tenant: w.name, token: a.session(t), id: a.text("/user/id"), email: address(name)}
}

func testLogoutDuringRefresh(t *testing.T, w *world) {
	w.guest(t, "leaving", "")
	for range 8 {
		c := w.signIn(t, address("leaving"))
		tokens := make(chan string, 8)
		var running sync.WaitGroup
		for range cap(tokens) {
			running.Go(func() {
				a, err := c.try(t, "POST /auths/refresh", "")
				switch {
				case err != nil:
					t.Error(err)
				case a.status == http.StatusOK:
					tokens <- a.session(t)
				case a.status != http.StatusUnauthorized:
					t.Errorf("a refresh answered %d: %s", a.status, a.body)
				}
			})
		}
		c.do(t, "POST /auths/logout", "").expect(t, 204)
		running.Wait()
		close(tokens)
		for token := range tokens {
			c.with(token).do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")
		}
		c.do(t, "POST /auths/refresh", "").refused(t, 401, "unauthenticated")
	}
}

// testRemovalDuringUse sends many requests at once while a user loses a permission or the
// session. No request that starts after the response to the removal may be allowed.
func testRemovalDuringUse(t *testing.T, w *world) {
	for i, removal := range []struct {
		name   string
		remove func(c *caller, role string)
	}{
		{"an assignment is removed", func(c *caller, role string) {
			w.owner.do(t, "DELETE /users/"+c.id+"/roles/"+role, "").expect(t, 204)
		}},
		{"an assignment is narrowed", func(c *caller, role string) {
			w.owner.do(t, "PUT /users/"+c.id+"/roles/"+role, within("Nowhere")).expect(t, 200)
		}},
		{"a role gets less", func(_ *caller, role string) {
			w.owner.do(t, "PATCH /roles/"+role, `{"permissions":[]}`).expect(t, 200)
		}},
		{"a role is deleted", func(_ *caller, role string) { w.owner.do(t, "DELETE /roles/"+role+"?force=true", "").expect(t, 204) }},
		{"the user is suspended", func(c *caller, _ string) { w.owner.do(t, "POST /users/"+c.id+"/suspend", "").expect(t, 200) }},
		{"the user is deleted", func(c *caller, _ string) { w.owner.do(t, "DELETE /users/"+c.id, "").expect(t, 204) }},
		{"they sign out", func(c *caller, _ string) { c.do(t, "POST /auths/logout", "").expect(t, 204) }},
		{"they change the password elsewhere", func(c *caller, _ string) {
			w.signIn(t, c.email).do(t, "PUT /auths/password", passwords(password, newPassword)).expect(t, 204)
		}},
		{"the owner resets the password", func(c *caller, _ string) {
			w.anonymous().do(t, "POST /auths/invitations/accept", acceptance(w.invite(t, w.owner, c.id), newPassword)).expect(t, 200)
		}},
	} {
		t.Run(removal.name, func(t *testing.T) {
			c := w.guest(t, fmt.Sprintf("user-%d", i), "")
			role := w.role(t, fmt.Sprintf("Use %d", i), "events:read")
			w.assign(t, c.id, role, "")
			const line = "GET /events?limit=1"
			c.do(t, line, "").expect(t, 200)
			over := make(chan struct{})
			var mu sync.Mutex
			var lastAllowed time.Time // start of the last allowed request
			uses := 0
			var users sync.WaitGroup
			for range 8 {
				users.Go(func() {
					for {
						began := time.Now()
						a, err := c.try(t, line, "")
						if err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						if uses++; a.status == http.StatusOK && began.After(lastAllowed) {
							lastAllowed = began
						}
						mu.Unlock()
						select {
						case <-over:
							return
						default:
						}
					}
				})
			}
			removal.remove(c, role)
			removed := time.Now()
			for range 5 {
				if a := c.do(t, line, ""); a.status == http.StatusOK {
					t.Error("the next request was still allowed")
				}
			}
			close(over)
			users.Wait()
			if lastAllowed.After(removed) {
				t.Errorf("of %d requests one was allowed that started %v after the answer", uses, lastAllowed.Sub(removed))
			}
		})
	}
}

// testTwoOwners lets the two owners of a tenant remove each other at the same time, with each
// pair of actions that remove an owner. Exactly one owner must remain.
func testTwoOwners(t *testing.T, p *program) {
	var owner string // the id of the role owner
	acts := []func(of string) (line, body string){
		func(of string) (string, string) { return "DELETE /users/" + of + "/roles/" + owner, "" },
		func(of string) (string, string) { return "PUT /users/" + of + "/roles/" + owner, within("Sales") },
		func(of string) (string, string) { return "POST /users/" + of + "/suspend", "" },
		func(of string) (string, string) { return "DELETE /users/" + of, "" },
	}
	for i, act := range acts {
		for j, counter := range acts[:i+1] {
			alone := newWorld(t, p)
			owner = alone.builtIn(t, "owner")
			other := alone.guest(t, "second", "")
			alone.assign(t, other.id, owner, "")
			statuses := make([]int, 2)
			var running sync.WaitGroup
			for k, one := range []struct {
				by  *caller
				act func(string) (string, string)
				of  string
			}{{alone.owner, act, other.id}, {other, counter, alone.owner.id}} {
				running.Go(func() {
					line, body := one.act(one.of)
					a, err := one.by.try(t, line, body)
					if err != nil {
						t.Error(err)
						return
					}
					statuses[k] = a.status
				})
			}
			running.Wait()
			left := 0
			for _, c := range []*caller{alone.owner, other} {
				if a := c.do(t, "PATCH /tenant", `{"displayName":"Still owned"}`); a.status == http.StatusOK {
					left++
				}
			}
			if left != 1 {
				t.Errorf("acts %d and %d at once answered %v and left %d owners", i, j, statuses, left)
			}
		}
	}
}
