package e2e

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
)

func testLists(t *testing.T, p *program) {
	w := newWorld(t, p)
	people := []struct{ email, name, department, externalID string }{
		{"ada@example.org", "Ada Lovelace", "Engines", "e-1"},
		{"grace@navy.example", "Grace Hopper", "Navy", ""},
		{"alan@bletchley.example", "Alan Turing", "Engines", "e-2"},
		{"emmy@göttingen.example", "Emmy Nöther", "", ""},
		{"katherine.johnson@space.example", "Katherine Johnson", "Space", ""},
	}
	ids := map[string]string{"owner": w.owner.id}
	for _, someone := range people {
		body := fmt.Sprintf(`{"email":%s,"name":%s`, quoted(someone.email), quoted(someone.name))
		if someone.department != "" {
			body += `,"department":` + quoted(someone.department)
		}
		if someone.externalID != "" {
			body += `,"externalId":` + quoted(someone.externalID)
		}
		first, _, _ := strings.Cut(someone.name, " ")
		ids[strings.ToLower(first)] = w.owner.do(t, "POST /users", body+"}").expect(t, 201).text("/id")
	}
	named := func(names ...string) []string {
		list := []string{}
		for _, name := range names {
			list = append(list, ids[name])
		}
		return list
	}
	role := w.role(t, "Listed", "users:read")
	w.assign(t, ids["grace"], role, "")
	w.owner.do(t, "POST /users/"+ids["alan"]+"/suspend", "").expect(t, 200)

	for _, q := range []struct {
		query  string
		wanted []string
	}{
		{"", named("owner", "ada", "grace", "alan", "emmy", "katherine")},
		{"sort=createdAt", named("owner", "ada", "grace", "alan", "emmy", "katherine")},
		{"sort=-createdAt", named("katherine", "emmy", "alan", "grace", "ada", "owner")},
		{"sort=name", named("ada", "alan", "emmy", "grace", "katherine", "owner")},
		{"sort=-name", named("owner", "katherine", "grace", "emmy", "alan", "ada")},
		{"sort=email", named("ada", "alan", "emmy", "grace", "katherine", "owner")},
		{"sort=-email", named("owner", "katherine", "grace", "emmy", "alan", "ada")},
		{"email=ADA@example.org", named("ada")}, {"email=ada@example", named()}, {"externalId=e-2", named("alan")}, {"externalId=E-2", named()},
		{"department=engines", named("ada", "alan")}, {"department=ENGINES&sort=-name", named("alan", "ada")}, {"department=none", named()},
		{"status=suspended", named("alan")}, {"status=active", named("owner")}, {"status=pending&department=Engines", named("ada")},
		{"role=" + role, named("grace")}, {"role=" + role + "&department=Engines", named()}, {"role=" + never, named()},
		{"q=ada+lov", named("ada")}, {"q=lov+ada", named("ada")}, {"q=lovelace", named("ada")}, {"q=lov+example", named("ada")}, {"q=LOV", named("ada")}, {"q=ovelace", named()},
		{"q=example&sort=name", named("ada", "alan", "emmy", "grace", "katherine", "owner")}, {"q=bletchley", named("alan")}, {"q=nother", named("emmy")}, {"q=N%C3%96THER", named("emmy")}, {"q=gottingen", named("emmy")},
		{"q=a&sort=-name", named("alan", "ada")}, {"q=john+kath", named("katherine")}, {"q=ada+turing", named()}, {"q=e&department=Engines&status=pending", named("ada")}, {"q=%25", nil}, {"q=%5F", nil},
		{"limit=1000", named("owner", "ada", "grace", "alan", "emmy", "katherine")}, {"limit=99999999999999999999", named("owner", "ada", "grace", "alan", "emmy", "katherine")},
	} {
		t.Run("users?"+q.query, func(t *testing.T) {
			if q.wanted == nil {
				w.owner.do(t, "GET /users?"+q.query, "").refused(t, 400, "malformed-request")
				return
			}
			if got := w.owner.readAll(t, "/users?"+q.query); !slices.Equal(got, q.wanted) {
				t.Errorf("found %q, not %q", got, q.wanted)
			}
			if got := w.owner.readAll(t, "/users?limit=2&"+strings.NewReplacer("limit=1000", "", "limit=99999999999999999999", "").Replace(q.query)); !slices.Equal(got, q.wanted) {
				t.Errorf("by twos found %q, not %q", got, q.wanted)
			}
		})
	}
	t.Run("faults", func(t *testing.T) { testListFaults(t, w) })
	t.Run("envelope", func(t *testing.T) { testEnvelope(t, w, role) })
	t.Run("roles", func(t *testing.T) { testRoleLists(t, w) })
	t.Run("cursors", func(t *testing.T) { testCursors(t, w) })
	t.Run("included", func(t *testing.T) { testIncluded(t, newWorld(t, p)) })
	t.Run("walk", func(t *testing.T) { testListUnderChange(t, newWorld(t, p)) })
	t.Run("cap", func(t *testing.T) { testCap(t, newWorld(t, p)) })
}

