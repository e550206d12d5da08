package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

func testIdempotency(t *testing.T, p *program) {
	w := newWorld(t, p)
	t.Run("keys", func(t *testing.T) { testKeyForms(t, w) })
	t.Run("replay", func(t *testing.T) { testReplay(t, w) })
	t.Run("scope", func(t *testing.T) { testKeyScope(t, w) })
	t.Run("failures", func(t *testing.T) { testKeysOfFailures(t, w) })
	t.Run("later", func(t *testing.T) { testReplayLater(t, w) })
	t.Run("parallel", func(t *testing.T) { testParallelCreates(t, w) })
}

func testKeyForms(t *testing.T, w *world) {
	n := 0
	form := func(name, key string, status int) scenario {
		n++
		s := scenario{name: name, as: w.owner, send: "POST /users", body: fmt.Sprintf(`{"email":"kf%d@canary.example","name":"Keyed"}`, n), header: []string{"idempotency-key: " + key}, status: status}
		if status == 400 {
			s.code = "malformed-request"
		}
		return s
	}
	missing := form("missing", "", 400)
	missing.header, missing.faults = []string{"-idempotency-key"}, []string{"header:idempotency-key required"}
	twice := form("twice", "a", 400)
	twice.header, twice.faults = append(twice.header, "+idempotency-key: a"), []string{"header:idempotency-key repeated"}
	play(t, []scenario{
		missing, twice,
		form("one character", "k", 201), form("255 characters", strings.Repeat("k", 255), 201), form("every visible character", `!#$%&'()*+,-./:;<=>?@[]^_{|}~`, 201),
		form("quoted", `"quoted"`, 201), form("quoted with escapes", `"a\"b\\c"`, 201), form("a quoted one of 255", `"`+strings.Repeat("q", 255)+`"`, 201),
		form("empty", "", 400), form("256 characters", strings.Repeat("k", 256), 400), form("empty quotes", `""`, 400), form("a blank", "a b", 400), form("beyond ASCII", "schlüssel", 400),
		form("a tab", "a\tb", 400), form("a wrong escape", `"a\nb"`, 400), form("an open escape", `"a\"`, 400), form("a quoted one of 256", `"`+strings.Repeat("q", 256)+`"`, 400),
	})
}

// created returns the parts of a creation's response that must be the same when the request is
// repeated.
func created(a *answer) string {
	return fmt.Sprint(a.status, a.header.Get("Location"), a.header.Get("Etag"), string(a.body))
}

func testReplay(t *testing.T, w *world) {
	body := `{"email":"replay@canary.example","name":"Replayed","metadata":{"a":"1"}}`
	first := w.owner.do(t, "POST /users", body, "idempotency-key: replay").expect(t, 201)
	if first.header.Get("Idempotent-Replayed") != "" {
		t.Error("a first answer says it is a repeat")
	}
	for _, again := range []struct{ name, body, key string }{
		{"the same", body, "replay"},
		{"the quoted form of the key", body, `"replay"`},
		{"other blanks and another order", ` { "metadata" : {"a":"1"}, "name":"Replayed" ,"email":"replay@canary.example"}`, "replay"},
		{"other escapes", `{"email":"\u0072eplay@canary.example","name":"Replayed","metadata":{"\u0061":"1"}}`, "replay"},
	} {
		a := w.owner.do(t, "POST /users", again.body, "idempotency-key: "+again.key)
		if created(a) != created(first) || a.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("%s: %s, not %s", again.name, created(a), created(first))
		}
	}
	for _, other := range []string{
		`{"email":"replay@canary.example","name":"Replayed"}`,
		`{"email":"replay@canary.example","name":"Replayed","metadata":{"a":"2"}}`,
		`{"email":"replay@canary.example","name":"Replayed","metadata":{"a":"1"},"department":null}`,
		`{"email":"other@canary.example","name":"Replayed","metadata":{"a":"1"}}`,
	} {
		w.owner.do(t, "POST /users", other, "idempotency-key: replay").refused(t, 422, "idempotency-key-reused")
	}
	if a := w.owner.do(t, "POST /users", body, "idempotency-key: replay"); created(a) != created(first) {
		t.Errorf("a reuse changed what is stored: %s", created(a))
	}
	if n := len(w.owner.do(t, "GET /users?q=replay", "").list("/items")); n != 1 {
		t.Errorf("%d users were made", n)
	}
	if n := len(w.owner.do(t, "GET /users/"+first.text("/id")+"/overview", "").list("/recentEvents")); n != 1 {
		t.Errorf("%d events were written", n)
	}
}

