package e2e

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func testMachines(t *testing.T, p *program) {
	t.Run("service accounts", func(t *testing.T) { testServiceAccounts(t, newWorld(t, p)) })
	t.Run("lists", func(t *testing.T) { testServiceAccountLists(t, newWorld(t, p)) })
	t.Run("tags", func(t *testing.T) { testServiceAccountTags(t, newWorld(t, p)) })
	t.Run("roles", func(t *testing.T) { testServiceAccountRoles(t, newWorld(t, p)) })
	t.Run("tokens", func(t *testing.T) { testTokensOfPrograms(t, newWorld(t, p)) })
	t.Run("bodies", func(t *testing.T) { testTokenBodies(t, newWorld(t, p)) })
	t.Run("rights", func(t *testing.T) { testRightsOfPrograms(t, newWorld(t, p)) })
	t.Run("revoked", func(t *testing.T) { testRevokedAtOnce(t, newWorld(t, p)) })
	t.Run("parallel", func(t *testing.T) { testProgramsInParallel(t, newWorld(t, p)) })
	t.Run("events", func(t *testing.T) { testEventsOfPrograms(t, newWorld(t, p)) })
	t.Run("keys", func(t *testing.T) { testKeysOfPrograms(t, newWorld(t, p)) })
	t.Run("bounds", func(t *testing.T) { testSoManyTokens(t, newWorld(t, p)) })
}

func testServiceAccounts(t *testing.T, w *world) {
	o := w.owner
	made := func(name, body string, status int, faults ...string) scenario {
		return scenario{name: name, as: o, send: "POST /service-accounts", body: body, status: status, faults: faults}
	}
	play(t, []scenario{
		{name: "as it is made", as: o, send: "POST /service-accounts", body: `{"name":"Import","description":"Brings people."}`, status: 201, members: everyAccountMember,
			has: map[string]any{"/name": "Import", "/description": "Brings people.", "/status": "active"}},
		made("only a name", `{"name":"Export"}`, 201), made("128 characters", `{"name":"`+strings.Repeat("名", 128)+`"}`, 201), made("no description", `{"name":"Bare","description":null}`, 201),
		made("two characters", `{"name":"ab"}`, 422, "/name length"), made("129 characters", `{"name":"`+strings.Repeat("n", 129)+`"}`, 422, "/name length"),
		made("1025 characters of description", `{"name":"Long","description":"`+strings.Repeat("d", 1025)+`"}`, 422, "/description length"),
		made("nothing", `{}`, 422, "/name required"), made("a control character", `{"name":"Im\u0000port"}`, 422, "/name control-character"), made("a number", `{"name":7,"status":"active"}`, 422, "/name type", "/status unknown"),
		made("a null", `{"name":null}`, 422, "/name type"), made("no JSON", `{"name"`, 400, "/name syntax"),
		{name: "a name that is taken, in another case", as: o, send: "POST /service-accounts", body: `{"name":"IMPORT"}`, status: 409, code: "service-account-name-taken"},
		{name: "no key", as: o, send: "POST /service-accounts", body: `{"name":"Keyless"}`, header: []string{"-idempotency-key"}, status: 400, faults: []string{"header:idempotency-key required"}},
		{name: "no id", as: o, send: "GET /service-accounts/7", status: 400, faults: []string{"parameter:id format"}},
	})
	first := o.do(t, "POST /service-accounts", `{"name":"Keyed"}`, "idempotency-key: account").expect(t, 201)
	again := o.do(t, "POST /service-accounts", `{ "name": "Keyed" }`, "idempotency-key: account").expect(t, 201)
	if string(first.body) != string(again.body) || again.header.Get("Idempotent-Replayed") != "true" || first.header.Get("Location") != again.header.Get("Location") {
		t.Errorf("a repeat answers %s, not %s", again.body, first.body)
	}
	o.do(t, "POST /service-accounts", `{"name":"Other"}`, "idempotency-key: account").refused(t, 422, "idempotency-key-reused")

	id, line := first.text("/id"), strings.TrimPrefix(first.header.Get("Location"), "http://")
	if line[strings.Index(line, "/"):] != "/service-accounts/"+id {
		t.Errorf("the location is %q", first.header.Get("Location"))
	}
	one := "/service-accounts/" + id
	maker := w.holder(t, "maker", "", "", "service-accounts:create")
	play(t, []scenario{
		{name: "who may only make one sees its id", as: maker, send: "POST /service-accounts", body: `{"name":"Blind"}`, status: 201, members: "id", headers: map[string]string{"Withheld-Fields": "name, description, status, createdAt, updatedAt"}},
		{name: "a change", as: o, send: "PATCH " + one, body: `{"name":"Changed"}`, status: 200, has: map[string]any{"/name": "Changed", "/description": ""}},
		{name: "a merge patch", as: o, send: "PATCH " + one, body: `{"description":"Why"}`, header: []string{"content-type: application/merge-patch+json"}, status: 200, has: map[string]any{"/name": "Changed", "/description": "Why"}},
		{name: "a null empties", as: o, send: "PATCH " + one, body: `{"description":null}`, status: 200, has: map[string]any{"/description": ""}},
		{name: "to a name that is taken", as: o, send: "PATCH " + one, body: `{"name":"import"}`, status: 409, code: "service-account-name-taken"},
		{name: "to its own name in another case", as: o, send: "PATCH " + one, body: `{"name":"CHANGED"}`, status: 200},
		{name: "what cannot be changed", as: o, send: "PATCH " + one, body: `{"id":"x","status":"active"}`, status: 422, faults: []string{"/id unknown", "/status unknown"}},
		{name: "suspended", as: o, send: "POST " + one + "/suspend", body: `{"reason":"It runs wild."}`, status: 200, has: map[string]any{"/status": "suspended"}},
		{name: "once more", as: o, send: "POST " + one + "/suspend", status: 200, has: map[string]any{"/status": "suspended"}},
		{name: "for no reason that can be shown", as: o, send: "POST " + one + "/suspend", body: `{"reason":"\u0007"}`, status: 422, faults: []string{"/reason control-character"}},
		{name: "resumed", as: o, send: "POST " + one + "/resume", status: 200, has: map[string]any{"/status": "active"}},
		{name: "deleted", as: o, send: "DELETE " + one, status: 204},
		{name: "once more", as: o, send: "DELETE " + one, status: 404},
		{name: "its name is free", as: o, send: "POST /service-accounts", body: `{"name":"Changed"}`, status: 201},
		{name: "no user has its id", as: o, send: "GET /users/" + id, status: 404},
	})
}

