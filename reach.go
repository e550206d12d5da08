package rolecall

import (
	"slices"
	"strings"
)

// Reach says for which users something holds: all of the tenant, those of some
// departments, or nobody. Departments are compared by folding. The zero Reach is
// nobody.
type Reach struct {
	all         bool
	departments []department // sorted by key, each key once
}

type department struct{ key, name string }

// Everywhere is the reach of the whole tenant.
func Everywhere() Reach { return Reach{all: true} }

// Nowhere is the reach of nobody.
func Nowhere() Reach { return Reach{} }

// Within returns the reach of the users of the departments.
func Within(departments ...string) Reach {
	var r Reach
	for _, name := range departments {
		r.departments = append(r.departments, department{Fold(name), name})
	}
	r.sort()
	return r
}

// IsEverywhere reports whether the reach is the whole tenant.
func (r Reach) IsEverywhere() bool { return r.all }

// IsNowhere reports whether the reach is nobody.
func (r Reach) IsNowhere() bool { return !r.all && len(r.departments) == 0 }

// Departments returns the names of the departments, nil for everywhere and
// nowhere.
func (r Reach) Departments() []string {
	var names []string
	for _, d := range r.departments {
		names = append(names, d.name)
	}
	return names
}

// DepartmentKeys returns the folded names of the departments.
func (r Reach) DepartmentKeys() []string {
	var keys []string
	for _, d := range r.departments {
		keys = append(keys, d.key)
	}
	return keys
}

// Includes reports whether users of the department, nil for none, are within.
func (r Reach) Includes(department *string) bool {
	if r.all {
		return true
	}
	return department != nil && len(r.departments) > 0 && r.has(Fold(*department))
}

func (r Reach) has(key string) bool {
	_, found := slices.BinarySearchFunc(r.departments, key, func(d department, key string) int { return strings.Compare(d.key, key) })
	return found
}

// Covers reports whether everybody within q is within r.
func (r Reach) Covers(q Reach) bool {
	if r.all {
		return true
	}
	return !q.all && !slices.ContainsFunc(q.departments, func(d department) bool { return !r.has(d.key) })
}

// Union returns the reach of those within either.
func (r Reach) Union(q Reach) Reach {
	switch {
	case r.all || q.IsNowhere():
		return r
	case q.all || r.IsNowhere():
		return q
	}
	return UnionOf([]Reach{r, q})
}

// UnionOf returns the reach of those within any of the reaches.
func UnionOf(reaches []Reach) Reach {
	var union Reach
	for _, r := range reaches {
		if r.all {
			return Everywhere()
		}
		union.departments = append(union.departments, r.departments...)
	}
	union.sort()
	return union
}

func (r *Reach) sort() {
	slices.SortStableFunc(r.departments, func(a, b department) int { return strings.Compare(a.key, b.key) })
	r.departments = slices.CompactFunc(r.departments, func(a, b department) bool { return a.key == b.key })
}

// Intersect returns the reach of those within both.
func (r Reach) Intersect(q Reach) Reach {
	if r.all {
		return q
	}
	if q.all {
		return r
	}
	var both Reach
	for _, d := range r.departments {
		if q.has(d.key) {
			both.departments = append(both.departments, d)
		}
	}
	return both
}
