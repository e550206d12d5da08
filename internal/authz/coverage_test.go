package authz_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
)

// TestManyPermissionsTakeNoUnionEach checks a role with 256 permissions. A caller with 200 assignments in 1,000
// departments holds each of them by all assignments together.
func TestManyPermissionsTakeNoUnionEach(t *testing.T) {
	var asked []rolecall.Permission
	for i := range rolecall.RolePermissionsMax {
		asked = append(asked, rolecall.Permission{Application: "shop", Resource: fmt.Sprintf("r%d", i), Action: "read"})
	}
	var assignments []rolecall.Assignment
	var all []string
	for i := range rolecall.AssignmentsMax {
		var names []string
		for j := range rolecall.HolderReachMax / rolecall.AssignmentsMax {
			names = append(names, fmt.Sprintf("Department %d.%d", i, j))
		}
		all = append(all, names...)
		assignments = append(assignments, rolecall.Assignment{Role: rolecall.Role{Permissions: asked}, Reach: rolecall.Within(names...), ExpiresAt: rolecall.Never})
	}
	p := authz.NewPrincipal(rolecall.Tenant{}, rolecall.User{}, rolecall.Session{}, assignments, aMoment)
	within := rolecall.Within(all...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	missing, lacks := p.MissingFor(asked, within, aMoment, false)
	reach := p.CoveredReach(asked, aMoment, false)
	runtime.ReadMemStats(&after)
	if lacks || !reach.Covers(within) || reach.Count() != within.Count() {
		t.Errorf("%s is missing, and %d departments of %d are covered", missing, reach.Count(), within.Count())
	}
	if _, lacks := p.MissingFor(asked, rolecall.Within(append(all, "Other")...), aMoment, false); !lacks {
		t.Error("no permission is missing in another department")
	}
	if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 3 {
		t.Errorf("the checks used %d MiB", used)
	}
}
