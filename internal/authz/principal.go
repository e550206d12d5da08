package authz

import (
	"slices"
	"strings"
	"sync"

	"github.com/rolecall/rolecall"
)

// Principal is the authenticated caller of one request: a session with its user, an
// API token with its holder, or an operator. It contains the permissions of the live
// assignments. It is immutable.
type Principal struct {
	Kind        PrincipalKind
	Tenant      rolecall.Tenant
	User        rolecall.User         // the user; for a service account or an operator, only the id and the name are set
	Session     rolecall.Session      // zero without a session
	Token       *rolecall.APIToken    // the API token of the request; nil for a session
	Operator    *rolecall.OperatorKey // the operator key; nil on the command line
	Assignments []rolecall.Assignment // live assignments of the holder, by role id, not restricted by the token
	ValidUntil  rolecall.Time         // the earliest expiry of an assignment or of the token

	held    []holding
	reads   [rolecall.UserMemberCount]rolecall.Reach
	updates [rolecall.UserMemberCount]rolecall.Reach
	visible rolecall.Reach
	grants  func() ([]rolecall.Permission, []Grant)
}

// PrincipalKind is the kind of a principal.
type PrincipalKind uint8

// The kinds of principals.
const (
	PrincipalUser PrincipalKind = iota
	PrincipalServiceAccount
	PrincipalOperator
)

// Interactive reports whether the principal is a user with a session, and not a
// program with a token or key.
func (p *Principal) Interactive() bool { return p.Kind == PrincipalUser && p.Token == nil }

// IsSelf reports whether the principal is this user with a session. It is false for
// API tokens of the user: operations that every user may perform on themselves are
// not allowed to tokens.
func (p *Principal) IsSelf(id rolecall.UserID) bool { return p.Interactive() && id == p.User.ID }

// Settings returns the tenant's settings that apply to the user.
func (p *Principal) Settings() rolecall.TenantSettings {
	return p.Tenant.Settings.For(p.Assignments, 0) // the assignments are live, so any time before their expiry works
}

// Actor returns the principal as the actor of events.
func (p *Principal) Actor() rolecall.Actor {
	actor := rolecall.Actor{Type: rolecall.ActorUser, ID: p.User.ID, Via: "http"}
	switch p.Kind {
	case PrincipalServiceAccount:
		actor.Type = rolecall.ActorServiceAccount
	case PrincipalOperator:
		actor.Type = rolecall.ActorOperator
		if p.Operator == nil {
			actor.Via = "command"
		}
	}
	if p.Token != nil {
		actor.Via, actor.Token = "token", p.Token.ID
	}
	return actor
}

// Grantor returns the id that is stored as the grantor of assignments. It is zero
// for an operator.
func (p *Principal) Grantor() rolecall.UserID {
	if p.Kind == PrincipalOperator {
		return rolecall.UserID{}
	}
	return p.User.ID
}

// Origin returns the credential that the principal uses.
func (p *Principal) Origin() (o rolecall.Origin) {
	switch {
	case p.Token != nil:
		o.Credential = rolecall.AnyID(p.Token.ID)
	case p.Operator != nil:
		o.OperatorKey = p.Operator.ID
	default:
		o.Credential = rolecall.AnyID(p.Session.ID)
	}
	return o
}

// holding is a permission with its reach.
type holding struct {
	permission rolecall.Permission
	reach      rolecall.Reach
}

// NewPrincipal returns the principal of the session. It leaves out expired
// assignments.
func NewPrincipal(tenant rolecall.Tenant, user rolecall.User, session rolecall.Session, assignments []rolecall.Assignment, now rolecall.Time) *Principal {
	p := &Principal{Tenant: tenant, User: user, Session: session, ValidUntil: rolecall.Never}
	return p.addAssignments(assignments, now)
}

// NewTokenPrincipal returns the principal of an API token: its holder, restricted to
// the permissions of the token.
func NewTokenPrincipal(tenant rolecall.Tenant, state rolecall.APITokenState, now rolecall.Time) *Principal {
	token := state.Token
	p := &Principal{Tenant: tenant, User: state.Holder, Token: &token, ValidUntil: token.ExpiresAt}
	if !token.ServiceAccountID.IsZero() {
		p.Kind = PrincipalServiceAccount
	}
	return p.addAssignments(state.Assignments, now)
}