func testServiceAccountLists(t *testing.T, w *world) {
	var names []string
	for _, name := range []string{"Äpfel pflücken", "birnen", "Citrus press", "apples", "Zwetschgen", "Dates of birth"} {
		w.account(t, name)
		names = append(names, name)
	}
	sortedNames := []string{"Äpfel pflücken", "apples", "birnen", "Citrus press", "Dates of birth", "Zwetschgen"}
	list := func(query string) []string {
		var all []string
		for next := ""; ; {
			a := w.owner.do(t, "GET /service-accounts?limit=2&"+query+next, "").expect(t, 200)
			all = append(all, a.texts("name")...)
			if a.value("/nextCursor") == nil {
				return all
			}
			next = "&cursor=" + a.text("/nextCursor")
		}
	}
	for query, want := range map[string][]string{
		"": names, "sort=createdAt": names, "sort=name": sortedNames, "q=ap": {"Äpfel pflücken", "apples"}, "q=pfl%20apf": {"Äpfel pflücken"}, "q=pple": nil, "sort=-name&q=b": {"Dates of birth", "birnen"},
	} {
		if got := list(query); !slices.Equal(got, want) {
			t.Errorf("%q lists %q, not %q", query, got, want)
		}
	}
	slices.Reverse(sortedNames)
	if got := list("sort=-name"); !slices.Equal(got, sortedNames) {
		t.Errorf("backwards it is %q", got)
	}
	cursor := w.owner.do(t, "GET /service-accounts?limit=2&sort=name", "").text("/nextCursor")
	play(t, []scenario{
		{name: "a total", as: w.owner, send: "GET /service-accounts?limit=1&count=true", status: 200, has: map[string]any{"/total": 6.0, "/totalIsExact": true}},
		{name: "a cursor of another order", as: w.owner, send: "GET /service-accounts?limit=2&sort=-name&cursor=" + cursor, status: 400, faults: []string{"parameter:cursor cursor"}},
		{name: "a cursor of another list", as: w.owner, send: "GET /roles?limit=2&sort=name&cursor=" + cursor, status: 400, faults: []string{"parameter:cursor cursor"}},
		{name: "an unknown order", as: w.owner, send: "GET /service-accounts?sort=email&status=active", status: 400, faults: []string{"parameter:sort format", "parameter:status unknown"}},
	})
}

