package httpapi

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/web"
)

func TestUserFromCreationToDeletion(t *testing.T) {
	s := newTestServer(t)
	const body = `{"email":"Eve@example.com","name":"Eve \"E\" Adams","department":"Sales","metadata":{"b":"2","a":"1"}}`
	created := s.as(s.owner, "POST", "/users", body, "Idempotency-Key", "k1")
	id := created.id(t)
	if created.StatusCode != 201 || created.Header.Get("Location") != "/users/"+id || created.Header.Get("Etag") == "" || created.Header.Get("Withheld-Fields") != "" {
		t.Fatalf("%d %v %s", created.StatusCode, created.Header, created.body)
	}
	user := created.document(t)
	if user["email"] != "Eve@example.com" || user["name"] != `Eve "E" Adams` || user["externalId"] != nil || user["status"] != "pending" || len(user) != 10 {
		t.Errorf("%s", created.body)
	}

	again := s.as(s.owner, "POST", "/users", `{"name":"Eve \"E\" Adams", "email":"Eve@example.com","metadata":{"a":"1","b":"2"},"department":"Sales"}`, "Idempotency-Key", `"k1"`)
	if again.StatusCode != 201 || again.body != created.body || again.Header.Get("Idempotent-Replayed") != "true" || again.Header.Get("Location") != created.Header.Get("Location") {
		t.Errorf("replay: %d %s", again.StatusCode, again.body)
	}
	expectProblem(t, s.as(s.owner, "POST", "/users", `{"email":"x@example.com","name":"Xavier"}`, "Idempotency-Key", "k1"), 422, "idempotency-key-reused")
	expectProblem(t, s.as(s.owner, "POST", "/users", `{"email":"eve@EXAMPLE.com","name":"Other"}`, "Idempotency-Key", "k2"), 409, "email-taken")

	read := s.as(s.owner, "GET", "/users/"+id, "")
	if read.body != created.body || read.Header.Get("Etag") != created.Header.Get("Etag") {
		t.Errorf("%s\n%s", read.body, created.body)
	}
	tag := read.Header.Get("Etag")
	if r := s.as(s.owner, "GET", "/users/"+id, "", "If-None-Match", `"x", W/`+tag); r.StatusCode != 304 || r.body != "" || r.Header.Get("Etag") != tag {
		t.Errorf("If-None-Match: %d", r.StatusCode)
	}
	if r := s.as(s.owner, "PATCH", "/users/"+id, `{}`); r.body != read.body {
		t.Errorf("an empty patch: %s", r.body)
	}
	expectProblem(t, s.as(s.owner, "PATCH", "/users/"+id, `{"name":"Eva"}`, "If-Match", "W/"+tag), 412, "precondition-failed")
	changed := s.as(s.owner, "PATCH", "/users/"+id, `{"department":null,"metadata":{"a":null}}`, "If-Match", tag)
	if d := changed.document(t); changed.StatusCode != 200 || d["department"] != nil || changed.Header.Get("Etag") == tag || !strings.Contains(changed.body, `"metadata":{"b":"2"}`) {
		t.Errorf("%d %s", changed.StatusCode, changed.body)
	}
	expectProblem(t, s.as(s.owner, "DELETE", "/users/"+id, "", "If-Match", tag), 412, "precondition-failed")
	if r := s.as(s.owner, "DELETE", "/users/"+id, "", "If-Match", changed.Header.Get("Etag")); r.StatusCode != 204 || r.body != "" {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	expectProblem(t, s.as(s.owner, "GET", "/users/"+id, ""), 404, "not-found")
	if r := s.as(s.owner, "POST", "/users", body, "Idempotency-Key", "k1"); r.StatusCode != 201 || r.body != `{"id":"`+id+`"}` {
		t.Errorf("replay of what was erased: %d %s", r.StatusCode, r.body)
	}
}

func TestAnswersHoldWhatTheCallerMayRead(t *testing.T) {
	s := newTestServer(t)
	clerk, _ := s.member("clerk", []string{"users.name:read", "users:create", "users.department:update", "roles:create"}, "Sales")
	created := s.as(clerk, "POST", "/users", `{"email":"eve@example.com","name":"Eve Adams","department":"Sales"}`, "Idempotency-Key", "k")
	if d := created.document(t); created.StatusCode != 201 || len(d) != 2 || d["name"] != "Eve Adams" {
		t.Fatalf("%d %s", created.StatusCode, created.body)
	}
	const withheld = "email, department, externalId, metadata, status, managedBy, createdAt, updatedAt"
	if got := created.Header.Get("Withheld-Fields"); got != withheld {
		t.Errorf("withheld %q", got)
	}
	own := s.as(clerk, "GET", "/auths/session", "")
	if !strings.Contains(own.body, `"permissions":[],"scopedPermissions":[{"reach":{"departments":["Sales"]},"permissions":["users.department:update","users.name:read","users:create"]}]`) {
		t.Errorf("%s", own.body)
	}
	list := s.as(clerk, "GET", "/users", "")
	if list.Header.Get("Withheld-Fields") != withheld || strings.Contains(list.body, "@example.com") {
		t.Errorf("%s: %s", list.Header.Get("Withheld-Fields"), list.body)
	}
	expectProblem(t, s.as(clerk, "GET", "/users?email=eve@example.com", ""), 403, "field-not-readable")
	overview := s.as(clerk, "GET", created.Header.Get("Location")+"/overview", "")
	if d := overview.document(t); overview.StatusCode != 200 || d["signIn"] != nil || d["sessions"] != nil || d["recentEvents"] != nil || d["allowedActions"] == nil {
		t.Errorf("%s", overview.body)
	}
}

func TestRoleFromCreationToDeletion(t *testing.T) {
	s := newTestServer(t)
	created := s.as(s.owner, "POST", "/roles", `{"name":"Night shift","key":"night","permissions":["shop/invoices:approve","users:read","users:read"]}`, "Idempotency-Key", "k")
	id := created.id(t)
	if created.StatusCode != 201 || created.Header.Get("Location") != "/roles/"+id || !strings.Contains(created.body, `"permissions":["shop/invoices:approve","users:read"],"grants":[]`) {
		t.Fatalf("%d %s", created.StatusCode, created.body)
	}
	expectProblem(t, s.as(s.owner, "POST", "/roles", `{"name":"night SHIFT"}`, "Idempotency-Key", "k2"), 409, "role-name-taken")
	r := s.as(s.owner, "POST", "/roles", `{"name":"x","permissions":["nonsense:read","bad",1]}`, "Idempotency-Key", "k3")
	if got, want := r.faults(t), "/permissions/2 type; /name length; /permissions/0 unknown-permission; /permissions/1 format"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	r = s.as(s.owner, "PATCH", "/roles/"+id, `{"key":"day","name":"Day shift"}`)
	if r.StatusCode != 422 || r.faults(t) != "/key immutable" {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	changed := s.as(s.owner, "PATCH", "/roles/"+id, `{"permissions":[]}`, "If-Match", created.Header.Get("Etag"))
	if changed.StatusCode != 200 || !strings.Contains(changed.body, `"permissions":[]`) {
		t.Errorf("%d %s", changed.StatusCode, changed.body)
	}

	path := "/users/" + s.ownerID + "/roles/" + id
	if r := s.as(s.owner, "PUT", path, ""); r.StatusCode != 201 || !strings.Contains(r.body, `"reach":null,"expiresAt":null,"grantedBy":"`+s.ownerID+`"`) {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if r := s.as(s.owner, "PUT", path, `{"expiresAt":"2999-01-01T00:00:00+01:00"}`); r.StatusCode != 200 || !strings.Contains(r.body, `"expiresAt":"2998-12-31T23:00:00.000000Z"`) {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if r := s.as(s.owner, "GET", "/users/"+s.ownerID+"/roles", ""); len(r.document(t)["items"].([]any)) != 2 || !strings.HasSuffix(r.body, `"nextCursor":null}`) {
		t.Errorf("%s", r.body)
	}
	if r := s.as(s.owner, "GET", "/roles/"+id+"/users", ""); len(r.document(t)["items"].([]any)) != 1 {
		t.Errorf("%s", r.body)
	}
	expectProblem(t, s.as(s.owner, "DELETE", "/roles/"+id, ""), 409, "role-in-use")
	if r := s.as(s.owner, "DELETE", path, ""); r.StatusCode != 204 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	if r := s.as(s.owner, "DELETE", "/roles/"+id+"?force=true", ""); r.StatusCode != 204 {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	expectProblem(t, s.as(s.owner, "GET", "/roles/"+id, ""), 404, "not-found")
}

func TestPagesOfAListHaveEachItemOnce(t *testing.T) {
	s := newTestServerWith(t, web.Options{PublicURL: &url.URL{Scheme: "http", Host: "localhost", Path: "/rolecall/"}})
	for i := range 7 {
		body := fmt.Sprintf(`{"email":"u%d@example.com","name":"User %d"}`, i, i)
		if r := s.as(s.owner, "POST", "/users", body, "Idempotency-Key", fmt.Sprint(i)); r.StatusCode != 201 || !strings.HasPrefix(r.Header.Get("Location"), "/rolecall/users/") {
			t.Fatalf("%d %s", r.StatusCode, r.body)
		}
	}
	var names []string
	path, cursors := "/rolecall/users?limit=3&sort=-name&q=u+example&count=true", []string{}
	s.url = strings.TrimSuffix(s.url, "/rolecall") // s.url without the base path, because the links in the responses contain it
	for pages := 0; path != ""; pages++ {
		if pages > 20 {
			t.Fatal("the walk does not end")
		}
		r := s.as(s.owner, "GET", path, "")
		if r.StatusCode != 200 {
			t.Fatalf("%s: %d %s", path, r.StatusCode, r.body)
		}
		d := r.document(t)
		if d["total"] != 7.0 || d["totalIsExact"] != true {
			t.Errorf("total %v %v", d["total"], d["totalIsExact"])
		}
		for _, item := range d["items"].([]any) {
			names = append(names, item.(map[string]any)["name"].(string))
		}
		link, hasLink := strings.CutSuffix(r.Header.Get("Link"), `>; rel="next"`)
		cursor, hasCursor := d["nextCursor"].(string)
		if hasLink != hasCursor || hasLink && !strings.Contains(link, url.QueryEscape(cursor)) {
			t.Fatalf("Link %q, cursor %q", r.Header.Get("Link"), cursor)
		}
		path, cursors = strings.TrimPrefix(link, "<"), append(cursors, cursor)
	}
	if want := []string{"User 6", "User 5", "User 4", "User 3", "User 2", "User 1", "User 0"}; !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}

	c := cursors[0]
	for _, misuse := range []string{
		"/users?limit=3&sort=name&q=u+example&cursor=" + c, "/users?sort=-name&cursor=" + c, "/users?sort=-name&q=u+example&status=active&cursor=" + c,
		"/roles?sort=-name&q=u+example&cursor=" + c, "/users?sort=-name&q=u+example&cursor=" + flipped(c), "/users?sort=-name&q=u+example&cursor=" + c[:len(c)-2],
		"/users?sort=-name&q=u+example&cursor=x",
	} {
		r := s.as(s.owner, "GET", "/rolecall"+misuse, "")
		if r.StatusCode != 400 || r.faults(t) != "cursor cursor" {
			t.Errorf("%s: %d %s", misuse, r.StatusCode, r.body)
		}
	}
}

func TestListsOfRoles(t *testing.T) {
	s := newTestServer(t)
	r := s.as(s.owner, "GET", "/roles?sort=name&limit=2", "")
	next, _ := r.document(t)["nextCursor"].(string)
	if r.StatusCode != 200 || !strings.Contains(r.body, `"key":"administrator"`) || next == "" {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	if r := s.as(s.owner, "GET", "/roles?sort=name&limit=2&cursor="+next, ""); !strings.Contains(r.body, `"key":"viewer"`) || r.document(t)["nextCursor"] != nil {
		t.Errorf("%s", r.body)
	}
	if r := s.as(s.owner, "GET", "/roles?key=owner", ""); len(r.document(t)["items"].([]any)) != 1 {
		t.Errorf("%s", r.body)
	}
}

func TestSessionFromSignInToSignOut(t *testing.T) {
	s := newTestServer(t)
	expectProblem(t, s.request("POST", "/auths/login", `{"email":"`+ownerEmail+`","password":"wrong wrong wrong"}`), 401, "wrong-credentials")
	in := s.request("POST", "/auths/login", `{"email":"`+ownerEmail+`","password":"`+ownerPassword+`"}`, "Cookie", s.owner)
	cookie, attributes, _ := strings.Cut(in.setSession(), ";")
	if attributes != " Path=/; Max-Age=604800; HttpOnly; Secure; SameSite=Lax" || cookie == s.owner {
		t.Errorf("Set-Cookie %q", in.setSession())
	}
	expectProblem(t, s.as(s.owner, "GET", "/auths/session", ""), 401, "unauthenticated")

	who := s.as(cookie, "GET", "/auths/session?touch=false", "").document(t)
	session := in.document(t)["session"].(map[string]any)
	if tenant := who["tenant"].(map[string]any); tenant["name"] != tenantName || who["session"].(map[string]any)["id"] != session["id"] ||
		fmt.Sprint(who["permissions"]) != "[*/*:* *:*]" || fmt.Sprint(who["scopedPermissions"]) != "[]" {
		t.Errorf("%v", who)
	}
	for _, member := range []string{"id", "authenticatedAt", "idleExpiresAt", "expiresAt"} {
		if session[member] == nil {
			t.Errorf("the session lacks %s", member)
		}
	}

	expectProblem(t, s.request("POST", "/auths/refresh", ""), 401, "unauthenticated")
	refreshed := s.as(cookie, "POST", "/auths/refresh", "")
	next := refreshed.sessionCookie()
	if refreshed.StatusCode != 200 || next == cookie || next == "" {
		t.Fatalf("%d %s", refreshed.StatusCode, refreshed.body)
	}
	for range 2 {
		out := s.as(next, "POST", "/auths/logout", "")
		if out.StatusCode != 204 || out.Header.Get("Set-Cookie") != "session=; Path=/; Max-Age=0; HttpOnly; Secure; SameSite=Lax" {
			t.Errorf("%d %q", out.StatusCode, out.Header.Get("Set-Cookie"))
		}
	}
	expectProblem(t, s.as(next, "GET", "/auths/session", ""), 401, "unauthenticated")
	if r := s.request("POST", "/auths/logout", ""); r.StatusCode != 204 {
		t.Errorf("without a session: %d", r.StatusCode)
	}
	one, two := s.signIn(ownerEmail, ownerPassword), s.signIn(ownerEmail, ownerPassword)
	expectProblem(t, s.as(one+"; "+two, "GET", "/auths/session", ""), 401, "ambiguous-session")
}

func TestSecureIsLeftOutOnlyByConfiguration(t *testing.T) {
	s := newTestServerWith(t, web.Options{InsecureCookie: true})
	r := s.request("POST", "/auths/logout", "")
	if got := r.Header.Get("Set-Cookie"); strings.Contains(got, "Secure") {
		t.Errorf("Set-Cookie %q", got)
	}
}

func TestOverview(t *testing.T) {
	s := newTestServer(t)
	r := s.as(s.owner, "GET", "/users/"+s.ownerID+"/overview", "")
	d := r.document(t)
	for _, part := range []string{"user", "assignments", "assignmentCount", "permissions", "signIn", "sessions", "recentEvents", "allowedActions"} {
		if _, there := d[part]; !there {
			t.Errorf("the overview lacks %s: %s", part, r.body)
		}
	}
}

func TestSuspendedUsersAreTurnedAway(t *testing.T) {
	s := newTestServer(t)
	cookie, id := s.member("eve", []string{"users:read"})
	if r := s.as(s.owner, "POST", "/users/"+id+"/suspend", `{"reason":"left"}`); r.StatusCode != 200 || !strings.Contains(r.body, `"status":"suspended"`) {
		t.Fatalf("%d %s", r.StatusCode, r.body)
	}
	expectProblem(t, s.as(cookie, "GET", "/users", ""), 401, "unauthenticated")
	expectProblem(t, s.request("POST", "/auths/login", `{"email":"eve@example.com","password":"`+ownerPassword+`"}`), 403, "user-suspended")
	if r := s.as(s.owner, "POST", "/users/"+id+"/resume", ""); r.StatusCode != 200 || !strings.Contains(r.body, `"status":"active"`) {
		t.Errorf("%d %s", r.StatusCode, r.body)
	}
	expectProblem(t, s.as(s.owner, "POST", "/users/"+id+"/suspend", `{"reason":5}`), http.StatusUnprocessableEntity, rolecall.ErrValidation.Code)
}

// flipped returns the text with its first character replaced by another one.
func flipped(text string) string {
	if text[0] == 'A' {
		return "B" + text[1:]
	}
	return "A" + text[1:]
}
