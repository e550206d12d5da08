package rolecall_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/rolecall/rolecall"
)

func TestParsePermission(t *testing.T) {
	type p = rolecall.Permission
	long := "a" + strings.Repeat("b", 63)
	for text, want := range map[string]p{
		"users:read":                              {Resource: "users", Action: "read"},
		"users.externalId:read":                   {Resource: "users", Field: "externalId", Action: "read"},
		"shop/invoices:approve":                   {Application: "shop", Resource: "invoices", Action: "approve"},
		"shop/invoices.total:read":                {Application: "shop", Resource: "invoices", Field: "total", Action: "read"},
		"*:*":                                     {Resource: "*", Action: "*"},
		"*/*.*:*":                                 {Application: "*", Resource: "*", Field: "*", Action: "*"},
		"a/b_c-1.d:e":                             {Application: "a", Resource: "b_c-1", Field: "d", Action: "e"},
		long + "/" + long + ":" + long:            {Application: long, Resource: long, Action: long},
		strings.Repeat("a", 64) + ":" + "b":       {Resource: strings.Repeat("a", 64), Action: "b"},
		"shop/" + long + "." + long + ":" + "cde": {Application: "shop", Resource: long, Field: long, Action: "cde"},
	} {
		got, err := rolecall.ParsePermission(text)
		if err != nil || got != want {
			t.Errorf("ParsePermission(%q) = %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", ":", "users", "users:", ":read", "users.:read", ".email:read", "/users:read", "shop/:read", "shop/users", "a/b/c:d",
		"users:read:write", "users.a.b:read", "Users:read", "users:Read", "1users:read", "_users:read", "users:re ad", " users:read",
		"users:read\n", "usérs:read", "users*:read", "**:read", "u*:read", "users.e*:read", long + "b:read",
		long + "/" + long + "." + long + ":" + long, // each part fits, together they have 259 characters
	} {
		if got, err := rolecall.ParsePermission(text); err == nil || got != (p{}) {
			t.Errorf("ParsePermission(%q) = %+v, %v, want an error", text, got, err)
		}
	}
}

func FuzzParsePermission(f *testing.F) {
	f.Add("shop/invoices.total:approve")
	f.Add("*/*.*:*")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := rolecall.ParsePermission(text)
		if err == nil && p.String() != text {
			t.Errorf("%q is read as %q", text, p)
		}
		if err == nil && !p.Covers(p) {
			t.Errorf("%q does not cover itself", text)
		}
	})
}

