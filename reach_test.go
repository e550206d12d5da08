package rolecall_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/rolecall/rolecall"
)

// departmentNames hold several spellings of one department, so that the laws are
// tried on folding too.
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

func TestReachKnowsDepartmentsByFolding(t *testing.T) {
	r := rolecall.Within("Sales", "SALES", "Édition")
	if got, want := r.DepartmentKeys(), []string{"edition", "sales"}; !slices.Equal(got, want) {
		t.Errorf("keys %q, want %q", got, want)
	}
	if got, want := r.Departments(), []string{"Édition", "Sales"}; !slices.Equal(got, want) {
		t.Errorf("names %q, want %q", got, want)
	}
	for department, want := range map[string]bool{"sales": true, "ÉDITION": true, "Sales Ops": false, "": false} {
		if r.Includes(&department) != want {
			t.Errorf("includes %q: %v", department, !want)
		}
	}
}

// Users without a department are reached only by what reaches everybody.
func TestNoDepartment(t *testing.T) {
	if rolecall.Within("Sales").Includes(nil) || rolecall.Nowhere().Includes(nil) || !rolecall.Everywhere().Includes(nil) {
		t.Error("a user without a department is within departments")
	}
	if empty := ""; rolecall.Nowhere().Includes(&empty) {
		t.Error("nowhere includes somebody")
	}
}
