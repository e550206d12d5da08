package authz_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
)

// holds describes one assignment: its permissions, its grants, its departments and its
// expiry.
type holds struct {
	permissions string
	grants      string
	within      []string // nil: everywhere
	until       rolecall.Time
}

func (h holds) assignment() rolecall.Assignment {
	draft := rolecall.AssignmentDraft{Departments: h.within}
	a := rolecall.Assignment{
		Role: rolecall.Role{
			ID: rolecall.NewID[rolecall.Role](1), Name: h.permissions, Permissions: permissions(strings.Fields(h.permissions)...),
			Grants: permissions(strings.Fields(h.grants)...),
		},
		Reach: draft.Reach(), ExpiresAt: h.until,
	}
	if h.until == 0 {
		a.ExpiresAt = rolecall.Never
	}
	return a
}

// myself is the user of every principal here.
var myself = rolecall.User{ID: rolecall.NewID[rolecall.User](aMoment), Name: "Ada", Department: new("Legal")}

func principal(held ...holds) *authz.Principal {
	var assignments []rolecall.Assignment
	for _, h := range held {
		assignments = append(assignments, h.assignment())
	}
	return authz.NewPrincipal(rolecall.Tenant{}, myself, rolecall.Session{}, assignments, aMoment)
}

func aUser(department string) *rolecall.User {
	u := rolecall.User{ID: rolecall.NewID[rolecall.User](aMoment), Name: "Eve"}
	if department != "" {
		u.Department = &department
	}
	return &u
}

func TestReadableMembersDependOnTheDepartment(t *testing.T) {
	p := principal(
		holds{permissions: "users.name:read"},
		holds{permissions: "users:read", within: []string{"Sales"}},
		holds{permissions: "users.email:read", within: []string{"Support"}},
		holds{permissions: "users.status:read", until: aMoment}, // expired
	)
	for department, want := range map[string]string{
		"Sales":   "email name department externalId metadata status managedBy createdAt updatedAt",
		"SALES":   "email name department externalId metadata status managedBy createdAt updatedAt",
		"Support": "email name",
		"Legal":   "name",
		"":        "name",
	} {
		u := aUser(department)
		if got := strings.Join(p.ReadableMembers(u).Names(), " "); got != want || !p.Sees(u) {
			t.Errorf("of users of %q it sees %q, want %q", department, got, want)
		}
	}
	if p.ReadsEverything() {
		t.Error("it reads everything")
	}
	if everything := principal(holds{permissions: "users.*:read"}); !everything.ReadsEverything() {
		t.Error("users.*:read does not read everything")
	}
}

func TestUsersReadAllOwnMembers(t *testing.T) {
	p := principal()
	if p.ReadableMembers(&myself) != rolecall.AllUserMembers || !p.Sees(&myself) {
		t.Errorf("without any role it sees %q of itself", p.ReadableMembers(&myself).Names())
	}
	if p.ReadableListMembers(&myself) != 0 {
		t.Errorf("in a list it sees %q of itself", p.ReadableListMembers(&myself).Names())
	}
}

// A permission on users, such as users:delete, makes the users in its reach visible. Other
// permissions, such as roles:read, make no users visible.
func TestVisibility(t *testing.T) {
	for permission, visible := range map[string]bool{
		"users:read": true, "users.email:read": true, "users:update": true, "users.name:update": true, "users:create": true,
		"users:delete": true, "users:suspend": true, "users:invite": true, "users:*": true, "*:delete": true, "*:*": true,
		"roles:assign": false, "roles:read": false, "sessions:revoke": false, "events:read": false, "*/*:*": false, "shop/users:read": false,
	} {
		p := principal(holds{permissions: permission, within: []string{"Sales"}})
		if got := p.Sees(aUser("sales")); got != visible {
			t.Errorf("%s: sees users of its department: %v", permission, got)
		}
		if p.Sees(aUser("Legal")) || p.Sees(aUser("")) {
			t.Errorf("%s: sees users of other departments", permission)
		}
	}
}

