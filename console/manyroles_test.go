package console

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/idempotency"
)

// longNames returns n different names of departments with the maximum length.
func longNames(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprintf("%03d ", i)+strings.Repeat("d", rolecall.DepartmentMax-4))
	}
	return names
}

// shortNames returns n names. The overview of a holder with long names ends after a few permissions.
func shortNames(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint("Team ", i))
	}
	return names
}

func TestALongListOfNamesIsShort(t *testing.T) {
	for n, want := range map[int]string{
		1: "a", 2: "a and a", listedMax: strings.Repeat("a, ", listedMax-2) + "a and a", listedMax + 1: strings.Repeat("a, ", listedMax-1) + "a and 1 more",
	} {
		if got := listed(strings.Fields(strings.Repeat("a ", n))); got != want {
			t.Errorf("%d: %q, want %q", n, got, want)
		}
	}
	few, many := longNames(120), longNames(480)
	if got := listedInLine(many); len(got) > suggestedBytes+50 || !strings.HasSuffix(got, " and 476 more") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
	once, again := testing.AllocsPerRun(10, func() { listed(few) }), testing.AllocsPerRun(10, func() { listed(many) })
	if again > once+4 {
		t.Errorf("%v allocations for %d names, and %v for %d", once, len(few), again, len(many))
	}
}

// A comparison looks each permission up.
func TestTheReachOfAPermissionIsLookedUp(t *testing.T) {
	permission := func(text string) rolecall.Permission {
		p, err := rolecall.ParsePermission(text)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	reach := reachIn([]authz.Grant{
		{Permission: permission("shop/orders:read"), Reach: rolecall.Within("Sales")},
		{Permission: permission("shop/*:read"), Reach: rolecall.Within("Legal")},
		{Permission: permission("tenant:*"), Reach: rolecall.Within("Legal")},
	})
	for text, want := range map[string]string{"shop/orders:read": "In Legal and Sales", "shop/tills:read": "In Legal", "shop/orders:close": "Nowhere", "tenant:update": "Nowhere"} {
		if got := reachWords(reach(permission(text))); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestPagesAboutAHolderOfManyRolesAreSmall(t *testing.T) {
	const roles, largest = 50, 1 << 20 // bytes of a page before its compression
	f := newFixture(t)
	call, departments := f.asOwner(), shortNames(rolecall.ReachDepartmentsMax)
	user := f.place("many@example.com", "Sales")
	for i := range roles {
		draft := rolecall.RoleDraft{Name: fmt.Sprint("Role ", i)}
		for j := range rolecall.RolePermissionsMax {
			draft.Permissions = append(draft.Permissions, fmt.Sprintf("shop/part%d-%d:read", i, j))
		}
		role, err := f.node.Directory.CreateRole(t.Context(), call, idempotency.Key{Text: draft.Name, Fingerprint: []byte(draft.Name)}, draft)
		if err == nil {
			if i == 9 {
				departments = departments[:1] // all assignments of a holder name at most 1,000 departments
			}
			_, _, err = f.node.Directory.AssignRole(t.Context(), call, rolecall.HolderOf(user.ID), role.Value.ID, rolecall.AssignmentDraft{Departments: departments})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	cookie := f.signIn("acme", ownerEmail)
	home := "/console/acme/users/" + user.ID.String()
	for _, path := range []string{"", "/access", "/roles", "/compare?with=" + f.owner.ID.String()} {
		page := f.get(home+path, cookie)
		if t.Logf("%q: %d bytes", path, len(page.body)); page.StatusCode != http.StatusOK || len(page.body) > largest {
			t.Errorf("%q: %d, %d bytes", path, page.StatusCode, len(page.body))
		}
	}
	if page := f.get(home, cookie); !strings.Contains(page.body, " more permissions") || strings.Count(page.body, "<code class=\"line-note\">") != permissionsShown {
		t.Errorf("the page shows %d permissions", strings.Count(page.body, "<code class=\"line-note\">"))
	}
	first := f.get(home+"/access?limit=2", cookie).body
	second := f.get(linkOf(first, "next"), cookie).body
	if !strings.Contains(first, "shop/part0-0:read<") || strings.Contains(second, "shop/part0-0:read<") || strings.Count(second, "<code class=\"line-note\">") != rolecall.DefaultLimit || !strings.Contains(second, " permissions") {
		t.Errorf("the link is %q, and the second page has %d permissions: %q", linkOf(first, "next"), strings.Count(second, "<code class=\"line-note\">"), regexp.MustCompile(`shop/part[^<]*<|[0-9,]+ permissions?`).FindAllString(first+second, -1))
	}
}