func testServiceAccountTags(t *testing.T, w *world) {
	path := "/service-accounts/" + w.account(t, "Tagged")
	tag := w.owner.do(t, "GET "+path, "").expect(t, 200).header.Get("Etag")
	stale := []string{`if-match: "stale"`}
	play(t, []scenario{
		{name: "the same", as: w.owner, send: "GET " + path, header: []string{"if-none-match: " + tag}, status: 304},
		{name: "a stale change", as: w.owner, send: "PATCH " + path, body: `{"name":"Stale"}`, header: stale, status: 412},
		{name: "a stale deletion", as: w.owner, send: "DELETE " + path, header: stale, status: 412},
		{name: "not changed by that", as: w.owner, send: "GET " + path, header: []string{"if-none-match: " + tag}, status: 304},
	})
	if got := w.patchAtOnce(t, 50, path, "if-match: "+tag); got[200] != 1 || got[412] != 49 {
		t.Errorf("50 patches with one tag answered %v", got)
	}
	if got := w.patchAtOnce(t, 50, path); got[200] != 50 {
		t.Errorf("50 patches without a tag answered %v", got)
	}
}

func testServiceAccountRoles(t *testing.T, w *world) {
	account, role := w.account(t, "Import"), w.role(t, "Reader", "users:read")
	one := "/service-accounts/" + account + "/roles/" + role
	soon := time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05.000000Z")
	assistant := w.holder(t, "assistant", "", "", "service-accounts:*", "users.name:read")
	play(t, []scenario{
		{name: "given", as: w.owner, send: "PUT " + one, status: 201, has: map[string]any{"/role/id": role, "/reach": nil, "/expiresAt": nil, "/grantedBy": w.owner.id}},
		{name: "replaced", as: w.owner, send: "PUT " + one, body: `{"reach":{"departments":["Sales"]},"expiresAt":` + quoted(soon) + `}`, status: 200, has: map[string]any{"/reach/departments/0": "Sales", "/expiresAt": soon}},
		{name: "until it is over", as: w.owner, send: "PUT " + one, body: `{"expiresAt":"2001-01-01T00:00:00Z"}`, status: 422, faults: []string{"/expiresAt past"}},
		{name: "until the first moment of all", as: w.owner, send: "PUT " + one, body: `{"expiresAt":"1970-01-01T00:00:00Z"}`, status: 422, faults: []string{"/expiresAt past"}},
		{name: "listed", as: w.owner, send: "GET /service-accounts/" + account + "/roles", status: 200, has: map[string]any{"/items/0/role/name": "Reader", "/nextCursor": nil}},
		{name: "by who has less", as: assistant, send: "PUT " + one, status: 403, code: "beyond-own-permissions"},
		{name: "taken by who has less", as: assistant, send: "DELETE " + one, status: 403, code: "beyond-own-permissions"},
		{name: "a role in use", as: w.owner, send: "DELETE /roles/" + role, status: 409, code: "role-in-use"},
		{name: "taken", as: w.owner, send: "DELETE " + one, status: 204},
		{name: "taken twice", as: w.owner, send: "DELETE " + one, status: 404},
		{name: "of no user", as: w.owner, send: "PUT /users/" + account + "/roles/" + role, status: 404},
		{name: "to no user", as: w.owner, send: "PUT /service-accounts/" + w.owner.id + "/roles/" + role, status: 404},
	})
	w.owner.do(t, "PUT "+one, "").expect(t, 201)
	token := w.owner.makeToken(t, account, "users:read")
	token.do(t, "GET /users", "").expect(t, 200)
	w.owner.do(t, "DELETE /roles/"+role+"?force=true", "").expect(t, 204)
	token.do(t, "GET /users", "").refused(t, 403, "permission-denied")

	w.owner.do(t, "PUT /service-accounts/"+account+"/roles/"+w.builtIn(t, "owner"), "").expect(t, 201)
	w.owner.do(t, "DELETE /users/"+w.owner.id, "").refused(t, 409, "last-owner")
}

