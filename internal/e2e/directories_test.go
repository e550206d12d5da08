package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/pgtest"
)

// testDirectories plays the identity provider of a tenant over SCIM 2.0.
func testDirectories(t *testing.T, p *program) {
	t.Run("life", func(t *testing.T) { testLifeOfDirectories(t, newWorld(t, p)) })
	t.Run("users", func(t *testing.T) { testProvisionedUsers(t, newWorld(t, p)) })
	t.Run("filters", func(t *testing.T) { testSCIMFilters(t, newWorld(t, p)) })
	t.Run("pages", func(t *testing.T) { testSCIMPages(t, newWorld(t, p)) })
	t.Run("dialects", func(t *testing.T) { testSCIMDialects(t, newWorld(t, p)) })
	t.Run("user names", func(t *testing.T) { testUserNamesWithoutAddress(t, newWorld(t, p)) })
	t.Run("deactivation", func(t *testing.T) { testDeactivation(t, newWorld(t, p)) })
	t.Run("suspension", func(t *testing.T) { testTwoSuspensions(t, newWorld(t, p)) })
	t.Run("managed members", func(t *testing.T) { testManagedMembers(t, newWorld(t, p)) })
	t.Run("deletion", func(t *testing.T) { testDeletionByDirectory(t, newWorld(t, p)) })
	t.Run("owners", func(t *testing.T) { testOwnersInDirectories(t, newWorld(t, p)) })
	t.Run("take-over", func(t *testing.T) { testTakeOver(t, newWorld(t, p)) })
	t.Run("groups", func(t *testing.T) { testProvisionedGroups(t, newWorld(t, p)) })
	t.Run("bounds", func(t *testing.T) { testSCIMBounds(t, newWorld(t, p)) })
	t.Run("roles", func(t *testing.T) { testRolesOfProvisionedGroups(t, newWorld(t, p)) })
	t.Run("conditions", func(t *testing.T) { testSCIMConditions(t, newWorld(t, p)) })
	t.Run("tokens", func(t *testing.T) { testDirectoryTokens(t, newWorld(t, p)) })
	t.Run("end", func(t *testing.T) { testEndOfDirectories(t, newWorld(t, p)) })
	t.Run("second cycle", func(t *testing.T) { testSecondCycle(t, newWorld(t, p)) })
	t.Run("endpoints", func(t *testing.T) { testSCIMEndpoints(t, newWorld(t, p)) })
}

func testLifeOfDirectories(t *testing.T, w *world) {
	create := w.owner.do(t, "POST /directories", `{"name":"Acme Entra"}`, "idempotency-key: directory").expect(t, 201)
	id, tag := create.text("/id"), create.header.Get("Etag")
	tokens := "/directories/" + id + "/tokens"
	far := quoted(time.Now().AddDate(0, 0, 367).UTC().Format(time.RFC3339))
	play(t, []scenario{
		{name: "a repeat", as: w.owner, send: "POST /directories", header: []string{"idempotency-key: directory"}, body: `{"name":"Acme Entra"}`, status: 201, has: map[string]any{"/id": id}},
		{name: "reading", as: w.owner, send: "GET /directories/" + id, status: 200, members: everyDirectoryMember, has: map[string]any{"/matching": "refuse", "/deprovisioning": "suspend", "/paused": false}},
		{name: "the same name", as: w.owner, send: "POST /directories", body: `{"name":"ACME entra"}`, status: 409, code: "directory-name-taken"},
		{name: "other values", as: w.owner, send: "PATCH /directories/" + id, body: `{"name":"x","matching":"always","deprovisioning":"never"}`, status: 422, faults: []string{"/name length", "/matching enum", "/deprovisioning enum"}},
		{name: "no change", as: w.owner, send: "PATCH /directories/" + id, body: `{"matching":"refuse"}`, status: 200, headers: map[string]string{"Etag": tag}},
		{name: "a change", as: w.owner, send: "PATCH /directories/" + id, body: `{"matching":"email"}`, status: 200, has: map[string]any{"/matching": "email"}},
		{name: "an old version", as: w.owner, send: "PATCH /directories/" + id, body: `{"matching":"refuse"}`, header: []string{"if-match: " + tag}, status: 412, code: "precondition-failed"},
		{name: "a token for more than a year", as: w.owner, send: "POST " + tokens, body: `{"name":"Entra","expiresAt":` + far + `}`, status: 422, code: "validation"},
	})
	first := w.owner.do(t, "POST "+tokens, directoryTokenBody(), "idempotency-key: token").expect(t, 201)
	repeat := w.owner.do(t, "POST "+tokens, directoryTokenBody(), "idempotency-key: token")
	if !strings.HasPrefix(first.text("/token"), "rd_") || repeat.status == 201 && (repeat.value("/token") != nil || repeat.value("/secretWithheld") != true) {
		t.Errorf("the token is %s, then %s", first.body, repeat.body)
	}
	w.program.secret(first.text("/token"))
	w.makeDirectoryToken(t, id)
	play(t, []scenario{
		{name: "a third token", as: w.owner, send: "POST " + tokens, body: directoryTokenBody(), status: 409, code: "limit-reached"},
		{name: "tokens without secrets", as: w.owner, send: "GET " + tokens, status: 200, lacks: []string{"rd_"}, has: map[string]any{"/items/0/id": first.text("/id"), "/items/0/createdBy": w.owner.id, "/items/2": nil}},
		{name: "revoking", as: w.owner, send: "DELETE " + tokens + "/" + first.text("/id"), status: 204},
		{name: "revoking again", as: w.owner, send: "DELETE " + tokens + "/" + first.text("/id"), status: 404},
		{name: "a token in its place", as: w.owner, send: "POST " + tokens, body: directoryTokenBody(), status: 201},
		{name: "no event has a secret", as: w.owner, send: "GET /events?subject=" + id, status: 200, lacks: []string{"rd_", "hash"}},
		{name: "deletion", as: w.owner, send: "DELETE /directories/" + id, status: 204},
		{name: "which is final", as: w.owner, send: "GET /directories/" + id, status: 404},
		{name: "also for its tokens", as: w.owner, send: "GET " + tokens, status: 404},
		{name: "and its requests", as: w.owner, send: "GET /directories/" + id + "/requests", status: 404},
		{name: "the name is free", as: w.owner, send: "POST /directories", body: `{"name":"Acme Entra"}`, status: 201},
	})
	for i := range 19 {
		w.makeDirectory(t, fmt.Sprint(i))
	}
	w.owner.do(t, "POST /directories", directoryBody("more")).refused(t, 409, "limit-reached")
}

func testProvisionedUsers(t *testing.T, w *world) {
	d := w.directory(t, "")
	body := scimUser("ada", `,"externalId":"E-1","title":"Countess","password":"`+canary+`","active":true,"`+enterprise+`":{"department":"Sales","manager":{"value":"x"}}`)
	create := d.send(t, "POST /Users", body).expect(t, 201)
	id := create.text("/id")
	if location := create.header.Get("Location"); !strings.HasSuffix(location, "/scim/v2/"+w.name+"/Users/"+id) || location != create.text("/meta/location") || create.header.Get("Etag") == "" {
		t.Errorf("the headers are %v", create.header)
	}
	line := "/Users/" + id
	sent := map[string]any{
		"/id": id, "/userName": address("ada"), "/externalId": "E-1", "/name/givenName": "Ada", "/name/familyName": "Lovelace", "/name/formatted": nil, "/active": true,
		"/emails/0/value": address("ada"), "/emails/0/type": "work", "/emails/0/primary": true, "/emails/1": nil, "/" + enterprise + "/department": "Sales", "/meta/resourceType": "User", "/password": nil,
	}
	d.play(t, []scenario{
		{name: "reading", send: "GET " + line, status: 200, has: sent, headers: map[string]string{"Etag": create.header.Get("Etag")}, lacks: []string{canary + `"`, "null"}},
		{name: "listing", send: "GET /Users", status: 200, has: map[string]any{"/totalResults": 1.0, "/startIndex": 1.0, "/itemsPerPage": 1.0, "/Resources/0/id": id, "/Resources/0/userName": address("ada")}},
		{name: "some attributes", send: "GET " + line + "?attributes=userName,name.givenName", status: 200, has: map[string]any{"/id": id, "/name/givenName": "Ada", "/name/familyName": nil, "/active": nil}},
		{name: "without some", send: "GET " + line + "?excludedAttributes=emails", status: 200, has: map[string]any{"/emails": nil, "/active": true}},
		{name: "the same userName", send: "POST /Users", body: scimUser("ada", ""), status: 409, has: map[string]any{"/scimType": "uniqueness"}},
		{name: "in capitals", send: "POST /Users", body: scimUser("ADA", ""), status: 409, has: map[string]any{"/scimType": "uniqueness"}},
		{name: "no userName", send: "POST /Users", body: `{"displayName":"Ada"}`, status: 400, has: map[string]any{"/scimType": "invalidValue"}},
		{name: "no address", send: "POST /Users", body: `{"userName":"ada"}`, status: 400, has: map[string]any{"/scimType": "invalidValue"}},
		{name: "another type", send: "POST /Users", body: `{"userName":1}`, status: 400, has: map[string]any{"/scimType": "invalidValue"}},
		{name: "an unknown id", send: "GET /Users/" + never, status: 404},
		{name: "no id", send: "GET /Users/ada", status: 404},
		{name: "replacing", send: "PUT " + line, body: scimUser("ada", `,"displayName":"Countess","`+enterprise+`":{"department":"Ops"}`), status: 200, has: map[string]any{"/displayName": "Countess", "/externalId": nil, "/active": true}},
		{name: "replacing an unknown user", send: "PUT /Users/" + never, body: scimUser("ada", ""), status: 404},
	})
	play(t, []scenario{
		{name: "the user", as: w.owner, send: "GET /users/" + id, status: 200, has: map[string]any{"/email": address("ada"), "/name": "Countess", "/department": "Ops", "/managedBy": d.id, "/status": "pending", "/externalId": nil}},
		{name: "the first event", as: w.owner, send: "GET /events?type=user.created&subject=" + id, status: 200,
			has: map[string]any{"/items/0/actor/type": "directory", "/items/0/actor/id": d.id, "/items/0/after/name": "Ada Lovelace", "/items/0/after/managedBy": d.id, "/items/1": nil}},
		{name: "the second event", as: w.owner, send: "GET /events?type=user.updated&subject=" + id, status: 200,
			has: map[string]any{"/items/0/members/0": "name", "/items/0/members/1": "department", "/items/0/before/department": "Sales", "/items/0/after/department": "Ops", "/items/1": nil}},
		{name: "no mail of the directory's requests", as: w.owner, send: "GET /users?status=pending", status: 200, has: map[string]any{"/items/0/id": id}},
	})
	if n := w.mailsTo(address("ada")); n != 0 {
		t.Errorf("provisioning sent %d mails", n)
	}
	patience.Poll(func() bool {
		return len(w.owner.do(t, "GET /directories/"+d.id+"/requests", "").expect(t, 200).list("/items")) >= 14
	})
	requests := w.owner.do(t, "GET /directories/"+d.id+"/requests", "")
	if last := len(requests.list("/items")) - 1; last != 13 || requests.text("/items/13/method") != "POST" || requests.text("/items/13/path") != "/Users" || requests.value("/items/13/status") != 201.0 {
		t.Errorf("the requests are %s", requests.body)
	}
	if requests.value("/items/0/status") != 404.0 || requests.text("/items/0/detail") == "" || strings.Contains(string(requests.body), canary) {
		t.Errorf("the last request is %s", requests.body)
	}
}

