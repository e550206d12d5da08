package authz

import (
	"fmt"
	"strings"

	"github.com/rolecall/rolecall"
)

// Effect says how an operation changes access. Each operation declares one effect. If
// several effects apply, the operation declares the one that is listed first. The effect
// decides whether the operation needs step-up: a recent sign-in or re-authentication.
type Effect string

// The effects on access.
const (
	// Grants adds or changes permissions, a credential, or a way in which a user or a
	// program can sign in. Changes of tenant settings have this effect too, because
	// settings decide how users sign in.
	Grants Effect = "grants"
	// Removes takes away something that the same caller cannot simply restore: a user, a
	// role, an assignment or a second factor.
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

// Policy says which callers may perform an operation. Authorize checks it before the body
// of the request is read. AuthorizeUser and AuthorizeAccount check it again after the user
// or the service account is loaded. A Policy that sets neither anyone, permission nor
// instead denies every caller.
type Policy struct {
	Effect      Effect
	Public      bool // the operation works without a session
	Operators   bool // only callers with an operator key, outside of tenants
	SessionOnly bool // only callers with a session, not with an API token or an operator key

	anyone     bool                // every caller is allowed
	permission rolecall.Permission // the permission that the caller needs
	tenantWide bool                // the caller needs the permission in the whole tenant, because the object is not a user
	self       bool                // users with a session need no permission for operations on themselves
	also       func(p *Principal, subject rolecall.UserID) error
	// instead replaces the check of a permission, in policies that do not depend on a
	// single permission.
	instead func(p *Principal, subject rolecall.UserID) error
	needs   string // replaces the permission in the text of Requirements

	ownInSession bool // users can perform the operation on themselves only with a session
	notSuspended bool // the operation is rejected for suspended users
	outranks     bool // see RequireOutranks
	takesOver    bool // see RequireTakeOver
	grantsRole   bool // the service method calls RequireGrantable for the role
	// object is an additional check of the loaded user. AuthorizeUser calls it last.
	object func(p *Principal, u *rolecall.User, assignments []rolecall.Assignment, now rolecall.Time) error
}

// StepsUp reports whether the operation needs step-up: a recent sign-in or
// re-authentication. It returns true for a policy without a declared effect. Callers with
// an API token or an operator key are not affected, because RequireRecent checks only
// sessions.
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

// Requirements describes in Markdown sentences what a caller needs for the operation. The
// text is empty if the policy requires nothing of the caller.
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
			needs += ". With a session, users need no permission for themselves"
		}
	}
	add(needs != "", "Needs "+needs+".")
	add(o.SessionOnly, "Needs a session: API tokens and operator keys are refused.")
	add(o.ownInSession, "Users can do this to themselves only with a session.")
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

// RequireRecent returns ErrNotRecent if the principal has a session and its last sign-in
// or re-authentication is older than the tenant's setting for step-up allows.
func RequireRecent(p *Principal, now rolecall.Time) error {
	age := p.Tenant.Settings.ReauthenticationAge()
	if p.Interactive() && age > 0 && now.Sub(p.Session.ConfirmedSince()) > age {
		return rolecall.ErrNotRecent
	}
	return nil
}

// Authorize decides whether the principal may perform an operation that is not about one
// user. It returns ErrPermissionDenied or ErrSessionRequired.
func (o *Policy) Authorize(p *Principal) error { return o.AuthorizeFor(p, rolecall.UserID{}) }

// AuthorizeFor is like Authorize, for an operation on the user with the id subject. It is
// called before this user is loaded, so it only checks that the principal holds the
// permission for at least one user of the tenant. If the policy sets self, users with a
// session need no permission for operations on themselves.
func (o *Policy) AuthorizeFor(p *Principal, subject rolecall.UserID) error {
	if err := o.authorizeOperation(p, subject); err != nil {
		return err
	}
	if o.SessionOnly && !p.Interactive() {
		return rolecall.ErrSessionRequired
	}
	return nil
}

func (o *Policy) authorizeOperation(p *Principal, subject rolecall.UserID) error {
	switch {
	case o.anyone || o.self && p.IsSelf(subject):
		return nil
	case o.instead != nil:
		return o.instead(p, subject)
	}
	if reach := o.reach(p); reach.IsNowhere() || o.tenantWide && !reach.IsEverywhere() {
		return denied(o.permission)
	}
	if o.also != nil {
		return o.also(p, subject)
	}
	return nil
}

// reach returns the reach in which the principal holds the permission of the policy. If
// the policy has no permission, reach returns Nowhere. Without this case, a wildcard such
// as *:* would cover the empty permission.
func (o *Policy) reach(p *Principal) rolecall.Reach {
	if o.permission == (rolecall.Permission{}) {
		return rolecall.Nowhere()
	}
	return p.Reach(o.permission)
}

// NeedsAssignments reports whether AuthorizeUser uses the user's assignments.
func (o *Policy) NeedsAssignments() bool { return o.outranks || o.takesOver || o.object != nil }

// AuthorizeUser decides whether the principal may perform the operation on the user. The
// argument assignments has the user's assignments. AuthorizeUser returns
// ErrPermissionDenied, ErrSessionRequired, ErrUserSuspended, ErrUserPending,
// ErrBeyondOwnPermissions or ErrFactorDemanded.
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
	if o.object != nil {
		return o.object(p, u, assignments, now)
	}
	return nil
}

// AuthorizeAccount decides whether the principal may perform the operation on the service
// account with these assignments. It returns ErrPermissionDenied, ErrSessionRequired or
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

// denied returns ErrPermissionDenied with a text that names the missing permission.
func denied(permission rolecall.Permission) error {
	return rolecall.ErrPermissionDenied.With(fmt.Sprintf("You need the permission %s for this. You do not have it, or your reach does not include this.", permission))
}

// Holds reports whether the principal holds the permission for the users of the
// department. If the department is nil, Holds reports whether the principal holds the
// permission in the whole tenant.
func (p *Principal) Holds(permission rolecall.Permission, department *string) bool {
	reach := p.Reach(permission)
	return reach.IsEverywhere() || department != nil && reach.Includes(department)
}

// RequirePermission returns ErrPermissionDenied unless Holds returns true.
func (p *Principal) RequirePermission(permission rolecall.Permission, department *string) error {
	if p.Holds(permission, department) {
		return nil
	}
	return denied(permission)
}

// AuthorizeMembers checks a change of a user before the user is loaded, while the body of
// the request is decoded. It returns ErrPermissionDenied if there is a member that the
// principal may not change for any user. Users with a session may always change their own
// name.
func AuthorizeMembers(p *Principal, subject rolecall.UserID, members rolecall.UserMembers) error {
	for m := range members.All() {
		if p.Updates(m).IsNowhere() && (m != rolecall.MemberName || !p.IsSelf(subject)) {
			return denied(m.Update())
		}
	}
	return nil
}

// AuthorizeMembersOf checks a change of the loaded user. It returns ErrPermissionDenied if
// there is a member that the principal may not change for this user. Users with a session
// may always change their own name.
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