var apiToken = regexp.MustCompile(`^rc_[A-Za-z0-9_-]{43}[0-9A-Za-z]{6}$`)

func testTokensOfPrograms(t *testing.T, w *world) {
	account := w.account(t, "Import", "users:read")
	member := w.holder(t, "programmer", "", "", "users:read")
	for _, holder := range []struct {
		by   *caller
		path string
	}{{w.owner, "/service-accounts/" + account}, {member, "/users/" + member.id}} {
		body, key := tokenBody("Nightly run", "users:read", "users:read"), "idempotency-key: "+newKey()
		first := holder.by.do(t, "POST "+holder.path+"/tokens", body, key).expect(t, 201)
		s := scenario{status: 201, members: newTokenMembers, has: map[string]any{"/name": "Nightly run", "/createdBy": holder.by.id, "/lastUsedAt": nil, "/permissions/0": "users:read"}, headers: map[string]string{"Location": "", "Idempotent-Replayed": ""}}
		s.check(t, first)
		bearer := first.text("/token")
		w.program.secret(bearer)
		if !apiToken.MatchString(bearer) || len(first.list("/permissions")) != 1 {
			t.Errorf("the token is %s", first.body)
		}
		again := holder.by.do(t, "POST "+holder.path+"/tokens", body, key)
		s = scenario{status: 201, members: everyTokenMember + " secretWithheld", has: map[string]any{"/id": first.text("/id"), "/secretWithheld": true}, headers: map[string]string{"Idempotent-Replayed": "true"}}
		s.check(t, again)
		holder.by.do(t, "POST "+holder.path+"/tokens", tokenBody("Another", "users:read"), key).refused(t, 422, "idempotency-key-reused")

		c := &caller{world: w, tenant: w.name, bearer: bearer}
		c.do(t, "GET /users", "").expect(t, 200)
		one := holder.path + "/tokens/" + first.text("/id")
		play(t, []scenario{
			{name: "listed with its use, without the secret", as: holder.by, send: "GET " + holder.path + "/tokens", status: 200, lacks: []string{bearer, `"token"`, `"lastUsedAt":null`}, contains: []string{first.text("/id")}},
			{name: "refreshed by nobody", as: c, send: "POST /auths/refresh", status: 401},
			{name: "a sign-in does not look at it", as: c, send: "POST /auths/login", body: credentials(w.owner.email, password), status: 200},
			{name: "it makes no tokens", as: c, send: "POST " + holder.path + "/tokens", body: tokenBody("Child", "users:read"), status: 403},
			{name: "it changes no password", as: c, send: "PUT /auths/password", body: passwords(password, "another "+password), status: 403, code: "session-required"},
			{name: "signing out does not end it", as: c, send: "POST /auths/logout", status: 204},
			{name: "it still works", as: c, send: "GET /auths/check?permission=users:read", status: 204},
			{name: "revoked", as: holder.by, send: "DELETE " + one, status: 204},
			{name: "and gone", as: c, send: "GET /auths/check?permission=users:read", status: 401, code: "unauthenticated", headers: map[string]string{"Www-Authenticate": `Session, Bearer error="invalid_token"`}},
			{name: "revoked twice", as: holder.by, send: "DELETE " + one, status: 404},
			{name: "in no list", as: holder.by, send: "GET " + holder.path + "/tokens", status: 200, lacks: []string{first.text("/id")}},
		})
	}
	for i := range 5 {
		w.owner.makeToken(t, account, "users:read")
		if i == 2 {
			w.owner.makeToken(t, w.account(t, "Other", "users:read"), "users:read")
		}
	}
	if got := w.owner.readAll(t, "/service-accounts/"+account+"/tokens?limit=2"); len(got) != 5 || !slices.IsSorted(got) {
		t.Errorf("the tokens are %q", got)
	}
}

