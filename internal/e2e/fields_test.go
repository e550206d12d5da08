package e2e

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// testFields checks that callers learn nothing about members of users that they may not read.
// It tries all operations that could reveal such a member, such as filters, sorting, counts
// and ETags.
func testFields(t *testing.T, p *program) {
	w := newWorld(t, p)
	target := w.owner.do(t, "POST /users", `{"email":"secret@canary.example","name":"Known Name","department":"Hidden","externalId":"hid-1","metadata":{"m":"hidden"}}`).expect(t, 201).text("/id")
	names := w.holder(t, "names", "", "", "users.name:read")
	emails := w.holder(t, "emails", "", "", "users.email:read")
	creator := w.holder(t, "creator", "", "", "users:create")
	updater := w.holder(t, "updater", "", "", "users.department:update")
	mixed := w.holder(t, "mixed", "Board", "", "users.name:read")
	w.assign(t, mixed.id, w.role(t, "Mails of Hidden", "users.email:read"), within("Hidden"))
	hidden := []string{"secret@", "Hidden", "hid-1", "pending"}

	play(t, []scenario{
		{name: "one member", as: names, send: "GET /users/" + target, status: 200, members: "id name", lacks: hidden,
			headers: map[string]string{"Withheld-Fields": "email, department, externalId, metadata, status, managedBy, createdAt, updatedAt"}},
		{name: "another member", as: emails, send: "GET /users/" + target, status: 200, members: "id email", lacks: []string{"Known", "Hidden"}},
		{name: "none: the id", as: updater, send: "GET /users/" + target, status: 200, members: "id",
			headers: map[string]string{"Withheld-Fields": "email, name, department, externalId, metadata, status, managedBy, createdAt, updatedAt"}},
		{name: "all of oneself", as: names, send: "GET /users/" + names.id, status: 200, members: everyMember, headers: map[string]string{"Withheld-Fields": ""}},
		{name: "a list of names", as: names, send: "GET /users", status: 200, lacks: append([]string{"canary"}, hidden...), headers: map[string]string{"Withheld-Fields": "email, department, externalId, metadata, status, managedBy, createdAt, updatedAt"}},
		{name: "no list for who reads nothing", as: updater, send: "GET /users", status: 403, code: "permission-denied"},
		{name: "the answer to a creation", as: creator, send: "POST /users", body: `{"email":"blind@canary.example","name":"Blind"}`, status: 201, members: "id"},
		{name: "the answer to a change", as: updater, send: "PATCH /users/" + target, body: `{"department":"Hidden"}`, status: 200, members: "id"},
		{name: "the overview", as: names, send: "GET /users/" + target + "/overview", status: 200, members: "user allowedActions", lacks: hidden},
		{name: "a creator sees who it is that there is", as: creator, send: "GET /users/" + target, status: 200, members: "id"},
	})
	for _, query := range []string{"email=secret@canary.example", "externalId=hid-1", "department=Hidden", "status=pending", "sort=email", "sort=-email"} {
		names.do(t, "GET /users?"+query, "").refused(t, 403, "field-not-readable")
		names.do(t, "GET /users?count=true&limit=1&"+query, "").refused(t, 403, "field-not-readable")
	}
	names.do(t, "GET /users?role="+w.builtIn(t, "owner"), "").refused(t, 403, "permission-denied")
	emails.do(t, "GET /users?sort=name", "").refused(t, 403, "field-not-readable")
	t.Run("searches", func(t *testing.T) { testSearchesOfFields(t, names, emails, mixed, target) })
	t.Run("tags", func(t *testing.T) { testTagsOfFields(t, w, names, emails, target) })
	t.Run("patches", func(t *testing.T) { testPatchesOfFields(t, w, target) })
}