func testSCIMFilters(t *testing.T, w *world) {
	d, other := w.directory(t, ""), w.directory(t, "")
	id := d.send(t, "POST /Users", scimUser("ada", `,"externalId":"E-1"`)).expect(t, 201).text("/id")
	second := d.send(t, "POST /Users", scimUser("bob", `,"externalId":"E-1","active":false`)).expect(t, 201).text("/id")
	other.provision(t, "carol")
	group := d.provisionGroup(t, "Sales", id)
	for filter, wanted := range map[string][]string{
		`userName eq "` + address("ada") + `"`:                           {id},
		`USERNAME Eq "` + strings.ToUpper(address("ada")) + `"`:          {id},
		`externalId eq "E-1"`:                                            {id, second},
		`externalId eq "e-1"`:                                            {},
		`externalId eq "E-1" and externalId eq "e-1"`:                    {},
		`emails[type eq "work"].value eq "` + address("bob") + `"`:       {second},
		`emails.value eq "` + address("bob") + `"`:                       {second},
		`id eq "` + id + `"`:                                             {id},
		`id eq "` + never + `"`:                                          {},
		`id eq "x"`:                                                      {},
		`externalId eq "E-1" and active eq false`:                        {second},
		`externalId eq "E-1" and active eq "True"`:                       {id},
		`userName eq "` + address("ada") + `" and externalId eq "E-1"`:   {id},
		`userName eq "` + address("ada") + `" and externalId eq "E-2"`:   {},
		`userName eq "` + address("ada") + `" and userName eq "someone"`: {},
		`userName eq "` + address("carol") + `"`:                         {},
		`userName eq "` + address("owner") + `"`:                         {},
		`userName eq ""`:                                                 {},
	} {
		a := d.send(t, filtered("/Users", filter), "").expect(t, 200)
		if !slices.Equal(a.resources(), wanted) || a.value("/totalResults") != float64(len(wanted)) || a.text("/schemas/0") != "urn:ietf:params:scim:api:messages:2.0:ListResponse" {
			t.Errorf("%s found %s, not %q", filter, a.body, wanted)
		}
	}
	for _, filter := range []string{
		"userName", "userName eq", "userName eq ada", `userName xx "a"`, `(userName eq "a"`, `userName eq "a" and`, `userName co "a"`, `userName pr`, `userName ne "a"`, `not (userName eq "a")`,
		`userName eq "a" or userName eq "b"`, `active eq true`, `title eq "a"`, `name.familyName eq "a"`, `userName eq null`, `userName eq 1`, "\x00", `userName eq "` + strings.Repeat("a", 7_000) + `"`,
	} {
		d.send(t, filtered("/Users", filter), "").refusedWith(t, 400, "invalidFilter")
	}
	for filter, wanted := range map[string]int{
		`displayName eq "sales"`: 1, `displayName eq "Ops"`: 0, `id eq "` + group + `"`: 1, `externalId eq "x"`: 0,
		`id eq "` + group + `" and members eq "` + id + `"`: 1, `id eq "` + group + `" and members.value eq "` + second + `"`: 0, `id eq "` + group + `" and members[value eq "` + id + `"]`: 1,
	} {
		if a := d.send(t, filtered("/Groups", filter), "").expect(t, 200); len(a.resources()) != wanted {
			t.Errorf("%s found %s, not %d groups", filter, a.body, wanted)
		}
	}
	for _, filter := range []string{`members eq "` + id + `"`, `displayName sw "S"`, `meta.created eq "x"`} {
		d.send(t, filtered("/Groups", filter), "").refusedWith(t, 400, "invalidFilter")
	}
	other.send(t, "GET /Groups/"+group, "").expect(t, 404)
	other.send(t, "GET /Users/"+id, "").expect(t, 404)
}

func testSCIMPages(t *testing.T, w *world) {
	d := w.directory(t, "")
	var ids, groups []string
	for i := range 5 {
		ids = append(ids, d.provision(t, fmt.Sprint("user-", i)))
		groups = append(groups, d.provisionGroup(t, fmt.Sprint("Group ", i)))
	}
	d.send(t, "DELETE /Users/"+d.provision(t, "removed"), "").expect(t, 204)
	w.group(t, "Local")
	for path, wanted := range map[string][]string{"/Users": ids, "/Groups": groups} {
		var byIndex, byCursor []string
		for start := 1; start <= 5; start += 2 {
			a := d.send(t, fmt.Sprintf("GET %s?startIndex=%d&count=2", path, start), "").expect(t, 200)
			if a.value("/totalResults") != 5.0 || a.value("/startIndex") != float64(start) || a.value("/itemsPerPage") != float64(len(a.list("/Resources"))) || a.value("/nextCursor") != nil {
				t.Errorf("a page is %s", a.body)
			}
			byIndex = append(byIndex, a.resources()...)
		}
		for next, more := "", true; more; more = next != "" {
			a := d.send(t, "GET "+path+"?count=2&cursor="+next, "").expect(t, 200)
			if total := a.value("/totalResults"); total != 5.0 && next == "" || total != nil && next != "" || a.value("/startIndex") != nil {
				t.Errorf("a page is %s", a.body)
			}
			byCursor, next = append(byCursor, a.resources()...), a.text("/nextCursor")
		}
		if !slices.Equal(byIndex, wanted) || !slices.Equal(byCursor, wanted) {
			t.Errorf("by index %q, by cursor %q, not %q", byIndex, byCursor, wanted)
		}
		d.play(t, []scenario{
			{name: "only the number", send: "GET " + path + "?count=0", status: 200, has: map[string]any{"/totalResults": 5.0, "/itemsPerPage": 0.0, "/Resources/0": nil}, contains: []string{`"Resources":[]`}},
			{name: "a negative count", send: "GET " + path + "?count=-1", status: 200, has: map[string]any{"/itemsPerPage": 0.0}},
			{name: "before the start", send: "GET " + path + "?startIndex=-7&count=1", status: 200, has: map[string]any{"/startIndex": 1.0, "/Resources/0/id": wanted[0]}},
			{name: "after the end", send: "GET " + path + "?startIndex=10000", status: 200, has: map[string]any{"/totalResults": 5.0, "/Resources/0": nil}},
			{name: "too far", send: "GET " + path + "?startIndex=10001", status: 400, has: map[string]any{"/scimType": "invalidValue"}},
			{name: "no number", send: "GET " + path + "?startIndex=x", status: 400, has: map[string]any{"/scimType": "invalidValue"}},
			{name: "no count", send: "GET " + path + "?count=x", status: 400, has: map[string]any{"/scimType": "invalidValue"}},
			{name: "no cursor", send: "GET " + path + "?cursor=x", status: 400, has: map[string]any{"/scimType": "invalidCursor"}},
		})
	}
}