func testTokenBodies(t *testing.T, w *world) {
	account := w.account(t, "Import", "users:read", "shop/*:read")
	at := func(d time.Duration) string { return time.Now().Add(d).UTC().Format(time.RFC3339) }
	body := func(name, permissions, expires string) string {
		return fmt.Sprintf(`{"name":%s,"permissions":%s,"expiresAt":%s}`, name, permissions, expires)
	}
	const name, one = `"Nightly"`, `["users:read"]`
	day := quoted(at(24 * time.Hour))
	many := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = fmt.Sprintf("shop/r%d:read", i)
		}
		return `["` + strings.Join(list, `","`) + `"]`
	}
	for _, s := range []scenario{
		{name: "the shortest name", body: body(`"CI1"`, one, day), status: 201},
		{name: "the longest name, the most permissions", body: body(quoted(strings.Repeat("名", 100)), many(256), day), status: 201},
		{name: "366 days", body: body(name, one, quoted(at(366*24*time.Hour-time.Minute))), status: 201},
		{name: "a part of what is held", body: body(name, `["users.email:read","shop/a:read"]`, day), status: 201},
		{name: "nothing", body: `{}`, status: 422, faults: []string{"/name required", "/permissions required", "/expiresAt required"}},
		{name: "no end", body: body(name, one, "null"), status: 422, faults: []string{"/expiresAt type"}},
		{name: "more than 366 days", body: body(name, one, quoted(at(366*24*time.Hour+time.Minute))), status: 422, faults: []string{"/expiresAt range"}},
		{name: "over", body: body(name, one, quoted(at(-time.Second))), status: 422, faults: []string{"/expiresAt past"}},
		{name: "no moment", body: body(name, one, `"tomorrow"`), status: 422, faults: []string{"/expiresAt format"}},
		{name: "too short and too long", body: body(`"ab"`, many(257), day), status: 422, faults: []string{"/name length", "/permissions too-many"}},
		{name: "101 characters", body: body(quoted(strings.Repeat("n", 101)), one, day), status: 422, faults: []string{"/name length"}},
		{name: "no permission", body: body(name, `[]`, day), status: 422, faults: []string{"/permissions too-few"}},
		{name: "null permissions", body: body(name, `null`, day), status: 422, faults: []string{"/permissions type"}},
		{name: "no permissions at all", body: body(name, `["users","users:fly",7]`, day), status: 422, faults: []string{"/permissions/0 format", "/permissions/1 unknown-permission", "/permissions/2 type"}},
		{name: "more than is held", body: body(name, `["users:read","users:update","shop/*:write","*:*"]`, day), status: 422, faults: []string{"/permissions/1 not-held", "/permissions/2 not-held", "/permissions/3 not-held"}},
		{name: "a control character", body: body(`"Night\u0000"`, one, day), status: 422, faults: []string{"/name control-character"}},
		{name: "unknown members", body: `{"name":"Nightly","permissions":["users:read"],"expiresAt":` + day + `,"token":"mine"}`, status: 422, faults: []string{"/token unknown"}},
	} {
		s.as, s.send = w.owner, "POST /service-accounts/"+account+"/tokens"
		t.Run(s.name, func(t *testing.T) { s.check(t, s.as.do(t, s.send, s.body)) })
	}
	limited := w.holder(t, "limited", "", "Sales", "users:read", "roles:read")
	play(t, []scenario{
		{name: "what is held in a department", as: limited, send: "POST /users/" + limited.id + "/tokens", body: tokenBody("Of Sales", "users:read"), status: 201},
		{name: "more than oneself", as: limited, send: "POST /users/" + limited.id + "/tokens", body: tokenBody("More", "users:update"), status: 422, faults: []string{"/permissions/0 not-held"}},
		{name: "for somebody else", as: w.owner, send: "POST /users/" + limited.id + "/tokens", body: tokenBody("Theirs", "users:read"), status: 403, code: "permission-denied"},
		{name: "for nobody", as: w.owner, send: "POST /users/" + never + "/tokens", body: tokenBody("Nobody's", "users:read"), status: 403, code: "permission-denied"},
	})
	delegated := limited.makeToken(t, "", "users:read")
	inside, outside := w.user(t, "inside", "Sales"), w.user(t, "outside", "Ops")
	delegated.do(t, "GET /users/"+inside, "").expect(t, 200)
	delegated.do(t, "GET /users/"+outside, "").expect(t, 404)
}