// addAssignments adds the permissions of the live assignments to a new principal.
func (p *Principal) addAssignments(assignments []rolecall.Assignment, now rolecall.Time) *Principal {
	for _, a := range assignments {
		if !a.Live(now) {
			continue
		}
		p.Assignments = append(p.Assignments, a)
		p.ValidUntil = min(p.ValidUntil, a.ExpiresAt)
		for _, permission := range a.Role.Permissions {
			p.held = append(p.held, holding{permission, a.Reach})
		}
	}
	var visible []rolecall.Reach
	for m := range rolecall.UserMemberCount {
		p.reads[m] = p.Reach(m.Read())
		if m.Updatable() {
			p.updates[m] = p.Reach(m.Update())
		}
		visible = append(visible, p.reads[m], p.updates[m])
	}
	for _, permission := range []rolecall.Permission{rolecall.UsersCreate, rolecall.UsersDelete, rolecall.UsersSuspend, rolecall.UsersInvite, rolecall.UsersErase, rolecall.UsersFactors, rolecall.UsersEmail} {
		visible = append(visible, p.Reach(permission))
	}
	p.visible = rolecall.UnionOf(visible)
	p.grants = sync.OnceValues(func() ([]rolecall.Permission, []Grant) {
		if p.Token != nil {
			return splitGrants(restrict(p.Token, p.Assignments))
		}
		return splitGrants(p.Assignments)
	})
	return p
}

// Size returns the approximate size of a cached principal and its cache entry, in
// bytes.
func (p *Principal) Size() int {
	size := 1700 // with the user, the session and the tenant
	for i := range p.Assignments {
		role := &p.Assignments[i].Role
		size += 400 + len(role.Description) + 130*len(role.Permissions) + 70*len(role.Grants)
	}
	return size
}

// allows reports whether the API token covers the permission. It is true without a token.
// The principal must also hold the permission.
func (p *Principal) allows(permission rolecall.Permission) bool {
	return p.Token == nil || p.Token.Covers(permission)
}

// Reach returns the reach in which the principal holds the permission. For Rolecall's own
// permissions that are not about users, the reach is Everywhere or Nowhere. The reach of
// roles:read contains the users whose assignments the principal may read. With any reach,
// roles:read also allows the principal to read all roles.
func (p *Principal) Reach(permission rolecall.Permission) rolecall.Reach {
	if !p.allows(permission) {
		return rolecall.Nowhere()
	}
	var reaches []rolecall.Reach
	for _, h := range p.held {
		switch {
		case !h.permission.Covers(permission):
		case h.reach.IsEverywhere():
			return rolecall.Everywhere()
		case !permission.Own() || permission.BoundByReach():
			reaches = append(reaches, h.reach)
		}
	}
	return rolecall.UnionOf(reaches)
}

// MissingFor returns the first of the permissions that the principal does not hold in the
// whole reach until the given time, and whether one is missing. If grants is true, the
// permissions that the principal may only grant count as held.
func (p *Principal) MissingFor(permissions []rolecall.Permission, within rolecall.Reach, until rolecall.Time, grants bool) (rolecall.Permission, bool) {
	for _, permission := range permissions {
		if !p.allows(permission) || !p.covered(permission, until, grants).Covers(within) {
			return permission, true
		}
	}
	return rolecall.Permission{}, false
}

// CoveredReach returns the widest reach for which MissingFor finds no missing
// permission until the given time.
func (p *Principal) CoveredReach(permissions []rolecall.Permission, until rolecall.Time, grants bool) rolecall.Reach {
	reach := rolecall.Everywhere()
	for _, permission := range permissions {
		if !p.allows(permission) {
			return rolecall.Nowhere()
		}
		reach = reach.Intersect(p.covered(permission, until, grants))
	}
	return reach
}

// covered returns the reach in which the principal's assignments cover the
// permission until the given time.
func (p *Principal) covered(permission rolecall.Permission, until rolecall.Time, grants bool) rolecall.Reach {
	var covered []rolecall.Reach
	for _, a := range p.Assignments {
		if a.ExpiresAt < until {
			continue
		}
		if slices.ContainsFunc(a.Role.Permissions, func(held rolecall.Permission) bool { return held.Covers(permission) }) ||
			grants && slices.ContainsFunc(a.Role.Grants, func(held rolecall.Permission) bool { return held.Covers(permission) }) {
			covered = append(covered, a.Reach)
		}
	}
	return rolecall.UnionOf(covered)
}

// Reads returns the reach with the users whose member m the principal may read.
func (p *Principal) Reads(m rolecall.UserMember) rolecall.Reach { return p.reads[m] }

// Updates returns the reach with the users whose member m the principal may change.
func (p *Principal) Updates(m rolecall.UserMember) rolecall.Reach { return p.updates[m] }

// Visible returns the reach with the users that are visible to the principal: all users
// in the reach of any permission on users except users:restore. The principal's own user
// is also visible, but the reach need not contain it.
func (p *Principal) Visible() rolecall.Reach { return p.visible }

// Sees reports whether the user is visible to the principal.
func (p *Principal) Sees(u *rolecall.User) bool {
	return u.ID == p.User.ID || p.visible.Includes(u.Department)
}

