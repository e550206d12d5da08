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
	t.Run("one folding", func(t *testing.T) { testOneFolding(t, w) })
}

func testScriptsOfNames(t *testing.T, w *world) {
	for i, name := range []string{
		"Ada \u202eecalevoL", "\u2067Ada\u2069 Lovelace", "Zero\u200bwidth", "soft\u00adhyphen", "\ufeffmarked first", "Аdа Lоvеlасе", "\u212aelvin Ångström",
		"e\u0301e\u0301e\u0301", "\u00e9\u00e9\u00e9", "ﬁnance ﷺ", "İstanbul ıI", "straße STRASSE", "用户 名前 이름", "\U0001F469\u200d\U0001F4BB Ada", "\U00020000\U0001F600\U0010FFFD", "Z\u0351\u036b\u0343\u036a\u0302alg\u0301o", "tab\ufffdfffd", "\ufdd0 non",
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
		"\u202e\u202e\u202e": "blank", "\U000e0041\U000e0042\U000e0043": "blank",
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
		{"用户@例子.公司"},
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
	for _, other := range []string{"jose@canary.example", "k\u0435lvin@canary.example", "ｋelvin@canary.example", "ke\u017fvin@canary.example"} { // looks alike, and is another address
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

// testOneFolding checks that case, accents and character width are ignored when role names,
// departments and search texts are compared.
func testOneFolding(t *testing.T, w *world) {
	w.role(t, "Café Équipe")
	for _, name := range []string{"cafe equipe", "CAFE\u0301 E\u0301QUIPE", "Ｃａｆｅ Équipe"} {
		w.owner.do(t, "POST /roles", roleBody(name, nil, nil)).refused(t, 409, "role-name-taken")
	}
	w.role(t, "Саfе Équipe") // two letters are Cyrillic
	id := w.user(t, "folded", "Zürich Süd")
	for _, filter := range []string{"department=zurich+sud", "department=ZU%CC%88RICH+S%C3%9CD", "q=FOLDED", "q=fo%CC%88lded"} {
		if got := w.owner.do(t, "GET /users?"+filter, "").expect(t, 200).text("/items/0/id"); got != id {
			t.Errorf("%s finds %q", filter, got)
		}
	}
}
