package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
)

// matcher is a program around the permission check that docs/guides/permission-checks.md shows
// in one language. It reads questions as JSON from the standard input and writes the answers.
type matcher struct {
	language string
	file     string
	program  string // the code of the guide replaces %s
	run      []string
}

var matchers = []matcher{
	{"js", "matcher.mjs", `%s
import { readFileSync } from "node:fs";
const { covered, allowed } = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify({
  covered: covered.map((q) => covers(q.held, q.asked)),
  allowed: allowed.map((q) => may(q.session, q.permission, q.department)),
}));
`, []string{"node"}},
	{"go", "matcher.go", `package main

import ("encoding/json"; "os"; "regexp"; "slices"; "strings")

%s

func main() {
	var questions struct {
		Covered []struct{ Held, Asked string }
		Allowed []struct { Session session; Permission, Department string }
	}
	if err := json.NewDecoder(os.Stdin).Decode(&questions); err != nil { panic(err) }
	answers := map[string][]bool{"covered": {}, "allowed": {}}
	for _, q := range questions.Covered { answers["covered"] = append(answers["covered"], covers(q.Held, q.Asked)) }
	for _, q := range questions.Allowed { answers["allowed"] = append(answers["allowed"], may(q.Session, q.Permission, q.Department)) }
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil { panic(err) }
}
`, []string{"go", "run", "-trimpath"}},
}

// covering is the question whether the permission held covers the permission asked. grantedTo
// is the question whether a session has a permission. The fields have the type any, because
// the tests also ask with malformed data.
type (
	covering struct {
		Held  any `json:"held"`
		Asked any `json:"asked"`
	}
	grantedTo struct {
		Session    any `json:"session"`
		Permission any `json:"permission"`
		Department any `json:"department"`
	}
	matched struct{ Covered, Allowed []bool }
)

// answer runs the matcher and returns its answers in the order of the questions.
func (m *matcher) answer(t *testing.T, covered []covering, allowed []grantedTo) (answers matched) {
	t.Helper()
	guide, err := os.ReadFile("../../docs/guides/permission-checks.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?ms)^```"+m.language+"\n(.*?)^```$").FindAllSubmatch(guide, -1)
	if len(blocks) != 1 {
		t.Fatalf("the guide has %d blocks in %s", len(blocks), m.language)
	}
	file := filepath.Join(t.TempDir(), m.file)
	if err := os.WriteFile(file, fmt.Appendf(nil, m.program, blocks[0][1]), 0o600); err != nil {
		t.Fatal(err)
	}
	questions, err := json.Marshal(map[string]any{"covered": append([]covering{}, covered...), "allowed": append([]grantedTo{}, allowed...)})
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), tool(t, m.run[0]), append(m.run[1:], file)...)
	var stderr bytes.Buffer
	command.Stdin, command.Stderr = bytes.NewReader(questions), &stderr
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, stderr.Bytes())
	}
	if err := json.Unmarshal(output, &answers); err != nil || len(answers.Covered) != len(covered) || len(answers.Allowed) != len(allowed) {
		t.Fatalf("%v: %s", err, output)
	}
	return answers
}

var publishedCase = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`]+)` \\| (yes|no) \\|$")

func TestMatchersOfTheGuideAnswerEveryPublishedCase(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	var asked []covering
	var wanted []bool
	for _, row := range publishedCase.FindAllStringSubmatch(string(page), -1) {
		asked, wanted = append(asked, covering{row[1], row[2]}), append(wanted, row[3] == "yes")
	}
	if len(asked) < 40 {
		t.Fatalf("%d cases, want all of them", len(asked))
	}
	for _, m := range matchers {
		t.Run(m.language, func(t *testing.T) {
			for i, got := range m.answer(t, asked, nil).Covered {
				if got != wanted[i] {
					t.Errorf("%s covers %s: %v", asked[i].Held, asked[i].Asked, got)
				}
			}
		})
	}
}

// holdings returns random assignments in two forms: as the session object that the matchers
// read, and as a principal of package authz.
func holdings(random *rand.Rand, permission func() string) (session map[string]any, principal *authz.Principal) {
	assignments := make([]rolecall.Assignment, random.IntN(4))
	for i := range assignments {
		held, err := rolecall.ParsePermission(permission())
		if err != nil {
			continue
		}
		a := rolecall.Assignment{Role: rolecall.Role{Permissions: []rolecall.Permission{held}}, Reach: rolecall.Everywhere(), ExpiresAt: rolecall.Never}
		if random.IntN(2) == 0 {
			a.Reach = rolecall.Within([]string{"Sales", "Ops", "Board"}[:1+random.IntN(2)]...)
		}
		assignments[i] = a
	}
	principal = authz.NewPrincipal(rolecall.Tenant{}, rolecall.User{}, rolecall.Session{}, assignments, 0)
	everywhere, scoped := principal.Scopes()
	list := []any{}
	for _, s := range scoped {
		list = append(list, map[string]any{"reach": map[string]any{"departments": s.Reach.Departments()}, "permissions": s.Permissions})
	}
	return map[string]any{"permissions": append([]rolecall.Permission{}, everywhere...), "scopedPermissions": list}, principal
}

