package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/patience"
)

func testTenants(t *testing.T, p *program) {
	t.Run("isolation", func(t *testing.T) { testIsolation(t, p) })
	t.Run("equal answers", func(t *testing.T) { testEqualAnswers(t, p) })
	t.Run("life", func(t *testing.T) { testLifeOfTenant(t, p) })
	t.Run("guessing", func(t *testing.T) { testGuessing(t, p) })
}

func testIsolation(t *testing.T, p *program) {
	one, two := newWorld(t, p), newWorld(t, p)
	body := `{"email":"same@canary.example","name":"Same","externalId":"same"}`
	mine, theirs := one.owner.do(t, "POST /users", body).expect(t, 201).text("/id"), two.owner.do(t, "POST /users", body).expect(t, 201).text("/id")
	role, theirRole := one.role(t, "Same role"), two.role(t, "Same role")
	for _, line := range []string{
		"GET /users/" + theirs, "DELETE /users/" + theirs, "GET /users/" + theirs + "/overview", "GET /users/" + theirs + "/roles", "POST /users/" + theirs + "/suspend", "POST /users/" + theirs + "/resume",
		"PUT /users/" + theirs + "/roles/" + role, "PUT /users/" + mine + "/roles/" + theirRole, "DELETE /users/" + mine + "/roles/" + theirRole,
		"GET /roles/" + theirRole, "DELETE /roles/" + theirRole, "GET /roles/" + theirRole + "/users",
	} {
		foreign := one.owner.do(t, line, "").refused(t, 404, "not-found")
		unknown := one.owner.do(t, strings.NewReplacer(theirs, never, theirRole, never).Replace(line), "")
		if got, want := anonymousBody(t, foreign), anonymousBody(t, unknown); got != want {
			t.Errorf("%s: what is foreign is told from what is not there: %s, %s", line, got, want)
		}
	}
	one.owner.do(t, "PATCH /users/"+theirs, `{"name":"Mine now"}`).refused(t, 404, "not-found")
	one.owner.do(t, "PATCH /roles/"+theirRole, `{"name":"Mine now"}`).refused(t, 404, "not-found")
	for _, query := range []string{"/users?role=" + theirRole, "/users?q=same&role=" + theirRole} {
		if items := one.owner.do(t, "GET "+query, "").expect(t, 200).list("/items"); len(items) != 0 {
			t.Errorf("%s found %v", query, items)
		}
	}
	if got := one.owner.readAll(t, "/users?q=same"); !slices.Equal(got, []string{mine}) {
		t.Errorf("a search found %q", got)
	}
	if got := two.owner.do(t, "GET /users/"+theirs, "").expect(t, 200).text("/name"); got != "Same" {
		t.Errorf("another tenant's user is called %q now", got)
	}
	for _, op := range p.document.operations {
		if op.item == nil || op.isPublic() {
			continue
		}
		line := op.method + " " + strings.NewReplacer("{id}", mine, "{roleId}", role).Replace(op.path)
		one.owner.in(two.name).do(t, line, "").refused(t, 401, "unauthenticated")
	}
}