// readAll reads all pages of a list and returns the ids of the items.
func (c *caller) readAll(t *testing.T, path string) []string {
	t.Helper()
	ids := []string{}
	for next := ""; ; {
		line := "GET " + path
		if next != "" {
			separator := "&"
			if !strings.Contains(path, "?") {
				separator = "?"
			}
			line += separator + "cursor=" + url.QueryEscape(next)
		}
		a := c.do(t, line, "").expect(t, 200)
		ids = append(ids, a.texts("id")...)
		if a.value("/nextCursor") == nil {
			return ids
		}
		next = a.text("/nextCursor")
	}
}

func testListFaults(t *testing.T, w *world) {
	fault := func(query string, faults ...string) scenario {
		return scenario{name: query, as: w.owner, send: "GET /users?" + query, status: 400, code: "malformed-request", faults: faults}
	}
	play(t, []scenario{
		fault("limit=0", "parameter:limit range"), fault("limit=-1", "parameter:limit format"), fault("limit=ten", "parameter:limit format"), fault("limit=1.5", "parameter:limit format"), fault("limit=", "parameter:limit range"),
		fault("limit=1&limit=2", "parameter:limit repeated"), fault("sort=department", "parameter:sort format"), fault("sort=", "parameter:sort format"), fault("sort=--name", "parameter:sort format"), fault("sort=name,email", "parameter:sort format"),
		fault("role=owner", "parameter:role format"), fault("q=", "parameter:q length"), fault("q=+-+", "parameter:q no-word"), fault("q=a+b+c+d+e+f+g+h+i", "parameter:q too-many"), fault("count=yes", "parameter:count format"),
		fault("cursor=", "parameter:cursor cursor"), fault("cursor=abc", "parameter:cursor cursor"), fault("offset=5", "parameter:offset unknown"), fault("LIMIT=5", "parameter:LIMIT unknown"), fault("email=", "parameter:email length"),
		fault("q=%FF", "parameter:q encoding"), fault("q=%zz", "parameter:q encoding"), fault("department=a%00b", "parameter:department control-character"), fault("filter[name]=x", "parameter:filter[name] unknown"),
		fault("limit=0&sort=x&count=1&zzz=1", "parameter:limit range", "parameter:sort format", "parameter:count format", "parameter:zzz unknown"),
		fault("email="+strings.Repeat("e", 255), "parameter:email length"),
	})
	unknown := func(path string) scenario {
		return scenario{name: path, as: w.owner, send: "GET " + path, status: 422, code: "validation", faults: []string{"parameter:status unknown-value"}, contains: []string{"pending, active"}}
	}
	play(t, []scenario{unknown("/users?status=activ"), unknown("/users?status="), unknown("/users?status=" + strings.Repeat("s", 65)), unknown("/roles/" + w.builtIn(t, "owner") + "/users?status=deleted")})
	for _, line := range []string{"GET /users/" + w.owner.id + "?x=1", "GET /roles/" + never + "?fields=name", "DELETE /users/" + never + "?force=true", "POST /auths/logout?x=1", "GET /auths/session?verbose=1"} {
		w.owner.do(t, line, "").refused(t, 400, "malformed-request")
	}
}

