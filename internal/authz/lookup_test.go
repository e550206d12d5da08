package authz

import (
	"fmt"
	"testing"

	"github.com/rolecall/rolecall"
)

// manyRoles returns assignments of roles with as many permissions and departments as possible. The roles have no
// permission in common, but "shop/all:read".
func manyRoles(t *testing.T, roles int, reach func(role int) rolecall.Reach) []rolecall.Assignment {
	t.Helper()
	var assignments []rolecall.Assignment
	for i := range roles {
		draft := rolecall.RoleDraft{Name: fmt.Sprintf("Role %d", i), Permissions: []string{"shop/all:read"}}
		for j := range rolecall.RolePermissionsMax - 1 {
			draft.Permissions = append(draft.Permissions, fmt.Sprintf("shop/r%d-%d:read", i, j))
		}
		role, faults := draft.Role(0, rolecall.DefaultNameMin)
		if err := faults.Err(); err != nil {
			t.Fatal(err)
		}
		assignments = append(assignments, rolecall.Assignment{Role: role, Reach: reach(i), ExpiresAt: rolecall.Never})
	}
	return assignments
}

// TestAPermissionIsLookedUp counts the holdings that a check visits.
func TestAPermissionIsLookedUp(t *testing.T) {
	everywhere := func(int) rolecall.Reach { return rolecall.Everywhere() }
	p := NewPrincipal(rolecall.Tenant{}, rolecall.User{}, rolecall.Session{}, manyRoles(t, rolecall.AssignmentsMax, everywhere), 0)
	for text, want := range map[string]int{"shop/r7-7:read": 1, "shop/all:read": rolecall.AssignmentsMax, "shop/none:read": 0, "users:read": 0} {
		permission, err := rolecall.ParsePermission(text)
		if err != nil {
			t.Fatal(err)
		}
		visited := 0
		for range p.holdings(permission) {
			visited++
		}
		if visited != want {
			t.Errorf("a check of %s visits %d holdings, not %d", text, visited, want)
		}
		if p.Holds(permission, nil) != (want > 0) {
			t.Errorf("%s is held: %v", text, want == 0)
		}
	}
}

func TestEachReachIsListedOnce(t *testing.T) {
	departments := make([]string, rolecall.ReachDepartmentsMax)
	for i := range departments {
		departments[i] = fmt.Sprintf("Department %d", i)
	}
	same := func(int) rolecall.Reach { return rolecall.Within(departments...) }
	_, scoped := scopesOf(manyRoles(t, 20, same))
	if len(scoped) != 1 || len(scoped[0].Permissions) != 20*(rolecall.RolePermissionsMax-1)+1 {
		t.Errorf("%d scopes", len(scoped))
	}
	listed := 0
	_, scoped = scopesOf(manyRoles(t, 20, func(role int) rolecall.Reach { return rolecall.Within(departments[role:]...) }))
	for _, s := range scoped {
		listed += len(s.Reach.Departments()) + len(s.Permissions)
	}
	if most := 20 * (rolecall.ReachDepartmentsMax + rolecall.RolePermissionsMax); listed > most {
		t.Errorf("%d departments and permissions are listed, of at most %d in the assignments", listed, most)
	}
}

func TestScopesLeaveOutWhatHasNoEffect(t *testing.T) {
	sales := rolecall.Within("Sales")
	role := func(reach rolecall.Reach, texts ...string) rolecall.Assignment {
		draft := rolecall.RoleDraft{Name: "Role", Permissions: texts}
		r, faults := draft.Role(0, rolecall.DefaultNameMin)
		if err := faults.Err(); err != nil {
			t.Fatal(err)
		}
		return rolecall.Assignment{Role: r, Reach: reach, ExpiresAt: rolecall.Never}
	}
	everywhere, scoped := scopesOf([]rolecall.Assignment{
		role(sales, "tenant:update"), role(sales, "users:read", "shop/a:b"), role(rolecall.Within("Ops"), "shop/a:b"),
		role(rolecall.Everywhere(), "users:read"), role(rolecall.Within("SALES"), "shop/c:d"),
	})
	got := fmt.Sprint(everywhere)
	for _, s := range scoped {
		got += fmt.Sprint(" ", s.Reach.Departments(), s.Permissions)
	}
	if want := "[users:read] [Sales] [shop/a:b shop/c:d] [Ops] [shop/a:b]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
