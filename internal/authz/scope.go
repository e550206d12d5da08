package authz

import (
	"slices"
	"strings"

	"github.com/rolecall/rolecall"
)

// Scope has the permissions that a principal holds for the users of some departments.
type Scope struct {
	Reach       rolecall.Reach
	Permissions []rolecall.Permission // sorted by text, each once
}

// Scopes returns the permissions of the principal. The list everywhere has those for the whole tenant,
// sorted by text. scoped has one Scope for each different reach of the assignments, without the
// permissions in everywhere. A permission can be in several scopes. Reaches are not united, because the
// union of each permission could be much larger than the assignments. Callers must not change the
// lists, because all calls return the same slices.
func (p *Principal) Scopes() (everywhere []rolecall.Permission, scoped []Scope) { return p.scopes() }

func scopesOf(assignments []rolecall.Assignment) (everywhere []rolecall.Permission, scoped []Scope) {
	whole, at := map[rolecall.Permission]bool{}, map[string]int{}
	for _, a := range assignments {
		if a.Reach.IsEverywhere() {
			for _, permission := range a.Role.Permissions {
				whole[permission] = true
			}
			everywhere = append(everywhere, a.Role.Permissions...)
		}
	}
	for _, a := range assignments {
		effective := slices.DeleteFunc(slices.Clone(a.Role.Permissions), func(permission rolecall.Permission) bool {
			return whole[permission] || !permission.CountsWithin()
		})
		if a.Reach.IsEverywhere() || len(effective) == 0 {
			continue
		}
		key := strings.Join(a.Reach.DepartmentKeys(), "\x00")
		i, seen := at[key]
		if !seen {
			i = len(scoped)
			at[key] = i
			scoped = append(scoped, Scope{Reach: a.Reach})
		}
		scoped[i].Permissions = append(scoped[i].Permissions, effective...)
	}
	for i := range scoped {
		scoped[i].Permissions = rolecall.NormalPermissions(scoped[i].Permissions)
	}
	return rolecall.NormalPermissions(everywhere), scoped
}