func testEnvelope(t *testing.T, w *world, role string) {
	play(t, []scenario{
		{name: "a whole list", as: w.owner, send: "GET /users", status: 200, members: "items nextCursor", has: map[string]any{"/nextCursor": nil}, headers: map[string]string{"Link": "", "Withheld-Fields": ""}},
		{name: "counted", as: w.owner, send: "GET /users?count=true&limit=1", status: 200, members: "items nextCursor total totalIsExact", has: map[string]any{"/total": 6.0, "/totalIsExact": true}},
		{name: "counted by filter", as: w.owner, send: "GET /users?count=true&department=Engines&limit=1", status: 200, has: map[string]any{"/total": 2.0, "/totalIsExact": true}},
		{name: "counted by word", as: w.owner, send: "GET /users?count=true&q=a&limit=1", status: 200, has: map[string]any{"/total": 2.0, "/totalIsExact": true}},
		{name: "counted by role", as: w.owner, send: "GET /users?count=true&role=" + role, status: 200, has: map[string]any{"/total": 1.0}},
		{name: "not counted", as: w.owner, send: "GET /users?count=false", status: 200, members: "items nextCursor"},
		{name: "roles counted", as: w.owner, send: "GET /roles?count=true&limit=1", status: 200, members: "items nextCursor total totalIsExact", has: map[string]any{"/total": 4.0}},
	})
	a := w.owner.do(t, "GET /users?limit=1&sort=name&department=Engines&q=a", "").expect(t, 200)
	target, rel, _ := strings.Cut(a.header.Get("Link"), "; ")
	link, err := url.Parse(strings.Trim(target, "<>"))
	if err != nil || rel != `rel="next"` {
		t.Fatalf("the link is %q", a.header.Get("Link"))
	}
	query := link.Query()
	if link.Path != "/users" || query.Get("cursor") != a.text("/nextCursor") || query.Get("sort") != "name" || query.Get("department") != "Engines" || query.Get("limit") != "1" {
		t.Errorf("the link is %q", a.header.Get("Link"))
	}
	next := w.owner.do(t, "GET "+link.RequestURI(), "").expect(t, 200)
	if got := next.texts("name"); !slices.Equal(got, []string{"Alan Turing"}) {
		t.Errorf("the link leads to %q", got)
	}
}

func testRoleLists(t *testing.T, w *world) {
	for _, name := range []string{"Zebra keeper", "Ärztin", "accountant"} {
		w.owner.do(t, "POST /roles", `{"name":`+quoted(name)+`}`).expect(t, 201)
	}
	for _, q := range []struct {
		query  string
		wanted []string
	}{
		{"sort=name", []string{"accountant", "Administrator", "Ärztin", "Listed", "Owner", "Viewer", "Zebra keeper"}},
		{"sort=-name", []string{"Zebra keeper", "Viewer", "Owner", "Listed", "Ärztin", "Administrator", "accountant"}},
		{"", []string{"Owner", "Administrator", "Viewer", "Listed", "Zebra keeper", "Ärztin", "accountant"}},
		{"sort=-createdAt", []string{"accountant", "Ärztin", "Zebra keeper", "Listed", "Viewer", "Administrator", "Owner"}},
		{"key=owner", []string{"Owner"}}, {"key=Owner", []string{}}, {"q=arz", []string{"Ärztin"}}, {"q=keep+zeb", []string{"Zebra keeper"}}, {"q=a&sort=name", []string{"accountant", "Administrator", "Ärztin"}},
	} {
		names := []string{}
		for _, id := range w.owner.readAll(t, "/roles?limit=2&"+q.query) {
			names = append(names, w.owner.do(t, "GET /roles/"+id, "").expect(t, 200).text("/name"))
		}
		if !slices.Equal(names, q.wanted) {
			t.Errorf("roles?%s found %q, not %q", q.query, names, q.wanted)
		}
	}
	for _, query := range []string{"sort=email", "department=Sales", "role=" + never, "email=a@b"} {
		w.owner.do(t, "GET /roles?"+query, "").refused(t, 400, "malformed-request")
	}
}