func testKeyScope(t *testing.T, w *world) {
	body := func(name string) string { return `{"email":"` + name + `@canary.example","name":"Scoped"}` }
	key := "idempotency-key: shared"
	first := w.owner.do(t, "POST /users", body("scope"), key).expect(t, 201)

	again := w.signIn(t, w.owner.email)
	if a := again.do(t, "POST /users", body("scope"), key); created(a) != created(first) {
		t.Errorf("another session of the same user got %s", created(a))
	}
	role := w.owner.do(t, "POST /roles", `{"name":"Shared key"}`, key).expect(t, 201)
	if role.header.Get("Idempotent-Replayed") != "" {
		t.Error("a key crossed from users to roles")
	}
	other := w.holder(t, "other-creator", "", "", "users:create")
	stranger := other.do(t, "POST /users", body("scope-other"), key).expect(t, 201)
	if stranger.header.Get("Idempotent-Replayed") != "" || strings.Contains(string(stranger.body), first.text("/id")) {
		t.Error("a key crossed from user to user")
	}
	other.do(t, "POST /users", body("scope"), "idempotency-key: fresh").refused(t, 409, "email-taken")
	foreign := newWorld(t, w.program)
	elsewhere := foreign.owner.do(t, "POST /users", body("scope"), key).expect(t, 201)
	if elsewhere.text("/id") == first.text("/id") || elsewhere.header.Get("Idempotent-Replayed") != "" {
		t.Error("a key crossed from tenant to tenant")
	}
}

func testKeysOfFailures(t *testing.T, w *world) {
	key := "idempotency-key: failing"
	w.user(t, "in-the-way", "")
	w.owner.do(t, "POST /users", `{"email":"failing@canary.example","name":"x"}`, key).refused(t, 422, "validation")
	w.owner.do(t, "POST /users", `{"email":"in-the-way@canary.example","name":"In the way"}`, key).refused(t, 409, "email-taken")
	w.owner.do(t, "POST /users", `{`, key).refused(t, 400, "malformed-request")
	w.owner.anonymous().do(t, "POST /users", `{}`, key).refused(t, 401, "unauthenticated")
	a := w.owner.do(t, "POST /users", `{"email":"failing@canary.example","name":"Corrected"}`, key).expect(t, 201)
	if a.header.Get("Idempotent-Replayed") != "" {
		t.Error("a refusal was stored")
	}
	w.owner.do(t, "POST /roles", `{"name":"Owner"}`, key).refused(t, 409, "role-name-taken")
	w.owner.do(t, "POST /roles", `{"name":"Corrected role"}`, key).expect(t, 201)
}

func testReplayLater(t *testing.T, w *world) {
	c := w.holder(t, "demoted", "", "", "users:create", "users:read")
	body, key := `{"email":"later@canary.example","name":"Later","department":"Sales"}`, "idempotency-key: later"
	first := c.do(t, "POST /users", body, key).expect(t, 201)
	id := first.text("/id")

	w.owner.do(t, "PATCH /users/"+id, `{"name":"Changed since"}`).expect(t, 200)
	if a := c.do(t, "POST /users", body, key); a.status != 201 || a.text("/name") != "Later" {
		t.Errorf("a repeat does not say what was created: %s", created(a))
	}
	role := c.do(t, "GET /auths/session", "").text("/roles/0/id")
	w.owner.do(t, "PATCH /roles/"+role, `{"permissions":["users:create","users.email:read"]}`).expect(t, 200)
	s := scenario{status: 201, members: "id email", headers: map[string]string{"Idempotent-Replayed": "true"}}
	s.check(t, c.do(t, "POST /users", body, key))

	w.owner.do(t, "PATCH /roles/"+role, `{"permissions":["users:read"]}`).expect(t, 200)
	c.do(t, "POST /users", body, key).refused(t, 403, "permission-denied")

	w.owner.do(t, "PATCH /roles/"+role, `{"permissions":["users:create","users:read"]}`).expect(t, 200)
	w.owner.do(t, "DELETE /users/"+id, "").expect(t, 204)
	s = scenario{status: 201, members: "id", has: map[string]any{"/id": id}, lacks: []string{"Later", "canary"}}
	s.check(t, c.do(t, "POST /users", body, key))
	if n := len(w.owner.do(t, "GET /users?email=later@canary.example", "").list("/items")); n != 0 {
		t.Error("a repeat made a deleted user again")
	}
}

func testParallelCreates(t *testing.T, w *world) {
	const n = 100
	for _, target := range []struct{ path, body, query string }{
		{"/users", `{"email":"parallel@canary.example","name":"Parallel"}`, "/users?email=parallel@canary.example"},
		{"/roles", `{"name":"Parallel"}`, "/roles?q=parallel"},
	} {
		answers := make([]*answer, n)
		var running sync.WaitGroup
		for i := range n {
			running.Go(func() {
				a, err := w.owner.try(t, "POST "+target.path, target.body, "idempotency-key: parallel")
				if err != nil {
					t.Error(err)
					return
				}
				answers[i] = a
			})
		}
		running.Wait()
		firsts := 0
		for _, a := range answers {
			if a == nil || a.status != http.StatusCreated || created(a) != created(answers[0]) {
				t.Fatalf("parallel creations answered differently: %+v", a)
			}
			if a.header.Get("Idempotent-Replayed") == "" {
				firsts++
			}
		}
		if found := len(w.owner.do(t, "GET "+target.query, "").expect(t, 200).list("/items")); firsts != 1 || found != 1 {
			t.Errorf("%d parallel creations made %d, %d of them as the first", n, found, firsts)
		}
	}
	statuses := atOnce(t, 50, func(int) (*answer, error) {
		return w.owner.try(t, "POST /users", `{"email":"race@canary.example","name":"Raced"}`)
	})
	if statuses[201] != 1 || statuses[409] != 49 {
		t.Errorf("fifty creations of one address with fifty keys answered %v", statuses)
	}
}
