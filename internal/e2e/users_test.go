package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// everyMember is the list of members of a user for callers who may read all of them.
const everyMember = "id email name department externalId metadata status managedBy createdAt updatedAt"

func testUsers(t *testing.T, p *program) {
	w := newWorld(t, p)
	t.Run("create", func(t *testing.T) { testCreateUser(t, w) })
	t.Run("bounds", func(t *testing.T) { testUserBounds(t, w) })
	t.Run("addresses", func(t *testing.T) { testAddresses(t, w) })
	t.Run("unicode", func(t *testing.T) { testUnicode(t, w) })
	t.Run("patch", func(t *testing.T) { testPatchUser(t, w) })
	t.Run("life", func(t *testing.T) { testLifeOfUser(t, w) })
	t.Run("unknown", func(t *testing.T) { testUnknownUsers(t, w) })
}

func testCreateUser(t *testing.T, w *world) {
	o := w.owner
	play(t, []scenario{
		{name: "the least is an address and a name", as: o, send: "POST /users", body: `{"email":"Ada.L@canary.example","name":"Ada Lovelace"}`,
			status: 201, members: everyMember,
			has:     map[string]any{"/email": "Ada.L@canary.example", "/name": "Ada Lovelace", "/department": nil, "/externalId": nil, "/status": "pending"},
			headers: map[string]string{"Withheld-Fields": "", "Idempotent-Replayed": ""}, contains: []string{`"metadata":{}`}},
		{name: "everything may be given", as: o, send: "POST /users",
			body:   `{"email":"all@canary.example","name":"All","department":"Sales","externalId":"x-1","metadata":{"team":"red","a/b~c":"1"}}`,
			status: 201, has: map[string]any{"/department": "Sales", "/externalId": "x-1", "/metadata/team": "red"}},
		{name: "null is like absence", as: o, send: "POST /users", body: `{"email":"null@canary.example","name":"Null","department":null,"externalId":null}`,
			status: 201, has: map[string]any{"/department": nil, "/externalId": nil}},
		{name: "an address is unique without regard to case", as: o, send: "POST /users", body: `{"email":"aDA.l@CANARY.example","name":"Other"}`,
			status: 409, code: "email-taken", lacks: []string{"aDA"}},
		{name: "an external id is unique", as: o, send: "POST /users", body: `{"email":"x2@canary.example","name":"Other","externalId":"x-1"}`,
			status: 409, code: "external-id-taken"},
		{name: "an address is required", as: o, send: "POST /users", body: `{"name":"Ada Lovelace"}`, status: 422, code: "validation", faults: []string{"/email required"}},
		{name: "a name is required", as: o, send: "POST /users", body: `{"email":"a@canary.example"}`, status: 422, faults: []string{"/name required"}},
		{name: "all faults come at once", as: o, send: "POST /users",
			body:   `{"email":"no-address","name":"ab","department":7,"externalId":"","metadata":{"k":1},"id":"x","isAdmin":true}`,
			status: 422, faults: []string{"/email email", "/name length", "/department type", "/externalId length", "/metadata/k type", "/id unknown", "/isAdmin unknown"}, lacks: []string{`"ab"`, `"no-address"`}},
		{name: "what the service sets cannot be sent", as: o, send: "POST /users",
			body:   `{"email":"m@canary.example","name":"Mass","status":"active","createdAt":"2020-01-01T00:00:00Z","updatedAt":"2020-01-01T00:00:00Z","password":"x","roles":["owner"],"tenantId":"t"}`,
			status: 422, faults: []string{"/status unknown", "/createdAt unknown", "/updatedAt unknown", "/password unknown", "/roles unknown", "/tenantId unknown"}},
		{name: "names of members keep their case", as: o, send: "POST /users", body: `{"Email":"m@canary.example","NAME":"Mass","ſtatus":"active"}`,
			status: 422, faults: []string{"/Email unknown", "/NAME unknown", "/email required", "/name required", "/ſtatus unknown"}},
		{name: "null is no address and no name", as: o, send: "POST /users", body: `{"email":null,"name":null}`, status: 422, faults: []string{"/email type", "/name type"}},
	})

	a := o.do(t, "POST /users", `{"email":"located@canary.example","name":"Located"}`).expect(t, 201)
	if want := "/users/" + a.text("/id"); a.header.Get("Location") != want {
		t.Errorf("the location is %q, not %q", a.header.Get("Location"), want)
	}
	read := o.do(t, "GET "+a.header.Get("Location"), "").expect(t, 200)
	if string(read.body) != string(a.body) || read.header.Get("Etag") != a.header.Get("Etag") {
		t.Errorf("what was created reads differently: %s, %s", a.body, read.body)
	}
	if a.text("/createdAt") != a.text("/updatedAt") {
		t.Error("a new user was updated")
	}
}

