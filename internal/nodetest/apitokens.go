package nodetest

import (
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/node"
)

// TokenDraft returns a draft of a token with the permissions. The token expires after a
// day.
func (f *Fixture) TokenDraft(permissions ...string) rolecall.APITokenDraft {
	return rolecall.APITokenDraft{Name: "Nightly", Permissions: permissions, ExpiresAt: f.Clock.Now().Add(24 * time.Hour)}
}

// NewAccountToken creates an API token of a service account, with the permissions.
func (f *Fixture) NewAccountToken(id rolecall.ServiceAccountID, permissions ...string) directory.APIToken {
	f.Helper()
	created, err := f.Directory.CreateToken(f.Context(), f.Owner, NewKey(), rolecall.HolderOf(id), f.TokenDraft(permissions...))
	f.OK(err)
	return created.Value
}

// NewUserToken creates an API token of the caller.
func (f *Fixture) NewUserToken(c access.Caller, permissions ...string) directory.APIToken {
	f.Helper()
	created, err := f.Directory.CreateToken(f.Context(), c, NewKey(), rolecall.HolderOf(c.User.ID), f.TokenDraft(permissions...))
	f.OK(err)
	return created.Value
}

// AuthenticateToken returns the principal for an API token on a node.
func (f *Fixture) AuthenticateToken(node *node.Node, token directory.APIToken) (*authz.Principal, error) {
	return node.SignIn.AuthenticateBearer(f.Context(), f.Tenant, string(token.Secret), "192.0.2.1")
}

// Programs creates a role that allows its holders to read users, a user and a service
// account with this role, and an API token of each.
func (f *Fixture) Programs() (role rolecall.Role, member rolecall.User, account rolecall.ServiceAccount, tokens []directory.APIToken) {
	f.Helper()
	role, member = f.NewRole("Reader", "users:read"), f.NewMember("programmer")
	f.Assign(member.ID, role.ID, rolecall.AssignmentDraft{})
	account = f.NewAccount("Import", role.ID)
	return role, member, account, []directory.APIToken{
		f.NewUserToken(f.CallerOf(f.LogIn("programmer")), "users:read"), f.NewAccountToken(account.ID, "users:read"),
	}
}

// CallerByToken returns a request that is authenticated with the API token.
func (f *Fixture) CallerByToken(token directory.APIToken) access.Caller {
	f.Helper()
	p, err := f.AuthenticateToken(f.Node, token)
	f.OK(err)
	return access.Caller{Principal: p, RequestID: "request", Source: "192.0.2.1"}
}
