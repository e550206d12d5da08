package authz

import (
	"fmt"
	"strings"

	"github.com/rolecall/rolecall"
)

// Effect says how an operation changes access. Each operation declares one effect. If
// several effects apply, the operation declares the first of them in the list below. The
// effect decides whether the operation needs step-up: a recent sign-in or
// re-authentication.
type Effect string

// The effects on access.
const (
	// Grants adds or changes permissions, a credential, or a way in which a user or a
	// program can sign in. Changes of tenant settings have this effect too, because
	// settings decide how users sign in.
	Grants Effect = "grants"
	// Removes takes away something that the same caller cannot simply restore, such as a
	// user, a role, an assignment or a second factor.
	Removes Effect = "removes"
	// Ends suspends an account or a tenant, ends sessions, revokes a token or withdraws an
	// invitation. Such operations need no step-up, so that an administrator can stop an
	// attack without delay.
	Ends Effect = "ends"
	// Proves gives access only to the sender of the request, who authenticates in the same
	// request with a password, a code, a passkey or a link.
	Proves Effect = "proves"
	// NoEffect is the effect of operations that do not change access.
	NoEffect Effect = "none"
)

// Policy says which callers may perform an operation. AuthorizeFor checks the policy before
// the body of the request is read. After the user or service account of the request is
// loaded, AuthorizeUser or AuthorizeAccount checks the policy for this object. A Policy
// without anyone, permission and check allows no caller, except users with a session for
// themselves if self is true.
type Policy struct {
	Effect      Effect
	Public      bool // the operation works without a session
	Operators   bool // only callers with an operator key, for operations that are not inside a tenant
	SessionOnly bool // only callers with a session, not with an API token or an operator key

	scope rolecall.OperatorScope // that an operator key needs, if it does not have ScopeAll; empty: it must have ScopeAll

	anyone     bool                                              // every caller is allowed
	permission rolecall.Permission                               // the permission that the caller needs
	tenantWide bool                                              // the caller needs the permission in the whole tenant, because the object is not a user
	self       bool                                              // users with a session need no permission if they are the subject
	extraCheck func(p *Principal, subject rolecall.UserID) error // called after the check of permission
	// check is called in place of the check of permission, for operations that do not
	// depend on a single permission.
	check func(p *Principal, subject rolecall.UserID) error
	needs string // the text of Requirements about the permission; empty: it is made from permission, tenantWide and self

	ownInSession bool // users can perform the operation on themselves only with a session
	notSuspended bool // the operation is rejected for suspended users
	outranks     bool // see RequireOutranks
	takesOver    bool // see RequireTakeOver
	grantsRole   bool // the service method calls RequireGrantable for the role
	// checkUser is an additional check of the loaded user, after all other checks of
	// AuthorizeUser.
	checkUser func(p *Principal, u *rolecall.User, assignments []rolecall.Assignment, now rolecall.Time) error
}

// StepsUp reports whether the operation needs step-up: a recent sign-in or
// re-authentication. Operations that are public or for operators do not need it. Of the
// other operations, those that grant or remove access need it, and so do those without a
// declared effect. RequireRecent makes the check, only for callers with a session.
func (o *Policy) StepsUp() bool {
	if o.Public || o.Operators {
		return false
	}
	switch o.Effect {
	case Ends, Proves, NoEffect:
		return false
	}
	return true
}

