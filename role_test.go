package rolecall_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
)

func permissions(texts ...string) []rolecall.Permission {
	list := make([]rolecall.Permission, 0, len(texts))
	for _, text := range texts {
		p, err := rolecall.ParsePermission(text)
		if err != nil {
			panic(text + " " + err.Error())
		}
		list = append(list, p)
	}
	return list
}

func texts(permissions []rolecall.Permission) []string {
	list := make([]string, 0, len(permissions))
	for _, p := range permissions {
		list = append(list, p.String())
	}
	return list
}

func manyPermissions(n int) []string {
	list := make([]string, 0, n)
	for i := range n {
		list = append(list, fmt.Sprintf("shop/resource%d:read", i))
	}
	return list
}

func TestRoleDraft(t *testing.T) {
	type d = rolecall.RoleDraft
	for name, test := range map[string]struct {
		draft d
		want  []string
	}{
		"only a name":           {d{Name: "Support"}, nil},
		"everything":            {d{Key: new("support-2"), Name: "Support", Description: "Helps.", Permissions: []string{"users:read"}, Grants: []string{"shop/*:*"}}, nil},
		"nothing":               {d{}, []string{"/name length"}},
		"longest":               {d{Key: new("k" + strings.Repeat("9", 62)), Name: strings.Repeat("名", 128), Description: strings.Repeat("d", 1024), Permissions: manyPermissions(256)}, nil},
		"too long":              {d{Key: new("k" + strings.Repeat("9", 63)), Name: strings.Repeat("n", 129), Description: strings.Repeat("d", 1025), Permissions: manyPermissions(257)}, []string{"/key format", "/name length", "/description length", "/permissions too-many"}},
		"key":                   {d{Key: new("Support"), Name: "Support"}, []string{"/key format"}},
		"empty key":             {d{Key: new(""), Name: "Support"}, []string{"/key format"}},
		"unknown own":           {d{Name: "Support", Permissions: []string{"users:read", "users:approve"}}, []string{"/permissions/1 unknown-permission"}},
		"own by a wrong action": {d{Name: "Support", Permissions: []string{"users.status:update"}}, []string{"/permissions/0 unknown-permission"}},
		"no permission":         {d{Name: "Support", Permissions: []string{"users"}, Grants: []string{"", "users:*", "a b:c"}}, []string{"/permissions/0 format", "/grants/0 format", "/grants/2 format"}},
	} {
		role, faults := test.draft.Role(aMoment, rolecall.DefaultNameMin)
		if got := codes(faults); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
		if role.ID.IsZero() != (test.want != nil) {
			t.Errorf("%s: id %s", name, role.ID)
		}
	}
}

func TestRolePermissionsAreASet(t *testing.T) {
	draft := rolecall.RoleDraft{Name: "Support", Permissions: []string{"users:read", "shop/invoices:read", "users:read", "roles:read"}}
	role, faults := draft.Role(aMoment, rolecall.DefaultNameMin)
	if faults != nil {
		t.Fatal(faults)
	}
	if got, want := texts(role.Permissions), []string{"roles:read", "shop/invoices:read", "users:read"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if role.Grants == nil {
		t.Error("grants are null, want an empty list")
	}
}

func TestRolePatch(t *testing.T) {
	type p = rolecall.RolePatch
	draft := rolecall.RoleDraft{Name: "Support", Description: "Helps.", Permissions: []string{"roles:read", "users:read"}, Grants: []string{"shop/*:*"}}
	before, faults := draft.Role(aMoment, rolecall.DefaultNameMin)
	if faults != nil {
		t.Fatal(faults)
	}
	for name, test := range map[string]struct {
		patch p
		want  []string
	}{
		"empty":             {p{}, nil},
		"same values":       {p{Name: rolecall.Some("Support"), Permissions: rolecall.Some([]string{"users:read", "roles:read", "users:read"})}, nil},
		"name":              {p{Name: rolecall.Some("Help desk")}, []string{"name"}},
		"empty description": {p{Description: rolecall.Some("")}, []string{"description"}},
		"sets are replaced": {p{Permissions: rolecall.Some([]string{"users:read"}), Grants: rolecall.Some([]string{})}, []string{"permissions", "grants"}},
	} {
		if faults := test.patch.Check(rolecall.DefaultNameMin); faults != nil {
			t.Fatalf("%s: %v", name, faults)
		}
		after, changed := test.patch.Apply(before, aMoment-1)
		if !slices.Equal(changed, test.want) {
			t.Errorf("%s: changed %q, want %q", name, changed, test.want)
		}
		if (after.Version > before.Version) != (test.want != nil) || (after.UpdatedAt > before.UpdatedAt) != (test.want != nil) {
			t.Errorf("%s: version %d at %d", name, after.Version, after.UpdatedAt)
		}
	}
	bad := p{Name: rolecall.Some("ab"), Permissions: rolecall.Some([]string{"users"}), Grants: rolecall.Some([]string{"users:fly"})}
	if got, want := codes(bad.Check(rolecall.DefaultNameMin)), []string{"/name length", "/permissions/0 format", "/grants/0 unknown-permission"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestBuiltInRoles(t *testing.T) {
	roles := rolecall.BuiltInRoles(aMoment)
	if len(roles) != 3 {
		t.Fatalf("%d roles, want 3", len(roles))
	}
	owner, administrator, viewer := roles[0], roles[1], roles[2]
	if *owner.Key != rolecall.OwnerKey || !owner.System || administrator.System || viewer.System {
		t.Error("only the first is Owner, and only Owner is a system role")
	}
	for _, p := range append(rolecall.OwnPermissions(), permissions("shop/invoices:approve", "*/*:*")...) {
		if !covered(owner.Permissions, p) {
			t.Errorf("Owner does not hold %s", p)
		}
		ofOwners := slices.Contains([]rolecall.Permission{rolecall.TenantUpdate, rolecall.ConnectionsCreate, rolecall.ConnectionsUpdate, rolecall.ConnectionsDelete}, p)
		wanted := p.Own() && !ofOwners
		if covered(administrator.Permissions, p) != wanted {
			t.Errorf("Administrator holds %s: %v", p, !wanted)
		}
		if grantable := !ofOwners; covered(administrator.Grants, p) != grantable {
			t.Errorf("Administrator may hand on %s: %v", p, !grantable)
		}
	}
	if got, want := texts(viewer.Permissions), []string{"roles:read", "users:read"}; !slices.Equal(got, want) {
		t.Errorf("Viewer holds %q, want %q", got, want)
	}
}

func covered(held []rolecall.Permission, p rolecall.Permission) bool {
	return slices.ContainsFunc(held, func(h rolecall.Permission) bool { return h.Covers(p) })
}