func testUserBounds(t *testing.T, w *world) {
	const wide = "𝒜" // four bytes, one code point
	texts := []struct {
		member       string
		least, most  int
		tooLongFault string
	}{
		{"name", 3, 255, "/name length"},
		{"department", 3, 255, "/department length"},
		{"externalId", 1, 255, "/externalId length"},
	}
	n := 0
	body := func(member, text string) string {
		n++
		given := map[string]string{"email": fmt.Sprintf("bound-%d@canary.example", n), "name": "Bounded"}
		given[member] = text
		parts := []string{}
		for name, text := range given {
			parts = append(parts, quoted(name)+":"+quoted(text))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	var scenarios []scenario
	for _, m := range texts {
		for _, length := range []int{m.least - 1, m.least, m.most, m.most + 1} {
			s := scenario{
				name: fmt.Sprintf("%s of %d code points", m.member, length), as: w.owner, send: "POST /users",
				body: body(m.member, string([]rune(strings.Repeat(wide, length))[:length])), status: 201,
			}
			if length < m.least || length > m.most {
				s.status, s.code, s.faults = 422, "validation", []string{m.tooLongFault}
			} else if m.member == "externalId" {
				s.has = map[string]any{"/externalId": strings.Repeat(wide, length)}
			}
			scenarios = append(scenarios, s)
		}
	}
	pairs := func(count, key, value int) string {
		parts := make([]string, count)
		for i := range parts {
			parts[i] = quoted(fmt.Sprintf("%0*d", key, i)) + ":" + quoted(strings.Repeat("v", value))
		}
		n++
		return fmt.Sprintf(`{"email":"bound-%d@canary.example","name":"Bounded","metadata":{%s}}`, n, strings.Join(parts, ","))
	}
	for _, m := range []struct {
		name              string
		count, key, value int
		faults            []string
	}{
		{"50 pairs of metadata", 50, 64, 500, nil},
		{"51 pairs of metadata", 51, 3, 1, []string{"/metadata too-many"}},
		{"a key of 65", 1, 65, 1, []string{"/metadata length"}},
		{"a value of 501", 1, 3, 501, []string{"/metadata/000 length"}},
		{"an empty value", 1, 3, 0, nil},
	} {
		s := scenario{name: m.name, as: w.owner, send: "POST /users", body: pairs(m.count, m.key, m.value), status: 201}
		if m.faults != nil {
			s.status, s.faults = 422, m.faults
		}
		scenarios = append(scenarios, s)
	}
	play(t, scenarios)
}

func testAddresses(t *testing.T, w *world) {
	var scenarios []scenario
	local, domain := strings.Repeat("l", 64), strings.Repeat("d", 62)
	for _, m := range []struct {
		address string
		fine    bool
	}{
		{local + "@" + domain + "." + domain + "." + domain[:61] + ".z", true}, // 254 bytes
		{local + "@" + domain + "." + domain + "." + domain + ".z", false},     // 255 bytes
		{local + "l@canary.example", false},
		{"a@b", true}, {"a.b+c@canary.example", true}, {"ünï@canary.example", true}, {"a@bücher.example", true},
		{"@canary.example", false}, {"a@", false}, {"a", false}, {"a b@canary.example", false}, {"a@canary..example", false},
		{"a@-canary.example", false}, {".a@canary.example", false}, {"a@canary.example ", false}, {"<a@canary.example>", false},
		{"A <a@canary.example>", false}, {"a@canary.example,b@canary.example", false}, {"a@canary.example\n", false}, {"a@b@canary.example", false},
	} {
		s := scenario{name: "address " + m.address, as: w.owner, send: "POST /users", body: `{"email":` + quoted(m.address) + `,"name":"Somebody"}`, status: 201, has: map[string]any{"/email": m.address}}
		if !m.fine {
			s.status, s.has, s.code = 422, nil, "validation"
		}
		scenarios = append(scenarios, s)
	}
	play(t, scenarios)
}

func testUnicode(t *testing.T, w *world) {
	create := func(name string) scenario {
		return scenario{name: fmt.Sprintf("%+q", name), as: w.owner, send: "POST /users", body: `{"email":"u` + newKey() + `@canary.example","name":` + name + `}`}
	}
	refuse := func(name, fault string) scenario {
		s := create(name)
		s.status, s.faults = 422, []string{"/name " + fault}
		return s
	}
	keep := func(name, stored string) scenario {
		s := create(name)
		s.status, s.has = 201, map[string]any{"/name": stored}
		return s
	}
	play(t, []scenario{
		keep(`"\u200Fgnirts\u200E"`, "\u200Fgnirts\u200E"),
		keep(`"Zo\u0065\u0301"`, "Zoe\u0301"),
		keep(`"👩‍👩‍👧‍👦"`, "👩‍👩‍👧‍👦"),
		keep(`"\uD835\uDC9C\uD835\uDC9C\uD835\uDC9C"`, "𝒜𝒜𝒜"),
		keep(`"Robert'); drop table users;--"`, "Robert'); drop table users;--"),
		keep(`"<script>alert(1)</script>"`, "<script>alert(1)</script>"),
		keep(`"%00%0d%0aSet-Cookie: a=b"`, "%00%0d%0aSet-Cookie: a=b"),
		keep(`" Ada "`, "Ada"),
		refuse(`"a\u0000b"`, "control-character"),
		refuse(`"line\nline"`, "control-character"),
		refuse(`"\u2028ab"`, "control-character"),
		refuse(`"a\u0085b"`, "control-character"),
		refuse(`"   "`, "blank"),
		refuse(`"\u200B\u200B\u200B"`, "blank"),
		refuse(`"\u00A0\u2003\u3000"`, "blank"),
	})
	first := w.owner.do(t, "POST /users", `{"email":"zo\u00e9@canary.example","name":"Composed"}`).expect(t, 201)
	if first.text("/email") != "zoé@canary.example" {
		t.Errorf("the address was not kept as sent: %q", first.text("/email"))
	}
	w.owner.do(t, "POST /users", `{"email":"zoe\u0301@canary.example","name":"Decomposed"}`).refused(t, 409, "email-taken")
}

func testPatchUser(t *testing.T, w *world) {
	id := w.owner.do(t, "POST /users", `{"email":"patched@canary.example","name":"Patched","department":"Sales","externalId":"p-1","metadata":{"a":"1","b":"2"}}`).expect(t, 201).text("/id")
	w.owner.do(t, "POST /users", `{"email":"holds@canary.example","name":"Holds","externalId":"p-2"}`).expect(t, 201)
	line := "PATCH /users/" + id
	merge := []string{"content-type: application/merge-patch+json"}
	play(t, []scenario{
		{name: "absent members stay", as: w.owner, send: line, body: `{"name":"Renamed"}`, status: 200, members: everyMember,
			has: map[string]any{"/name": "Renamed", "/department": "Sales", "/externalId": "p-1", "/metadata/a": "1"}},
		{name: "null clears", as: w.owner, send: line, body: `{"department":null,"externalId":null}`, status: 200, has: map[string]any{"/department": nil, "/externalId": nil}},
		{name: "a merge patch is the same", as: w.owner, send: line, header: merge, body: `{"department":"Research"}`, status: 200, has: map[string]any{"/department": "Research", "/name": "Renamed"}},
		{name: "metadata is merged and null removes a key", as: w.owner, send: line, body: `{"metadata":{"a":null,"c":"3"}}`, status: 200,
			has: map[string]any{"/metadata/b": "2", "/metadata/c": "3", "/metadata/a": nil}, lacks: []string{`"a"`}},
		{name: "metadata null removes all", as: w.owner, send: line, body: `{"metadata":null}`, status: 200, contains: []string{`"metadata":{}`}},
		{name: "an address does not change", as: w.owner, send: line, body: `{"email":"new@canary.example","name":"Changed"}`, status: 422, faults: []string{"/email immutable"}},
		{name: "not even to itself", as: w.owner, send: line, body: `{"email":"patched@canary.example"}`, status: 422, faults: []string{"/email immutable"}},
		{name: "a name cannot be null", as: w.owner, send: line, body: `{"name":null}`, status: 422, faults: []string{"/name type"}},
		{name: "the bounds hold", as: w.owner, send: line, body: `{"name":"ab","department":"ab","externalId":""}`, status: 422, faults: []string{"/name length", "/department length", "/externalId length"}},
		{name: "unknown members are refused", as: w.owner, send: line, body: `{"Name":"Changed","status":"active","id":"x"}`, status: 422, faults: []string{"/Name unknown", "/status unknown", "/id unknown"}},
		{name: "an external id stays unique", as: w.owner, send: line, body: `{"externalId":"p-2"}`, status: 409, code: "external-id-taken"},
		{name: "nothing of what was refused happened", as: w.owner, send: "GET /users/" + id, status: 200, has: map[string]any{"/name": "Renamed", "/department": "Research", "/externalId": nil}},
		{name: "a key is ignored here", as: w.owner, send: line, header: []string{"idempotency-key: "}, body: `{}`, status: 200},
	})

	before := w.owner.do(t, "GET /users/"+id, "").expect(t, 200)
	for _, body := range []string{`{}`, `{"name":"Renamed"}`, `{"metadata":{}}`, `{"metadata":{"none":null}}`, `{"externalId":null}`} {
		after := w.owner.do(t, line, body).expect(t, 200)
		if string(after.body) != string(before.body) || after.header.Get("Etag") != before.header.Get("Etag") {
			t.Errorf("%s changed something: %s, %s", body, before.body, after.body)
		}
	}
	changed := w.owner.do(t, line, `{"name":"Again"}`).expect(t, 200)
	if changed.text("/updatedAt") <= before.text("/updatedAt") || changed.text("/createdAt") != before.text("/createdAt") {
		t.Errorf("the times of a change: %s, %s", before.body, changed.body)
	}

	full := make([]string, 50)
	for i := range full {
		full[i] = fmt.Sprintf(`"k%d":"v"`, i)
	}
	w.owner.do(t, line, `{"metadata":{`+strings.Join(full, ",")+`}}`).expect(t, 200)
	over := w.owner.do(t, line, `{"metadata":{"one more":"v"}}`).refused(t, 422, "validation")
	if !slices.Equal(over.faults(), []string{"/metadata too-many"}) {
		t.Errorf("the faults are %q", over.faults())
	}
	w.owner.do(t, line, `{"metadata":{"one more":"v","k0":null}}`).expect(t, 200)
}

func testLifeOfUser(t *testing.T, w *world) {
	c := w.member(t, "mortal", "")
	line := "/users/" + c.id
	play(t, []scenario{
		{name: "a password makes a user active", as: w.owner, send: "GET " + line, status: 200, has: map[string]any{"/status": "active"}},
		{name: "suspending takes a reason", as: w.owner, send: "POST " + line + "/suspend", body: `{"reason":"on leave"}`, status: 200, members: everyMember, has: map[string]any{"/status": "suspended"}},
		{name: "the session ends with it", as: c, send: "GET /auths/session", status: 401, code: "unauthenticated"},
		{name: "suspending again changes nothing", as: w.owner, send: "POST " + line + "/suspend", status: 200, has: map[string]any{"/status": "suspended"}},
		{name: "the right password is told so", as: c.anonymous(), send: "POST /auths/login", body: credentials(c.email, password), status: 403, code: "user-suspended"},
		{name: "a wrong password is not", as: c.anonymous(), send: "POST /auths/login", body: credentials(c.email, password+"!"), status: 401, code: "wrong-credentials"},
		{name: "resuming needs no body", as: w.owner, send: "POST " + line + "/resume", status: 200, has: map[string]any{"/status": "active"}},
		{name: "resuming again changes nothing", as: w.owner, send: "POST " + line + "/resume", body: `{}`, status: 200, has: map[string]any{"/status": "active"}},
		{name: "the old session stays ended", as: c, send: "GET /auths/session", status: 401},
		{name: "an unknown member is refused", as: w.owner, send: "POST " + line + "/suspend", body: `{"why":"x"}`, status: 422, faults: []string{"/why unknown"}},
		{name: "a reason is text", as: w.owner, send: "POST " + line + "/suspend", body: `{"reason":7}`, status: 422, faults: []string{"/reason type"}},
	})
	again := w.signIn(t, c.email)
	w.owner.do(t, "DELETE "+line, "").expect(t, 204)
	play(t, []scenario{
		{name: "deleted: not there", as: w.owner, send: "GET " + line, status: 404, code: "not-found"},
		{name: "deleted: not deleted twice", as: w.owner, send: "DELETE " + line, status: 404, code: "not-found"},
		{name: "deleted: not changed", as: w.owner, send: "PATCH " + line, body: `{"name":"Ghost"}`, status: 404},
		{name: "deleted: the session is over", as: again, send: "GET /auths/session", status: 401},
		{name: "deleted: nobody signs in", as: c.anonymous(), send: "POST /auths/login", body: credentials(c.email, password), status: 401, code: "wrong-credentials"},
		{name: "deleted: not in a list", as: w.owner, send: "GET /users?email=" + c.email, status: 200, contains: []string{`"items":[]`}},
		{name: "deleted: the address is free", as: w.owner, send: "POST /users", body: `{"email":"mortal@canary.example","name":"Reborn"}`, status: 201},
	})
	pending := w.user(t, "not-yet", "")
	w.owner.do(t, "POST /users/"+pending+"/suspend", "").expect(t, 200)
	if got := w.owner.do(t, "POST /users/"+pending+"/resume", "").expect(t, 200).text("/status"); got != "pending" {
		t.Errorf("a user without a password was resumed as %q", got)
	}
	w.owner.do(t, "DELETE /users/"+w.owner.id, "").refused(t, 409, "last-owner")
	w.owner.do(t, "POST /users/"+w.owner.id+"/suspend", "").refused(t, 409, "last-owner")
}

func testUnknownUsers(t *testing.T, w *world) {
	for _, id := range []string{never, strings.ToUpper(never), "00000000-0000-0000-0000-000000000000", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"} {
		w.owner.do(t, "GET /users/"+id, "").refused(t, 404, "not-found")
	}
	for _, id := range []string{"1", "me", "0", "-", "not-a-uuid", never + "0", strings.ReplaceAll(never, "-", ""), "{" + never + "}", "%20" + never} {
		a := w.owner.do(t, "GET /users/"+id, "").refused(t, 400, "malformed-request")
		if !slices.Equal(a.faults(), []string{"parameter:id format"}) {
			t.Errorf("%s: the faults are %q", id, a.faults())
		}
	}
}
