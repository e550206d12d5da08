package service

import (
	"fmt"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
)

// Need is what an operation asks of the principal before the rest of the request
// is looked at. Subject is the user of the path, zero if there is none. It
// returns nil, ErrPermissionDenied or ErrSessionRequired; whether the act is allowed on the object
// itself is asked again when the object is known.
type Need func(p *authz.Principal, subject rolecall.UserID) error

// holds needs one of the permissions for anybody at all.
func holds(permissions ...rolecall.Permission) Need {
	return func(p *authz.Principal, _ rolecall.UserID) error {
		for _, permission := range permissions {
			if !p.Reach(permission).IsNowhere() {
				return nil
			}
		}
		return denied(permissions[0])
	}
}

// holdsEverywhere needs a permission whose object is not a user.
func holdsEverywhere(permission rolecall.Permission) Need {
	return func(p *authz.Principal, _ rolecall.UserID) error {
		if !p.Reach(permission).IsEverywhere() {
			return denied(permission)
		}
		return nil
	}
}

// orOneself lifts a need for what everybody may do to themselves, in person.
func orOneself(need Need) Need {
	return func(p *authz.Principal, subject rolecall.UserID) error {
		if p.IsSelf(subject) {
			return nil
		}
		return need(p, subject)
	}
}

// orOwnRecord lifts a need for reading the record of whom the principal speaks for,
// which is all that a token has of the right to oneself.
func orOwnRecord(need Need) Need {
	return func(p *authz.Principal, subject rolecall.UserID) error {
		if subject == p.User.ID {
			return nil
		}
		return need(p, subject)
	}
}

func denied(permission rolecall.Permission) error {
	return rolecall.ErrPermissionDenied.With(fmt.Sprintf("Your roles do not allow this: it needs %s.", permission))
}

// What the operations need.
var (
	NeedSession Need = func(*authz.Principal, rolecall.UserID) error { return nil }

	// NeedOperator is of what AuthenticateOperator has let in.
	NeedOperator Need = func(*authz.Principal, rolecall.UserID) error { return nil }
	// NeedEveryTenant is of an operator whose key is for all tenants.
	NeedEveryTenant Need = func(p *authz.Principal, _ rolecall.UserID) error {
		if p.Operator.Tenants != nil {
			return rolecall.ErrPermissionDenied.With("This key is for certain tenants and makes no others.")
		}
		return nil
	}

	NeedListUsers      Need = readsSomeMember
	NeedReadUser       Need = orOwnRecord(seesSomebody)
	NeedCreateUsers         = holds(rolecall.UsersCreate)
	NeedUpdateUser          = orOneself(updatesSomeMember)
	NeedDeleteUsers         = holds(rolecall.UsersDelete)
	NeedSuspendUsers        = holds(rolecall.UsersSuspend)
	NeedInviteUsers         = holds(rolecall.UsersInvite)
	NeedRestoreUsers        = holds(rolecall.UsersRestore)
	NeedResetFactors        = holds(rolecall.UsersFactors)
	NeedEraseUsers          = holds(rolecall.UsersErase)
	NeedChangeEmail         = orOneself(holds(rolecall.UsersEmail))
	NeedReadUserRoles       = orOneself(holds(rolecall.RolesRead))
	NeedAssignRoles         = holds(rolecall.RolesAssign)
	NeedReadSessions        = orOneself(holds(rolecall.SessionsRead))
	NeedEndSessions         = orOneself(holds(rolecall.SessionsRevoke))
	NeedReadUserEvents      = orOneself(holdsEverywhere(rolecall.EventsRead))
	NeedReadEvents          = holdsEverywhere(rolecall.EventsRead)
	NeedReadTenant          = holdsEverywhere(rolecall.TenantRead)
	NeedUpdateTenant        = holdsEverywhere(rolecall.TenantUpdate)
	NeedReadRoles           = holds(rolecall.RolesRead)
	NeedCreateRoles         = holds(rolecall.RolesCreate)
	NeedUpdateRoles         = holds(rolecall.RolesUpdate)
	NeedDeleteRoles         = holds(rolecall.RolesDelete)

	NeedReadUserTokens        = orOneself(holds(rolecall.SessionsRead))
	NeedRevokeUserTokens      = orOneself(holds(rolecall.SessionsRevoke))
	NeedReadServiceAccounts   = holdsEverywhere(rolecall.ServiceAccountsRead)
	NeedCreateServiceAccounts = holdsEverywhere(rolecall.ServiceAccountsCreate)
	NeedUpdateServiceAccounts = holdsEverywhere(rolecall.ServiceAccountsUpdate)
	NeedDeleteServiceAccounts = holdsEverywhere(rolecall.ServiceAccountsDelete)

	// NeedCreateUserToken is for oneself alone: nobody gets a token that speaks for
	// somebody else.
	NeedCreateUserToken Need = func(p *authz.Principal, subject rolecall.UserID) error {
		if subject != p.User.ID {
			return rolecall.ErrPermissionDenied.With("Users make their tokens themselves: nobody else gets one that speaks for them.")
		}
		return nil
	}

	// NeedCreateServiceAccountToken is for people and operators: a token makes no
	// tokens.
	NeedCreateServiceAccountToken Need = func(p *authz.Principal, subject rolecall.UserID) error {
		if err := NeedUpdateServiceAccounts(p, subject); err != nil {
			return err
		}
		if p.Token != nil {
			return rolecall.ErrSessionRequired.With("A token makes no tokens. This needs the session of a person, or the key of an operator.")
		}
		return nil
	}

	NeedListRoleUsers Need = func(p *authz.Principal, subject rolecall.UserID) error {
		if err := NeedReadRoles(p, subject); err != nil {
			return err
		}
		return readsSomeMember(p, subject)
	}
)

func readsSomeMember(p *authz.Principal, _ rolecall.UserID) error {
	for m := range rolecall.AllUserMembers.All() {
		if !p.Reads(m).IsNowhere() {
			return nil
		}
	}
	return denied(rolecall.UsersRead)
}

func updatesSomeMember(p *authz.Principal, _ rolecall.UserID) error {
	for m := range rolecall.AllUserMembers.All() {
		if !p.Updates(m).IsNowhere() {
			return nil
		}
	}
	return denied(rolecall.UsersUpdate)
}

// NeedUpdateMembers returns ErrPermissionDenied if there is a member among those named that
// the principal may change of no user at all. Everybody may change their own name.
// Whether the principal may change it of the subject is checked when the user is known.
func NeedUpdateMembers(p *authz.Principal, subject rolecall.UserID, members rolecall.UserMembers) error {
	for m := range members.All() {
		if p.Updates(m).IsNowhere() && (m != rolecall.MemberName || !p.IsSelf(subject)) {
			return denied(m.Update())
		}
	}
	return nil
}

func seesSomebody(p *authz.Principal, _ rolecall.UserID) error {
	if p.Visible().IsNowhere() {
		return denied(rolecall.UsersRead)
	}
	return nil
}