// The matchers must never allow more than Rolecall. They may allow less for one of Rolecall's
// own permissions that is held for some departments only, as the guide says.
func TestMatchersOfTheGuideAllowNoMoreThanRolecall(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	one := func(of ...string) string { return of[random.IntN(len(of))] }
	permission := func() string {
		return one("", "", "*/", "shop/", "store/") + one("*", "users", "roles", "events", "invoices") + one("", "", ".*", ".email", ".total") + one(":*", ":read", ":update", ":approve")
	}
	var asked []grantedTo
	var wanted, exact []bool
	for range 3000 {
		session, principal := holdings(random, permission)
		p, department := permission(), one("", "", "Sales", "Ops", "Board")
		read, err := rolecall.ParsePermission(p)
		if err != nil {
			t.Fatal(err)
		}
		reach := principal.Reach(read)
		holds := reach.IsEverywhere() || department != "" && reach.Includes(&department)
		asked = append(asked, grantedTo{session, p, department})
		wanted, exact = append(wanted, holds), append(exact, !read.Own() || reach.IsEverywhere())
	}
	for _, m := range matchers {
		t.Run(m.language, func(t *testing.T) {
			for i, got := range m.answer(t, nil, asked).Allowed {
				if got && !wanted[i] || wanted[i] && exact[i] && !got {
					t.Errorf("%v: %v, and Rolecall says %v", asked[i], got, wanted[i])
				}
			}
		})
	}
}

func TestMatchersOfTheGuideRefuseMalformedData(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 64)
	texts := []any{"", "*", "shop", "shop/", "shop/invoices", ":approve", "shop/:approve", "shop/invoices:", "a/b/c:d", "a:b:c", "a.b.c:d", "Shop/a:b", "shop/a:b ", " shop/a:b", "shop/a:b\n", "shop/ä:b", "shop/a*:b", "**:*",
		long + "a:b", long + "/" + long + "." + long + ":" + long, "shop/invoices.:approve"}
	var covered []covering
	for _, text := range texts {
		covered = append(covered, covering{"*/*:*", text}, covering{"*:*", text}, covering{text, "shop/invoices:approve"}, covering{text, text})
	}
	within := func(departments any) any {
		return map[string]any{"permissions": []any{}, "scopedPermissions": []any{map[string]any{"reach": map[string]any{"departments": departments}, "permissions": []any{"shop/a:b"}}}}
	}
	for _, m := range matchers {
		t.Run(m.language, func(t *testing.T) {
			covered, allowed := slices.Clone(covered), []grantedTo{
				{map[string]any{}, "shop/a:b", ""}, {map[string]any{"code": "unauthenticated", "status": 401}, "shop/a:b", "Sales"},
				{within([]any{"Sales"}), "shop/a:b", ""}, {within([]any{""}), "shop/a:b", ""}, {within(nil), "shop/a:b", ""}, {within([]any{"Sales"}), "shop/a:b", "sales"},
			}
			if m.language == "js" { // Go refuses other types before the matcher sees them
				for _, value := range []any{nil, 7, true, []any{}, []any{"shop/a:b"}, map[string]any{}} {
					covered = append(covered, covering{value, "shop/a:b"}, covering{"*/*:*", value}, covering{value, value})
					allowed = append(allowed, grantedTo{value, "shop/a:b", nil}, grantedTo{map[string]any{"permissions": value, "scopedPermissions": value}, "shop/b:a", value},
						grantedTo{within([]any{value}), "shop/a:b", value}, grantedTo{within(value), "shop/a:b", value})
				}
				allowed = append(allowed, grantedTo{map[string]any{"permissions": "*/*:*"}, "shop/a:b", nil}, grantedTo{map[string]any{"scopedPermissions": []any{nil, map[string]any{"permissions": []any{"*/*:*"}}, map[string]any{"reach": map[string]any{"departments": []any{"Sales"}}, "permissions": "*/*:*"}}}, "shop/a:b", "Sales"})
			}
			answers := m.answer(t, covered, allowed)
			for i, got := range answers.Covered {
				if got {
					t.Errorf("%q covers %q", covered[i].Held, covered[i].Asked)
				}
			}
			for i, got := range answers.Allowed {
				if got {
					t.Errorf("%v is allowed", allowed[i])
				}
			}
		})
	}
}

// A guide must not search the list of permissions for a name. An owner holds wildcards, so the
// search would not find the name.
func TestNoGuideSearchesThePermissionsForAName(t *testing.T) {
	t.Parallel()
	search := regexp.MustCompile(`(?i)permissions\)?\.(includes|indexOf|find|contains)\b`)
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../../docs/guides/*.md", "../../client/*.go", "../../openapi/openapi.yaml", "../../console/*.templ"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		for _, file := range files {
			if text, err := os.ReadFile(file); err != nil || search.Match(text) {
				t.Errorf("%s shows %q: %v", file, search.Find(text), err)
			}
		}
	}
}