func testSCIMDialects(t *testing.T, w *world) {
	d := w.directory(t, "")
	id := d.provision(t, "ada")
	line := "/Users/" + id
	department := func(name any) map[string]any { return map[string]any{"/" + enterprise + "/department": name} }
	d.play(t, []scenario{
		{name: "Entra deactivates", send: "PATCH " + line, body: deactivation, status: 200, has: map[string]any{"/active": false}},
		{name: "Entra reads", send: "GET " + line, status: 200, has: map[string]any{"/active": false}},
		{name: "Entra activates", send: "PATCH " + line, body: patchOp(`{"op":"Replace","path":"active","value":"True"}`), status: 200, has: map[string]any{"/active": true}},
		{name: "Entra sends nothing", send: "PATCH " + line, body: patchOp(), status: 200, has: map[string]any{"/active": true}},
		{name: "Entra changes many", send: "PATCH " + line, body: patchOp(`{"op":"Add","path":"externalId","value":"E-1"}`, replace("name.givenName", `"Augusta"`), `{"op":"Add","path":"`+enterprise+`:department","value":"Sales"}`, `{"op":"Add","path":"phoneNumbers[type eq \"work\"].value","value":"1"}`),
			status: 200, has: map[string]any{"/externalId": "E-1", "/name/givenName": "Augusta", "/name/familyName": "Lovelace", "/" + enterprise + "/department": "Sales"}},
		{name: "Entra adds an address", send: "PATCH " + line, body: patchOp(`{"op":"Add","path":"emails[type eq \"home\"].value","value":"` + address("home") + `"}`), status: 200, has: map[string]any{"/emails/0/value": address("ada"), "/emails/1/value": address("home"), "/emails/1/type": "home"}},
		{name: "Entra replaces an address", send: "PATCH " + line, body: patchOp(replace(`emails[type eq "work"].value`, quoted(address("work")))), status: 200, has: map[string]any{"/emails/0/value": address("work"), "/emails/0/primary": true}},
		{name: "Entra removes a department", send: "PATCH " + line, body: patchOp(`{"op":"Remove","path":"` + enterprise + `:department"}`), status: 200, has: department(nil)},
		{name: "Entra without a path", send: "PATCH " + line, body: patchOp(`{"op":"Add","value":{"displayName":"Countess","name.familyName":"King","` + enterprise + `:department":"Ops","emails[type eq \"home\"].value":"` + address("other") + `"}}`), status: 200,
			has: map[string]any{"/displayName": "Countess", "/name/familyName": "King", "/emails/1/value": address("other"), "/" + enterprise + "/department": "Ops"}},
		{name: "Okta deactivates", send: "PATCH " + line, body: oktaLeaves, status: 200, has: map[string]any{"/active": false}},
		{name: "Okta replaces without active", send: "PUT " + line, body: scimUser("ada", `,"password":"`+canary+`"`), status: 200, has: map[string]any{"/active": false, "/displayName": nil, "/emails/1": nil}},
		{name: "Okta activates by PUT", send: "PUT " + line, body: scimUser("ada", `,"active":true,"groups":[],"meta":{"resourceType":"User"}`), status: 200, has: map[string]any{"/active": true}},
		{name: "Okta deactivates by PUT", send: "PUT " + line, body: scimUser("ada", `,"active":false`), status: 200, has: map[string]any{"/active": false}},
		{name: "as JSON", send: "PATCH " + line, body: activation, header: []string{"content-type: application/json; charset=utf-8"}, status: 200, has: map[string]any{"/active": true}},
		{name: "a new address", send: "PATCH " + line, body: patchOp(replace("userName", quoted(address("augusta")))), status: 200, has: map[string]any{"/userName": address("augusta")}},
		{name: "an unknown operation", send: "PATCH " + line, body: patchOp(`{"op":"move","path":"active","value":true}`), status: 400, has: map[string]any{"/scimType": "invalidSyntax"}},
		{name: "an unknown attribute", send: "PATCH " + line, body: patchOp(replace("nothing", `"x"`)), status: 400, has: map[string]any{"/scimType": "invalidPath"}},
		{name: "a wrong path", send: "PATCH " + line, body: patchOp(replace("emails[type eq", `"x"`)), status: 400, has: map[string]any{"/scimType": "invalidPath"}},
		{name: "the id", send: "PATCH " + line, body: patchOp(replace("id", `"x"`)), status: 400, has: map[string]any{"/scimType": "mutability"}},
		{name: "removing without a path", send: "PATCH " + line, body: patchOp(`{"op":"remove"}`), status: 400, has: map[string]any{"/scimType": "noTarget"}},
		{name: "removing what is required", send: "PATCH " + line, body: patchOp(`{"op":"remove","path":"userName"}`), status: 400, has: map[string]any{"/scimType": "mutability"}},
		{name: "a state that is none", send: "PATCH " + line, body: patchOp(replace("active", `"perhaps"`)), status: 400, has: map[string]any{"/scimType": "invalidValue"}},
		{name: "an unknown user", send: "PATCH /Users/" + never, body: patchOp(), status: 404},
	})
	if u := w.userOf(t, id); u.text("/email") != address("augusta") || u.text("/name") != "Ada Lovelace" || u.value("/department") != nil {
		t.Errorf("the user is %s", u.body)
	}
}

// testUserNamesWithoutAddress creates users whose userName is not an address. Their address is the primary one.
func testUserNamesWithoutAddress(t *testing.T, w *world) {
	d := w.directory(t, "")
	user := func(name, emails string) string {
		return `{"userName":` + quoted(name) + `,"emails":[` + emails + `]}`
	}
	email := func(name, more string) string { return `{"value":` + quoted(address(name)) + more + `}` }
	id := d.send(t, "POST /Users", user("ada", email("home", `,"type":"home"`)+","+email("work", `,"type":"work"`)+","+email("main", `,"type":"other","primary":true`))).expect(t, 201).text("/id")
	d.play(t, []scenario{
		{name: "the same userName", send: "POST /Users", body: user("ADA", email("else", "")), status: 409, has: map[string]any{"/scimType": "uniqueness"}},
		{name: "the same address", send: "POST /Users", body: user("bob", email("main", "")), status: 409, has: map[string]any{"/scimType": "uniqueness"}},
		{name: "found by userName", send: filtered("/Users", `userName eq "Ada"`), status: 200, has: map[string]any{"/Resources/0/id": id, "/Resources/0/userName": "ada"}},
		{name: "found by address", send: filtered("/Users", `emails.value eq "`+address("main")+`"`), status: 200, has: map[string]any{"/Resources/0/id": id}},
		{name: "another primary address", send: "PATCH /Users/" + id, body: patchOp(replace("emails", "["+email("new", `,"primary":"True"`)+"]")), status: 200, has: map[string]any{"/emails/0/value": address("new"), "/emails/0/primary": true, "/emails/1": nil}},
		{name: "no address", send: "PATCH /Users/" + id, body: patchOp(`{"op":"remove","path":"emails"}`), status: 400, has: map[string]any{"/scimType": "invalidValue"}},
	})
	if u := w.userOf(t, id); u.text("/email") != address("new") || u.text("/name") != "new" {
		t.Errorf("the user is %s", u.body)
	}
}

// testDeactivation checks that the next request of a user is refused after the directory deactivates the user.
func testDeactivation(t *testing.T, w *world) {
	d := w.directory(t, "")
	c := d.employee(t, "ada")
	line := "PATCH /Users/" + c.id
	for i := range 20 {
		c.do(t, "GET /auths/session", "").expect(t, 200)
		d.send(t, line, []string{deactivation, oktaLeaves}[i%2]).expect(t, 200)
		c.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")
		w.anonymous().do(t, "POST /auths/login", credentials(c.email, password)).refused(t, 403, "user-suspended")
		d.send(t, line, activation).expect(t, 200)
		c.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")
		c = w.signIn(t, c.email)
	}
	w.hasStatus(t, c.id, "active")
	play(t, []scenario{
		{name: "the events", as: w.owner, send: "GET /events?limit=200&type=user.suspended&subject=" + c.id, status: 200, has: map[string]any{"/items/0/actor/type": "directory", "/items/0/actor/id": d.id, "/items/0/members/0": "status", "/items/19/actor/id": d.id, "/items/20": nil}},
		{name: "of the way back", as: w.owner, send: "GET /events?limit=200&type=user.resumed&subject=" + c.id, status: 200, has: map[string]any{"/items/19/actor/id": d.id, "/items/20": nil}},
		{name: "of the sessions", as: w.owner, send: "GET /events?limit=200&type=session.ended&subject=" + c.id, status: 200, has: map[string]any{"/items/0/reason": "user suspended", "/items/19/reason": "user suspended"}},
	})
	d.send(t, line, deactivation).expect(t, 200)
	d.send(t, line, deactivation).expect(t, 200)
	if n := len(w.owner.readAll(t, "/events?type=user.suspended&subject="+c.id)); n != 21 {
		t.Errorf("%d events", n)
	}
}

// TestADirectoryEndsSessionsOnEveryNode deactivates and deletes a user on one node. Another node must refuse the
// session within seenWithin.
func TestADirectoryEndsSessionsOnEveryNode(t *testing.T) {
	t.Parallel()
	binary, shared := build(t), database{t, pgtest.URL(t)}
	near, metrics := serve(t, binary, shared.url), freeAddress(t)
	far := serve(t, binary, shared.url, "--metrics-listen", metrics)
	r := newRevoked(t, near)
	d, there := r.world.directory(t, takesOver), r.on(t, far)
	line := "/Users/" + r.caller.id
	resume := func(t *testing.T, r *revoked) {
		d.send(t, "POST /Users", `{"userName":`+quoted(r.caller.email)+`}`)
		d.send(t, "PATCH "+line, activation).expect(t, 200)
		r.signInAgain(t)
	}
	ways := []revocation{
		{"the user is deactivated", false, 401, func(t *testing.T, _ *revoked) { d.send(t, "PATCH "+line, deactivation).expect(t, 200) }, resume},
		{"the user is deleted", false, 401, func(t *testing.T, _ *revoked) { d.send(t, "DELETE "+line, "").expect(t, 204) }, resume},
	}
	var longest time.Duration
	for i := range 20 {
		disturb := undisturbed
		if i%4 == 3 {
			disturb = shared.cutListeners
		}
		awaitMetric(t, metrics, "rolecall_watch_up 1")
		what := ways[i%len(ways)]
		lag := what.lag(t, r, there, disturb)
		if longest = max(longest, lag); lag >= seenWithin {
			t.Errorf("round %d: %s: still honoured on the other node after %v", i, what.name, lag)
		}
	}
	t.Logf("the longest took %v", longest)
}