func TestReachOfAPermission(t *testing.T) {
	for _, test := range []struct {
		name  string
		held  []holds
		asked string
		want  string // "everywhere", "nowhere", or names of departments
	}{
		{"nothing held", nil, "users:read", "nowhere"},
		{"everywhere", []holds{{permissions: "users:read"}}, "users.email:read", "everywhere"},
		{"within", []holds{{permissions: "users:read", within: []string{"Sales"}}}, "users.email:read", "Sales"},
		{"joined", []holds{{permissions: "users:read", within: []string{"Sales"}}, {permissions: "users.*:read", within: []string{"Support"}}}, "users.email:read", "Sales Support"},
		{"everywhere wins", []holds{{permissions: "users:read", within: []string{"Sales"}}, {permissions: "*:*"}}, "users:read", "everywhere"},
		{"a member is not the whole", []holds{{permissions: "users.email:read"}}, "users:read", "nowhere"},
		{"over", []holds{{permissions: "users:read", until: aMoment}}, "users:read", "nowhere"},
		{"not yet over", []holds{{permissions: "users:read", until: aMoment + 1}}, "users:read", "everywhere"},
		{"assigning within", []holds{{permissions: "*:*", within: []string{"Sales"}}}, "roles:assign", "Sales"},
		{"sessions within", []holds{{permissions: "sessions:*", within: []string{"Sales"}}}, "sessions:revoke", "Sales"},
		{"reading roles within", []holds{{permissions: "roles:read", within: []string{"Sales"}}}, "roles:read", "Sales"},
		{"creating roles within", []holds{{permissions: "*:*", within: []string{"Sales"}}}, "roles:create", "nowhere"},
		{"changing roles within", []holds{{permissions: "*:*", within: []string{"Sales"}}}, "roles:update", "nowhere"},
		{"the tenant within", []holds{{permissions: "*:*", within: []string{"Sales"}}}, "tenant:update", "nowhere"},
		{"events within", []holds{{permissions: "events:read", within: []string{"Sales"}}}, "events:read", "nowhere"},
		{"an application within", []holds{{permissions: "shop/*:*", within: []string{"Sales"}}}, "shop/invoices:approve", "Sales"},
		{"no application", []holds{{permissions: "*:*"}}, "shop/invoices:approve", "nowhere"},
	} {
		reach := principal(test.held...).Reach(permissions(test.asked)[0])
		if got := reachText(reach); got != test.want {
			t.Errorf("%s: %s holds %s, want %s", test.name, test.asked, got, test.want)
		}
	}
}

func reachText(r rolecall.Reach) string {
	switch {
	case r.IsEverywhere():
		return "everywhere"
	case r.IsNowhere():
		return "nowhere"
	}
	return strings.Join(r.Departments(), " ")
}

func TestPrincipalIsValidUntilAnAssignmentEnds(t *testing.T) {
	p := principal(holds{permissions: "users:read", until: aMoment - 1}, holds{permissions: "users:read", until: aMoment + 9}, holds{permissions: "roles:read", until: aMoment + 5}, holds{permissions: "*:*"})
	if p.ValidUntil != aMoment+5 {
		t.Errorf("valid until %d, want %d", p.ValidUntil, aMoment+5)
	}
	if len(p.Assignments) != 3 {
		t.Errorf("%d live assignments, want 3", len(p.Assignments))
	}
	if forever := principal(holds{permissions: "*:*"}); forever.ValidUntil != rolecall.Never {
		t.Errorf("valid until %d, want never to end", forever.ValidUntil)
	}
}

func TestMissingFor(t *testing.T) {
	sales := []string{"Sales"}
	for _, test := range []struct {
		name    string
		held    []holds
		asked   string
		within  []string
		until   rolecall.Time
		grants  bool
		missing string
	}{
		{"nothing asked", nil, "", nil, rolecall.Never, false, ""},
		{"held", []holds{{permissions: "*:*"}}, "users:read roles:assign", nil, rolecall.Never, false, ""},
		{"the first that is missing", []holds{{permissions: "users:*"}}, "users:read roles:read tenant:read", nil, rolecall.Never, false, "roles:read"},
		{"held within, asked within", []holds{{permissions: "users:read", within: sales}}, "users:read", sales, rolecall.Never, false, ""},
		{"held within, asked everywhere", []holds{{permissions: "users:read", within: sales}}, "users:read", nil, rolecall.Never, false, "users:read"},
		{"held within, asked elsewhere", []holds{{permissions: "users:read", within: sales}}, "users:read", []string{"Sales", "Legal"}, rolecall.Never, false, "users:read"},
		{"held within by two", []holds{{permissions: "users:read", within: sales}, {permissions: "users:*", within: []string{"Legal"}}}, "users:read", []string{"Legal", "Sales"}, rolecall.Never, false, ""},
		{"held for as long", []holds{{permissions: "users:read", until: aMoment + 5}}, "users:read", nil, aMoment + 5, false, ""},
		{"held for less long", []holds{{permissions: "users:read", until: aMoment + 5}}, "users:read", nil, aMoment + 6, false, "users:read"},
		{"held for less long than for ever", []holds{{permissions: "users:read", until: aMoment + 5}}, "users:read", nil, rolecall.Never, false, "users:read"},
		{"only granted", []holds{{grants: "shop/*:*"}}, "shop/invoices:approve", nil, rolecall.Never, false, "shop/invoices:approve"},
		{"granted", []holds{{grants: "shop/*:*"}}, "shop/invoices:approve", nil, rolecall.Never, true, ""},
		{"a wildcard needs a wildcard", []holds{{permissions: "users:read users:update users:delete"}}, "users:*", nil, rolecall.Never, true, "users:*"},
		{"a member needs the member", []holds{{permissions: "users.name:read"}}, "users:read", nil, rolecall.Never, true, "users:read"},
	} {
		draft := rolecall.AssignmentDraft{Departments: test.within}
		missing, is := principal(test.held...).MissingFor(permissions(strings.Fields(test.asked)...), draft.Reach(), test.until, test.grants)
		if got := missing.String(); is != (test.missing != "") || is && got != test.missing {
			t.Errorf("%s: missing %q (%v), want %q", test.name, got, is, test.missing)
		}
	}
}

