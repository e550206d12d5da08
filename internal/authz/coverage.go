package authz

import (
	"math/bits"

	"github.com/rolecall/rolecall"
)

// coverage computes which departments of a reach the assignments of a principal cover. It translates the reach of
// each assignment to bits once. A union for each permission would sort the departments of all assignments again.
type coverage struct {
	index map[string]int // number of each department, by its key
	bits  map[*rolecall.Assignment][]uint64
	union []uint64 // the result of covered
}

func newCoverage(reach rolecall.Reach) *coverage {
	c := &coverage{index: map[string]int{}, bits: map[*rolecall.Assignment][]uint64{}}
	for i, key := range reach.DepartmentKeys() {
		c.index[key] = i
	}
	c.union = make([]uint64, (len(c.index)+63)/64)
	return c
}

func (c *coverage) bitsOf(a *rolecall.Assignment) []uint64 {
	set, known := c.bits[a]
	if !known {
		set = make([]uint64, len(c.union))
		for _, key := range a.Reach.DepartmentKeys() {
			if i, ok := c.index[key]; ok {
				set[i/64] |= 1 << (i % 64)
			}
		}
		c.bits[a] = set
	}
	return set
}

// covered returns the departments in which the principal's assignments give the permission, at least until the
// given time. If grants is true, assignments whose role only grants the permission count too. If everywhere is
// true, the assignments give the permission in the whole tenant. The departments are valid until the next call.
func (c *coverage) covered(p *Principal, permission rolecall.Permission, until rolecall.Time, grants bool) (departments []uint64, everywhere bool) {
	clear(c.union)
	for a, onlyGrants := range p.holdings(permission) {
		if a.ExpiresAt < until || onlyGrants && !grants {
			continue
		}
		if a.Reach.IsEverywhere() {
			return nil, true
		}
		for i, word := range c.bitsOf(a) {
			c.union[i] |= word
		}
	}
	return c.union, false
}

// MissingFor returns the first of the permissions that the principal lacks. The principal
// must hold each permission for all users in the reach within, and at least until the given
// time. If grants is true, it is also enough if the principal may grant the permission to
// others. The second result is false if no permission is missing.
func (p *Principal) MissingFor(permissions []rolecall.Permission, within rolecall.Reach, until rolecall.Time, grants bool) (rolecall.Permission, bool) {
	c := newCoverage(within)
	for _, permission := range permissions {
		if !p.allows(permission) {
			return permission, true
		}
		departments, everywhere := c.covered(p, permission, until, grants)
		if !everywhere && (within.IsEverywhere() || count(departments) < within.Count()) {
			return permission, true
		}
	}
	return rolecall.Permission{}, false
}

func count(set []uint64) (n int) {
	for _, word := range set {
		n += bits.OnesCount64(word)
	}
	return n
}

// CoveredReach returns the widest reach in which the principal holds all of the
// permissions, at least until the given time. If grants is true, it is also enough if the
// principal may grant a permission to others.
func (p *Principal) CoveredReach(permissions []rolecall.Permission, until rolecall.Time, grants bool) rolecall.Reach {
	var limited []rolecall.Reach
	for i := range p.Assignments {
		if reach := p.Assignments[i].Reach; !reach.IsEverywhere() {
			limited = append(limited, reach)
		}
	}
	all := rolecall.UnionOf(limited)
	c := newCoverage(all)
	var common []uint64 // nil for the whole tenant
	for _, permission := range permissions {
		if !p.allows(permission) {
			return rolecall.Nowhere()
		}
		departments, everywhere := c.covered(p, permission, until, grants)
		switch {
		case everywhere:
		case common == nil:
			common = append([]uint64{}, departments...)
		default:
			for i, word := range departments {
				common[i] &= word
			}
		}
	}
	if common == nil {
		return rolecall.Everywhere()
	}
	var names []string
	for i, name := range all.Departments() {
		if common[i/64]&(1<<(i%64)) != 0 {
			names = append(names, name)
		}
	}
	return rolecall.Within(names...)
}