// testTwoSuspensions suspends a user in the tenant and by the directory. Each ends only its suspension.
func testTwoSuspensions(t *testing.T, w *world) {
	d := w.directory(t, "")
	id := d.provision(t, "ada")
	line, suspend, resume := "PATCH /Users/"+id, "POST /users/"+id+"/suspend", "POST /users/"+id+"/resume"
	w.owner.do(t, suspend, "").expect(t, 200)
	if a := d.send(t, line, activation).expect(t, 200); a.value("/active") != true {
		t.Errorf("active is the wish of the directory: %s", a.body)
	}
	w.hasStatus(t, id, "suspended")
	d.send(t, line, deactivation).expect(t, 200)
	w.owner.do(t, resume, "").refused(t, 409, "managed-by-directory")
	d.send(t, line, activation).expect(t, 200)
	w.hasStatus(t, id, "suspended")
	w.owner.do(t, resume, "").expect(t, 200)
	w.hasStatus(t, id, "pending")

	d.send(t, line, deactivation).expect(t, 200)
	w.owner.do(t, resume, "").refused(t, 409, "managed-by-directory")
	w.owner.do(t, suspend, `{"reason":"a local reason"}`).expect(t, 200) // makes it a local suspension
	d.send(t, line, activation).expect(t, 200)
	w.hasStatus(t, id, "suspended")
	w.owner.do(t, resume, "").expect(t, 200)
	w.hasStatus(t, id, "pending")
	play(t, []scenario{
		{name: "the local suspension has an event", as: w.owner, send: "GET /events?type=user.suspended&subject=" + id, status: 200, has: map[string]any{"/items/0/reason": "a local reason", "/items/0/actor/id": w.owner.id, "/items/1/actor/id": d.id, "/items/2/actor/id": w.owner.id, "/items/3": nil}},
		{name: "resume ends it", as: w.owner, send: "GET /events?type=user.resumed&subject=" + id, status: 200, has: map[string]any{"/items/0/actor/id": w.owner.id, "/items/1/actor/id": w.owner.id, "/items/2": nil}},
	})
	job := w.awaitJob(t, w.startJob(t, w.owner, "suspend-users", `{"users":{"q":"ada"}}`))
	if job.value("/changed") != 1.0 {
		t.Errorf("the job is %s", job.body)
	}
	d.send(t, line, deactivation).expect(t, 200)
	job = w.awaitJob(t, w.startJob(t, w.owner, "resume-users", `{"users":{"q":"ada"}}`))
	if job.value("/changed") != 0.0 {
		t.Errorf("the job is %s", job.body)
	}
	w.hasStatus(t, id, "suspended")
}

func testManagedMembers(t *testing.T, w *world) {
	d := w.directory(t, "")
	c := d.employee(t, "ada")
	line, role := "/users/"+c.id, w.role(t, "Reader", "users:read")
	const managed = "managed-by-directory"
	play(t, []scenario{
		{name: "the name", as: w.owner, send: "PATCH " + line, body: `{"name":"Other"}`, status: 409, code: managed},
		{name: "the name, by oneself", as: c, send: "PATCH " + line, body: `{"name":"Other"}`, status: 409, code: managed},
		{name: "the same name", as: w.owner, send: "PATCH " + line, body: `{"name":"Ada Lovelace"}`, status: 200},
		{name: "the department", as: w.owner, send: "PATCH " + line, body: `{"department":"Sales"}`, status: 409, code: managed},
		{name: "the address", as: w.owner, send: "POST " + line + "/email-changes", body: `{"email":` + quoted(address("else")) + `}`, status: 409, code: managed},
		{name: "the address, by oneself", as: c, send: "POST " + line + "/email-changes", body: `{"email":` + quoted(address("else")) + `}`, status: 409, code: managed},
		{name: "other members", as: w.owner, send: "PATCH " + line, body: `{"externalId":"local","metadata":{"k":"v"}}`, status: 200},
		{name: "one of both", as: w.owner, send: "PATCH " + line, body: `{"externalId":"changed","department":"Sales"}`, status: 409, code: managed},
		{name: "roles", as: w.owner, send: "PUT " + line + "/roles/" + role, status: 201},
		{name: "sessions", as: w.owner, send: "DELETE " + line + "/sessions", status: 204},
		{name: "members that nobody can write", as: w.owner, send: "PATCH " + line, body: `{"managedBy":null}`, status: 422, faults: []string{"/managedBy unknown"}},
		{name: "the user", as: w.owner, send: "GET " + line, status: 200, has: map[string]any{"/name": "Ada Lovelace", "/externalId": "local", "/metadata/k": "v", "/department": nil}},
		{name: "local deletion", as: w.owner, send: "DELETE " + line, status: 204},
	})
	d.send(t, "GET /Users/"+c.id, "").expect(t, 404)
	d.send(t, "PATCH /Users/"+c.id, activation).expect(t, 404)
	restored := w.owner.do(t, "POST "+line+"/restore", "").expect(t, 200)
	if restored.value("/user/managedBy") != nil {
		t.Errorf("a restored user is %s", restored.body)
	}
	d.send(t, "GET /Users/"+c.id, "").expect(t, 404)
	w.owner.do(t, "PATCH "+line, `{"name":"Other"}`).expect(t, 200)
}

func testDeletionByDirectory(t *testing.T, w *world) {
	d := w.directory(t, "")
	c := d.employee(t, "ada")
	line := "/Users/" + c.id
	group, local, role := d.provisionGroup(t, "Support", c.id), w.group(t, "Local"), w.role(t, "Reader", "users:read")
	w.join(t, local, c.id)
	w.assign(t, c.id, role, "")
	d.send(t, "DELETE "+line, "").expect(t, 204)
	c.do(t, "GET /auths/session", "").refused(t, 401, "unauthenticated")
	d.play(t, []scenario{
		{name: "reading", send: "GET " + line, status: 404},
		{name: "deleting", send: "DELETE " + line, status: 404},
		{name: "changing", send: "PATCH " + line, body: activation, status: 404},
		{name: "replacing", send: "PUT " + line, body: scimUser("ada", ""), status: 404},
		{name: "listing", send: "GET /Users", status: 200, has: map[string]any{"/totalResults": 0.0}},
		{name: "filtering", send: filtered("/Users", `userName eq "`+address("ada")+`"`), status: 200, has: map[string]any{"/totalResults": 0.0}},
		{name: "adding to a group", send: "PATCH /Groups/" + group, body: patchOp(`{"op":"Add","path":"members","value":` + memberList(c.id) + `}`), status: 400},
	})
	w.hasStatus(t, c.id, "suspended")
	w.isManagedBy(t, c.id, d.id)
	w.owner.do(t, "POST /users/"+c.id+"/resume", "").refused(t, 409, "managed-by-directory")
	if got := sorted(w.owner.do(t, "GET /users/"+c.id+"/groups", "").expect(t, 200).texts("group/id")); !slices.Equal(got, sorted([]string{group, local})) {
		t.Errorf("the groups are %q", got)
	}
	back := d.send(t, "POST /Users", scimUser("ada", `,"displayName":"Back"`)).expect(t, 201)
	if back.text("/id") != c.id || back.value("/active") != true || back.text("/displayName") != "Back" {
		t.Errorf("the user is %s", back.body)
	}
	w.hasStatus(t, c.id, "active")
	d.hasMembers(t, group, c.id)
	c = w.signIn(t, c.email)
	c.do(t, "GET /users", "").expect(t, 200)
	if got := len(w.owner.do(t, "GET /users/"+c.id+"/groups", "").texts("id")); got != 2 {
		t.Errorf("the user is in %d groups", got)
	}
	w.owner.do(t, "POST /users/"+c.id+"/suspend", "").expect(t, 200)
	d.send(t, "DELETE "+line, "").expect(t, 204)
	d.send(t, "POST /Users", scimUser("ada", "")).expect(t, 201)
	w.hasStatus(t, c.id, "suspended") // by the owner
	w.owner.do(t, "POST /users/"+c.id+"/resume", "").expect(t, 200)

	w.owner.do(t, "PATCH /directories/"+d.id, `{"deprovisioning":"delete"}`).expect(t, 200)
	d.send(t, "DELETE "+line, "").expect(t, 204)
	d.send(t, "GET "+line, "").expect(t, 404)
	w.owner.do(t, "GET /users/"+c.id, "").expect(t, 404)
	if !slices.Contains(w.owner.readAll(t, "/users?status=deleted"), c.id) {
		t.Error("the user cannot be restored")
	}
	d.hasMembers(t, group)
	again := d.send(t, "POST /Users", scimUser("ada", "")).expect(t, 201)
	if again.text("/id") == c.id {
		t.Error("a deleted user came back")
	}
	play(t, []scenario{
		{name: "the event", as: w.owner, send: "GET /events?type=user.deleted&subject=" + c.id, status: 200, has: map[string]any{"/items/0/actor/type": "directory", "/items/0/actor/id": d.id}},
		{name: "the address is taken", as: w.owner, send: "POST /users/" + c.id + "/restore", status: 409, code: "email-taken"},
	})
}

