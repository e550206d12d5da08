package e2e

import (
	"fmt"
	"net/url"
	"testing"
)

// testScripts checks texts in several scripts, such as Cyrillic. A text must be stored
// unchanged or refused, and both stores must compare texts in the same way.
func testScripts(t *testing.T, p *program) {
	w := newWorld(t, p)
	t.Run("names", func(t *testing.T) { testScriptsOfNames(t, w) })
	t.Run("addresses", func(t *testing.T) { testScriptsOfAddresses(t, w) })
	t.Run("same names", func(t *testing.T) { testSameNames(t, w) })
	t.Run("short names", func(t *testing.T) { testShortNames(t, newWorld(t, p)) })
	t.Run("other departments", func(t *testing.T) { testOtherDepartments(t, w) })
}

func testScriptsOfNames(t *testing.T, w *world) {
	for i, name := range []string{
		"Ada \u200eLovelace", "Zero\u200bwidth", "soft\u00adhyphen", "Аdа Lоvеlасе", "\u212aelvin Ångström",
		"e\u0301e\u0301e\u0301", "\u00e9\u00e9\u00e9", "ﬁnance ﷺ", "İstanbul ıI", "straße STRASSE", "用户 名前 이름", "\U0001F469\u200d\U0001F4BB Ada", "\U00020000\U0001F600\U0010FFFD", "Z\u0351\u036b\u0343\u036a\u0302alg\u0301o", "tab\ufffdfffd",
	} {
		body := fmt.Sprintf(`{"email":"name%d@canary.example","name":%s,"department":%s,"externalId":%s,"metadata":{%s:%s}}`,
			i, quoted(name), quoted(name), quoted(name), quoted(name), quoted(name))
		id := w.owner.do(t, "POST /users", body).expect(t, 201).text("/id")
		a := w.owner.do(t, "GET /users/"+id, "").expect(t, 200)
		metadata, _ := a.value("/metadata").(map[string]any)
		if a.text("/name") != name || a.text("/department") != name || a.text("/externalId") != name || len(metadata) != 1 || metadata[name] != name {
			t.Errorf("%+q was stored as %s", name, a.body)
		}
		for _, filter := range []string{"externalId", "department"} {
			if found := w.owner.do(t, "GET /users?"+filter+"="+url.QueryEscape(name), "").expect(t, 200).texts("id"); len(found) == 0 {
				t.Errorf("nobody is found by the %s %+q", filter, name)
			}
		}
	}
	for name, code := range map[string]string{
		"Ada\x00Lovelace": "control-character", "Ada\nLovelace": "control-character", "Ada\x7f": "control-character", "Ada\u0085": "control-character",
		"Ada\u2028Lovelace": "control-character", "Ada\u2029": "control-character", "\u200b\u200b\u200b": "blank", "\u3164\u3164\u3164": "blank", "\u2800\u2800\u2800": "blank", "   ": "blank",
		"\u202e\u202e\u202e": "blank", "Ada \u202eecalevoL": "control-character", "\u2067Ada\u2069 Lovelace": "control-character", "\ufeffmarked first": "control-character",
		"\ufdd0 non": "unassigned", "unassigned \u0378": "unassigned", "\U000e0041\U000e0042\U000e0043": "blank",
	} {
		body := `{"email":"refused@canary.example","name":` + quoted(name) + `}`
		if faults := w.owner.do(t, "POST /users", body).refused(t, 422, "validation").faults(); len(faults) != 1 || faults[0] != "/name "+code {
			t.Errorf("%+q is refused for %q, not %s", name, faults, code)
		}
	}
}