// testRightsOfPrograms checks that a token has only the permissions that the token and its
// holder both have at the time of the request. Users have rights on their own account. The
// users' tokens have almost none of these rights.
func testRightsOfPrograms(t *testing.T, w *world) {
	member := w.member(t, "programmer", "")
	role := w.role(t, "Wide", "users:*", "sessions:*", "shop/*:*")
	w.assign(t, member.id, role, "")
	token := member.makeToken(t, "", "users.name:read", "users.name:update", "shop/a:*")
	other := w.user(t, "other", "")
	self := "/users/" + member.id
	play(t, []scenario{
		{name: "no more than the token", as: token, send: "GET /users/" + other, status: 200, members: "id name"},
		{name: "one's own record whole", as: token, send: "GET " + self, status: 200, members: everyMember},
		{name: "not in a list", as: token, send: "GET /users?q=programmer", status: 200, has: map[string]any{"/items/0/id": member.id, "/items/0/email": nil}},
		{name: "who it is", as: token, send: "GET /auths/session", status: 200, has: map[string]any{"/principal/type": "user", "/principal/id": member.id, "/user/email": member.email, "/session": nil, "/permissions/0": "shop/a:*", "/permissions/1": "users.name:read", "/permissions/2": "users.name:update", "/permissions/3": nil}},
		{name: "what it may", as: token, send: "GET /auths/check?permission=shop/a:b", status: 204, headers: map[string]string{"X-Auth-User": member.id}},
		{name: "what only its user may", as: token, send: "GET /auths/check?permission=shop/b:a", status: 403},
		{name: "a name by permission", as: token, send: "PATCH " + self, body: `{"name":"Programmed"}`, status: 200},
		{name: "no roles of its own user", as: token, send: "GET " + self + "/roles", status: 403},
		{name: "no events", as: token, send: "GET " + self + "/events", status: 403},
		{name: "no tokens", as: token, send: "GET " + self + "/tokens", status: 403},
		{name: "an overview of the record alone", as: token, send: "GET " + self + "/overview", status: 200, members: "user signIn invitation allowedActions"},
	})
	nameless := member.makeToken(t, "", "shop/a:b")
	nameless.do(t, "PATCH "+self, `{"name":"Renamed"}`).refused(t, 403, "permission-denied")

	w.owner.do(t, "PATCH /roles/"+role, `{"permissions":["users:read","shop/a:b"]}`).expect(t, 200)
	token.do(t, "PATCH /users/"+other, `{"name":"Too late"}`).refused(t, 403, "permission-denied")
	a := token.do(t, "GET /auths/session", "").expect(t, 200)
	if got := fmt.Sprint(a.list("/permissions")); got != "[shop/a:b users.name:read]" {
		t.Errorf("of a narrower role the token has %s", got)
	}
	account := w.account(t, "Import", "shop/a:b")
	robot := w.owner.makeToken(t, account, "shop/a:b")
	play(t, []scenario{
		{name: "a service account", as: robot, send: "GET /auths/session", status: 200, has: map[string]any{"/principal/type": "service_account", "/principal/id": account, "/principal/name": "Import", "/user/id": account, "/user/email": nil, "/session": nil, "/permissions/0": "shop/a:b"}},
		{name: "and a session", as: member, send: "GET /auths/session", status: 200, has: map[string]any{"/principal/type": "user", "/principal/name": "Programmed"}},
	})
}