// testOwnersInDirectories checks that a directory cannot take an owner over, and cannot end an owner's access.
func testOwnersInDirectories(t *testing.T, w *world) {
	d := w.directory(t, takesOver)
	boss, unmanaged := d.employee(t, "boss"), w.member(t, "unmanaged", "")
	role := w.builtIn(t, "owner")
	w.assign(t, boss.id, role, "")
	w.assign(t, unmanaged.id, role, within("Sales"))
	group := d.provisionGroup(t, "Chiefs")
	line, theirs := "/Users/"+boss.id, "/Users/"+unmanaged.id
	mutability := map[string]any{"/scimType": "mutability"}
	add := patchOp(`{"op":"Add","path":"members","value":` + memberList(unmanaged.id) + `}`)
	d.play(t, []scenario{
		{name: "deactivating", send: "PATCH " + line, body: deactivation, status: 409, has: mutability},
		{name: "by PUT", send: "PUT " + line, body: scimUser("boss", `,"active":false`), status: 409, has: mutability},
		{name: "deleting", send: "DELETE " + line, status: 409, has: mutability},
		{name: "another address", send: "PATCH " + line, body: patchOp(replace("userName", quoted(address("else")))), status: 409, has: mutability},
		{name: "the name", send: "PATCH " + line, body: renaming, status: 200, has: map[string]any{"/active": true}},
		{name: "a group", send: "PATCH /Groups/" + group, body: patchOp(`{"op":"Add","path":"members","value":` + memberList(boss.id) + `}`), status: 204},
		{name: "taking over by POST", send: "POST /Users", body: scimUser("unmanaged", ""), status: 409, has: mutability},
		{name: "by PATCH", send: "PATCH " + theirs, body: renaming, status: 409, has: mutability},
		{name: "by PUT", send: "PUT " + theirs, body: scimUser("unmanaged", ""), status: 409, has: mutability},
		{name: "by DELETE", send: "DELETE " + theirs, status: 409, has: mutability},
		{name: "by a group", send: "PATCH /Groups/" + group, body: add, status: 409, has: mutability},
		{name: "by a new group", send: "POST /Groups", body: scimGroup("More", unmanaged.id), status: 409, has: mutability},
	})
	w.owner.do(t, "PATCH /directories/"+d.id, `{"deprovisioning":"delete"}`).expect(t, 200)
	d.send(t, "DELETE "+line, "").refusedWith(t, 409, "mutability")
	boss.do(t, "GET /users", "").expect(t, 200)
	unmanaged.do(t, "GET /auths/session", "").expect(t, 200)
	w.isManagedBy(t, unmanaged.id, "")
	d.hasMembers(t, group, boss.id)
	for _, id := range []string{boss.id, unmanaged.id} {
		awaitEvents(t, w.owner, "/events?type=request.refused&subject="+id, 1)
		play(t, []scenario{{name: "the event", as: w.owner, send: "GET /events?type=request.refused&subject=" + id, status: 200, has: map[string]any{"/items/0/actor/type": "directory", "/items/0/actor/id": d.id}, contains: []string{"owner-protected"}}})
	}
	for _, owner := range []string{w.owner.email, boss.email} {
		w.mailTo(t, owner, rolecall.MailDirectory) // about boss, and about unmanaged
		w.mailTo(t, owner, rolecall.MailDirectory)
		w.resetLink(t, owner) // was mailed later
		n := 0
		for _, m := range w.program.mail.Messages() {
			if m.To == owner && w.isMail(&m, rolecall.MailDirectory) {
				n++
			}
		}
		if n != 2 {
			t.Errorf("%s got %d mails, not one about each owner", owner, n)
		}
	}
	w.owner.do(t, "DELETE /users/"+boss.id+"/roles/"+role, "").expect(t, 204)
	d.send(t, "DELETE "+line, "").expect(t, 204)
	w.owner.do(t, "GET /users/"+boss.id, "").expect(t, 404)
}

func testTakeOver(t *testing.T, w *world) {
	d := w.directory(t, "")
	byPost, byPatch, byGroup, byDelete := w.member(t, "post", "Sales"), w.user(t, "patch", "Sales"), w.user(t, "group", "Sales"), w.user(t, "delete", "")
	find := filtered("/Users", `userName eq "`+strings.ToUpper(address("patch"))+`"`)
	group := d.provisionGroup(t, "Support")
	add := func(id string) string {
		return patchOp(`{"op":"add","path":"members","value":` + memberList(id) + `}`)
	}
	d.play(t, []scenario{
		{name: "refused by POST", send: "POST /Users", body: scimUser("post", ""), status: 409, has: map[string]any{"/scimType": "uniqueness"}},
		{name: "not found", send: find, status: 200, has: map[string]any{"/totalResults": 0.0}},
		{name: "not readable", send: "GET /Users/" + byPatch, status: 404},
		{name: "not changeable", send: "PATCH /Users/" + byPatch, body: renaming, status: 404},
		{name: "not deletable", send: "DELETE /Users/" + byDelete, status: 404},
		{name: "no member", send: "PATCH /Groups/" + group, body: add(byGroup), status: 400, has: map[string]any{"/scimType": "invalidValue"}},
	})
	w.owner.do(t, "PATCH /directories/"+d.id, `{"matching":"email"}`).expect(t, 200)
	post := d.send(t, "POST /Users", scimUser("POST", `,"externalId":"E-1"`)).expect(t, 201)
	if post.text("/id") != byPost.id || post.text("/userName") != address("POST") || post.value("/active") != true {
		t.Errorf("the user is %s", post.body)
	}
	byPost.do(t, "GET /auths/session", "").expect(t, 200)
	w.isManagedBy(t, byPost.id, d.id)
	d.play(t, []scenario{
		{name: "found", send: find, status: 200, has: map[string]any{"/totalResults": 1.0, "/Resources/0/id": byPatch, "/Resources/0/active": true, "/Resources/0/displayName": "User patch", "/Resources/0/" + enterprise + "/department": "Sales"}},
		{name: "but not among inactive users", send: filtered("/Users", `userName eq "`+address("patch")+`" and active eq false`), status: 200, has: map[string]any{"/totalResults": 0.0}},
		{name: "nor listed", send: "GET /Users", status: 200, has: map[string]any{"/totalResults": 1.0}},
		{name: "nor by another attribute", send: filtered("/Users", `emails.value eq "`+address("patch")+`"`), status: 200, has: map[string]any{"/totalResults": 0.0}},
		{name: "readable", send: "GET /Users/" + byPatch, status: 200, has: map[string]any{"/userName": address("patch")}},
	})
	w.isManagedBy(t, byPatch, "")
	d.send(t, "PATCH /Users/"+byPatch, patchOp(`{"op":"Add","path":"externalId","value":"E-2"}`)).expect(t, 200)
	w.isManagedBy(t, byPatch, d.id)
	if u := w.userOf(t, byPatch); u.text("/name") != "User patch" || u.text("/department") != "Sales" {
		t.Errorf("the user is %s", u.body)
	}
	d.send(t, "PATCH /Groups/"+group, add(byGroup)).expect(t, 204)
	w.isManagedBy(t, byGroup, d.id)
	d.hasMembers(t, group, byGroup)
	d.play(t, []scenario{
		{name: "the member is a user", send: "GET /Users/" + byGroup, status: 200, has: map[string]any{"/userName": address("group"), "/groups/0/value": group, "/groups/0/display": "Support"}},
		{name: "who is listed", send: "GET /Users", status: 200, has: map[string]any{"/totalResults": 3.0}},
		{name: "who is found", send: filtered("/Users", `userName eq "`+address("group")+`"`), status: 200, has: map[string]any{"/totalResults": 1.0}},
	})
	other := w.directory(t, takesOver)
	other.play(t, []scenario{
		{name: "another directory does not see them", send: "GET /Users/" + byPatch, status: 404},
		{name: "and finds them not", send: find, status: 200, has: map[string]any{"/totalResults": 0.0}},
		{name: "and takes them not", send: "POST /Users", body: scimUser("patch", ""), status: 409, has: map[string]any{"/scimType": "uniqueness"}},
		{name: "nor changes them", send: "PATCH /Users/" + byPatch, body: renaming, status: 404},
		{name: "nor adds them to a group", send: "POST /Groups", body: scimGroup("Others", byPatch), status: 400},
		{name: "nor changes the group", send: "PATCH /Groups/" + group, body: add(byPatch), status: 404},
	})
	play(t, []scenario{
		{name: "the event of the take-over", as: w.owner, send: "GET /events?type=user.updated&subject=" + byGroup, status: 200, has: map[string]any{"/items/0/members/0": "managedBy", "/items/0/members/1": nil, "/items/0/actor/id": d.id, "/items/1": nil}},
	})
	d.send(t, "DELETE /Users/"+byDelete, "").expect(t, 204)
	w.isManagedBy(t, byDelete, d.id)
	w.hasStatus(t, byDelete, "suspended")
}