// MissingFor must find a missing permission if and only if Reach returns a reach that does
// not contain the whole given reach.
func TestMissingForAgreesWithReach(t *testing.T) {
	some := rapid.SampledFrom([]string{"users:read", "users.name:read", "users:*", "sessions:revoke", "roles:assign", "shop/invoices:read", "shop/*:*"})
	rapid.Check(t, func(t *rapid.T) {
		held := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) holds {
			h := holds{permissions: some.Draw(t, "held")}
			if rapid.Bool().Draw(t, "scoped") {
				h.within = rapid.SliceOfN(departmentNames, 1, 3).Draw(t, "within")
			}
			return h
		}), 0, 4).Draw(t, "assignments")
		asked := permissions(some.Draw(t, "asked"))
		within := reaches.Draw(t, "where")
		p := principal(held...)
		_, missing := p.MissingFor(asked, within, rolecall.Never, false)
		if asked[0].Action != "*" && missing == p.Reach(asked[0]).Covers(within) {
			t.Errorf("%s within %v: missing %v, held within %v", asked[0], within, missing, p.Reach(asked[0]))
		}
	})
}

func TestGrants(t *testing.T) {
	p := principal(
		holds{permissions: "users:read shop/invoices:read"},
		holds{permissions: "users:read users:update tenant:update", within: []string{"Sales"}},
		holds{permissions: "users:update *:*", within: []string{"Support"}},
		holds{permissions: "roles:read", until: aMoment},
	)
	everywhere, scoped, _ := p.Grants()
	if got, want := texts(everywhere), []string{"shop/invoices:read", "users:read"}; !slices.Equal(got, want) {
		t.Errorf("everywhere %q, want %q", got, want)
	}
	var got []string
	for _, g := range scoped {
		got = append(got, g.Permission.String()+" in "+reachText(g.Reach))
	}
	// tenant:update is not about users, so it has no effect in a reach of
	// departments.
	if want := []string{"*:* in Support", "users:update in Sales Support"}; !slices.Equal(got, want) {
		t.Errorf("scoped %q, want %q", got, want)
	}
}