var permissionTable = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| `([^`]+)` \\| (yes|no) \\|$")

// The table of docs/permissions.md that says which permission covers which must be true.
func TestPublishedCasesOfCovering(t *testing.T) {
	page, err := os.ReadFile("docs/permissions.md")
	if err != nil {
		t.Fatal(err)
	}
	cases := permissionTable.FindAllStringSubmatch(string(page), -1)
	if len(cases) < 40 {
		t.Fatalf("%d cases, want all of them", len(cases))
	}
	for _, row := range cases {
		held, heldErr := rolecall.ParsePermission(row[1])
		asked, askedErr := rolecall.ParsePermission(row[2])
		if heldErr != nil || askedErr != nil {
			t.Errorf("%s: %v, %v", row[0], heldErr, askedErr)
		} else if got := held.Covers(asked); got != (row[3] == "yes") {
			t.Errorf("%s covers %s: %v, published is %s", held, asked, got, row[3])
		}
	}
}

func TestOwnPermissionsHaveWords(t *testing.T) {
	for _, p := range append(rolecall.OwnPermissions(), rolecall.AllOwn, rolecall.AllApplications) {
		if p.Opens() == "" {
			t.Errorf("%s has no words in opens of permission.go", p)
		}
	}
}

func TestKnownPermissions(t *testing.T) {
	for text, want := range map[string]bool{
		"users:read": true, "users.email:read": true, "users.name:update": true, "users:*": true, "*:*": true, "*:read": true,
		"users.*:read": true, "*.email:read": true, "*.*:*": true, "roles:assign": true, "tenant:update": true,
		"shop/invoices:approve": true, "*/*:*": true, "*/nonsense:fly": true,
		"users.email:update": true, "users.status:update": false, "users.id:read": false, "users.salary:read": false, "users:approve": false, "user:read": false,
		"roles.name:read": false, "tenant:delete": false, "*:approve": false, "invoices:*": false,
	} {
		if got := permissions(text)[0].Known(); got != want {
			t.Errorf("%s is known: %v", text, got)
		}
	}
}

var anyPermission = rapid.Custom(func(t *rapid.T) rolecall.Permission {
	return rolecall.Permission{
		Application: rapid.SampledFrom([]string{"", "", "*", "shop"}).Draw(t, "application"),
		Resource:    rapid.SampledFrom([]string{"*", "users", "roles"}).Draw(t, "resource"),
		Field:       rapid.SampledFrom([]string{"", "*", "email", "name"}).Draw(t, "field"),
		Action:      rapid.SampledFrom([]string{"*", "read", "update"}).Draw(t, "action"),
	}
})

func TestCoveringIsAnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, q, r := anyPermission.Draw(t, "p"), anyPermission.Draw(t, "q"), anyPermission.Draw(t, "r")
		if !p.Covers(p) {
			t.Errorf("%s does not cover itself", p)
		}
		if p.Covers(q) && q.Covers(r) && !p.Covers(r) {
			t.Errorf("%s covers %s, and that %s", p, q, r)
		}
		if p.Covers(q) && p.Own() != q.Own() {
			t.Errorf("%s covers %s across applications", p, q)
		}
		if read, err := rolecall.ParsePermission(p.String()); err != nil || read != p {
			t.Errorf("%s is read as %s, %v", p, read, err)
		}
	})
}

// TestMeetCoversWhatBothCover checks that the intersection of two permissions covers
// exactly the permissions that both cover.
func TestMeetCoversWhatBothCover(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, q, asked := anyPermission.Draw(t, "p"), anyPermission.Draw(t, "q"), anyPermission.Draw(t, "asked")
		both, ok := p.Meet(q)
		if got, want := ok && both.Covers(asked), p.Covers(asked) && q.Covers(asked); got != want {
			t.Fatalf("%s and %s have %s (%v) in common: covers %s is %v", p, q, both, ok, asked, got)
		}
	})
}

// departmentNames has different spellings of the same departments, because reaches compare
// folded names.
var departmentNames = rapid.SampledFrom([]string{"Sales", "SALES", "sáles", "Support", "Legal", "légal", "Research"})

var reaches = rapid.Custom(func(t *rapid.T) rolecall.Reach {
	switch rapid.IntRange(0, 5).Draw(t, "kind") {
	case 0:
		return rolecall.Everywhere()
	case 1:
		return rolecall.Nowhere()
	default:
		return rolecall.Within(rapid.SliceOfN(departmentNames, 0, 4).Draw(t, "departments")...)
	}
})

func same(r, q rolecall.Reach) bool {
	return r.IsEverywhere() == q.IsEverywhere() && slices.Equal(r.DepartmentKeys(), q.DepartmentKeys())
}

func TestReachIsAnAlgebraOfSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, q, s := reaches.Draw(t, "r"), reaches.Draw(t, "q"), reaches.Draw(t, "s")
		for law, holds := range map[string]bool{
			"union is commutative":               same(r.Union(q), q.Union(r)),
			"union is associative":               same(r.Union(q).Union(s), r.Union(q.Union(s))),
			"union is idempotent":                same(r.Union(r), r),
			"union with nowhere":                 same(r.Union(rolecall.Nowhere()), r),
			"union with everywhere":              r.Union(rolecall.Everywhere()).IsEverywhere(),
			"intersection is commutative":        same(r.Intersect(q), q.Intersect(r)),
			"intersection is associative":        same(r.Intersect(q).Intersect(s), r.Intersect(q.Intersect(s))),
			"intersection is idempotent":         same(r.Intersect(r), r),
			"intersection with everywhere":       same(r.Intersect(rolecall.Everywhere()), r),
			"intersection with nowhere":          r.Intersect(rolecall.Nowhere()).IsNowhere(),
			"absorption":                         same(r.Union(r.Intersect(q)), r) && same(r.Intersect(r.Union(q)), r),
			"distribution":                       same(r.Intersect(q.Union(s)), r.Intersect(q).Union(r.Intersect(s))),
			"covering is reflexive":              r.Covers(r),
			"covering is transitive":             !r.Covers(q) || !q.Covers(s) || r.Covers(s),
			"covering is antisymmetric":          !r.Covers(q) || !q.Covers(r) || same(r, q),
			"a union covers its parts":           r.Union(q).Covers(r) && r.Union(q).Covers(q),
			"parts cover their intersection":     r.Covers(r.Intersect(q)) && q.Covers(r.Intersect(q)),
			"covering is being the union":        r.Covers(q) == same(r.Union(q), r),
			"nowhere and everywhere are not one": !(r.IsNowhere() && r.IsEverywhere()),
		} {
			if !holds {
				t.Errorf("%s: r %v, q %v, s %v", law, r, q, s)
			}
		}
	})
}

func TestReachIncludes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, q := reaches.Draw(t, "r"), reaches.Draw(t, "q")
		d := rapid.Ptr(departmentNames, true).Draw(t, "department")
		if r.Union(q).Includes(d) != (r.Includes(d) || q.Includes(d)) {
			t.Errorf("union of %v and %v", r, q)
		}
		if r.Intersect(q).Includes(d) != (r.Includes(d) && q.Includes(d)) {
			t.Errorf("intersection of %v and %v", r, q)
		}
		if r.Covers(q) && q.Includes(d) && !r.Includes(d) {
			t.Errorf("%v covers %v", r, q)
		}
	})
}

func TestReachComparesKeysOfDepartments(t *testing.T) {
	r := rolecall.Within("Sales", "SALES", "Édition")
	if got, want := r.DepartmentKeys(), []string{"sales", "édition"}; !slices.Equal(got, want) {
		t.Errorf("keys %q, want %q", got, want)
	}
	if got, want := r.Departments(), []string{"Sales", "Édition"}; !slices.Equal(got, want) {
		t.Errorf("names %q, want %q", got, want)
	}
	for department, want := range map[string]bool{"sales": true, "ÉDITION": true, "Edition": false, "Sales Ops": false, "": false} {
		if r.Includes(&department) != want {
			t.Errorf("includes %q: %v", department, !want)
		}
	}
}

// A user without a department must be in the reach Everywhere and in no other reach.
func TestNoDepartment(t *testing.T) {
	if rolecall.Within("Sales").Includes(nil) || rolecall.Nowhere().Includes(nil) || !rolecall.Everywhere().Includes(nil) {
		t.Error("a user without a department is within departments")
	}
	if empty := ""; rolecall.Nowhere().Includes(&empty) {
		t.Error("nowhere includes somebody")
	}
}