func testScriptsOfAddresses(t *testing.T, w *world) {
	create := func(email string) *answer {
		return w.owner.do(t, "POST /users", `{"email":`+quoted(email)+`,"name":"Ada Lovelace"}`)
	}
	for _, same := range [][]string{
		{"jos\u00e9@canary.example", "jose\u0301@canary.example", "JOS\u00c9@CANARY.example", "JOSE\u0301@canary.EXAMPLE"},
		{"kelvin@canary.example", "\u212aelvin@canary.example", "KELVIN@canary.example"},
		{"\u00e5ngstr\u00f6m@canary.example", "\u212bngstr\u00f6m@canary.example", "a\u030angstro\u0308m@canary.example"},
		{"用户@例子.公司", "用户@xn--fsqu00a.xn--55qx5d"},
		{"ada@bücher.example", "ada@xn--bcher-kva.example", "Ada@BU\u0308CHER.example", "ada@XN--BCHER-KVA.example"},
		{"ada@xn--strae-oqa.example", "ada@straße.example"},
	} {
		id := create(same[0]).expect(t, 201).text("/id")
		for _, again := range same {
			create(again).refused(t, 409, "email-taken")
			found := w.owner.do(t, "GET /users?email="+url.QueryEscape(again), "").expect(t, 200)
			if found.text("/items/0/id") != id || found.text("/items/0/email") != same[0] {
				t.Errorf("by %+q is found %s", again, found.body)
			}
		}
	}
	for _, other := range []string{"ada@strasse.example", "jose@canary.example", "k\u0435lvin@canary.example", "ｋelvin@canary.example", "ke\u017fvin@canary.example"} { // looks alike, and is another address
		create(other).expect(t, 201)
	}
	for _, email := range []string{
		"ada\u200b@canary.example", "ada@can\u200dary.example", "\u202eada@canary.example", "ada\u00ad@canary.example", "ada\u2028@canary.example", "a\x00da@canary.example",
		"ada\u3164@canary.example", "ada\ufeff@canary.example", "ada@canary\uff0eexample.", "ada\u00a0@canary.example",
	} {
		if faults := create(email).refused(t, 422, "validation").faults(); len(faults) != 1 {
			t.Errorf("%+q is refused for %q", email, faults)
		}
	}
}

// testSameNames checks that case, width, encoding, blanks and invisible characters are ignored when role names and
// departments are compared. Accents count, except in search texts.
func testSameNames(t *testing.T, w *world) {
	for name, others := range map[string][]string{
		"Café Équipe": {"café équipe", "CAFE\u0301 E\u0301QUIPE", "Ｃａｆé Équipe", " Café  Équipe ", "Ca\u200bfé\u3000Équipe"},
		"Πωλήσεις":    {"ΠΩΛΉΣΕΙΣ", "πωλήσεισ"},
		"Straße":      {"STRASSE", "strasse", "STRA\u1e9eE"},
		"Owner 2":     {"O\u00adwner 2", "ＯＷＮＥＲ ２"},
	} {
		w.role(t, name)
		for _, other := range others {
			w.owner.do(t, "POST /roles", roleBody(other, nil, nil)).refused(t, 409, "role-name-taken")
		}
		w.owner.do(t, "POST /service-accounts", `{"name":`+quoted(name)+`}`).expect(t, 201)
		for _, other := range others {
			w.owner.do(t, "POST /service-accounts", `{"name":`+quoted(other)+`}`).refused(t, 409, "service-account-name-taken")
		}
	}
	for _, hidden := range []string{"Owner\u200b", "\u2060Owner", "Own\u034fer", "\u200fOwner", "Ｏｗｎｅｒ", "Owner\u3164", "OWNER "} {
		w.owner.do(t, "POST /roles", roleBody(hidden, nil, nil)).refused(t, 409, "role-name-taken")
	}
	for _, other := range []string{"Cafe Equipe", "Саfé Équipe" /* two letters are Cyrillic */} {
		w.role(t, other)
	}
	id := w.user(t, "folded", "Zürich Süd")
	for filter, want := range map[string]string{
		"department=z%C3%BCrich+s%C3%BCd": id, "department=ZU%CC%88RICH++S%C3%9CD": id, "department=zurich+sud": "", "q=FOLDED": id, "q=fo%CC%88lded": id,
	} {
		if got := w.owner.do(t, "GET /users?"+filter, "").expect(t, 200).texts("id"); len(got) > 1 || want != "" && len(got) != 1 || want == "" && len(got) != 0 {
			t.Errorf("%s finds %q, want %q", filter, got, want)
		}
	}
}