// Requirements returns sentences in Markdown that say what a caller needs for the
// operation. The text is empty if the policy requires nothing of the caller.
func (o *Policy) Requirements() string {
	var sentences []string
	add := func(applies bool, sentence string) {
		if applies {
			sentences = append(sentences, sentence)
		}
	}
	needs := o.needs
	if needs == "" && !o.anyone && !o.Public {
		needs = fmt.Sprintf("`%s`", o.permission)
		if o.tenantWide {
			needs += " in the whole tenant"
		}
		if o.self {
			needs += ". Users with a session need no permission for their own account"
		}
	}
	add(needs != "", "Needs "+needs+".")
	add(o.scope == "" && o.Operators, "The operator key needs the scope `all`.")
	add(o.scope != "" && o.Operators, fmt.Sprintf("The operator key needs the scope `%s` or `all`.", o.scope))
	add(o.scope != "" && !o.Operators, fmt.Sprintf("An operator key needs the scope `%s` or `all`.", o.scope))
	add(o.SessionOnly, "Needs a session: API tokens and operator keys are refused.")
	add(o.ownInSession, "For their own account, users need a session: an API token is refused.")
	add(o.notSuspended, "The user must not be suspended.")
	caller, holder := "The caller", "user"
	if o.self {
		caller = "For another user or with an API token, the caller"
	}
	if o.tenantWide {
		holder = "service account"
	}
	add(o.outranks, fmt.Sprintf("%s must have each of Rolecall's own permissions that the %s has.", caller, holder))
	add(o.takesOver, fmt.Sprintf("%s must be able to assign every role of the %s.", caller, holder))
	add(o.grantsRole, "The caller must be able to assign the role.")
	add(o.StepsUp() && o.SessionOnly, "Needs a recent sign-in or re-authentication.")
	add(o.StepsUp() && !o.SessionOnly, "With a session, needs a recent sign-in or re-authentication.")
	return strings.Join(sentences, " ")
}

// RequireRecent returns ErrNotRecent if the principal has a session, and the last sign-in
// or re-authentication of this session is older than the tenant's setting allows.
func RequireRecent(p *Principal, now rolecall.Time) error {
	age := p.Tenant.Settings.ReauthenticationAge()
	if p.Interactive() && age > 0 && now.Sub(p.Session.ConfirmedSince()) > age {
		return rolecall.ErrNotRecent
	}
	return nil
}

// Authorize checks whether the principal may perform an operation that is not about one
// user. It returns ErrPermissionDenied, ErrScopeMissing or ErrSessionRequired if not.
func (o *Policy) Authorize(p *Principal) error { return o.AuthorizeFor(p, rolecall.UserID{}) }

// AuthorizeFor is like Authorize, for an operation on the user with the id subject. The
// user is not loaded yet, so AuthorizeFor only checks that the principal holds the
// permission for at least one user of the tenant. AuthorizeUser makes the check for this
// user. If the policy sets self, users with a session need no permission for operations on
// themselves.
func (o *Policy) AuthorizeFor(p *Principal, subject rolecall.UserID) error {
	if err := o.authorizeScope(p); err != nil {
		return err
	}
	if err := o.authorizeOperation(p, subject); err != nil {
		return err
	}
	if o.SessionOnly && !p.Interactive() {
		return rolecall.ErrSessionRequired
	}
	return nil
}

// authorizeScope returns ErrScopeMissing if the principal has an operator key that lacks the scope.
func (o *Policy) authorizeScope(p *Principal) error {
	if p.Operator == nil || p.Operator.Has(rolecall.ScopeAll) || o.scope != "" && p.Operator.Has(o.scope) {
		return nil
	}
	need := rolecall.ScopeAll
	if o.scope != "" {
		need = o.scope
	}
	return rolecall.ErrScopeMissing.With(fmt.Sprintf("This operation needs the scope %s, which this operator key does not have. Use a key that has it. The command rolecall operator-key create NAME --scope %s creates one.", need, need))
}

func (o *Policy) authorizeOperation(p *Principal, subject rolecall.UserID) error {
	switch {
	case o.anyone || o.self && p.IsSelf(subject):
		return nil
	case o.check != nil:
		return o.check(p, subject)
	}
	if reach := o.reach(p); reach.IsNowhere() || o.tenantWide && !reach.IsEverywhere() {
		return denied(o.permission)
	}
	if o.extraCheck != nil {
		return o.extraCheck(p, subject)
	}
	return nil
}

// reach returns the users that the policy's permission applies to, if the principal has it.
// If the policy has no permission, reach returns Nowhere. Without this case, the wildcard *:*
// would cover the empty permission.
func (o *Policy) reach(p *Principal) rolecall.Reach {
	if o.permission == (rolecall.Permission{}) {
		return rolecall.Nowhere()
	}
	return p.Reach(o.permission)
}

// NeedsAssignments reports whether AuthorizeUser uses the user's assignments.
func (o *Policy) NeedsAssignments() bool { return o.outranks || o.takesOver || o.checkUser != nil }