func testCursors(t *testing.T, w *world) {
	cursor := w.owner.do(t, "GET /users?limit=2&sort=name", "").expect(t, 200).text("/nextCursor")
	if again := w.owner.do(t, "GET /users?limit=2&sort=name", "").text("/nextCursor"); strings.Contains(cursor, "ada") || again == "" {
		t.Errorf("a cursor shows what it holds: %s", cursor)
	}
	use := func(name string, c *caller, query, cursor string) scenario {
		return scenario{name: name, as: c, send: "GET " + query + "cursor=" + url.QueryEscape(cursor), status: 400, code: "malformed-request", faults: []string{"parameter:cursor cursor"}}
	}
	foreign := newWorld(t, w.program)
	other := w.holder(t, "cursor-thief", "", "", "users:read", "roles:read")
	scenarios := []scenario{
		use("another order", w.owner, "/users?limit=2&sort=-name&", cursor), use("no order", w.owner, "/users?limit=2&", cursor), use("another filter", w.owner, "/users?limit=2&sort=name&status=active&", cursor),
		use("a search", w.owner, "/users?limit=2&sort=name&q=a&", cursor), use("another list", w.owner, "/roles?sort=name&", cursor), use("the holders of a role", w.owner, "/roles/"+w.builtIn(t, "owner")+"/users?sort=name&", cursor),
		use("another user", other, "/users?limit=2&sort=name&", cursor), use("another tenant", foreign.owner, "/users?limit=2&sort=name&", cursor),
		use("cut", w.owner, "/users?limit=2&sort=name&", cursor[:len(cursor)-1]), use("longer", w.owner, "/users?limit=2&sort=name&", cursor+"A"), use("doubled", w.owner, "/users?limit=2&sort=name&", cursor+cursor),
	}
	for i := range cursor {
		flipped := []byte(cursor)
		if flipped[i]++; cursor[i] == 'Z' || cursor[i] == 'z' || cursor[i] == '9' || cursor[i] == '-' || cursor[i] == '_' {
			flipped[i] = 'A'
		}
		if i == len(cursor)-1 { // this character can contain unused bits, so a change of it may have no effect
			continue
		}
		scenarios = append(scenarios, use(fmt.Sprintf("byte %d changed", i), w.owner, "/users?limit=2&sort=name&", string(flipped)))
	}
	play(t, append(scenarios, scenario{name: "another limit is fine", as: w.owner, send: "GET /users?sort=name&limit=1&cursor=" + url.QueryEscape(cursor), status: 200, has: map[string]any{"/items/0/name": "Emmy Nöther"}}))
}

// testListUnderChange reads all pages of a list while users are created and deleted. No user
// may be listed twice, and users who exist the whole time must be listed.
func testListUnderChange(t *testing.T, w *world) {
	lasting, fleeting := []string{w.owner.id}, []string{}
	for i := range 60 {
		id := w.user(t, fmt.Sprintf("walk-%02d", i), "")
		if i%3 == 0 {
			fleeting = append(fleeting, id)
		} else {
			lasting = append(lasting, id)
		}
	}
	slices.Sort(lasting)
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
			}
			if i < len(fleeting) {
				if a, err := w.owner.try(t, "DELETE /users/"+fleeting[i], ""); err != nil || a.status != 204 {
					t.Errorf("%v, %+v", err, a)
				}
			}
			if a, err := w.owner.try(t, "POST /users", fmt.Sprintf(`{"email":"new-%d@canary.example","name":"User new %d"}`, i, i)); err != nil || a.status != 201 {
				t.Errorf("%v, %+v", err, a)
			}
		}
	})
	for _, order := range []string{"", "sort=name&", "sort=-name&", "sort=email&", "sort=-createdAt&", "q=user&sort=name&"} {
		seen := w.owner.readAll(t, "/users?limit=7&"+order)
		slices.Sort(seen)
		if len(slices.Compact(slices.Clone(seen))) != len(seen) {
			t.Errorf("%s: somebody was met twice", order)
		}
		for _, id := range lasting {
			if _, met := slices.BinarySearch(seen, id); !met && !(id == w.owner.id && strings.HasPrefix(order, "q=")) {
				t.Errorf("%s: %s was not met", order, id)
			}
		}
	}
	close(done)
	running.Wait()
}