func testSearchesOfFields(t *testing.T, names, emails, mixed *caller, target string) {
	ids := func(c *caller, query string) []string { return c.readAll(t, "/users?"+query) }
	for _, s := range []struct {
		c     *caller
		query string
		found bool
	}{
		{names, "q=known", true}, {names, "q=secret", false}, {names, "q=known+secret", false}, {names, "q=canary", false},
		{emails, "q=secret", true}, {emails, "q=known", false}, {emails, "q=secret+known", false}, {emails, "email=secret@canary.example", true},
		{mixed, "q=known", true}, {mixed, "q=secret", true}, {mixed, "q=known+secret", true}, {mixed, "email=secret@canary.example", true},
	} {
		if got := slices.Contains(ids(s.c, s.query), target); got != s.found {
			t.Errorf("%s by %s: found is %v", s.query, s.c.email, got)
		}
		count := s.c.do(t, "GET /users?count=true&"+s.query, "").expect(t, 200)
		if got := count.value("/total"); got != float64(len(count.list("/items"))) {
			t.Errorf("%s by %s: counted %v of %d", s.query, s.c.email, got, len(count.list("/items")))
		}
	}
	for query, restricted := range map[string]string{
		"email=secret@canary.example": "[email]", "sort=email": "[email]", "q=known": "[email]", "": "<nil>", "sort=name": "<nil>",
	} {
		if got := fmt.Sprint(mixed.do(t, "GET /users?"+query, "").expect(t, 200).value("/restrictedBy")); got != restricted {
			t.Errorf("%q: restrictedBy is %s, not %s", query, got, restricted)
		}
	}
	for _, query := range []string{"sort=email", "email=owner@canary.example", "q=owner+canary", "sort=email&count=true"} {
		a := mixed.do(t, "GET /users?"+query, "").expect(t, 200)
		if strings.Contains(string(a.body), "Olga") {
			t.Errorf("%s tells that there is an owner of that address: %s", query, a.body)
		}
	}
	a := mixed.do(t, "GET /users?limit=200", "").expect(t, 200)
	for i := range a.list("/items") {
		wanted := "[id name]"
		if a.text(fmt.Sprintf("/items/%d/id", i)) == target {
			wanted = "[email id name]"
		}
		if got := fmt.Sprint(a.members(fmt.Sprintf("/items/%d", i))); got != wanted {
			t.Errorf("an item has %s, not %s", got, wanted)
		}
	}
	names.do(t, "GET /users?sort=name&cursor="+url.QueryEscape(emails.do(t, "GET /users?limit=1", "").text("/nextCursor")), "").expect(t, 400)
}

func testTagsOfFields(t *testing.T, w *world, names, emails *caller, target string) {
	get := "GET /users/" + target
	name, email := names.do(t, get, "").header.Get("Etag"), emails.do(t, get, "").header.Get("Etag")
	if name == email || name == "" {
		t.Errorf("the tags are %q and %q", name, email)
	}
	w.owner.do(t, "PATCH /users/"+target, `{"department":"Elsewhere","metadata":{"m":"other"}}`).expect(t, 200)
	names.do(t, get, "", "if-none-match: "+name).expect(t, 304)
	emails.do(t, get, "", "if-none-match: "+email).expect(t, 304)
	w.owner.do(t, "PATCH /users/"+target, `{"department":"Hidden","name":"Known Name 2"}`).expect(t, 200)
	emails.do(t, get, "", "if-none-match: "+email).expect(t, 304)
	names.do(t, get, "", "if-none-match: "+name).expect(t, 200)

	editor := w.holder(t, "tag-editor", "", "", "users.name:read", "users.name:update")
	tag := editor.do(t, get, "").header.Get("Etag")
	w.owner.do(t, "PATCH /users/"+target, `{"metadata":{"m":"again"}}`).expect(t, 200)
	editor.do(t, "PATCH /users/"+target, `{"name":"Known Name"}`, "if-match: "+tag).expect(t, 200)
	editor.do(t, "PATCH /users/"+target, `{"name":"Stale"}`, "if-match: "+tag).refused(t, 412, "precondition-failed")
}

func testPatchesOfFields(t *testing.T, w *world, target string) {
	c := w.holder(t, "renamer", "", "", "users.name:update", "users.externalId:read")
	line := "PATCH /users/" + target
	play(t, []scenario{
		{name: "what may be changed", as: c, send: line, body: `{"name":"Renamed"}`, status: 200, members: "id externalId"},
		{name: "what may not", as: c, send: line, body: `{"department":"Sales"}`, status: 403, code: "permission-denied"},
		{name: "both together", as: c, send: line, body: `{"name":"Not this","department":"Sales"}`, status: 403, code: "permission-denied"},
		{name: "not even to what it is", as: c, send: line, body: `{"externalId":"hid-1"}`, status: 403, code: "permission-denied"},
		{name: "not even null", as: c, send: line, body: `{"department":null}`, status: 403, code: "permission-denied"},
		{name: "nothing", as: c, send: line, body: `{}`, status: 200, members: "id externalId"},
		{name: "one's own name", as: w.member(t, "selfish", ""), send: "PATCH /users/" + never, body: `{"name":"Myself"}`, status: 403, code: "permission-denied"},
	})
	self := w.member(t, "self", "")
	play(t, []scenario{
		{name: "one's own name", as: self, send: "PATCH /users/" + self.id, body: `{"name":"Myself"}`, status: 200, members: everyMember, has: map[string]any{"/name": "Myself"}},
		{name: "not one's own department", as: self, send: "PATCH /users/" + self.id, body: `{"department":"Board"}`, status: 403, code: "permission-denied"},
		{name: "nobody is listed to oneself", as: self, send: "GET /users", status: 403, code: "permission-denied"},
		{name: "one's own roles", as: self, send: "GET /users/" + self.id + "/roles", status: 200, contains: []string{`"items":[]`}},
		{name: "not others' roles", as: self, send: "GET /users/" + target + "/roles", status: 403, code: "permission-denied"},
	})
	if got := w.owner.do(t, "GET /users/"+target, "").text("/name"); got != "Renamed" {
		t.Errorf("a change that was refused in part happened in part: %q", got)
	}
}
