package rolecall

import (
	"slices"
	"strings"
	"sync"
)

// Principal is who is asking, resolved once per request: a live session, its
// user, and what the user's live assignments allow; or an API token and its holder,
// or an operator. It is immutable.
type Principal struct {
	Kind        PrincipalKind
	Tenant      Tenant
	User        User         // who acts; of a service account or an operator only the id and the name
	Session     Session      // zero unless it is a person's session
	Token       *APIToken    // by which the request speaks; nil for a session
	Operator    *OperatorKey // by which an operator speaks; nil on the command line
	Assignments []Assignment // the live ones of who acts, by role id, whatever the token says
	ValidUntil  Time         // the first moment at which an assignment or the token ends

	held    []holding
	reads   [userMembers]Reach
	updates [userMembers]Reach
	visible Reach
	grants  func() ([]Permission, []Grant)
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
func (p *Principal) IsSelf(id UserID) bool { return p.Interactive() && id == p.User.ID }

// Settings returns the tenant's settings as they hold for the user.
func (p *Principal) Settings() TenantSettings {
	return p.Tenant.Settings.For(p.Assignments, 0) // which are live, so any moment before their end does
}

// Actor returns who acts, for events.
func (p *Principal) Actor() Actor {
	actor := Actor{Type: ActorUser, ID: p.User.ID, Via: "http"}
	switch p.Kind {
	case PrincipalServiceAccount:
		actor.Type = ActorServiceAccount
	case PrincipalOperator:
		actor.Type = ActorOperator
		if p.Operator == nil {
			actor.Via = "command"
		}
	}
	if p.Token != nil {
		actor.Via, actor.Token = "token", p.Token.ID
	}
	return actor
}

// Giver returns by whose hand others hold what the principal gives them; zero for
// an operator.
func (p *Principal) Giver() UserID {
	if p.Kind == PrincipalOperator {
		return UserID{}
	}
	return p.User.ID
}

// Origin returns the credential that the principal uses.
func (p *Principal) Origin() (o Origin) {
	switch {
	case p.Token != nil:
		o.Credential = AnyID(p.Token.ID)
	case p.Operator != nil:
		o.OperatorKey = p.Operator.ID
	default:
		o.Credential = AnyID(p.Session.ID)
	}
	return o
}

// holding is a permission and where it holds.
type holding struct {
	permission Permission
	reach      Reach
}

// NewPrincipal returns the principal of the session at the moment. Assignments
// that are over are left out.
func NewPrincipal(tenant Tenant, user User, session Session, assignments []Assignment, now Time) *Principal {
	p := &Principal{Tenant: tenant, User: user, Session: session, ValidUntil: Never}
	return p.hold(assignments, now)
}

// NewTokenPrincipal returns the principal for whom an API token speaks at the
// moment: its holder, as far as the token goes.
func NewTokenPrincipal(tenant Tenant, state APITokenState, now Time) *Principal {
	token := state.Token
	p := &Principal{Tenant: tenant, User: state.Holder, Token: &token, ValidUntil: token.ExpiresAt}
	if !token.ServiceAccountID.IsZero() {
		p.Kind = PrincipalServiceAccount
	}
	return p.hold(state.Assignments, now)
}

// hold gives a new principal what the assignments give at the moment.
func (p *Principal) hold(assignments []Assignment, now Time) *Principal {
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
	var visible []Reach
	for m := range UserMember(userMembers) {
		p.reads[m] = p.Reach(m.Read())
		if m.Updatable() {
			p.updates[m] = p.Reach(m.Update())
		}
		visible = append(visible, p.reads[m], p.updates[m])
	}
	for _, permission := range []Permission{UsersCreate, UsersDelete, UsersSuspend, UsersInvite, UsersErase, UsersFactors, UsersEmail} {
		visible = append(visible, p.Reach(permission))
	}
	p.visible = UnionOf(visible)
	p.grants = sync.OnceValues(func() ([]Permission, []Grant) {
		if p.Token != nil {
			return splitGrants(p.Token.restrict(p.Assignments))
		}
		return splitGrants(p.Assignments)
	})
	return p
}

// allows reports whether what the principal came with lets it use the permission at
// all, if it holds it.
func (p *Principal) allows(permission Permission) bool {
	return p.Token == nil || p.Token.Covers(permission)
}

// Reach returns for which users the principal holds the permission. An own
// permission whose object is not a user holds everywhere or nowhere; roles:read
// has the users whose assignments it opens, and with any reach at all it opens
// the roles themselves.
func (p *Principal) Reach(permission Permission) Reach {
	if !p.allows(permission) {
		return Nowhere()
	}
	var reaches []Reach
	for _, h := range p.held {
		switch {
		case !h.permission.Covers(permission):
		case h.reach.IsEverywhere():
			return Everywhere()
		case !permission.Own() || permission.boundByReach():
			reaches = append(reaches, h.reach)
		}
	}
	return UnionOf(reaches)
}

// MissingFor returns the first of the permissions that the principal does not
// hold within the whole reach until the moment, and whether there is one. With
// grants, what the principal's roles let it hand on counts as held.
func (p *Principal) MissingFor(permissions []Permission, within Reach, until Time, grants bool) (Permission, bool) {
	for _, permission := range permissions {
		if !p.allows(permission) || !p.covered(permission, until, grants).Covers(within) {
			return permission, true
		}
	}
	return Permission{}, false
}

// CoveredReach returns within which reach MissingFor finds none of the permissions
// missing until the moment.
func (p *Principal) CoveredReach(permissions []Permission, until Time, grants bool) Reach {
	reach := Everywhere()
	for _, permission := range permissions {
		if !p.allows(permission) {
			return Nowhere()
		}
		reach = reach.Intersect(p.covered(permission, until, grants))
	}
	return reach
}

// covered returns where the principal's assignments cover the permission until the
// moment.
func (p *Principal) covered(permission Permission, until Time, grants bool) Reach {
	var covered []Reach
	for _, a := range p.Assignments {
		if a.ExpiresAt < until {
			continue
		}
		if slices.ContainsFunc(a.Role.Permissions, func(held Permission) bool { return held.Covers(permission) }) ||
			grants && slices.ContainsFunc(a.Role.Grants, func(held Permission) bool { return held.Covers(permission) }) {
			covered = append(covered, a.Reach)
		}
	}
	return UnionOf(covered)
}

// Reads returns for which users the principal may read the member.
func (p *Principal) Reads(m UserMember) Reach { return p.reads[m] }

// Updates returns for which users the principal may change the member.
func (p *Principal) Updates(m UserMember) Reach { return p.updates[m] }

// Visible returns which users the principal may know of: those that any users
// permission reaches. Oneself is visible besides.
func (p *Principal) Visible() Reach { return p.visible }

// Sees reports whether the principal may know of the user.
func (p *Principal) Sees(u *User) bool { return u.ID == p.User.ID || p.visible.Includes(u.Department) }

// Sight returns the members of the user that the principal may read; all of
// oneself, and of whom a token speaks for.
func (p *Principal) Sight(u *User) UserMembers {
	if u.ID == p.User.ID {
		return AllUserMembers
	}
	return p.ListSight(u)
}

// ListSight is Sight without the right to read oneself, as lists use it.
func (p *Principal) ListSight(u *User) UserMembers {
	var set UserMembers
	for m := range UserMember(userMembers) {
		if p.reads[m].Includes(u.Department) {
			set |= 1 << m
		}
	}
	return set
}

// ReadsEverything reports whether the principal reads every member of every user,
// the common case of administrators.
func (p *Principal) ReadsEverything() bool {
	return !slices.ContainsFunc(p.reads[:], func(r Reach) bool { return !r.IsEverywhere() })
}

// Grant is a permission that a principal holds, as it is answered.
type Grant struct {
	Permission Permission
	Reach      Reach
	Roles      []Role // through which it is held; only in an overview
}

// Grants returns what the principal holds, each permission once, sorted by text:
// the tenant-wide ones, and those that hold in some departments only. They are
// worked out once; nobody may change them.
func (p *Principal) Grants() (everywhere []Permission, scoped []Grant) { return p.grants() }

func splitGrants(assignments []Assignment) (everywhere []Permission, scoped []Grant) {
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
func GrantsOf(assignments []Assignment) []Grant {
	var grants []Grant
	var reaches [][]Reach
	at := map[Permission]int{}
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
		grants[i].Reach = UnionOf(reaches[i])
	}
	slices.SortFunc(grants, func(a, b Grant) int { return strings.Compare(a.Permission.String(), b.Permission.String()) })
	return grants
}
