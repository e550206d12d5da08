package console

import (
	"cmp"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
)

// holder is who holds roles, and for whom API tokens speak: the pages about both are the
// same for a user and for a service account.
type holder struct {
	id      rolecall.Holder
	name    string
	sure    string              // what to type to confirm that it is them
	section string              // of the navigation
	list    string              // address of all such, empty if the caller may not list them
	home    string              // address of their page
	needed  rolecall.Permission // to change what they hold
	assigns bool                // the caller has that
	makes   bool                // the caller may make tokens
	revokes bool                // the caller may revoke them, as far as that can be told beforehand
}

// expiredShown is how many expired assignments are on a page with other things.
const expiredShown = 5

// userHolder returns the user.
func userHolder(v *pageContext, u *rolecall.User) holder {
	list := ""
	if authz.ListUsers.Authorize(v.call.Principal) == nil {
		list = v.path("/users")
	}
	return holder{
		id: rolecall.HolderOf(u.ID), name: nameOf(v, u), sure: sureWords(v, u), section: "Users", list: list, home: userAddress(v, u.ID, ""),
		needed: rolecall.RolesAssign, assigns: v.call.Reach(rolecall.RolesAssign).Includes(u.Department),
		makes:   authz.CreateUserToken.AuthorizeFor(v.call.Principal, u.ID) == nil,
		revokes: v.call.IsSelf(u.ID) || v.call.Reach(rolecall.SessionsRevoke).Includes(u.Department),
	}
}

// accountHolder returns the service account.
func accountHolder(v *pageContext, a *rolecall.ServiceAccount) holder {
	updates := authz.UpdateServiceAccount.Authorize(v.call.Principal) == nil
	return holder{
		id: rolecall.HolderOf(a.ID), name: a.Name, section: "Service accounts", list: v.path("/service-accounts"), home: v.path("/service-accounts/" + a.ID.String()),
		needed: rolecall.ServiceAccountsUpdate, assigns: updates, makes: updates, revokes: updates,
	}
}

// called returns what to call the holder in a sentence to the caller.
func (h holder) called(f frame) string {
	if h.id == rolecall.HolderOf(f.call.User.ID) {
		return "you"
	}
	return h.name
}

// userOf returns the user of the path.
func userOf(s *console, v *pageContext) (holder, error) {
	user, err := s.directory.User(v.ctx, v.call, v.userID)
	return userHolder(v, &user), err
}

// accountOf returns the service account of the path.
func accountOf(s *console, v *pageContext) (holder, error) {
	account, err := s.directory.ServiceAccount(v.ctx, v.call, v.accountID)
	return accountHolder(v, &account), err
}

// holderKind is one kind of holders: where they are, and the operations of the contract
// that the pages about their roles and API tokens stand for.
type holderKind struct {
	path string                             // of their list
	id   func(*pageContext) rolecall.Holder // of the path
	read string                             // the operation that find stands for
	find func(*console, *pageContext) (holder, error)

	listRoles, assignRole, unassignRole  string
	listTokens, createToken, revokeToken string
}

var holderKinds = []holderKind{
	{
		path: "/users", id: func(v *pageContext) rolecall.Holder { return rolecall.HolderOf(v.userID) },
		read: "UsersController_getUser", find: userOf,
		listRoles: "UsersController_listUserRoles", assignRole: "UsersController_assignRole", unassignRole: "UsersController_unassignRole",
		listTokens: "UsersController_listUserTokens", createToken: "UsersController_createUserToken", revokeToken: "UsersController_revokeUserToken",
	},
	{
		path: "/service-accounts", id: func(v *pageContext) rolecall.Holder { return rolecall.HolderOf(v.accountID) },
		read: "ServiceAccountsController_getServiceAccount", find: accountOf,
		listRoles: "ServiceAccountsController_listServiceAccountRoles", assignRole: "ServiceAccountsController_assignServiceAccountRole", unassignRole: "ServiceAccountsController_unassignServiceAccountRole",
		listTokens: "ServiceAccountsController_listServiceAccountTokens", createToken: "ServiceAccountsController_createServiceAccountToken", revokeToken: "ServiceAccountsController_revokeServiceAccountToken",
	},
}

// page returns what a page does about holders of the kind.
func (k *holderKind) page(does func(*pageContext, *holderKind) error) func(*pageContext) error {
	return func(v *pageContext) error { return does(v, k) }
}

// home returns the page of the holder of the path.
func (k *holderKind) home(v *pageContext) string { return homeOf(v, k.path) }

// homeOf returns the page of the one of the path, of the list at that path.
func homeOf(v *pageContext, list string) string {
	return v.path(list + "/" + cmp.Or(rolecall.AnyID(v.userID), rolecall.AnyID(v.accountID)).String())
}