func testCap(t *testing.T, w *world) {
	var running sync.WaitGroup
	for part := range 8 {
		running.Go(func() {
			for i := range 26 {
				if a, err := w.owner.try(t, "POST /users", fmt.Sprintf(`{"email":"cap-%d-%d@canary.example","name":"Capped"}`, part, i)); err != nil || a.status != 201 {
					t.Errorf("%v, %+v", err, a)
				}
			}
		})
	}
	running.Wait()
	for query, wanted := range map[string]int{"": 50, "?limit=200": 200, "?limit=1e2": 100, "?limit=201": 200, "?limit=100000": 200} {
		if got := len(w.owner.do(t, "GET /users"+query, "").expect(t, 200).list("/items")); got != wanted {
			t.Errorf("%s: %d items, not %d", query, got, wanted)
		}
	}
}

// testIncluded checks the parameter include of the list of users, which adds members to each
// user. A member must be absent if the caller may not read it.
func testIncluded(t *testing.T, w *world) {
	sales, other := w.holder(t, "included", "Sales", "", "shop/invoices:read"), w.user(t, "excluded", "Engines")
	role := sales.do(t, "GET /auths/session", "").text("/roles/0/id")
	for i := range 10 {
		w.assign(t, other, w.role(t, fmt.Sprintf("Included %d", i), "shop/a:b"), "")
	}
	reader := w.holder(t, "included-reader", "", "Sales", "users:read", "roles:read", "users:reset-factors")
	partly := w.holder(t, "included-partly", "", "", "users.name:read")
	find := func(a *answer, id string) string {
		return fmt.Sprintf("/items/%d", slices.Index(a.texts("id"), id))
	}
	a := w.owner.do(t, "GET /users?include=lastLoginAt,roles,factors", "").expect(t, 200)
	at := find(a, sales.id)
	s := scenario{status: 200, has: map[string]any{
		at + "/roles/0/id": role, at + "/roles/1": nil, at + "/hasMoreRoles": false, at + "/factors/totp": false, at + "/factors/passkeys": 0.0,
		find(a, other) + "/lastLoginAt": nil, find(a, other) + "/hasMoreRoles": false, find(a, other) + "/roles/9/name": "Included 9",
	}}
	s.check(t, a)
	if a.text(at+"/lastLoginAt") == "" {
		t.Errorf("the last sign-in is missing: %s", a.body)
	}
	w.assign(t, other, w.role(t, "Included 10", "shop/a:b"), "")
	a = w.owner.do(t, "GET /users?include=roles", "").expect(t, 200)
	s = scenario{status: 200, has: map[string]any{find(a, other) + "/hasMoreRoles": true, find(a, other) + "/roles/10": nil}, lacks: []string{"lastLoginAt", "factors"}}
	s.check(t, a)
	a = reader.do(t, "GET /users?include=factors,roles,lastLoginAt", "").expect(t, 200)
	if at := find(a, sales.id); len(a.list("/items")) != 1 || a.text(at+"/roles/0/id") != role || a.value(at+"/factors/totp") != false || a.text(at+"/lastLoginAt") == "" {
		t.Errorf("a reader of one department gets %s", a.body)
	}
	play(t, []scenario{
		{name: "without the permissions", as: partly, send: "GET /users?include=lastLoginAt,roles,factors", status: 200, lacks: []string{"lastLoginAt", "oles", "factors"}},
		{name: "not selected", as: w.owner, send: "GET /users", status: 200, lacks: []string{"lastLoginAt", `"roles"`, "factors"}},
		{name: "another member", as: w.owner, send: "GET /users?include=sessions", status: 400, faults: []string{"parameter:include format"}},
		{name: "an empty name", as: w.owner, send: "GET /users?include=roles,", status: 400, faults: []string{"parameter:include format"}},
		{name: "twice", as: w.owner, send: "GET /users?include=roles&include=factors", status: 400, faults: []string{"parameter:include repeated"}},
		{name: "of deleted users", as: w.owner, send: "GET /users?status=deleted&include=roles", status: 400, faults: []string{"parameter:include combination"}},
	})
	cursor := w.owner.do(t, "GET /users?limit=1", "").expect(t, 200).text("/nextCursor")
	w.owner.do(t, "GET /users?limit=1&include=roles&cursor="+url.QueryEscape(cursor), "").expect(t, 200)
}
