package authz

import (
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/rolecall/rolecall"
)

// Principal is the authenticated caller of one request: a user with a session, a user or a
// service account with an API token, or an operator. It has the permissions of the caller's
// unexpired assignments. A Principal does not change after it was created.
type Principal struct {
	Kind        PrincipalKind
	Tenant      rolecall.Tenant
	User        rolecall.User         // the user; for a service account or an operator, only the id and the name are set
	Session     rolecall.Session      // zero without a session
	Token       *rolecall.APIToken    // the API token of the request; nil for a session
	Operator    *rolecall.OperatorKey // the operator key; nil on the command line
	Assignments []rolecall.Assignment // all unexpired assignments of the caller, also through groups, by role id, even those that a token does not use
	Groups      []rolecall.GroupName  // of a user, for display
	ValidUntil  rolecall.Time         // the earliest expiry of an assignment or of the token

	// SessionTokenExpiresAt is when the session token of the request expires, because a newer one is in use. It
	// is zero for the newest token and without a session.
	SessionTokenExpiresAt rolecall.Time

	size    int                               // see Size
	held    map[rolecall.Permission][]holding // by the exact permission
	reads   [rolecall.UserMemberCount]rolecall.Reach
	updates [rolecall.UserMemberCount]rolecall.Reach
	visible rolecall.Reach
	scopes  func() ([]rolecall.Permission, []Scope)
}

// PrincipalKind is the kind of a principal.
type PrincipalKind uint8

// The kinds of principals.
const (
	PrincipalUser PrincipalKind = iota
	PrincipalServiceAccount
	PrincipalOperator
	PrincipalDirectory // a directory with its token; User has its id and name
)

// Interactive reports whether the principal is a user with a session. It returns false for
// callers with an API token or an operator key.
func (p *Principal) Interactive() bool { return p.Kind == PrincipalUser && p.Token == nil }

// IsSelf reports whether the principal is the user with the id and has a session. It
// returns false for an API token of this user, because a token needs permissions also for
// operations that users may always perform on themselves.
func (p *Principal) IsSelf(id rolecall.UserID) bool { return p.Interactive() && id == p.User.ID }

// Settings returns the settings of the tenant for the principal's user. For users who need
// a second factor, some defaults are stricter.
func (p *Principal) Settings() rolecall.TenantSettings {
	return p.Tenant.Settings.For(p.Assignments, 0) // no assignment in the list has expired, so the time 0 gives the right result
}

// Actor returns the principal in the form in which events name their actor.
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
	case PrincipalDirectory:
		actor.Type, actor.Via = rolecall.ActorDirectory, "scim"
	}
	if p.Token != nil {
		actor.Via, actor.Token = "token", p.Token.ID
	}
	return actor
}

// Grantor returns the id that assignments, invitations and tokens of this principal store
// as the id of their author. It is zero for an operator.
func (p *Principal) Grantor() rolecall.UserID {
	if p.Kind == PrincipalOperator {
		return rolecall.UserID{}
	}
	return p.User.ID
}

// Origin returns the id of the session, API token or operator key of the request.
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

// holding is an assignment that gives a permission, or lets the principal grant it to others.
type holding struct {
	assignment int32 // index in Principal.Assignments
	grants     bool  // the role only grants the permission
}

// holdings yields the holdings of all permissions that cover the permission. It looks each of these up,
// so its cost does not depend on how many other permissions the principal holds.
func (p *Principal) holdings(permission rolecall.Permission) iter.Seq2[*rolecall.Assignment, bool] {
	return func(yield func(a *rolecall.Assignment, grants bool) bool) {
		for _, covering := range permission.CoveredBy() {
			for _, h := range p.held[covering] {
				if !yield(&p.Assignments[h.assignment], h.grants) {
					return
				}
			}
		}
	}
}

// NewPrincipal returns the principal of a user with a session. Of the user's assignments,
// it uses only those that are unexpired at the time now.
func NewPrincipal(tenant rolecall.Tenant, user rolecall.User, session rolecall.Session, assignments []rolecall.Assignment, now rolecall.Time) *Principal {
	p := &Principal{Tenant: tenant, User: user, Session: session, ValidUntil: rolecall.Never}
	return p.addAssignments(assignments, now)
}

// NewTokenPrincipal returns the principal of an API token. It has the permissions that
// both the token and its holder have.
func NewTokenPrincipal(tenant rolecall.Tenant, state rolecall.APITokenState, now rolecall.Time) *Principal {
	token := state.Token
	p := &Principal{Tenant: tenant, User: state.Holder, Token: &token, ValidUntil: token.ExpiresAt}
	if !token.ServiceAccountID.IsZero() {
		p.Kind = PrincipalServiceAccount
	}
	p.Groups = state.Groups
	return p.addAssignments(state.Assignments, now)
}