// testRevokedAtOnce checks that the next request with a token fails after each action that
// revokes the token or its permissions.
func testRevokedAtOnce(t *testing.T, w *world) {
	role := w.role(t, "Reader", "users:read")
	for i, end := range []struct {
		name   string
		status int
		act    string
	}{
		{"the token is revoked", 401, "DELETE /service-accounts/{account}/tokens/{token}"},
		{"the account is suspended", 401, "POST /service-accounts/{account}/suspend"},
		{"the account is deleted", 401, "DELETE /service-accounts/{account}"},
		{"the role is taken", 403, "DELETE /service-accounts/{account}/roles/" + role},
		{"the user is suspended", 401, "POST /users/{user}/suspend"},
		{"the user is deleted", 401, "DELETE /users/{user}"},
		{"the user's role is taken", 403, "DELETE /users/{user}/roles/" + role},
		{"the user's token is revoked", 401, "DELETE /users/{user}/tokens/{token}"},
	} {
		t.Run(end.name, func(t *testing.T) {
			var c *caller
			account := w.account(t, end.name)
			w.owner.do(t, "PUT /service-accounts/"+account+"/roles/"+role, "").expect(t, 201)
			member := w.member(t, fmt.Sprintf("ending-%d", i), "")
			w.assign(t, member.id, role, "")
			if c = w.owner.makeToken(t, account, "users:read"); strings.Contains(end.act, "{user}") {
				c = member.makeToken(t, "", "users:read")
			}
			c.do(t, "GET /users", "").expect(t, 200)
			c.do(t, "GET /users", "").expect(t, 200)
			act := strings.NewReplacer("{account}", account, "{user}", member.id, "{token}", c.bearerID).Replace(end.act)
			if a := w.owner.do(t, act, ""); a.status >= 300 {
				t.Fatalf("%s answered %d %s", act, a.status, a.body)
			}
			c.do(t, "GET /users", "").expect(t, end.status)
		})
	}
}

func testProgramsInParallel(t *testing.T, w *world) {
	account := w.account(t, "Import", "users:read", "users:create")
	c := w.owner.makeToken(t, account, "users:create", "users:read")
	const n = 50
	key, body := "idempotency-key: "+newKey(), fmt.Sprintf(`{"email":%s,"name":"Only one"}`, quoted(address("only-one")))
	if got := atOnce(t, n, func(int) (*answer, error) { return c.try(t, "POST /users", body, key) }); got[http.StatusCreated] != n {
		t.Errorf("with one key %v", got)
	}
	if got := w.owner.readAll(t, "/users?q=only"); len(got) != 1 {
		t.Errorf("of one key came %d users", len(got))
	}
	body = tokenBody("Only one", "users:read")
	if got := atOnce(t, n, func(int) (*answer, error) {
		return w.owner.try(t, "POST /service-accounts/"+account+"/tokens", body, key)
	}); got[http.StatusCreated] != n {
		t.Errorf("tokens with one key: %v", got)
	}
	if got := w.owner.readAll(t, "/service-accounts/"+account+"/tokens"); len(got) != 2 {
		t.Errorf("of one key came %d tokens", len(got)-1)
	}
	revoke := "DELETE /service-accounts/" + account + "/tokens/" + c.bearerID
	got := atOnce(t, n, func(i int) (*answer, error) {
		if i%10 == 5 {
			return w.owner.try(t, revoke, "")
		}
		return c.try(t, "GET /users?limit=1", "")
	})
	if got[http.StatusNoContent] != 1 || got[http.StatusNotFound] != n/10-1 || got[http.StatusOK]+got[http.StatusUnauthorized] != n-n/10 {
		t.Errorf("while it was revoked: %v", got)
	}
	c.do(t, "GET /users", "").refused(t, 401, "unauthenticated")
}