// testOtherDepartments checks that marks make other departments: no reach, filter or job takes カード for ガード.
func testOtherDepartments(t *testing.T, w *world) {
	inside, outside := w.user(t, "card", "カード事業部"), w.user(t, "guard", "ガード事業部")
	c := w.holder(t, "card-manager", "", "カード事業部", "users:read", "users:suspend")
	account := w.account(t, "Card import")
	w.owner.do(t, "PUT /service-accounts/"+account+"/roles/"+w.role(t, "Suspends cards", "users:read", "users:suspend"), within("カード事業部")).expect(t, 201)
	program := w.owner.makeToken(t, account, "users:read", "users:suspend")
	var scenarios []scenario
	for _, as := range []*caller{c, program} {
		scenarios = append(scenarios,
			scenario{name: "read the other one", as: as, send: "GET /users/" + outside, status: 404, code: "not-found"},
			scenario{name: "suspend the other one", as: as, send: "POST /users/" + outside + "/suspend", status: 404, code: "not-found"},
			scenario{name: "read", as: as, send: "GET /users/" + inside, status: 200, has: map[string]any{"/department": "カード事業部"}},
			scenario{name: "list", as: as, send: "GET /users?department=" + url.QueryEscape("ガード事業部"), status: 200, lacks: []string{outside}},
		)
	}
	play(t, scenarios)
	w.awaitJob(t, w.startJob(t, w.owner, "suspend-users", `{"users":{"department":"カード事業部"}}`))
	for id, want := range map[string]string{inside: "suspended", outside: "pending"} {
		if got := w.owner.do(t, "GET /users/"+id, "").expect(t, 200).text("/status"); got != want {
			t.Errorf("after the job, a user is %s, want %s", got, want)
		}
	}
}

// testShortNames checks the setting nameMinimum.
func testShortNames(t *testing.T, w *world) {
	o := w.owner
	set := func(value string) {
		t.Helper()
		o.do(t, "PATCH /tenant", `{"settings":{"nameMinimum":`+value+`}}`).expect(t, 200)
	}
	requests := func(name string, i int) []scenario {
		text := quoted(name)
		return []scenario{
			{name: "user", as: o, send: "POST /users", body: fmt.Sprintf(`{"email":"short%d@canary.example","name":%s,"department":%s}`, i, text, text)},
			{name: "role", as: o, send: "POST /roles", body: roleBody(name, nil, nil)},
			{name: "service account", as: o, send: "POST /service-accounts", body: `{"name":` + text + `}`},
		}
	}
	refused := func(name string, i int) {
		t.Helper()
		for _, s := range requests(name, i) {
			if s.status, s.faults = 422, []string{"/name length"}; s.name == "user" {
				s.faults = []string{"/department length", "/name length"}
			}
			play(t, []scenario{s})
		}
	}
	refused("李明", 1)
	play(t, []scenario{{name: "out of bounds", as: o, send: "PATCH /tenant", body: `{"settings":{"nameMinimum":4}}`, status: 422, faults: []string{"/settings/nameMinimum range"}}})
	set("2")
	for _, s := range requests("李明", 2) {
		s.status = 201
		play(t, []scenario{s})
	}
	refused("李", 3)
	user := w.user(t, "reached", "HR")
	c := w.holder(t, "short-manager", "", "HR", "users:read")
	play(t, []scenario{
		{name: "read", as: c, send: "GET /users/" + user, status: 200},
		{name: "all errors at once", as: o, send: "POST /users", body: `{"email":"no address","name":"Li","department":"X"}`, status: 422, faults: []string{"/department length", "/email email"}},
	})
	set("null")
	refused("Li", 4)
	play(t, []scenario{{name: "a name that is already shorter stays", as: o, send: "PATCH /users/" + user, body: `{"name":"Longer"}`, status: 200, has: map[string]any{"/department": "HR"}}})
}