func testProvisionedGroups(t *testing.T, w *world) {
	d := w.directory(t, "")
	a, b, c := d.provision(t, "a"), d.provision(t, "b"), d.provision(t, "c")
	local := w.user(t, "local", "")
	w.group(t, "Support") // has no source, so the name is free for the directory
	create := d.send(t, "POST /Groups", `{"displayName":"Support","externalId":"G-1","members":`+memberList(a, a)+`}`).expect(t, 201)
	id := create.text("/id")
	line := "/Groups/" + id
	if !slices.Equal(create.memberIDs(), []string{a}) || !strings.HasSuffix(create.header.Get("Location"), "/scim/v2/"+w.name+line) {
		t.Errorf("the group is %s", create.body)
	}
	other := d.provisionGroup(t, "Sales")
	uniqueness, invalid := map[string]any{"/scimType": "uniqueness"}, map[string]any{"/scimType": "invalidValue"}
	steps := []struct {
		scenario
		members []string
	}{
		{scenario{name: "Entra adds", send: "PATCH " + line, body: patchOp(`{"op":"Add","path":"members","value":` + memberList(b) + `}`), status: 204}, []string{a, b}},
		{scenario{name: "Entra adds a member again", send: "PATCH " + line, body: patchOp(`{"op":"Add","path":"members","value":` + memberList(b) + `}`), status: 204}, []string{a, b}},
		{scenario{name: "Entra removes by value", send: "PATCH " + line, body: patchOp(`{"op":"Remove","path":"members","value":` + memberList(a) + `}`), status: 204}, []string{b}},
		{scenario{name: "Entra removes by path", send: "PATCH " + line, body: patchOp(`{"op":"Remove","path":"members[value eq \"` + b + `\"]"}`), status: 204}, nil},
		{scenario{name: "Entra removes again", send: "PATCH " + line, body: patchOp(`{"op":"Remove","path":"members[value eq \"` + b + `\"]"}`), status: 204}, nil},
		{scenario{name: "Entra adds without a path", send: "PATCH " + line, body: patchOp(`{"op":"Add","value":{"members":` + memberList(a, c) + `}}`), status: 204}, []string{a, c}},
		{scenario{name: "several at once", send: "PATCH " + line, body: patchOp(`{"op":"remove","path":"members[value eq \"`+a+`\"]"}`, `{"op":"add","path":"members","value":`+memberList(b)+`}`), status: 204}, []string{b, c}},
		{scenario{name: "Okta replaces members", send: "PATCH " + line, body: patchOp(`{"op":"replace","path":"members","value":` + memberList(a, b) + `}`), status: 204}, []string{a, b}},
		{scenario{name: "Okta renames", send: "PATCH " + line, body: patchOp(`{"op":"replace","value":{"id":"` + id + `","displayName":"Helpers"}}`), status: 204}, []string{a, b}},
		{scenario{name: "Okta replaces the group", send: "PUT " + line, body: scimGroup("Support", c), status: 200, has: map[string]any{"/displayName": "Support", "/externalId": nil}}, []string{c}},
		{scenario{name: "an unknown member", send: "PATCH " + line, body: patchOp(`{"op":"add","path":"members","value":` + memberList(a, never) + `}`), status: 400, has: invalid}, []string{c}},
		{scenario{name: "a user of the tenant", send: "PATCH " + line, body: patchOp(`{"op":"add","path":"members","value":` + memberList(local) + `}`), status: 400, has: invalid}, []string{c}},
		{scenario{name: "a group as member", send: "PATCH " + line, body: patchOp(`{"op":"add","path":"members","value":` + memberList(other) + `}`), status: 400, has: invalid}, []string{c}},
		{scenario{name: "no id", send: "PATCH " + line, body: patchOp(`{"op":"add","path":"members","value":` + memberList("x") + `}`), status: 400, has: invalid}, []string{c}},
		{scenario{name: "removing an unknown member", send: "PATCH " + line, body: patchOp(`{"op":"remove","path":"members","value":` + memberList(never) + `}`), status: 204}, []string{c}},
		{scenario{name: "the name of another group", send: "PATCH " + line, body: patchOp(replace("displayName", `"SALES"`)), status: 409, has: uniqueness}, []string{c}},
		{scenario{name: "of a new group", send: "POST /Groups", body: scimGroup("support"), status: 409, has: uniqueness}, []string{c}},
		{scenario{name: "no name", send: "POST /Groups", body: `{"members":[]}`, status: 400, has: invalid}, []string{c}},
		{scenario{name: "removing the name", send: "PATCH " + line, body: patchOp(`{"op":"remove","path":"displayName"}`), status: 400, has: map[string]any{"/scimType": "mutability"}}, []string{c}},
		{scenario{name: "an answer that is asked for", send: "PATCH " + line + "?attributes=displayName", body: patchOp(replace("externalId", `"G-2"`)), status: 200, has: map[string]any{"/displayName": "Support", "/members": nil}}, []string{c}},
		{scenario{name: "without members", send: "GET " + line + "?excludedAttributes=members", status: 200, has: map[string]any{"/displayName": "Support", "/externalId": "G-2", "/members": nil}}, []string{c}},
		{scenario{name: "lists have no members", send: "GET /Groups", status: 200, has: map[string]any{"/totalResults": 2.0, "/Resources/0/displayName": "Support", "/Resources/0/members": nil}}, []string{c}},
		{scenario{name: "unless they are asked for", send: "GET /Groups?attributes=displayName,members", status: 200, has: map[string]any{"/Resources/0/members/0/value": c}}, []string{c}},
		{scenario{name: "removing all", send: "PATCH " + line, body: patchOp(`{"op":"Remove","path":"members"}`), status: 204}, nil},
		{scenario{name: "an unknown group", send: "GET /Groups/" + never, status: 404}, nil},
	}
	for _, s := range steps {
		d.play(t, []scenario{s.scenario})
		t.Run("members after "+s.name, func(t *testing.T) { d.hasMembers(t, id, s.members...) })
	}
	const managed = "managed-by-directory"
	source := `,"source":{"type":"directory","id":"` + d.id + `"}}`
	keeper := w.holder(t, "keeper", "", "", "groups:*", "users:read", "connections:*")
	play(t, []scenario{
		{name: "a source that does not exist", as: w.owner, send: "POST /groups", body: `{"name":"Filled","source":{"type":"directory","id":"` + never + `"}}`, status: 422, faults: []string{"/source/id unknown"}},
		{name: "a source of another type", as: w.owner, send: "POST /groups", body: `{"name":"Filled","source":{"type":"connection","id":"` + d.id + `"}}`, status: 422, faults: []string{"/source/id unknown"}},
		{name: "a source by a keeper of groups", as: keeper, send: "POST /groups", body: `{"name":"Filled"` + source, status: 403, code: "permission-denied"},
		{name: "a source by an owner", as: w.owner, send: "POST /groups", body: `{"name":"Filled"` + source, status: 201, has: map[string]any{"/source/id": d.id}},
		{name: "describing here", as: w.owner, send: "PATCH /groups/" + id, body: `{"description":"Helps."}`, status: 200},
		{name: "the external id here", as: w.owner, send: "PATCH /groups/" + id, body: `{"externalId":"mine"}`, status: 409, code: managed},
		{name: "the source", as: w.owner, send: "GET /groups/" + id, status: 200, has: map[string]any{"/source/type": "directory", "/source/id": d.id, "/name": "Support"}},
		{name: "renaming here", as: w.owner, send: "PATCH /groups/" + id, body: `{"name":"Mine"}`, status: 409, code: managed},
		{name: "adding here", as: w.owner, send: "PUT /groups/" + id + "/users/" + local, status: 409, code: managed},
		{name: "removing here", as: w.owner, send: "DELETE /groups/" + id + "/users/" + a, status: 409, code: managed},
		{name: "deleting here", as: w.owner, send: "DELETE /groups/" + id + "?force=true", status: 409, code: managed},
		{name: "an event of a member", as: w.owner, send: "GET /events?type=group.member_added&subject=" + c, status: 200, has: map[string]any{"/items/0/actor/type": "directory", "/items/0/actor/id": d.id, "/items/0/after/groupId": id}},
	})
	d.send(t, "DELETE "+line, "").expect(t, 204)
	d.send(t, "DELETE "+line, "").expect(t, 404)
	w.owner.do(t, "GET /groups/"+id, "").expect(t, 404)
	d.provisionGroup(t, "Support")
}

func testSCIMBounds(t *testing.T, w *world) {
	d := w.directory(t, "")
	id := d.provisionGroup(t, "Large")
	many := slices.Repeat([]string{never}, 1001)
	operations := slices.Repeat([]string{replace("externalId", `"x"`)}, 1001)
	large := scimUser("ada", `,"title":"`+strings.Repeat("a", 1<<20)+`"`)
	d.play(t, []scenario{
		{name: "too many members", send: "PATCH /Groups/" + id, body: patchOp(`{"op":"add","path":"members","value":` + memberList(many...) + `}`), status: 413},
		{name: "to remove", send: "PATCH /Groups/" + id, body: patchOp(`{"op":"remove","path":"members","value":` + memberList(many...) + `}`), status: 413},
		{name: "in two operations", send: "PATCH /Groups/" + id, body: patchOp(`{"op":"add","path":"members","value":`+memberList(many[:500]...)+`}`, `{"op":"add","value":{"members":`+memberList(many[:501]...)+`}}`), status: 413},
		{name: "in a new group", send: "POST /Groups", body: scimGroup("More", many...), status: 413},
		{name: "in a group that is replaced", send: "PUT /Groups/" + id, body: scimGroup("Large", many...), status: 413},
		{name: "as many as allowed, which are unknown", send: "POST /Groups", body: scimGroup("More", many[:1000]...), status: 400},
		{name: "too many operations", send: "PATCH /Groups/" + id, body: patchOp(operations...), status: 413},
		{name: "a large body", send: "POST /Users", body: large, status: 413},
		{name: "to replace", send: "PUT /Users/" + never, body: large, status: 413},
		{name: "to change", send: "PATCH /Users/" + never, body: large, status: 413},
		{name: "of a group", send: "POST /Groups", body: large, status: 413},
		{name: "a long name", send: "POST /Groups", body: scimGroup(strings.Repeat("ä", 256)), status: 400},
		{name: "a name of one line", send: "POST /Groups", body: scimGroup("a\nb"), status: 400},
		{name: "a long userName", send: "POST /Users", body: scimUser(strings.Repeat("a", 256), ""), status: 400},
		{name: "none of it was done", send: "GET /Groups", status: 200, has: map[string]any{"/totalResults": 1.0}},
		{name: "nor of users", send: "GET /Users", status: 200, has: map[string]any{"/totalResults": 0.0}},
	})
}

