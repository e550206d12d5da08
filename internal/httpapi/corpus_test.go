package httpapi

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/operation"
	"github.com/rolecall/rolecall/internal/web"
)

// The corpus has the classes of JSONTestSuite (Nicolas Seriot, MIT License): values that every parser
// must refuse, values that every parser must accept, and values for which parsers may differ. Of the
// last class, the server refuses text that is not Unicode, and values that are nested too deeply. It
// accepts numbers of any size.

// notJSON returns texts that are not valid JSON.
func notJSON() []string {
	values := strings.Split("- + +1 ++1 --1 -01 -00 00 012 -012 01.5 1. -1. .1 -.1 . -. 0.e1 1.e3 1.e+3 1e 1E 1e+ 1e- 1e1.5 1ee2 1e+-2 0e 0E+ 1.5e "+
		"1.0.0 1.5.2 1+2 1-2 0x1F 0b1 0o7 1_000 1a 1e1a -a -1x １ ٣ ∞ ½ 1,5:2 NaN -NaN nan Infinity -Infinity +Infinity inf "+
		"True TRUE False nul nulll n tru truee t fals falsey f none nil undefined void "+
		"[ ] { } [} {] ] {}} [[] [[[ {{ {[ [{ {\"a\":{ [1 [1, [, [,] [,1] [1,] [1,,2] [\"a\",,] [,,] [1]] [1]a [1:2] [1;2] [a] [-] [1e] [*] [\"a\":1] [1{}] [\"a\"1] [\"a\"\"b\"] [1][2] "+
		"{,} {1:2} {a:1} {'a':1} {\"a\"} {\"a\": {\"a\":} {\"a\":1 {\"a\":1, {\"a\":1,} {,\"a\":1} {\"a\":1,,\"b\":2} {\"a\":1;\"b\":2} {\"a\"::1} {\"a\"=1} {\"a\"\"b\"} {\"a\":\"b\"\"c\"} {\"a\":1}} "+
		"{:1} {null:1} {true:1} {[]:1} {{}:1} {\"a\",1} {\"a\":1:2} {\"a\":a} {\"a\":'b'} {*} {\"a\" \"b\"} {1} {1,2} {\"a\":1,2} "+
		"'a' `a` \" \"a a\" \"\\ \"\\\" \"a\"b\" \"a\"\"b\" “a” <null> <a/> #a //a /*a*/ /**/1 1//a 1/**/ [1]//a {\"a\":/**/1} \\u0022a\\u0022 &quot;a&quot; $a (1) 1; =1 @ ~ ! ? ,1 :1 1, 1: 1] 1}", " ")
	for c := range byte(' ') {
		values = append(values, `"a`+string(c)+`"`, `{"`+string(c)+`":1}`)
		if !strings.ContainsRune("\t\n\r", rune(c)) {
			values = append(values, string(c)+"1", "["+string(c)+"]")
		}
	}
	for c := rune(' '); c < 0x7f; c++ {
		if !strings.ContainsRune(`"\/bfnrtu`, c) {
			values = append(values, `"\`+string(c)+`"`)
		}
	}
	for _, blank := range []string{"\u0085", "\u00a0", "\u1680", "\u2003", "\u2028", "\u2060", "\u3000", "\ufeff", "\u200b"} {
		values = append(values, blank+"1", "["+blank+"1]", "1"+blank, blank)
	}
	return append(values, `"\u"`, `"\u1"`, `"\u12"`, `"\u123"`, `"\u123g"`, `"\u 123"`, `"\u+123"`, `"\U0041"`, `"\x41"`, `"\u{41}"`, `"\uD834\uDd"`, `"\uD834\u"`, `"\1"`, `"\é"`, `"\😀"`,
		"[1 true]", "[1 2]", "1 2", `"a" "b"`, "[] []", "{} {}", "- 1", "1 .5", "1 e5", "tr ue", "{\"a\" 1}", "[1\n,\n2\n,\n]")
}

// notUnicode returns texts that are not valid UTF-8, or that have code points that are not Unicode
// scalar values.
func notUnicode() []string {
	texts := []string{
		"\xc0\x80", "\xc0\xaf", "\xc1\xbf", "\xe0\x80\x80", "\xe0\x9f\xbf", "\xf0\x80\x80\x80", "\xf0\x8f\xbf\xbf", "\xf8\x88\x80\x80\x80", "\xfc\x84\x80\x80\x80\x80", // overlong
		"\xed\xa0\x80", "\xed\xaf\xbf", "\xed\xb0\x80", "\xed\xbf\xbf", "\xed\xa0\xb4\xed\xb4\x9e", "\xf4\x90\x80\x80", "\xf7\xbf\xbf\xbf", // surrogates, beyond
		"\xc3", "\xe2\x82", "\xf0\x9f\x98", "\xe2\x28\xa1", "\xf0\x28\x8c\xbc", "\xc3\xc3\xa9", "\xe9t\xe9", // cut, Latin-1
		`\ud800`, `\udbff`, `\udc00`, `\udfff`, `\ud800a`, `\ud800\n`, `\ud800\ud800`, `\udc00\ud800`, `\ud834\u0041`, `\uD834\\uDD1E`, `a\udd1eb`, `\ud800\u{dc00}`,
	}
	for c := 0x80; c <= 0xff; c++ {
		texts = append(texts, string([]byte{byte(c), 'b'}))
	}
	return texts
}

// isJSONText returns texts that are valid JSON.
func isJSONText() []string {
	values := strings.Split("0 -0 1 -1 123 0.5 -0.5 1e1 1E1 1e+1 1E+1 1e-1 0e1 0e+1 1.5e3 123.456e78 20e1 0.4e0066999999999999999999 -1e+9999 1.5e+9999 123e-10000000 "+
		"100000000000000000000 -123123123123123123123123123123 "+strings.Repeat("9", 5000)+" 0."+strings.Repeat("1", 5000)+" true false null [] {} [[]] [{}] [null] [1,true,null,\"a\"] {\"\":0} {\"a\":{}} {\"a\":[]} "+
		"{\"a\":\"b\",\"c\":\"d\"} \"\" \"a\" \"\x7f\" [\"\"] [[],[]] [1.0,-1] {\"a\":1,\"A\":2} {\"min\":-1.0e+28,\"max\":1.0e+28} \"//\" \"/*a*/\" \"new\\u000Aline\" \"'\"", " ")
	for _, c := range `"\/bfnrt` {
		values = append(values, `"\`+string(c)+`"`)
	}
	for _, c := range []rune{' ', '~', 0x7f, 0x80, 0xe9, 0x7ff, 0x800, 0x2028, 0x2029, 0x202e, 0x2060, 0xd7ff, 0xe000, 0xfdd0, 0xfeff, 0xfffd, 0xfffe, 0xffff, 0x10000, 0x1d11e, 0x1f600, 0x1fffe, 0x10fffe, 0x10ffff} {
		values = append(values, `"`+string(c)+`"`, `{"`+string(c)+`":1}`)
	}
	for _, escaped := range []string{`\u0000`, `\u0001`, `\u001f`, `\u0022`, `\u005C`, `\u0041`, `\u00e9`, `\u00E9`, `\u2028`, `\uFDD0`, `\ufffe`, `\uFFFF`, `\uD834\uDD1E`, `\ud834\udd1e`, `\uDBFF\uDFFF`, `\\u0041`, `\\\u0041`} {
		values = append(values, `"`+escaped+`"`, `{"`+escaped+`":1}`)
	}
	return append(values, " [ ] ", "\t1\r\n", "[\n1\n,\n2\n]", "{\r\"a\"\r:\r1\r}", `"a b"`, strings.Repeat("[", 30)+strings.Repeat("]", 30), `"`+strings.Repeat("a", 60_000)+`"`)
}

// judged sends the document to every operation that has a request body. It fails the test unless
// each response has the status.
func (s *testServer) judged(document string, status int) {
	s.t.Helper()
	for _, op := range declared {
		if !op.Input().TakesJSON() {
			continue
		}
		path := s.pathOf(op)
		r := s.handled(s.fuzzed(op.Method, path, "idempotency-key: k", document), document)
		if r.StatusCode != status {
			s.t.Errorf("%s of %.80q answered %d, not %d: %.300s", op.ID, document, r.StatusCode, status, r.body)
		}
	}
}

// pathOf returns the path of the operation, with values in place of the path parameters.
func (s *testServer) pathOf(op *operation.Operation) string {
	return strings.NewReplacer("{id}", s.ownerID, "{roleId}", s.ownerID, "{sessionId}", s.ownerID, "{tokenId}", s.ownerID, "{passkeyId}", "AAAA", "{name}", operatedTenant).Replace(op.Path)
}

// quietServer returns a test server that logs nothing. At the end of the test, it checks that the
// test changed no data.
func quietServer(t *testing.T) *testServer {
	s := newTestServerWith(t, web.Options{Logger: slog.New(slog.DiscardHandler)})
	s.operate()
	before := s.as(s.owner, http.MethodGet, "/events", "")
	t.Cleanup(func() {
		if after := s.as(s.owner, http.MethodGet, "/events", ""); after.body != before.body {
			t.Errorf("a refused body had an effect: %s", after.body)
		}
	})
	return s
}

func TestEveryOperationRefusesInvalidJSON(t *testing.T) {
	s := quietServer(t)
	for _, value := range notJSON() {
		s.judged(value, http.StatusBadRequest)
		s.judged(`{"metadata":`+value+`}`, http.StatusBadRequest)
	}
	for _, text := range notUnicode() {
		s.judged(`{"name":"`+text+`"}`, http.StatusBadRequest)
		s.judged(`{"`+text+`":1}`, http.StatusBadRequest)
	}
	for _, whole := range []string{
		"\ufeff{}", "\xef\xbb{}", "\xff\xfe{\x00}\x00", "\xfe\xff\x00{\x00}", "{\x00}\x00", "\x00{\x00}", "{}\x00", "\x00{}", "{}\x1a", " ", "\n", "\ufeff",
		"[", "[1", "nul", `"a`, "-", "[]]", "[1] 1", "{}{}", "{} null", "{}[]", "{}#", "{}/**/", strings.Repeat("[", 30_000), strings.Repeat(`{"a":`, 10_000), strings.Repeat(`[{"":`, 5_000),
		`{"a":` + strings.Repeat("[", 32) + strings.Repeat("]", 32) + `}`, strings.Repeat(`{"a":`, 33) + "1" + strings.Repeat("}", 33),
	} {
		s.judged(whole, http.StatusBadRequest)
	}
}

func TestEveryOperationReadsValidJSON(t *testing.T) {
	s := quietServer(t)
	for _, value := range isJSONText() {
		s.judged(`{"unknown":`+value+`}`, http.StatusUnprocessableEntity)
	}
	for _, whole := range []string{"[]", "[{}]", "null", "true", `"a"`, `""`, "1", "-1.5e300", " [ ] ", strings.Repeat("[", 32) + strings.Repeat("]", 32)} {
		s.judged(whole, http.StatusUnprocessableEntity)
	}
	for _, name := range []string{"", " ", "a/b~c", "\u202e", "__proto__", "constructor", "\U0001F600", strings.Repeat("n", 60_000)} {
		s.judged(`{"`+name+`":{}}`, http.StatusUnprocessableEntity)
	}
	var many strings.Builder
	for i := range 6_000 {
		fmt.Fprintf(&many, `,"%d":0`, i)
	}
	s.judged("{"+many.String()[1:]+"}", http.StatusUnprocessableEntity)
}

// If a body repeated a member, the checks and the operation could use different values of this
// member. For this reason, the server rejects such a body. Names of members are case-sensitive.
func TestDuplicateAndMisspelledMembersAreRefused(t *testing.T) {
	s := quietServer(t)
	schemas := Document().Components.Schemas.Map()
	for _, op := range declared {
		if !op.Input().TakesJSON() {
			continue
		}
		path := s.pathOf(op)
		send := func(body string) reply {
			return s.answered(s.fuzzed(op.Method, path, "idempotency-key: k", body), body)
		}
		for name := range schemas[bodySchema(op)].Properties {
			escaped := fmt.Sprintf(`\u%04x%s`, name[0], name[1:])
			for _, second := range []string{name, escaped, strings.ReplaceAll(name, "e", `\u0065`), name[:len(name)-1] + fmt.Sprintf(`\u%04X`, name[len(name)-1])} {
				r := send(`{"` + name + `":"a","` + second + `":"b"}`)
				if r.StatusCode != http.StatusBadRequest || r.faults(t) != "/"+name+" duplicate" {
					t.Errorf("%s with %s and %s: %d %s", op.ID, name, second, r.StatusCode, r.body)
				}
			}
			for _, other := range []string{strings.ToUpper(name), strings.ToUpper(name[:1]) + name[1:], strings.Replace(name, "s", "ſ", 1), strings.Replace(name, "k", "\u212a", 1), name + " ", " " + name, name + "\u200b", name + `\u0000`} {
				if other == name {
					continue
				}
				r := send(`{"` + other + `":"a"}`)
				told := rolecall.EscapePointer(strings.ReplaceAll(other, `\u0000`, "\x00"))
				if r.StatusCode != http.StatusUnprocessableEntity || !slices.Contains(strings.Split(r.faults(t), "; "), "/"+told+" unknown") && strings.TrimSpace(told) == told {
					t.Errorf("%s with %q: %d %s", op.ID, other, r.StatusCode, r.body)
				}
			}
		}
	}
}
