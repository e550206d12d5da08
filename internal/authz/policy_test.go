package authz_test

import (
	"errors"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
)

func TestAPolicyWithoutARuleDeniesEveryCaller(t *testing.T) {
	owner := principal(holds{permissions: "*:* */*:*"})
	var none authz.Policy
	if err := none.Authorize(owner); !errors.Is(err, rolecall.ErrPermissionDenied) {
		t.Errorf("the operation: %v", err)
	}
	if err := none.AuthorizeUser(owner, aUser("Sales"), nil, aMoment); !errors.Is(err, rolecall.ErrPermissionDenied) {
		t.Errorf("the user: %v", err)
	}
	if err := none.AuthorizeAccount(owner, nil, aMoment); !errors.Is(err, rolecall.ErrPermissionDenied) {
		t.Errorf("the service account: %v", err)
	}
	if !none.StepsUp() {
		t.Error("it needs no step-up")
	}
}

func TestTokensCannotActOnTheirOwnUser(t *testing.T) {
	token, session := ofToken(permissions("*:*"), []rolecall.Assignment{holds{permissions: "*:* */*:*"}.assignment()})
	for name, policy := range map[string]*authz.Policy{"change the address": authz.ChangeEmail, "reset the factors": authz.ResetFactors} {
		if err := policy.AuthorizeUser(token, &myself, nil, aMoment); !errors.Is(err, rolecall.ErrSessionRequired) {
			t.Errorf("%s by a token: %v", name, err)
		}
		if err := policy.AuthorizeUser(session, &myself, nil, aMoment); err != nil {
			t.Errorf("%s in a session: %v", name, err)
		}
	}
	if err := authz.ReadOwnFactors.Authorize(token); !errors.Is(err, rolecall.ErrSessionRequired) {
		t.Errorf("read one's own factors by a token: %v", err)
	}
}

func TestRequirementsDescribeThePolicy(t *testing.T) {
	for _, c := range []struct {
		policy *authz.Policy
		want   string
	}{
		{authz.ReadSession, ""},
		{authz.SignIn, ""},
		{authz.ListInvitations, "Needs `users:invite`."},
		{authz.ReadTenant, "Needs `tenant:read` in the whole tenant."},
		{authz.ReadSessions, "Needs `sessions:read`. Users with a session need no permission for their own account."},
		{authz.CreateTenant, "Needs an operator key for all tenants. The operator key needs the scope `tenants` or `all`."},
		{authz.ReadChanges, "Needs `changes:read` in the whole tenant. An operator key needs the scope `changes` or `all`."},
		{authz.ReadOwnFactors, "Needs a session: API tokens and operator keys are refused."},
		{authz.CreateRole, "Needs `roles:create`. The caller must be able to assign the role. With a session, needs a recent sign-in or re-authentication."},
		{authz.ResumeUser, "Needs `users:suspend`. The caller must have each of Rolecall's own permissions that the user has. The caller must be able to assign every role of the user. With a session, needs a recent sign-in or re-authentication."},
		{authz.DeleteUser, "Needs `users:delete`. The caller must have each of Rolecall's own permissions that the user has. With a session, needs a recent sign-in or re-authentication."},
		{authz.EndSessions, "Needs `sessions:revoke`. Users with a session need no permission for their own account. For another user or with an API token, the caller must have each of Rolecall's own permissions that the user has."},
		{authz.SuspendServiceAccount, "Needs `service-accounts:update` in the whole tenant. The caller must have each of Rolecall's own permissions that the service account has."},
	} {
		if got := c.policy.Requirements(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestAnOperatorKeyNeedsTheScopeOfTheOperation(t *testing.T) {
	for _, test := range []struct {
		policy *authz.Policy
		scope  rolecall.OperatorScope
	}{
		{authz.ReadTenants, rolecall.ScopeTenants}, {authz.CreateTenant, rolecall.ScopeTenants}, {authz.ChangeTenant, rolecall.ScopeTenants},
		{authz.SuspendTenant, rolecall.ScopeTenants}, {authz.DeleteTenant, rolecall.ScopeTenants}, {authz.ReadChanges, rolecall.ScopeChanges},
		{authz.UpdateTenant, rolecall.ScopeAll}, {authz.CreateUser, rolecall.ScopeAll}, {authz.ReadSession, rolecall.ScopeAll}, {authz.ReadUser, rolecall.ScopeAll},
	} {
		for _, scope := range rolecall.OperatorScopes() {
			key := (&rolecall.OperatorKeyDraft{Name: "Scoped", Scopes: []rolecall.OperatorScope{scope}, Lifetime: time.Hour}).OperatorKey(aMoment)
			err := test.policy.Authorize(authz.NewOperatorPrincipal(rolecall.Tenant{}, &key, aMoment))
			if allowed := scope == test.scope || scope == rolecall.ScopeAll; allowed && err != nil || !allowed && !errors.Is(err, rolecall.ErrScopeMissing) {
				t.Errorf("an operation with the scope %s by a key with the scope %s: %v", test.scope, scope, err)
			}
		}
	}
}