// anonymousBody returns the body of a problem without the members requestId and instance,
// which depend on the request.
func anonymousBody(t *testing.T, a *answer) string {
	t.Helper()
	var problem map[string]any
	if err := json.Unmarshal(a.body, &problem); err != nil {
		t.Fatal(err)
	}
	delete(problem, "requestId")
	delete(problem, "instance")
	b, err := json.Marshal(problem)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// testEqualAnswers checks that responses do not reveal whether a user, a tenant or a session
// exists. They must be equal apart from the request id, the instance and the date.
func testEqualAnswers(t *testing.T, p *program) {
	w := newWorld(t, p)
	w.user(t, "pending", "")
	unknown := &caller{world: w, tenant: "no-such-tenant"}
	whole := func(a *answer) string {
		header := a.header.Clone()
		for _, name := range []string{"X-Request-Id", "Date"} {
			header.Del(name)
		}
		return fmt.Sprint(a.status, header, anonymousBody(t, a))
	}
	wrong := w.anonymous().do(t, "POST /auths/login", credentials(address("owner"), "not the password")).refused(t, 401, "wrong-credentials")
	for name, a := range map[string]*answer{
		"an unknown address":                   w.anonymous().do(t, "POST /auths/login", credentials(address("nobody"), password)),
		"a pending user":                       w.anonymous().do(t, "POST /auths/login", credentials(address("pending"), password)),
		"an unknown tenant":                    unknown.do(t, "POST /auths/login", credentials(address("owner"), password)),
		"an unknown tenant and a known secret": unknown.with(w.owner.token).do(t, "POST /auths/login", credentials(address("owner"), password)),
	} {
		if whole(a) != whole(wrong) {
			t.Errorf("%s answers %s, a wrong password %s", name, whole(a), whole(wrong))
		}
	}
	for _, line := range []string{"GET /users", "GET /users/" + w.owner.id, "POST /users", "GET /auths/session", "POST /auths/refresh", "DELETE /roles/" + never} {
		none := w.anonymous().do(t, line, "").refused(t, 401, "unauthenticated")
		for name, c := range map[string]*caller{
			"a token of nobody": w.anonymous().with(strings.Repeat("x", 43)), "an unknown tenant": unknown, "an unknown tenant and a live session": unknown.with(w.owner.token), "an unknown tenant and a token of nobody": unknown.with(strings.Repeat("x", 43)),
		} {
			if a := c.do(t, line, ""); whole(a) != whole(none) {
				t.Errorf("%s with %s answers %s, without a session %s", line, name, whole(a), whole(none))
			}
		}
	}
	out := unknown.with(w.owner.token).do(t, "POST /auths/logout", "").expect(t, 204)
	known := w.anonymous().do(t, "POST /auths/logout", "").expect(t, 204)
	if fmt.Sprint(out.header["Set-Cookie"]) != fmt.Sprint(known.header["Set-Cookie"]) {
		t.Error("a logout tells whether a tenant exists")
	}
}

func testLifeOfTenant(t *testing.T, p *program) {
	w := newWorld(t, p)
	await := func(c *caller, status int) *answer { return awaitStatus(t, c, "GET /auths/session", status) }
	p.run(t, "", "tenant", "suspend", w.name, "--reason", "unpaid")
	await(w.owner, 403).refused(t, 403, "tenant-suspended")
	play(t, []scenario{
		{name: "suspended: right credentials", as: w.anonymous(), send: "POST /auths/login", body: credentials(address("owner"), password), status: 403, code: "tenant-suspended"},
		{name: "suspended: wrong credentials", as: w.anonymous(), send: "POST /auths/login", body: credentials(address("owner"), "wrong"), status: 401, code: "wrong-credentials"},
		{name: "suspended: no session", as: w.anonymous(), send: "GET /users", status: 401, code: "unauthenticated"},
		{name: "suspended: a session", as: w.owner, send: "GET /users", status: 403, code: "tenant-suspended"},
		{name: "suspended: refresh", as: w.owner, send: "POST /auths/refresh", status: 403, code: "tenant-suspended"},
		{name: "suspended: refresh of nobody", as: w.anonymous(), send: "POST /auths/refresh", status: 401, code: "unauthenticated"},
	})
	p.run(t, "", "tenant", "resume", w.name)
	await(w.owner, 200)
	if reason := w.owner.do(t, "GET /events?type=tenant.suspended", "").text("/items/0/reason"); reason != "unpaid" {
		t.Errorf("the reason of the suspension is %q", reason)
	}

	p.run(t, "another "+password, "user", "set-password", "--tenant", w.name, "--email", address("owner"), "--password-stdin")
	await(w.owner, 401)
	second := w.anonymous().do(t, "POST /auths/login", credentials(address("owner"), "another "+password)).expect(t, 200)
	w.owner.token = second.session(t)
	w.user(t, "rescuer", "")
	p.run(t, "", "tenant", "add-owner", w.name, "--email", address("rescuer"))
	p.run(t, "", "user", "set-email", "--tenant", w.name, "--email", address("rescuer"), "--new-email", address("renamed"))
	if got := w.owner.do(t, "GET /users?email="+address("renamed"), "").text("/items/0/email"); got != address("renamed") {
		t.Errorf("the address is %q", got)
	}

	p.run(t, "", "tenant", "delete", w.name, "--yes")
	await(w.owner, 401)
	w.anonymous().do(t, "POST /auths/login", credentials(address("owner"), "another "+password)).refused(t, 401, "wrong-credentials")
	if output, err := p.try(t, password, "tenant", "create", w.name, "--owner-email", address("owner"), "--owner-name", "Olga Owner", "--password-stdin"); err == nil {
		t.Errorf("the name of a deleted tenant was given again: %s", output)
	}
	if list := p.run(t, "", "tenant", "list", "--json"); strings.Contains(list, `"`+w.name+`"`) {
		t.Error("a deleted tenant is listed")
	}
	p.run(t, "", "tenant", "restore", w.name)
	await(w.owner, 200)
	w.anonymous().do(t, "POST /auths/login", credentials(address("owner"), "another "+password)).expect(t, 200)
}

// awaitStatus repeats a request until the response has the status. A change by another process
// has an effect after at most a second.
func awaitStatus(t *testing.T, c *caller, line string, status int) (a *answer) {
	t.Helper()
	if !patience.Poll(func() bool {
		a = c.do(t, line, "")
		return a.status == status
	}) {
		t.Fatalf("%s never answered %d", line, status)
	}
	return a
}

// testGuessing checks the limit of failed sign-ins per account and source. The limit must be
// the same for unknown accounts and must not affect other tenants.
func testGuessing(t *testing.T, p *program) {
	one, two := newWorld(t, p), newWorld(t, p)
	try := func(w *world, name, secret string) *answer {
		return w.anonymous().do(t, "POST /auths/login", credentials(address(name), secret))
	}
	for i := range 10 {
		if a := try(one, "owner", fmt.Sprintf("wrong %d", i)); a.status != http.StatusUnauthorized {
			t.Fatalf("attempt %d answered %d", i, a.status)
		}
	}
	blocked := try(one, "owner", password).refused(t, 429, "too-many-attempts")
	for range 10 {
		try(one, "ghost", "wrong").refused(t, 401, "wrong-credentials")
	}
	ghost := try(one, "ghost", "wrong").refused(t, 429, "too-many-attempts")
	if anonymousBody(t, ghost) != anonymousBody(t, blocked) {
		t.Errorf("a limit tells whether an account exists: %s, %s", ghost.body, blocked.body)
	}
	if lines := blocked.header["Set-Cookie"]; lines != nil {
		t.Errorf("a refusal sets %q", lines)
	}
	two.signIn(t, address("owner"))
	one.owner.do(t, "GET /auths/session", "").expect(t, 200)
	for range 5 {
		try(two, "owner", "wrong").refused(t, 401, "wrong-credentials")
		two.signIn(t, address("owner"))
	}
}