// testRolesOfProvisionedGroups checks that the members of a group of a directory have the roles that the owner gave to
// the group, and lose them with the membership.
func testRolesOfProvisionedGroups(t *testing.T, w *world) {
	d := w.directory(t, "")
	c := d.employee(t, "ada")
	group, role := d.provisionGroup(t, "Readers"), w.role(t, "Reader", "users:read")
	w.assignToGroup(t, group, role, "")
	add, remove := patchOp(`{"op":"Add","path":"members","value":`+memberList(c.id)+`}`), patchOp(`{"op":"Remove","path":"members[value eq \"`+c.id+`\"]"}`)
	for range 10 {
		c.do(t, "GET /users", "").refused(t, 403, "permission-denied")
		d.send(t, "PATCH /Groups/"+group, add).expect(t, 204)
		c.do(t, "GET /users", "").expect(t, 200)
		d.send(t, "PATCH /Groups/"+group, remove).expect(t, 204)
	}
	for line, body := range map[string]string{"PATCH /Groups/" + group: patchOp(`{"op":"replace","path":"members","value":[]}`), "PUT /Groups/" + group: scimGroup("Readers")} {
		d.send(t, "PATCH /Groups/"+group, add).expect(t, 204)
		c.do(t, "GET /users", "").expect(t, 200)
		d.send(t, line, body)
		c.do(t, "GET /users", "").refused(t, 403, "permission-denied")
	}
	d.send(t, "PATCH /Groups/"+group, add).expect(t, 204)
	c.do(t, "GET /users", "").expect(t, 200)
	d.send(t, "DELETE /Groups/"+group, "").expect(t, 204)
	c.do(t, "GET /users", "").refused(t, 403, "permission-denied")
	if got := w.owner.do(t, "GET /users/"+c.id+"/roles", "").expect(t, 200).list("/items"); len(got) != 0 {
		t.Errorf("the user holds %v", got)
	}
}

func testSCIMConditions(t *testing.T, w *world) {
	d := w.directory(t, "")
	user := d.provision(t, "ada")
	group := d.provisionGroup(t, "Support")
	for line, change := range map[string]string{"/Users/" + user: renaming, "/Groups/" + group: patchOp(replace("displayName", `"Renamed"`))} {
		old := d.send(t, "GET "+line, "").expect(t, 200).header.Get("Etag")
		unchanged := d.send(t, "GET "+line, "", "if-none-match: "+old).expect(t, 304)
		if len(unchanged.body) > 0 || unchanged.header.Get("Etag") != old {
			t.Errorf("304 with %s, %v", unchanged.body, unchanged.header)
		}
		d.send(t, "GET "+line, "", `if-none-match: W/"x", *`).expect(t, 304)
		d.send(t, "PATCH "+line, change, `if-match: W/"x"`).expect(t, 412)
		if a := d.send(t, "PATCH "+line, change, "if-match: "+old); a.status >= 300 {
			t.Errorf("%s answered %d", a.line, a.status)
		}
		now := d.send(t, "GET "+line, "", "if-none-match: "+old).expect(t, 200)
		if now.header.Get("Etag") == old || now.text("/displayName") != "Renamed" {
			t.Errorf("after the change: %v, %s", now.header, now.body)
		}
		d.play(t, []scenario{
			{name: "an old version", send: "PATCH " + line, body: change, header: []string{"if-match: " + old}, status: 412},
			{name: "to replace", send: "PUT " + line, body: strings.Replace(scimUser("ada", ""), "{", `{"displayName":"Other",`, 1), header: []string{"if-match: " + old}, status: 412},
			{name: "to delete", send: "DELETE " + line, header: []string{"if-match: " + old}, status: 412},
			{name: "any version", send: "DELETE " + line, header: []string{"if-match: *"}, status: 204},
		})
	}
}

// unauthorized returns the parts of a 401 that must be the same for all reasons.
func (a *answer) unauthorized(t testing.TB) string {
	t.Helper()
	return fmt.Sprint(a.expect(t, 401).header["Www-Authenticate"], a.header["Content-Type"], string(a.body))
}

func testDirectoryTokens(t *testing.T, w *world) {
	d, foreign := w.directory(t, ""), newWorld(t, w.program)
	theirs := foreign.directory(t, "")
	id := d.provision(t, "ada")
	const list = "GET /Users"
	var token string
	end := endSoon(t, func(end string) *answer {
		a := w.owner.do(t, "POST /directories/"+d.id+"/tokens", `{"name":"Short","expiresAt":"`+end+`"}`)
		token = a.text("/token")
		return a
	})
	as := func(tenant, bearer string) *scimDirectory {
		return &scimDirectory{world: w, id: d.id, caller: &caller{world: w, tenant: tenant, bearer: bearer}}
	}
	revoked := w.directory(t, "")
	w.owner.do(t, "DELETE /directories/"+revoked.id+"/tokens/"+revoked.tokenID, "").expect(t, 204)
	account := w.account(t, "Robot", "users:read")
	robot := w.owner.makeToken(t, account, "users:read")
	valid := d.caller.bearer
	patience.Poll(func() bool { return time.Now().After(end) })
	wanted := as(w.name, "").send(t, list, "").unauthorized(t)
	for name, a := range map[string]*answer{
		"an expired token":                  as(w.name, token).send(t, list, ""),
		"a revoked token":                   revoked.send(t, list, ""),
		"a token of another tenant":         as(w.name, theirs.caller.bearer).send(t, list, ""),
		"the path of another tenant":        as(foreign.name, valid).send(t, list, ""),
		"the path of an unknown tenant":     as("no-such-tenant", valid).send(t, list, ""),
		"a path that is no name":            as("No%20Tenant", valid).send(t, list, ""),
		"a token that does not exist":       as(w.name, valid[:len(valid)-1]+string(other(valid[len(valid)-1]))).send(t, list, ""),
		"a token cut short":                 as(w.name, valid[:20]).send(t, list, ""),
		"an API token":                      as(w.name, robot.bearer).send(t, list, ""),
		"a session":                         as(w.name, "").send(t, list, "", "cookie: session="+w.owner.token),
		"a session as a bearer":             as(w.name, w.owner.token).send(t, list, ""),
		"an operator key":                   as(w.name, w.program.operator.bearer).send(t, list, ""),
		"Basic":                             as(w.name, "").send(t, list, "", "authorization: Basic "+valid),
		"two headers":                       d.send(t, list, "", "+authorization: Bearer "+valid),
		"a token in the query":              as(w.name, "").send(t, list+"?access_token="+valid, ""),
		"an unknown user":                   as(w.name, token).send(t, "GET /Users/"+never, ""),
		"a known user of another directory": as(foreign.name, valid).send(t, "GET /Users/"+id, ""),
		"a write":                           as(foreign.name, valid).send(t, "POST /Users", scimUser("eve", "")),
		"a wrong body":                      as(w.name, token).send(t, "POST /Users", "{"),
		"a discovery document":              as(w.name, token).send(t, "GET /ServiceProviderConfig", ""),
	} {
		if got := a.unauthorized(t); got != wanted {
			t.Errorf("%s: %s, not %s", name, got, wanted)
		}
	}
	d.send(t, list, "", "cookie: session="+w.owner.token).expect(t, 200)
	d.send(t, list, "", "cookie: session=nonsense", "origin: https://evil.example", "sec-fetch-site: cross-site", "x-tenant-schema: "+foreign.name).expect(t, 200)
	d.send(t, list, "", "authorization: bEARER "+valid).expect(t, 200)
	for _, line := range []string{"GET /users", "GET /auths/session", "GET /directories", "POST /auths/refresh", "GET /tenant"} {
		d.caller.do(t, line, "").refused(t, 401, "unauthenticated")
	}
	if n := foreign.owner.do(t, "GET /users?count=true&limit=1", "").value("/total"); n != 1.0 {
		t.Errorf("the other tenant has %v users", n)
	}
	used := w.owner.do(t, "GET /directories/"+d.id+"/tokens", "").expect(t, 200)
	if used.value("/items/0/lastUsedAt") == nil {
		t.Errorf("the tokens are %s", used.body)
	}
}