func TestGrantsHaveTheirRoles(t *testing.T) {
	several := holds{permissions: "users:read roles:read"}.assignment() // held directly and through a group
	grants, _ := authz.GrantsOf([]rolecall.Assignment{
		holds{permissions: "users:read"}.assignment(), several, several,
	})
	var got []string
	for _, g := range grants {
		for _, role := range g.Roles {
			got = append(got, g.Permission.String()+" by "+role.Name)
		}
	}
	if want := []string{"roles:read by users:read roles:read", "users:read by users:read", "users:read by users:read roles:read"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestCoveredReachAgreesWithMissing checks that MissingFor finds no missing permission in
// the result of CoveredReach, and finds one in any wider reach.
func TestCoveredReachAgreesWithMissing(t *testing.T) {
	somePermissions := rapid.SliceOfN(anyPermission, 1, 4)
	ends := rapid.SampledFrom([]rolecall.Time{aMoment + 1, aMoment + 2, rolecall.Never})
	rapid.Check(t, func(t *rapid.T) {
		var assignments []rolecall.Assignment
		for range rapid.IntRange(0, 3).Draw(t, "assignments") {
			assignments = append(assignments, rolecall.Assignment{
				Role:  rolecall.Role{Permissions: somePermissions.Draw(t, "held"), Grants: somePermissions.Draw(t, "granted")},
				Reach: reaches.Draw(t, "where"), ExpiresAt: ends.Draw(t, "end"),
			})
		}
		p := authz.NewPrincipal(rolecall.Tenant{}, rolecall.User{}, rolecall.Session{}, assignments, aMoment)
		asked, until, grants := somePermissions.Draw(t, "asked"), ends.Draw(t, "until"), rapid.Bool().Draw(t, "grants")
		within := reaches.Draw(t, "within")
		_, missing := p.MissingFor(asked, within, until, grants)
		if got := p.CoveredReach(asked, until, grants); got.Covers(within) == missing {
			t.Errorf("%s is covered, and within %s something is missing: %v", reachText(got), reachText(within), missing)
		}
	})
}

func TestTheSizeOfAPrincipalGrowsWithItsRoles(t *testing.T) {
	now := rolecall.Time(1_800_000_000_000_000)
	roles := rolecall.BuiltInRoles(now)
	everywhere := rolecall.Everywhere()
	size := func(n int, reach rolecall.Reach) int {
		var held []rolecall.Assignment
		for range n {
			held = append(held, rolecall.Assignment{Role: roles[1], Reach: reach, ExpiresAt: rolecall.Never})
		}
		return authz.NewPrincipal(rolecall.Tenant{}, rolecall.User{}, rolecall.Session{}, held, now).Size()
	}
	if none, one, many := size(0, everywhere), size(1, everywhere), size(100, everywhere); none < 1000 || one < none+1000 || many < 90*(one-none) {
		t.Errorf("the sizes are %d, %d and %d", none, one, many)
	}
	var departments []string
	for i := range rolecall.ReachDepartmentsMax {
		departments = append(departments, fmt.Sprint(i, strings.Repeat("x", 200)))
	}
	if wide, limited := size(1, everywhere), size(1, rolecall.Within(departments...)); limited < wide+len(departments)*2*200 {
		t.Errorf("with long names of departments, the size is %d, and without them %d", limited, wide)
	}
}

func TestValueRightsDifferIfOtherValuesCanBeRead(t *testing.T) {
	tenant := rolecall.Tenant{ID: rolecall.NewID[rolecall.Tenant](aMoment)}
	user, other := rolecall.NewID[rolecall.User](aMoment), rolecall.NewID[rolecall.User](aMoment)
	rights := func(id rolecall.UserID, reach rolecall.Reach, texts ...string) string {
		role := rolecall.Role{Permissions: permissions(texts...)}
		assignments := []rolecall.Assignment{{Role: role, Reach: reach, ExpiresAt: rolecall.Never}}
		return string(authz.ValueRights(authz.NewPrincipal(tenant, rolecall.User{ID: id}, rolecall.Session{}, assignments, aMoment)))
	}
	everywhere := rolecall.Everywhere()
	base := rights(user, everywhere, "changes:read", "users.name:read")
	for name, same := range map[string]string{
		"a permission that shows no values":           rights(user, everywhere, "changes:read", "users.name:read", "users:delete", "shop/a:b"),
		"a permission on groups that shows no values": rights(user, everywhere, "changes:read", "users.name:read", "groups:members"),
		"another way to read the same":                rights(user, everywhere, "changes:read", "*.name:read"),
	} {
		if same != base {
			t.Errorf("%s changes the rights", name)
		}
	}
	seen := map[string]string{"the base": base}
	for name, different := range map[string]string{
		"another member":        rights(user, everywhere, "changes:read", "users.email:read"),
		"one more member":       rights(user, everywhere, "changes:read", "users.name:read", "users.email:read"),
		"only some departments": rights(user, rolecall.Within("Sales"), "users.name:read"),
		"another department":    rights(user, rolecall.Within("Support"), "users.name:read"),
		"two departments":       rights(user, rolecall.Within("Sales", "Support"), "users.name:read"),
		"assignments":           rights(user, everywhere, "users.name:read", "roles:read"),
		"groups":                rights(user, everywhere, "users.name:read", "groups:read"),
		"tokens":                rights(user, everywhere, "users.name:read", "sessions:read"),
		"service accounts":      rights(user, everywhere, "users.name:read", "service-accounts:read"),
		"the tenant":            rights(user, everywhere, "users.name:read", "tenant:read"),
		"deleted users":         rights(user, everywhere, "users.name:read", "users:restore"),
		"another user":          rights(other, everywhere, "users.name:read"),
	} {
		for known, rights := range seen {
			if rights == different {
				t.Errorf("%s: the same as %s", name, known)
			}
		}
		seen[name] = different
	}
}
