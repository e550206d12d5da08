package authz

import (
	"slices"
	"strings"
	"sync"

	"github.com/rolecall/rolecall"
)

// Principal is who is asking, resolved once per request: a live session, its
// user, and what the user's live assignments allow; or an API token and its holder,
// or an operator. It is immutable.
type Principal struct {
	Kind        PrincipalKind
	Tenant      rolecall.Tenant
	User        rolecall.User         // who acts; of a service account or an operator only the id and the name
	Session     rolecall.Session      // zero unless it is a person's session
	Token       *rolecall.APIToken    // by which the request speaks; nil for a session
	Operator    *rolecall.OperatorKey // by which an operator speaks; nil on the command line
	Assignments []rolecall.Assignment // the live ones of who acts, by role id, whatever the token says
	ValidUntil  rolecall.Time         // the first moment at which an assignment or the token ends

	held    []holding
	reads   [rolecall.UserMemberCount]rolecall.Reach
	updates [rolecall.UserMemberCount]rolecall.Reach
	visible rolecall.Reach
	grants  func() ([]rolecall.Permission, []Grant)
}

// PrincipalKind tells apart who can ask.
type PrincipalKind uint8

// The kinds of principals.
const (
	PrincipalUser PrincipalKind = iota
	PrincipalServiceAccount
	PrincipalOperator
)

// Interactive reports whether a person is asking through a session, and not a
// program with a token or key.
func (p *Principal) Interactive() bool { return p.Kind == PrincipalUser && p.Token == nil }

// IsSelf reports whether the user is the person who asks. Programs that speak for
// the user are not: what everybody may do to themselves is not theirs.
func (p *Principal) IsSelf(id rolecall.UserID) bool { return p.Interactive() && id == p.User.ID }

// Settings returns the tenant's settings as they hold for the user.
func (p *Principal) Settings() rolecall.TenantSettings {
	return p.Tenant.Settings.For(p.Assignments, 0) // which are live, so any moment before their end does
}

// Actor returns who acts, for events.
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

// Grantor returns by whose hand others hold what the principal gives them; zero for
// an operator.
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

// holding is a permission and where it holds.
type holding struct {
	permission rolecall.Permission
	reach      rolecall.Reach
}

// NewPrincipal returns the principal of the session at the moment. Assignments
// that are over are left out.
func NewPrincipal(tenant rolecall.Tenant, user rolecall.User, session rolecall.Session, assignments []rolecall.Assignment, now rolecall.Time) *Principal {
	p := &Principal{Tenant: tenant, User: user, Session: session, ValidUntil: rolecall.Never}
	return p.hold(assignments, now)
}

// NewTokenPrincipal returns the principal for whom an API token speaks at the
// moment: its holder, as far as the token goes.
func NewTokenPrincipal(tenant rolecall.Tenant, state rolecall.APITokenState, now rolecall.Time) *Principal {
	token := state.Token
	p := &Principal{Tenant: tenant, User: state.Holder, Token: &token, ValidUntil: token.ExpiresAt}
	if !token.ServiceAccountID.IsZero() {
		p.Kind = PrincipalServiceAccount
	}
	return p.hold(state.Assignments, now)
}

// hold gives a new principal what the assignments give at the moment.
func (p *Principal) hold(assignments []rolecall.Assignment, now rolecall.Time) *Principal {
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

// Size returns about how many bytes a cached principal takes, with what belongs to its
// entry.
func (p *Principal) Size() int {
	size := 1700 // with the user, the session and the tenant
	for i := range p.Assignments {
		role := &p.Assignments[i].Role
		size += 400 + len(role.Description) + 130*len(role.Permissions) + 70*len(role.Grants)
	}
	return size
}

// allows reports whether what the principal came with lets it use the permission at
// all, if it holds it.
func (p *Principal) allows(permission rolecall.Permission) bool {
	return p.Token == nil || p.Token.Covers(permission)
}

// Reach returns for which users the principal holds the permission. An own
// permission whose object is not a user holds everywhere or nowhere; roles:read
// has the users whose assignments it opens, and with any reach at all it opens
// the roles themselves.
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

// MissingFor returns the first of the permissions that the principal does not
// hold within the whole reach until the moment, and whether there is one. With
// grants, what the principal's roles let it hand on counts as held.
func (p *Principal) MissingFor(permissions []rolecall.Permission, within rolecall.Reach, until rolecall.Time, grants bool) (rolecall.Permission, bool) {
	for _, permission := range permissions {
		if !p.allows(permission) || !p.covered(permission, until, grants).Covers(within) {
			return permission, true
		}
	}
	return rolecall.Permission{}, false
}

// CoveredReach returns within which reach MissingFor finds none of the permissions
// missing until the moment.
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

// covered returns where the principal's assignments cover the permission until the
// moment.
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

// Reads returns for which users the principal may read the member.
func (p *Principal) Reads(m rolecall.UserMember) rolecall.Reach { return p.reads[m] }

// Updates returns for which users the principal may change the member.
func (p *Principal) Updates(m rolecall.UserMember) rolecall.Reach { return p.updates[m] }

// Visible returns which users the principal may know of: those that any users
// permission reaches. Oneself is visible besides.
func (p *Principal) Visible() rolecall.Reach { return p.visible }

// Sees reports whether the principal may know of the user.
func (p *Principal) Sees(u *rolecall.User) bool {
	return u.ID == p.User.ID || p.visible.Includes(u.Department)
}

// Sight returns the members of the user that the principal may read; all of
// oneself, and of whom a token speaks for.
func (p *Principal) Sight(u *rolecall.User) rolecall.UserMembers {
	if u.ID == p.User.ID {
		return rolecall.AllUserMembers
	}
	return p.ListSight(u)
}

// ListSight is Sight without the right to read oneself, as lists use it.
func (p *Principal) ListSight(u *rolecall.User) rolecall.UserMembers {
	var set rolecall.UserMembers
	for m := range rolecall.UserMemberCount {
		if p.reads[m].Includes(u.Department) {
			set |= 1 << m
		}
	}
	return set
}

// ReadsEverything reports whether the principal reads every member of every user,
// the common case of administrators.
func (p *Principal) ReadsEverything() bool {
	return !slices.ContainsFunc(p.reads[:], func(r rolecall.Reach) bool { return !r.IsEverywhere() })
}

// Grant is a permission that a principal holds, as it is answered.
type Grant struct {
	Permission rolecall.Permission
	Reach      rolecall.Reach
	Roles      []rolecall.Role // through which it is held; only in an overview
}

// Grants returns what the principal holds, each permission once, sorted by text:
// the tenant-wide ones, and those that hold in some departments only. They are
// worked out once; nobody may change them.
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

// GrantsOf returns what the assignments give, each permission once with the union
// of its reaches and the roles it comes from, sorted by text. What counts for
// nothing within a reach is left out.
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

// restrict returns the assignments with what their roles and the token both cover.
// Of one role that is cut at 1,024 permissions, which no sensible pair of sets has
// in common: it is for showing, and to show less fails closed.
func restrict(t *rolecall.APIToken, assignments []rolecall.Assignment) []rolecall.Assignment {
	restricted := slices.Clone(assignments)
	for i := range restricted {
		role := &restricted[i].Role
		role.Permissions = meet(role.Permissions, t.Permissions, 4*rolecall.RolePermissionsMax)
	}
	return restricted
}

// meet returns what both sets cover, at most so many.
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