// testEndOfDirectories pauses and deletes a directory.
func testEndOfDirectories(t *testing.T, w *world) {
	d := w.directory(t, "")
	c, suspended := d.employee(t, "ada"), d.provision(t, "suspended")
	d.send(t, "PATCH /Users/"+suspended, deactivation).expect(t, 200)
	removed := d.provision(t, "removed")
	d.send(t, "DELETE /Users/"+removed, "").expect(t, 204)
	group, clash := d.provisionGroup(t, "Readers", c.id), d.provisionGroup(t, "Local")
	w.group(t, "Local")
	w.assignToGroup(t, group, w.role(t, "Reader", "users:read"), "")
	w.owner.do(t, "PATCH /directories/"+d.id, `{"paused":true}`).expect(t, 200)
	d.play(t, []scenario{
		{name: "a paused directory", send: "GET /Users", status: 503, contains: []string{"paused"}},
		{name: "changes nothing", send: "PATCH /Users/" + c.id, body: deactivation, status: 503},
	})
	c.do(t, "GET /users", "").expect(t, 200)
	w.owner.do(t, "PATCH /directories/"+d.id, `{"paused":false}`).expect(t, 200)
	d.send(t, "GET /Users", "").expect(t, 200)
	w.owner.do(t, "POST /users/"+suspended+"/resume", "").refused(t, 409, "managed-by-directory")

	wanted := (&scimDirectory{world: w, caller: w.anonymous()}).send(t, "GET /Users", "").unauthorized(t)
	w.owner.do(t, "DELETE /directories/"+d.id, "").expect(t, 204)
	if got := d.send(t, "GET /Users", "").unauthorized(t); got != wanted {
		t.Errorf("a deleted directory: %s, not %s", got, wanted)
	}
	w.owner.do(t, "PATCH /users/"+c.id, `{"name":"Changed"}`).expect(t, 200)
	w.owner.do(t, "POST /users/"+suspended+"/resume", "").expect(t, 200)
	for _, id := range []string{c.id, suspended, removed} {
		if !patience.Poll(func() bool { return w.userOf(t, id).value("/managedBy") == nil }) {
			t.Errorf("the user is %s", w.userOf(t, id).body)
		}
	}
	w.hasStatus(t, removed, "suspended")
	c.do(t, "GET /users", "").expect(t, 200)
	play(t, []scenario{
		{name: "the group has no source", as: w.owner, send: "GET /groups/" + group, status: 200, has: map[string]any{"/source": nil, "/name": "Readers"}},
		{name: "and its member", as: w.owner, send: "GET /groups/" + group + "/users", status: 200, has: map[string]any{"/items/0/id": c.id, "/items/1": nil}},
		{name: "the other group has another name", as: w.owner, send: "GET /groups/" + clash, status: 200, has: map[string]any{"/source": nil}, contains: []string{`"name":"Local (`}},
		{name: "the groups can be changed", as: w.owner, send: "PATCH /groups/" + group, body: `{"name":"Renamed"}`, status: 200},
		{name: "the removed user comes back", as: w.owner, send: "POST /users/" + removed + "/resume", status: 200},
	})
	next := w.directory(t, takesOver)
	if a := next.send(t, "POST /Users", scimUser("ada", "")).expect(t, 201); a.text("/id") != c.id {
		t.Errorf("the next directory gets %s", a.body)
	}
	w.isManagedBy(t, c.id, next.id)
}

// cycle sends what an identity provider sends for the users and the groups: it looks for each of them, then creates or
// changes it.
func (d *scimDirectory) cycle(t *testing.T, users, groups int) {
	t.Helper()
	ids := make([]string, users)
	for i := range users {
		name := fmt.Sprint("user-", i)
		body := scimUser(name, fmt.Sprintf(`,"externalId":"E-%d","active":%t,"%s":{"department":"Sales"}`, i, i%5 != 0, enterprise))
		found := d.send(t, filtered("/Users", `userName eq "`+address(name)+`"`), "").expect(t, 200)
		if ids[i] = found.text("/Resources/0/id"); ids[i] == "" {
			ids[i] = d.send(t, "POST /Users", body).expect(t, 201).text("/id")
			continue
		}
		d.send(t, "PUT /Users/"+ids[i], body).expect(t, 200)
		d.send(t, "PATCH /Users/"+ids[i], patchOp(replace("name.givenName", `"Ada"`), replace("active", fmt.Sprint(i%5 != 0)))).expect(t, 200)
	}
	for i := range groups {
		name := fmt.Sprint("Group ", i)
		members := ids[i : i+users/2]
		found := d.send(t, filtered("/Groups", `displayName eq `+quoted(name))+"&excludedAttributes=members", "").expect(t, 200)
		id := found.text("/Resources/0/id")
		if id == "" {
			d.provisionGroup(t, name, members...)
			continue
		}
		d.send(t, "PUT /Groups/"+id, scimGroup(name, members...)).expect(t, 200)
		d.send(t, "PATCH /Groups/"+id, patchOp(`{"op":"Add","path":"members","value":`+memberList(members...)+`}`)).expect(t, 204)
	}
}

func testSecondCycle(t *testing.T, w *world) {
	d := w.directory(t, takesOver)
	w.user(t, "user-3", "Ops")
	state := func() string {
		return fmt.Sprint(w.owner.readAll(t, "/events?limit=200"), string(d.send(t, "GET /Users", "").expect(t, 200).body), string(d.send(t, "GET /Groups?attributes=displayName,members,meta", "").expect(t, 200).body))
	}
	d.cycle(t, 10, 3)
	d.cycle(t, 10, 3) // also sends the updates of user-3, whom the first cycle took over
	first := state()
	d.cycle(t, 10, 3)
	if second := state(); second != first {
		t.Errorf("a further cycle changed\n%s\nto\n%s", first, second)
	}
}

func testSCIMEndpoints(t *testing.T, w *world) {
	d := w.directory(t, "")
	syntax := map[string]any{"/scimType": "invalidSyntax"}
	d.play(t, []scenario{
		{name: "the configuration", send: "GET /ServiceProviderConfig", status: 200, has: map[string]any{"/patch/supported": true, "/bulk/supported": false, "/filter/supported": true, "/filter/maxResults": 200.0, "/etag/supported": true, "/changePassword/supported": false, "/sort/supported": false}},
		{name: "the types", send: "GET /ResourceTypes", status: 200, has: map[string]any{"/totalResults": 2.0, "/itemsPerPage": 2.0, "/startIndex": 1.0}},
		{name: "a type", send: "GET /ResourceTypes/User", status: 200, has: map[string]any{"/endpoint": "/Users"}},
		{name: "an unknown type", send: "GET /ResourceTypes/Robot", status: 404},
		{name: "the schemas", send: "GET /Schemas", status: 200, has: map[string]any{"/totalResults": 6.0}},
		{name: "a schema", send: "GET /Schemas/" + enterprise, status: 200, has: map[string]any{"/id": enterprise}},
		{name: "filtered schemas", send: filtered("/Schemas", `id eq "x"`), status: 403},
		{name: "no configuration is created", send: "POST /ServiceProviderConfig", body: "{}", status: 405},
		{name: "no type", send: "POST /ResourceTypes", body: "{}", status: 405},
		{name: "no schema", send: "POST /Schemas", body: "{}", status: 405},
		{name: "all users are not deleted", send: "DELETE /Users", status: 405},
		{name: "search", send: "POST /.search", body: "{}", status: 501},
		{name: "search of users", send: "POST /Users/.search", body: "{}", status: 501},
		{name: "search of groups", send: "POST /Groups/.search", body: "{}", status: 501},
		{name: "bulk", send: "POST /Bulk", body: "{}", status: 501},
		{name: "oneself", send: "GET /Me", status: 501},
		{name: "an unknown path", send: "GET /Robots", status: 404},
		{name: "a long path", send: "GET /Users/" + never + "/groups", status: 404},
		{name: "the base", send: "GET ", status: 404},
		{name: "text", send: "POST /Users", body: scimUser("ada", ""), header: []string{"content-type: text/plain"}, status: 415},
		{name: "no content type", send: "POST /Users", body: scimUser("ada", ""), header: []string{"-content-type"}, status: 415},
		{name: "a form", send: "PATCH /Users/" + never, body: patchOp(), header: []string{"content-type: application/x-www-form-urlencoded"}, status: 415},
		{name: "a coding", send: "POST /Groups", body: scimGroup("a"), header: []string{"content-encoding: gzip"}, status: 415},
		{name: "no JSON", send: "POST /Users", body: "{", status: 400, has: syntax},
		{name: "no object", send: "POST /Users", body: "[]", status: 400, has: syntax},
		{name: "null", send: "POST /Users", body: "null", status: 400, has: syntax},
		{name: "a name twice", send: "POST /Users", body: `{"userName":"a@b.example","userName":"b@b.example"}`, status: 400, has: syntax},
		{name: "a name twice, in another case", send: "POST /Users", body: `{"userName":"a@b.example","username":"b@b.example"}`, status: 400, has: syntax},
		{name: "no UTF-8", send: "POST /Users", body: "{\"userName\":\"\xff\"}", status: 400, has: syntax},
		{name: "operations that are no list", send: "PATCH /Users/" + never, body: `{"Operations":{}}`, status: 400, has: syntax},
		{name: "both selections", send: "GET /Users?attributes=userName&excludedAttributes=emails", status: 400, has: map[string]any{"/scimType": "invalidValue"}},
	})
	for _, path := range []string{"/scim/v2", "/scim/v2/", "/scim/v2//Users"} {
		d.caller.do(t, "GET "+path, "").refusedWith(t, 404, "")
	}
	if a := d.send(t, "HEAD /Users", ""); a.status != http.StatusOK || len(a.body) > 0 {
		t.Errorf("HEAD answered %d %s", a.status, a.body)
	}
}
