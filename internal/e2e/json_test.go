package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// testJSON sends documents that JSON parsers treat differently. The status must be 400 for
// text that is not JSON and for objects with a duplicate member, and 422 for JSON that does
// not match the schema. No refused request may have an effect.
func testJSON(t *testing.T, p *program) {
	w := newWorld(t, p)
	const fine = `"email":"j@canary.example","name":"Jason"`
	refused := []struct{ name, body string }{
		{"nothing but a brace", `{`}, {"an open string", `{"email":"j`}, {"an open object", `{` + fine}, {"a comma at the end", `{` + fine + `,}`},
		{"a comma at the start", `{,` + fine + `}`}, {"two commas", `{"email":"j@canary.example",,"name":"Jason"}`}, {"no comma", `{"email":"j@canary.example" "name":"Jason"}`},
		{"no colon", `{"email" "j"}`}, {"two colons", `{"email"::"j"}`}, {"an equals sign", `{"email"="j"}`}, {"single quotes", `{'email':'j'}`}, {"no quotes", `{email:"j"}`},
		{"a comment", `{/* c */` + fine + `}`}, {"a comment at the end", `{` + fine + `} // c`}, {"a second document", `{` + fine + `}{` + fine + `}`}, {"a second value", `{` + fine + `} 1`},
		{"a brace too many", `{` + fine + `}}`}, {"a bracket", `{` + fine + `]`}, {"a NUL at the end", "{" + fine + "}\x00"}, {"a byte order mark", "\ufeff{" + fine + "}"},
		{"UTF-16", "\xff\xfe{\x00}\x00"}, {"a form feed", "{\f" + fine + "}"}, {"a vertical tab", "\v{" + fine + "}"}, {"a no-break space", "{\u00a0" + fine + "}"},
		{"a raw newline in a string", "{" + `"email":"j@canary.example","name":"Ja` + "\n" + `son"}`}, {"a raw tab in a string", "{\"name\":\"Ja\tson\"}"}, {"a raw NUL in a string", "{\"name\":\"Ja\x00son\"}"},
		{"an unknown escape", `{"name":"Ja\son"}`}, {"a short escape", `{"name":"\u12"}`}, {"an upper-case escape", `{"name":"\U0041aaa"}`}, {"a hex escape", `{"name":"\x41aa"}`}, {"a backslash at the end", `{"name":"\`},
		{"a lone high surrogate", `{"email":"j@canary.example","name":"a\uD800b"}`}, {"a lone low surrogate", `{"email":"j@canary.example","name":"a\uDC00b"}`},
		{"surrogates in the wrong order", `{"email":"j@canary.example","name":"\uDC00\uD800ab"}`}, {"a surrogate as a name", `{` + fine + `,"\uD800":1}`},
		{"an overlong byte", "{\"name\":\"a\xc0\x80b\"}"}, {"a stray continuation", "{\"name\":\"a\x80b\"}"}, {"a cut sequence", "{\"name\":\"ab\xe2\x82\"}"}, {"a surrogate in UTF-8", "{\"name\":\"a\xed\xa0\x80b\"}"}, {"beyond Unicode", "{\"name\":\"a\xf4\x90\x80\x80b\"}"},
		{"a member twice", `{` + fine + `,"name":"Second"}`}, {"a member twice by escapes", `{` + fine + `,"n\u0061me":"Second"}`}, {"an unknown member twice", `{` + fine + `,"x":1,"x":2}`},
		{"a member twice within", `{` + fine + `,"metadata":{"a":"1","a":"2"}}`}, {"a member twice within by escapes", `{` + fine + `,"metadata":{"a":"1","\u0061":"2"}}`},
		{"NaN", `{"name":NaN}`}, {"Infinity", `{"name":-Infinity}`}, {"a leading zero", `{"name":012}`}, {"a plus", `{"name":+1}`}, {"a bare point", `{"name":.5}`}, {"a point at the end", `{"name":5.}`}, {"a bare exponent", `{"name":1e}`}, {"hexadecimal", `{"name":0x1F}`},
		{"True", `{"name":True}`}, {"nul", `{"name":nul}`}, {"undefined", `{"name":undefined}`},
		{"blanks", ` `},
		{"33 deep", nested(33)}, {"30,000 deep", nested(30_000)}, {"30,000 open brackets", strings.Repeat("[", 30_000)}, {"deep objects", `{"metadata":` + strings.Repeat(`{"a":`, 5_000) + `1` + strings.Repeat("}", 5_000) + `}`},
	}
	var scenarios []scenario
	for _, r := range refused {
		scenarios = append(scenarios, scenario{name: "refused: " + r.name, as: w.owner, send: "POST /users", body: r.body, status: 400, code: "malformed-request", lacks: []string{"Jason"}})
	}
	long := strings.Repeat("9", 20_000)
	for _, r := range []struct {
		name, body string
		faults     []string
	}{
		{"a long number", `{` + fine + `,"department":` + long + `}`, []string{"/department type"}},
		{"a huge exponent", `{` + fine + `,"department":1e999999}`, []string{"/department type"}},
		{"minus zero", `{` + fine + `,"externalId":-0}`, []string{"/externalId type"}},
		{"__proto__", `{` + fine + `,"__proto__":{"isAdmin":true}}`, []string{"/__proto__ unknown"}},
		{"constructor", `{` + fine + `,"constructor":{}}`, []string{"/constructor unknown"}},
		{"an empty name", `{` + fine + `,"":1}`, []string{"/ unknown"}},
		{"a name with a NUL", `{` + fine + `,"name\u0000":1}`, nil},
		{"a name with a slash", `{` + fine + `,"a/b~c":1}`, []string{"/a~1b~0c unknown"}},
		{"a Kelvin sign", `{` + fine + `,"\u212A":1}`, nil},
		{"32 deep", nested(32), nil},
		{"an array for an object", `{` + fine + `,"metadata":["a"]}`, []string{"/metadata type"}},
		{"an object for a string", `{"email":{"a":1},"name":["Jason"]}`, []string{"/email type", "/name type"}},
		{"an array", `[{` + fine + `}]`, []string{" type"}}, {"an empty array", `[]`, []string{" type"}}, {"a string", `"` + "email" + `"`, []string{" type"}},
		{"a number", `1`, []string{" type"}}, {"null", `null`, []string{" type"}}, {"true", `true`, []string{" type"}},
		{"a thousand members", `{` + fine + many(1000) + `}`, nil},
		{"a name of 10 kB", `{` + fine + `,"` + strings.Repeat("n", 10_000) + `":1}`, nil},
	} {
		scenarios = append(scenarios, scenario{name: "not what is asked for: " + r.name, as: w.owner, send: "POST /users", body: r.body, status: 422, code: "validation", faults: r.faults, lacks: []string{"Jason"}})
	}
	scenarios = append(scenarios,
		scenario{name: "more errors than are listed", as: w.owner, send: "POST /users", body: `{` + fine + many(101) + `}`, status: 422, has: map[string]any{"/moreErrors": true, "/errors/99/pointer": "/m99"}, lacks: []string{"/m100"}},
		scenario{name: "as many errors as are listed", as: w.owner, send: "POST /users", body: `{` + fine + many(100) + `}`, status: 422, has: map[string]any{"/moreErrors": nil}},
	)
	for i, body := range []string{
		`{"email":"y%d@canary.example","name":"\u004Aason"}`, " \t\r\n{ \"email\" : \"y%d@canary.example\" , \"name\" : \"Jason\" } \n",
		`{"n\u0061me":"Jason","email":"y%d@canary.example"}`, `{"email":"y%d@canary.example","name":"\"\\\/Jason"}`, `{"email":"y%d@canary.example","name":"\uD83D\uDE00 Jason"}`,
		"{\"email\":\"y%d@canary.example\",\"name\":\"Jason \x7f\"}",
	} {
		s := scenario{name: fmt.Sprintf("accepted: %d", i), as: w.owner, send: "POST /users", body: fmt.Sprintf(body, i), status: 201}
		if strings.Contains(body, "\x7f") {
			s.status, s.faults = 422, []string{"/name control-character"}
		}
		scenarios = append(scenarios, s)
	}
	play(t, scenarios)

	if items := w.owner.do(t, "GET /users?email=j@canary.example", "").expect(t, 200).list("/items"); len(items) != 0 {
		t.Error("a refused document made a user")
	}
	w.owner.do(t, "POST /users", nested(30_000)).expect(t, 400)
	for _, line := range []string{"PATCH /users/" + w.owner.id, "POST /roles", "POST /auths/login", "PUT /users/" + w.owner.id + "/roles/" + never, "POST /users/" + never + "/suspend", "PATCH /roles/" + never} {
		for _, body := range []string{`{`, `[`, `{"name":"a","name":"b"}`, "{\"name\":\"\xff\"}", `{} {}`} {
			w.owner.do(t, line, body).refused(t, 400, "malformed-request")
		}
		for _, body := range []string{`[]`, `"x"`, `1`, `null`} {
			w.owner.do(t, line, body).refused(t, 422, "validation")
		}
	}
}

// nested returns a JSON object with depth levels of objects and arrays.
func nested(depth int) string {
	return `{"metadata":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + `}`
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"m%d":1`, i)
	}
	return b.String()
}