func testEventsOfPrograms(t *testing.T, w *world) {
	account := w.account(t, "Import", "users:create")
	c := w.owner.makeToken(t, account, "users:create")
	made := c.do(t, "POST /users", `{"email":"made@canary.example","name":"Made"}`).expect(t, 201).text("/id")
	member := w.holder(t, "programmer", "", "", "users:create")
	delegate := member.makeToken(t, "", "users:create")
	also := delegate.do(t, "POST /users", `{"email":"also@canary.example","name":"Also made"}`).expect(t, 201).text("/id")
	w.owner.do(t, "DELETE /service-accounts/"+account+"/tokens/"+c.bearerID, "").expect(t, 204)
	reader := w.holder(t, "reader", "", "", "events:read", "tenant:read")
	play(t, []scenario{
		{name: "by a service account", as: w.owner, send: "GET /events?type=user.created&subject=" + made, status: 200, has: map[string]any{"/items/0/actor/type": "service_account", "/items/0/actor/id": account, "/items/0/actor/via": "token", "/items/0/actor/tokenId": c.bearerID, "/items/0/sessionId": nil}},
		{name: "by the token of a user", as: w.owner, send: "GET /events?type=user.created&subject=" + also, status: 200, has: map[string]any{"/items/0/actor/type": "user", "/items/0/actor/id": member.id, "/items/0/actor/via": "token", "/items/0/actor/tokenId": delegate.bearerID}},
		{name: "of a token that was made", as: w.owner, send: "GET /events?type=token.created&subject=" + account, status: 200, lacks: []string{c.bearer}, has: map[string]any{"/items/0/subject/type": "service_account", "/items/0/after/token/id": c.bearerID, "/items/0/members/0": "tokens"}},
		{name: "of one that was revoked", as: w.owner, send: "GET /events?type=token.revoked&subject=" + account, status: 200, has: map[string]any{"/items/0/before/token/id": c.bearerID}},
		{name: "for a caller who may not read service accounts", as: reader, send: "GET /events?subject=" + account, status: 200, lacks: []string{`"before"`, `"after"`}},
		{name: "of one's own tokens", as: member, send: "GET /users/" + member.id + "/events?type=token.created", status: 200, has: map[string]any{"/items/0/after/token/id": delegate.bearerID}},
	})
}

// testKeysOfPrograms checks that an idempotency key belongs to the user or service account,
// not to the token. A replayed response must contain only members that the second token may
// read.
func testKeysOfPrograms(t *testing.T, w *world) {
	account, other := w.account(t, "Import", "users:create", "users.name:read"), w.account(t, "Export", "users:create")
	first, second := w.owner.makeToken(t, account, "users:create", "users.name:read"), w.owner.makeToken(t, account, "users:create")
	member := w.holder(t, "programmer", "", "", "users:create", "users:read")
	delegate := member.makeToken(t, "", "users:create")
	create := func(c *caller, name string) *answer {
		return c.do(t, "POST /users", fmt.Sprintf(`{"email":%s,"name":"Made once"}`, quoted(address(name))), "idempotency-key: of-whom").expect(t, 201)
	}
	for _, who := range []struct {
		name          string
		first, second *caller
		shown         string
	}{
		{"account", first, second, "id name"}, {"user", member, delegate, everyMember},
		{"other", w.owner.makeToken(t, other, "users:create"), w.owner.makeToken(t, other, "users:create"), "id"},
	} {
		made, again := create(who.first, who.name), create(who.second, who.name)
		if made.header.Get("Idempotent-Replayed") != "" || again.header.Get("Idempotent-Replayed") != "true" || made.text("/id") != again.text("/id") {
			t.Errorf("%s: made %s, and again %s", who.name, made.body, again.body)
		}
		if shown, later := made.members(""), again.members(""); !slices.Equal(shown, sorted(strings.Fields(who.shown))) || !slices.Equal(later, []string{"id"}) {
			t.Errorf("%s is shown %s, and by another token %s", who.name, shown, later)
		}
	}

	body := tokenBody("Whose", "users:create")
	w.owner.do(t, "POST /service-accounts/"+account+"/tokens", body, "idempotency-key: of-which").expect(t, 201)
	w.owner.do(t, "POST /service-accounts/"+other+"/tokens", body, "idempotency-key: of-which").refused(t, 422, "idempotency-key-reused")
}

// testSoManyTokens checks that a service account can have at most a hundred tokens.
func testSoManyTokens(t *testing.T, w *world) {
	path := "/service-accounts/" + w.account(t, "Import", "users:read") + "/tokens"
	var last string
	for range 100 {
		last = w.owner.do(t, "POST "+path, tokenBody("One of many", "users:read")).expect(t, 201).text("/id")
	}
	w.owner.do(t, "POST "+path, tokenBody("One too many", "users:read")).refused(t, 409, "too-many-tokens")
	w.owner.do(t, "DELETE "+path+"/"+last, "").expect(t, 204)
	w.owner.do(t, "POST "+path, tokenBody("In its place", "users:read")).expect(t, 201)
}