// AuthorizeUser checks whether the principal may perform the operation on the loaded user.
// The argument assignments has the user's assignments. If the operation is not allowed,
// AuthorizeUser returns ErrPermissionDenied, ErrSessionRequired, ErrUserSuspended,
// ErrUserPending, ErrPasswordsOff, ErrBeyondOwnPermissions or ErrFactorDemanded.
func (o *Policy) AuthorizeUser(p *Principal, u *rolecall.User, assignments []rolecall.Assignment, now rolecall.Time) error {
	switch {
	case o.ownInSession && u.ID == p.User.ID && !p.Interactive():
		return rolecall.ErrSessionRequired.With("You can do this to yourself only with a session, and not with an API token. Sign in and repeat the request.")
	case o.self && p.IsSelf(u.ID):
		return nil
	}
	if !o.reach(p).Includes(u.Department) {
		return denied(o.permission)
	}
	if o.notSuspended && u.Status == rolecall.UserSuspended {
		return rolecall.ErrUserSuspended
	}
	if err := o.authorizeRank(p, assignments, now); err != nil {
		return err
	}
	if o.checkUser != nil {
		return o.checkUser(p, u, assignments, now)
	}
	return nil
}

// AuthorizeAccount checks whether the principal may perform the operation on a service
// account. The argument assignments has the assignments of the account. If the operation is
// not allowed, AuthorizeAccount returns ErrPermissionDenied, ErrSessionRequired or
// ErrBeyondOwnPermissions.
func (o *Policy) AuthorizeAccount(p *Principal, assignments []rolecall.Assignment, now rolecall.Time) error {
	if err := o.Authorize(p); err != nil {
		return err
	}
	return o.authorizeRank(p, assignments, now)
}

func (o *Policy) authorizeRank(p *Principal, assignments []rolecall.Assignment, now rolecall.Time) error {
	if o.outranks {
		if err := RequireOutranks(p, assignments, now); err != nil {
			return err
		}
	}
	if o.takesOver {
		return RequireTakeOver(p, assignments, now)
	}
	return nil
}

// denied returns ErrPermissionDenied with a detail that names the permission.
func denied(permission rolecall.Permission) error {
	return rolecall.ErrPermissionDenied.With(fmt.Sprintf("You need the permission %s for this. You do not have it, or your reach does not include this.", permission))
}

// Holds reports whether the principal holds the permission for the users of the department.
// A nil department means that the principal must hold the permission in the whole tenant.
func (p *Principal) Holds(permission rolecall.Permission, department *string) bool {
	if !p.allows(permission) {
		return false
	}
	within := department != nil && (!permission.Own() || permission.BoundByReach())
	for a, grants := range p.holdings(permission) {
		if !grants && (a.Reach.IsEverywhere() || within && a.Reach.Includes(department)) {
			return true
		}
	}
	return false
}

// RequirePermission returns ErrPermissionDenied if Holds returns false.
func (p *Principal) RequirePermission(permission rolecall.Permission, department *string) error {
	if p.Holds(permission, department) {
		return nil
	}
	return denied(permission)
}

// AuthorizeMembers checks a change of the members of the user subject before this user is
// loaded. It returns ErrPermissionDenied if one of them is a member that the principal
// cannot change for even one user. Users with a session may always change their own name.
func AuthorizeMembers(p *Principal, subject rolecall.UserID, members rolecall.UserMembers) error {
	for m := range members.All() {
		if p.Updates(m).IsNowhere() && (m != rolecall.MemberName || !p.IsSelf(subject)) {
			return denied(m.Update())
		}
	}
	return nil
}

// AuthorizeMembersOf checks a change of the members of the loaded user. It returns
// ErrPermissionDenied if the principal may not change one of the members for this user.
// Users with a session may always change their own name.
func AuthorizeMembersOf(p *Principal, u *rolecall.User, members rolecall.UserMembers) error {
	for m := range members.All() {
		if m == rolecall.MemberName && p.IsSelf(u.ID) {
			continue
		}
		if !p.Updates(m).Includes(u.Department) {
			return denied(m.Update())
		}
	}
	return nil
}