// NewAccountPrincipal returns the principal of a service account without a token, for items that are sent
// on its behalf. It has all permissions of the service account.
func NewAccountPrincipal(tenant rolecall.Tenant, account *rolecall.ServiceAccount, assignments []rolecall.Assignment, now rolecall.Time) *Principal {
	p := &Principal{Kind: PrincipalServiceAccount, Tenant: tenant, User: rolecall.User{ID: rolecall.UserID(account.ID), Name: account.Name}, ValidUntil: rolecall.Never}
	return p.addAssignments(assignments, now)
}

// addAssignments adds the assignments that are unexpired at the time now to a new
// principal, and computes the permissions. It returns the principal.
func (p *Principal) addAssignments(assignments []rolecall.Assignment, now rolecall.Time) *Principal {
	p.held = map[rolecall.Permission][]holding{}
	for _, a := range assignments {
		if !a.Live(now) {
			continue
		}
		i := int32(len(p.Assignments))
		p.Assignments = append(p.Assignments, a)
		p.ValidUntil = min(p.ValidUntil, a.ExpiresAt)
		if i > 0 && givesNoMore(&a, &p.Assignments[i-1]) {
			continue
		}
		for _, permission := range a.Role.Permissions {
			p.held[permission] = append(p.held[permission], holding{assignment: i})
		}
		for _, permission := range a.Role.Grants {
			p.held[permission] = append(p.held[permission], holding{assignment: i, grants: true})
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
	p.size = p.measure()
	p.scopes = sync.OnceValues(func() ([]rolecall.Permission, []Scope) { return scopesOf(p.usable()) })
	return p
}

// givesNoMore reports whether the previous assignment gives the same role as far and as long. A user can have a role
// through many groups.
func givesNoMore(a, previous *rolecall.Assignment) bool {
	return !a.Role.ID.IsZero() && a.Role.ID == previous.Role.ID && previous.Reach.IsEverywhere() && a.ExpiresAt <= previous.ExpiresAt
}

// Size returns about how many bytes the principal uses in a cache, including the entry of
// the cache.
func (p *Principal) Size() int {
	size := p.size
	for i := range p.Groups {
		size += 64 + len(p.Groups[i].Name)
	}
	return size
}

// departmentSize is the size of a department in a union of reaches, without the texts, which are shared.
const departmentSize = 32

func (p *Principal) measure() int {
	size := 1700 // with the user, the session and the tenant
	for i := range p.Assignments {
		a := &p.Assignments[i]
		size += 400 + len(a.Role.Description) + 240*len(a.Role.Permissions) + 180*len(a.Role.Grants) + a.Reach.Size()
	}
	for m := range p.reads {
		size += departmentSize * (p.reads[m].Count() + p.updates[m].Count())
	}
	return size
}

// allows reports whether the principal's API token covers the permission. It returns true
// if the principal has no token. It does not check the permissions of the token's holder.
func (p *Principal) allows(permission rolecall.Permission) bool {
	return p.Token == nil || p.Token.Covers(permission)
}

// Reach returns the users that the principal's permission applies to. For a permission of
// Rolecall that is not about users, such as tenant:update, the result is Everywhere or
// Nowhere. For roles:read, the result has the users whose assignments the principal may
// read. If it is not empty, the principal may also read all roles.
func (p *Principal) Reach(permission rolecall.Permission) rolecall.Reach {
	if !p.allows(permission) {
		return rolecall.Nowhere()
	}
	var reaches []rolecall.Reach
	for a, grants := range p.holdings(permission) {
		switch {
		case grants:
		case a.Reach.IsEverywhere():
			return rolecall.Everywhere()
		case !permission.Own() || permission.BoundByReach():
			reaches = append(reaches, a.Reach)
		}
	}
	return rolecall.UnionOf(reaches)
}

// Reads returns the users whose member m the principal may read.
func (p *Principal) Reads(m rolecall.UserMember) rolecall.Reach { return p.reads[m] }

// Updates returns the users whose member m the principal may change.
func (p *Principal) Updates(m rolecall.UserMember) rolecall.Reach { return p.updates[m] }

// Visible returns the users that are visible to the principal: those that any of the
// principal's permissions on users applies to, except users:restore. The principal's own
// user is always visible too, but need not be in the result.
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

// ReadableListMembers returns the members of the user that the principal may read in lists.
// In lists, principals need permissions even for their own user.
func (p *Principal) ReadableListMembers(u *rolecall.User) rolecall.UserMembers {
	var set rolecall.UserMembers
	for m := range rolecall.UserMemberCount {
		if p.reads[m].Includes(u.Department) {
			set |= 1 << m
		}
	}
	return set
}

// ReadsEverything reports whether the principal may read all members of all users, as most
// administrators may.
func (p *Principal) ReadsEverything() bool {
	return !slices.ContainsFunc(p.reads[:], func(r rolecall.Reach) bool { return !r.IsEverywhere() })
}

// Grant is a permission that a principal holds, in the form in which responses list it.
type Grant struct {
	Permission rolecall.Permission
	Reach      rolecall.Reach
	Roles      []rolecall.Role // the roles that give the permission
}

// grantsRoom is about the number of bytes of the longest list of Grants in a response.
const grantsRoom = rolecall.MaxPageBytes / 2

// size returns about how many bytes the grant has in a response.
func (g *Grant) size() int {
	size := 100 + len(g.Permission.String())
	for i := range g.Roles {
		size += 100 + len(g.Roles[i].Name)
	}
	for _, department := range g.Reach.Departments() {
		size += len(department) + len(`"",`)
	}
	return size
}

// Grants returns the permissions of the principal in two lists. The list everywhere has the
// permissions for the whole tenant, and scoped has those for the users of some departments.
// The lists are sorted by the text of the permission, without duplicates. If more is true, they lack
// permissions, as the result of GrantsOf.
func (p *Principal) Grants() (everywhere []rolecall.Permission, scoped []Grant, more bool) {
	grants, more := GrantsOf(p.usable())
	for _, g := range grants {
		if g.Reach.IsEverywhere() {
			everywhere = append(everywhere, g.Permission)
		} else {
			scoped = append(scoped, g)
		}
	}
	return everywhere, scoped, more
}

// usable returns the assignments with the permissions that the principal can use.
func (p *Principal) usable() []rolecall.Assignment {
	if p.Token != nil {
		return restrict(p.Token, p.Assignments)
	}
	return p.Assignments
}

// GrantsOf returns the permissions that the assignments give, sorted by their text and
// without duplicates. Each Grant has the roles that give the permission, and the union of
// the reaches of their assignments. GrantsOf omits permissions that have no effect, such as
// tenant:update in an assignment that is limited to departments.
//
// The reaches of all permissions together can be much larger than the assignments. So the list ends
// before it has more than 512 KiB in a response. The result more is then true.
func GrantsOf(assignments []rolecall.Assignment) (grants []Grant, more bool) {
	giving := map[rolecall.Permission][]*rolecall.Assignment{}
	for i := range assignments {
		a := &assignments[i]
		for _, permission := range a.Role.Permissions {
			if a.Reach.IsEverywhere() || permission.CountsWithin() {
				giving[permission] = append(giving[permission], a)
			}
		}
	}
	room := grantsRoom
	for _, permission := range rolecall.NormalPermissions(slices.Collect(maps.Keys(giving))) {
		g := Grant{Permission: permission}
		var reaches []rolecall.Reach
		for _, a := range giving[permission] {
			if n := len(g.Roles); n == 0 || g.Roles[n-1].ID != a.Role.ID { // a user can have a role in several ways
				g.Roles = append(g.Roles, a.Role)
			}
			reaches = append(reaches, a.Reach)
		}
		g.Reach = rolecall.UnionOf(reaches)
		if room -= g.size(); room < 0 {
			return grants, true
		}
		grants = append(grants, g)
	}
	return grants, false
}

// restrict returns copies of the assignments in which each role has only the permissions
// that the token covers too. The result is for display, and not for authorization. Each
// role keeps at most 1,024 permissions, which real roles and tokens do not reach.
func restrict(t *rolecall.APIToken, assignments []rolecall.Assignment) []rolecall.Assignment {
	restricted := slices.Clone(assignments)
	for i := range restricted {
		role := &restricted[i].Role
		role.Permissions = meet(role.Permissions, t.Permissions, 4*rolecall.RolePermissionsMax)
	}
	return restricted
}

// meet returns the permissions that a and b both cover, at most the number most.
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

// NewOperatorPrincipal returns the principal of an operator key in the tenant. This
// principal holds every permission in the tenant, although the operator is not a user of
// the tenant.
func NewOperatorPrincipal(tenant rolecall.Tenant, key *rolecall.OperatorKey, now rolecall.Time) *Principal {
	everything := rolecall.Assignment{
		Role:  rolecall.Role{Name: "Operator", Permissions: []rolecall.Permission{rolecall.AllOwn, rolecall.AllApplications}},
		Reach: rolecall.Everywhere(), ExpiresAt: rolecall.Never,
	}
	p := NewPrincipal(tenant, rolecall.User{ID: rolecall.UserID(key.ID), Name: key.Name}, rolecall.Session{}, []rolecall.Assignment{everything}, now)
	p.Kind, p.Operator = PrincipalOperator, key
	return p
}