// ReadableMembers returns the members of the user that the principal may read. Users may read
// all their members, and so may the bearers of their API tokens.
func (p *Principal) ReadableMembers(u *rolecall.User) rolecall.UserMembers {
	if u.ID == p.User.ID {
		return rolecall.AllUserMembers
	}
	return p.ReadableListMembers(u)
}

// ReadableListMembers is like ReadableMembers, without the right of users to read themselves.
// Lists use it.
func (p *Principal) ReadableListMembers(u *rolecall.User) rolecall.UserMembers {
	var set rolecall.UserMembers
	for m := range rolecall.UserMemberCount {
		if p.reads[m].Includes(u.Department) {
			set |= 1 << m
		}
	}
	return set
}

// ReadsEverything reports whether the principal may read every member of every user.
// This is the common case for administrators.
func (p *Principal) ReadsEverything() bool {
	return !slices.ContainsFunc(p.reads[:], func(r rolecall.Reach) bool { return !r.IsEverywhere() })
}

// Grant is a permission that a principal holds, as responses contain it.
type Grant struct {
	Permission rolecall.Permission
	Reach      rolecall.Reach
	Roles      []rolecall.Role // the roles that give the permission; only in the result of GrantsOf
}

// Grants returns the permissions of the principal, without duplicates and sorted by
// text: those of the whole tenant, and those of some departments. The result is
// computed once and shared, so callers must not change it.
func (p *Principal) Grants() (everywhere []rolecall.Permission, scoped []Grant) { return p.grants() }

func splitGrants(assignments []rolecall.Assignment) (everywhere []rolecall.Permission, scoped []Grant) {
	for _, g := range GrantsOf(assignments) {
		if g.Reach.IsEverywhere() {
			everywhere = append(everywhere, g.Permission)
		} else {
			scoped = append(scoped, g)
		}
	}
	return everywhere, scoped
}

// GrantsOf returns the permissions that the assignments give, without duplicates and
// sorted by text, each with the union of its reaches and with its roles. It leaves
// out permissions that have no effect in their reach.
func GrantsOf(assignments []rolecall.Assignment) []Grant {
	var grants []Grant
	var reaches [][]rolecall.Reach
	at := map[rolecall.Permission]int{}
	for _, a := range assignments {
		for _, permission := range a.Role.Permissions {
			if !a.Reach.IsEverywhere() && !permission.CountsWithin() {
				continue
			}
			i, seen := at[permission]
			if !seen {
				i = len(grants)
				at[permission] = i
				grants, reaches = append(grants, Grant{Permission: permission}), append(reaches, nil)
			}
			reaches[i] = append(reaches[i], a.Reach)
			grants[i].Roles = append(grants[i].Roles, a.Role)
		}
	}
	for i := range grants {
		grants[i].Reach = rolecall.UnionOf(reaches[i])
	}
	slices.SortFunc(grants, func(a, b Grant) int { return strings.Compare(a.Permission.String(), b.Permission.String()) })
	return grants
}

// restrict returns the assignments with the intersection of their roles' permissions
// and those of the token. Each intersection is cut at 1,024 permissions, which
// realistic sets do not reach. The result is only displayed, and a shorter list
// fails closed.
func restrict(t *rolecall.APIToken, assignments []rolecall.Assignment) []rolecall.Assignment {
	restricted := slices.Clone(assignments)
	for i := range restricted {
		role := &restricted[i].Role
		role.Permissions = meet(role.Permissions, t.Permissions, 4*rolecall.RolePermissionsMax)
	}
	return restricted
}

// meet returns the intersection of both sets, at most the given number of
// permissions.
func meet(a, b []rolecall.Permission, most int) []rolecall.Permission {
	var both []rolecall.Permission
	for _, p := range a {
		for _, q := range b {
			if r, ok := p.Meet(q); ok && len(both) < most {
				both = append(both, r)
			}
		}
	}
	return rolecall.NormalPermissions(both)
}

// NewOperatorPrincipal returns the principal of an operator's key in the tenant. It holds
// every permission there, and it is not a user of the tenant.
func NewOperatorPrincipal(tenant rolecall.Tenant, key *rolecall.OperatorKey, now rolecall.Time) *Principal {
	everything := rolecall.Assignment{
		Role:  rolecall.Role{Name: "Operator", Permissions: []rolecall.Permission{rolecall.AllOwn, rolecall.AllApplications}},
		Reach: rolecall.Everywhere(), ExpiresAt: rolecall.Never,
	}
	p := NewPrincipal(tenant, rolecall.User{ID: rolecall.UserID(key.ID), Name: key.Name}, rolecall.Session{}, []rolecall.Assignment{everything}, now)
	p.Kind, p.Operator = PrincipalOperator, key
	return p
}
