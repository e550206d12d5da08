package e2e

import (
	"slices"
	"strings"
)

// This file is the oracle of the matrix: it computes the expected authorization from the rules
// of the API. To be independent, it shares no code with the program.

// holding is a permission for the users of a department. An empty department means the whole
// tenant.
type holding struct{ permission, department string }

// principal is a user or program that sends requests.
type principal struct {
	*caller
	name       string
	department string
	holds      []holding
	grants     []holding // permissions that it may grant in addition to holds
	live       bool      // has a session, key or token that is valid in the tenant
	program    bool      // is not a user with a session
	operates   []string  // names of the tenants of its operator key; everyTenant means all
	scope      string    // of its operator key; empty: all
	byToken    bool      // is a program with a token
	holder     []holding // for the token of a user: all permissions of the user, which include holds
}

// subject is a user in the requests.
type subject struct {
	name       string
	id         string
	department string
	exists     bool // is in the tenant and is not deleted
	deleted    bool // is deleted and can be restored
	holds      []holding
}

// parts returns the application, the resource, the field and the action of a permission.
func parts(permission string) (application, resource, field, action string) {
	if before, after, ok := strings.Cut(permission, "/"); ok {
		application, permission = before, after
	}
	object, action, _ := strings.Cut(permission, ":")
	resource, field, _ = strings.Cut(object, ".")
	return application, resource, field, action
}

// covers reports whether a holder of the permission held also has the permission asked.
func covers(held, asked string) bool {
	a1, r1, f1, c1 := parts(held)
	a2, r2, f2, c2 := parts(asked)
	sameSide := a1 == a2 || a1 == "*" && a2 != ""
	return sameSide && (r1 == r2 || r1 == "*") && (c1 == c2 || c1 == "*") && (f1 == "" || f1 == "*" || f1 == f2)
}

// aboutUsers reports whether one of Rolecall's own permissions has an effect if its holder has
// it for some departments only.
func aboutUsers(permission string) bool {
	_, resource, _, _ := parts(permission)
	return resource == "users" || resource == "sessions" || resource == "identities" || permission == "roles:assign" || permission == "roles:read" || permission == "groups:members"
}

// may reports whether the principal has the permission for the users of the department. An
// empty department means the whole tenant.
func (p *principal) may(permission, department string) bool {
	return slices.ContainsFunc(p.holds, func(h holding) bool {
		return covers(h.permission, permission) && (h.department == "" || h.department == department && aboutUsers(permission))
	})
}

// mayAnywhere reports whether the principal has the permission in at least one department or
// in the whole tenant.
func (p *principal) mayAnywhere(permission string) bool {
	return slices.ContainsFunc(p.holds, func(h holding) bool {
		return covers(h.permission, permission) && (h.department == "" || aboutUsers(permission))
	})
}

// mayEverywhere reports whether the principal has the permission in the whole tenant.
func (p *principal) mayEverywhere(permission string) bool {
	return slices.ContainsFunc(p.holds, func(h holding) bool { return covers(h.permission, permission) && h.department == "" })
}

var readable = []string{"email", "name", "department", "externalId", "metadata", "status", "managedBy", "createdAt", "updatedAt"}

var changeable = []string{"name", "department", "externalId", "metadata"}

// knowing returns the permissions that let their holder know that a user exists.
func knowing() []string {
	all := []string{"users:create", "users:delete", "users:suspend", "users:invite", "users:erase", "users:reset-factors", "users.email:update"}
	for _, m := range readable {
		all = append(all, "users."+m+":read")
	}
	for _, m := range changeable {
		all = append(all, "users."+m+":update")
	}
	return all
}

func (p *principal) seesSomeUser() bool { return slices.ContainsFunc(knowing(), p.mayAnywhere) }

func (p *principal) knowsDepartment(department string) bool {
	return slices.ContainsFunc(knowing(), func(permission string) bool { return p.may(permission, department) })
}

// is reports whether the principal is the subject in a session. It returns false for the
// subject's API tokens.
func (p *principal) is(s *subject) bool { return !p.program && p.speaksFor(s) }

func (p *principal) speaksFor(s *subject) bool { return p.id != "" && p.id == s.id }

// sees reports whether the principal may know that the subject exists.
func (p *principal) sees(s *subject) bool {
	return s.exists && (p.speaksFor(s) || p.knowsDepartment(s.department))
}

// membersOf returns the members that the principal may read of users in the department.
func (p *principal) membersOf(department string) string {
	members := []string{"id"}
	for _, m := range readable {
		if p.may("users."+m+":read", department) {
			members = append(members, m)
		}
	}
	return strings.Join(members, " ")
}

// readableMembers returns the members of the subject that the principal may read. Users and
// their tokens may read all members of the user.
func (p *principal) readableMembers(s *subject) string {
	if p.speaksFor(s) {
		return everyMember
	}
	return p.membersOf(s.department)
}

// readsAnything reports whether the principal may read at least one member, apart from the id,
// of users in at least one department.
func (p *principal) readsAnything() bool {
	return slices.ContainsFunc(readable, func(m string) bool { return p.mayAnywhere("users." + m + ":read") })
}

// mayPass reports whether the principal may grant the permissions to others for the users of
// the department. An empty department means the whole tenant.
func (p *principal) mayPass(permissions []string, department string) bool {
	return p.has(slices.Concat(p.holds, p.grants), permissions, department)
}

// has reports whether the holdings cover all of the permissions for the users of the
// department.
func (p *principal) has(holdings []holding, permissions []string, department string) bool {
	for _, permission := range permissions {
		if !slices.ContainsFunc(holdings, func(h holding) bool {
			return covers(h.permission, permission) && (h.department == "" || h.department == department)
		}) {
			return false
		}
	}
	return true
}

// isBelow reports whether the subject has one of Rolecall's own permissions that the
// principal does not have.
func (p *principal) isBelow(s *subject) bool {
	return slices.ContainsFunc(s.holds, func(h holding) bool {
		application, _, _, _ := parts(h.permission)
		return application == "" && !p.has(p.holds, []string{h.permission}, h.department)
	})
}

// expectation is an expected response. An empty code or empty members are not checked.
type expectation struct {
	status  int
	code    string
	members string
}

func done(status int, members string) expectation {
	return expectation{status: status, members: members}
}

var (
	mustSignIn   = expectation{status: 401, code: "unauthenticated"}
	needsSession = expectation{status: 403, code: "session-required"}
	outOfScope   = expectation{status: 403, code: "scope-missing"}
	mayNot       = expectation{status: 403, code: "permission-denied"}
	beyondOwn    = expectation{status: 403, code: "beyond-own-permissions"}
	outsideReach = expectation{status: 403, code: "outside-reach"}
	notThere     = expectation{status: 404, code: "not-found"}
	systemRole   = expectation{status: 409, code: "system-role"}
)

// first returns the expected response of the first check that does not hold, or success if all
// checks hold.
func first(success expectation, checks ...check) expectation {
	for _, c := range checks {
		if !c.holds {
			return c.otherwise
		}
	}
	return success
}

// check is a condition, and the response that is expected if the condition is false.
type check struct {
	holds     bool
	otherwise expectation
}
