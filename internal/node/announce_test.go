package node_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/connections"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/passkey/passkeytest"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/webhooks"
)

// subject is the user that one case changes. The user has a role and a session.
type subject struct {
	name  string
	user  rolecall.User
	role  rolecall.Role
	token secret.Token
}

// mutations are the service methods that change data. The field announced says whether the
// method must notify other nodes, because it changes data that their caches can contain.
// No cache contains a new row. The last use of a session is not announced either, because
// a node reads the session again before it treats the session as unused.
var mutations = []struct {
	method    string
	what      string
	announced bool
	prepare   func(*fixture, subject) (act func() error)
}{
	{"AssignRole", "", true, func(f *fixture, s subject) func() error {
		role := f.role("Second of "+s.name, "users:create")
		return func() error {
			return errorOf3(f.Directory.AssignRole(f.Context(), f.owner, rolecall.HolderOf(s.user.ID), role.ID, rolecall.AssignmentDraft{}))
		}
	}},
	{"UnassignRole", "", true, func(f *fixture, s subject) func() error {
		return func() error {
			return f.Directory.UnassignRole(f.Context(), f.owner, rolecall.HolderOf(s.user.ID), s.role.ID)
		}
	}},
	{"CreateRole", "", false, func(f *fixture, s subject) func() error {
		return func() error {
			return errorOf(f.Directory.CreateRole(f.Context(), f.owner, newKey(), rolecall.RoleDraft{Name: "New of " + s.name}))
		}
	}},
	{"UpdateRole", "", true, func(f *fixture, s subject) func() error {
		return func() error {
			return errorOf(f.Directory.UpdateRole(f.Context(), f.owner, s.role.ID, rolecall.RolePatch{Permissions: rolecall.Some([]string{})}, nil))
		}
	}},
	{"UpdateRole", "to what it is", false, func(f *fixture, s subject) func() error {
		return func() error {
			return errorOf(f.Directory.UpdateRole(f.Context(), f.owner, s.role.ID, rolecall.RolePatch{Name: rolecall.Some(s.role.Name)}, nil))
		}
	}},
	{"DeleteRole", "", true, func(f *fixture, s subject) func() error {
		return func() error { return f.Directory.DeleteRole(f.Context(), f.owner, s.role.ID, true, nil) }
	}},
	{"CreateUser", "", false, func(f *fixture, s subject) func() error {
		return func() error {
			return errorOf(f.Directory.CreateUser(f.Context(), f.owner, newKey(), rolecall.UserDraft{Email: address("new-" + s.name), Name: "New"}))
		}
	}},
	{"UpdateUser", "", true, func(f *fixture, s subject) func() error {
		return func() error {
			return errorOf(f.Directory.UpdateUser(f.Context(), f.owner, s.user.ID, rolecall.UserPatch{Name: rolecall.Some("Renamed")}, nil))
		}
	}},
	{"DeleteUser", "", true, func(f *fixture, s subject) func() error {
		return func() error { return f.Directory.DeleteUser(f.Context(), f.owner, s.user.ID, nil) }
	}},
	{"RestoreUser", "", false, func(f *fixture, s subject) func() error {
		f.remove(s.user.ID)
		return func() error { return errorOf(f.Directory.RestoreUser(f.Context(), f.owner, s.user.ID)) }
	}},
	{"EraseUser", "", true, func(f *fixture, s subject) func() error {
		return func() error { return f.Directory.EraseUser(f.Context(), f.owner, s.user.ID, "") }
	}},
	{"SuspendUser", "", true, func(f *fixture, s subject) func() error {
		return func() error { return errorOf(f.Directory.SuspendUser(f.Context(), f.owner, s.user.ID, "")) }
	}},
	{"StepJob", "", true, func(f *fixture, s subject) func() error {
		f.startJob(f.owner, directory.JobDraft{Action: rolecall.JobSuspend, Filter: rolecall.JobFilter{Words: rolecall.Words(s.name), Role: s.role.ID}})
		claimed := f.claimJob(f.Node)
		return func() error { return errorOf(f.Directory.StepJob(f.Context(), claimed)) }
	}},
	{"ResumeUser", "", true, func(f *fixture, s subject) func() error {
		f.ok(errorOf(f.Directory.SuspendUser(f.Context(), f.owner, s.user.ID, "")))
		return func() error { return errorOf(f.Directory.ResumeUser(f.Context(), f.owner, s.user.ID, "")) }
	}},
	{"InviteUser", "", false, func(f *fixture, s subject) func() error {
		return func() error {
			return errorOf(f.Directory.InviteUser(f.Context(), f.owner, newKey(), s.user.ID))
		}
	}},
	{"IssueInvitation", "", false, func(f *fixture, s subject) func() error {
		c := f.operatorInside()
		return func() error { return errorOf(f.Directory.IssueInvitation(f.Context(), c, newKey(), s.user.ID)) }
	}},
	{"AcceptInvitation", "", true, func(f *fixture, s subject) func() error {
		token := f.invite(s.user.ID)
		return func() error {
			return errorOf(f.SignIn.AcceptInvitation(f.Context(), f.attempt(), token, "another "+password))
		}
	}},
	{"WithdrawInvitation", "", false, func(f *fixture, s subject) func() error {
		f.invite(s.user.ID)
		return func() error { return f.Directory.WithdrawInvitation(f.Context(), f.owner, s.user.ID) }
	}},
	{"ChangePassword", "with another session", true, func(f *fixture, s subject) func() error {
		call := f.call(f.signIn(s.name))
		return func() error {
			return errorOf(f.SignIn.ChangePassword(f.Context(), call, password, "another "+password))
		}
	}},
	{"RequestPasswordReset", "", false, func(f *fixture, s subject) func() error {
		return func() error { return f.requestReset("192.0.2.7", address(s.name)) }
	}},
	{"SendPasswordReset", "", false, func(f *fixture, s subject) func() error {
		return func() error {
			return errorOf(f.SignIn.SendPasswordReset(f.Context(), f.owner, newKey(), s.user.ID))
		}
	}},
	{"IssuePasswordReset", "", false, func(f *fixture, s subject) func() error {
		c := f.operatorInside()
		return func() error { return errorOf(f.SignIn.IssuePasswordReset(f.Context(), c, newKey(), s.user.ID)) }
	}},
	{"ResetPassword", "", true, func(f *fixture, s subject) func() error {
		token := f.resetLink(s.name)
		return func() error { return f.reset(token, anotherPassword) }
	}},
	{"RequestEmailChange", "", false, func(f *fixture, s subject) func() error {
		return func() error { return f.requestEmailChange(f.owner, s.user.ID, "new-"+s.name) }
	}},
	{"ChangeEmail", "", true, func(f *fixture, s subject) func() error {
		token := f.emailLink(f.owner, s.user.ID, "new-"+s.name)
		return func() error { return f.confirm(token) }
	}},
	{"Login", "", false, func(f *fixture, s subject) func() error {
		return func() error {
			return errorOf(f.SignIn.Login(f.Context(), f.attempt(), address(s.name), password))
		}
	}},
	{"Login", "in place of a session", true, func(f *fixture, s subject) func() error {
		return func() error {
			return errorOf(f.SignIn.Login(f.Context(), f.attempt(s.token), address(s.name), password))
		}
	}},
	{"Logout", "", true, func(f *fixture, s subject) func() error {
		return func() error { return f.SignIn.Logout(f.Context(), f.attempt(s.token)) }
	}},
	{"LogoutAtProvider", "", true, func(f *fixture, s subject) func() error {
		return func() error {
			return errorOf(f.SignIn.LogoutAtProvider(f.Context(), f.attempt(s.token), returnTo, noOp))
		}
	}},
	{"Login", "beyond the limit of sessions", true, func(f *fixture, s subject) func() error {
		a := f.attempt()
		a.Tenant.Settings.SessionsMax = new(int64(1))
		return func() error { return errorOf(f.SignIn.Login(f.Context(), a, address(s.name), password)) }
	}},
	{"Reauthenticate", "", true, func(f *fixture, s subject) func() error {
		in := f.signIn(s.name)
		return func() error { return f.reconfirm(in, password, signin.Proof{}) }
	}},
	{"ReauthenticateByCode", "", true, func(f *fixture, s subject) func() error {
		p, in := provideFor(f, s.user.ID), f.signIn(s.name)
		a := f.attempt(in.Token)
		cookie, query := p.begin(a, signin.ConnectionStart{Purpose: signin.PurposeConfirm})
		code, err := p.complete(a, cookie, query)
		f.ok(err)
		return func() error {
			return errorOf(f.SignIn.ReauthenticateByCode(f.Context(), f.call(in), []secret.Token{in.Token}, code, "", signin.Proof{}))
		}
	}},
	{"CompleteAttempt", "", false, func(f *fixture, s subject) func() error {
		p := provideFor(f, s.user.ID)
		cookie, query := p.begin(f.attempt(), signin.ConnectionStart{})
		return func() error { return errorOf(p.complete(f.attempt(s.token), cookie, query)) }
	}},
	{"ExchangeCode", "in place of a session", true, func(f *fixture, s subject) func() error {
		code := provideFor(f, s.user.ID).codeFor()
		return func() error {
			return errorOf(f.SignIn.ExchangeCode(f.Context(), f.attempt(s.token), code, verifier))
		}
	}},
	{"ExchangeCode", "", false, func(f *fixture, s subject) func() error {
		p := provideFor(f, s.user.ID)
		code := p.codeFor()
		return func() error {
			return errorOf(f.SignIn.ExchangeCode(f.Context(), forHeader(f.attempt()), code, verifier))
		}
	}},
	{"EndUserSession", "", true, func(f *fixture, s subject) func() error {
		session := f.signIn(s.name).Principal.Session.ID
		return func() error { return f.SignIn.EndUserSession(f.Context(), f.owner, s.user.ID, session) }
	}},
	{"EndUserSessions", "", true, func(f *fixture, s subject) func() error {
		return func() error { return f.SignIn.EndUserSessions(f.Context(), f.owner, s.user.ID) }
	}},
	{"Refresh", "", false, func(f *fixture, s subject) func() error {
		return func() error { return errorOf(f.SignIn.Refresh(f.Context(), f.attempt(s.token))) }
	}},
	{"Authenticate", "after a minute", false, func(f *fixture, s subject) func() error {
		f.clock.advance(2 * rolecall.TouchInterval)
		return func() error { return errorOf(f.authenticate(f.Node, s.token)) }
	}},
	{"Authenticate", "with a successor", true, func(f *fixture, s subject) func() error {
		in, err := f.SignIn.Refresh(f.Context(), f.attempt(s.token))
		f.ok(err)
		return func() error { return errorOf(f.authenticate(f.Node, in.Token)) }
	}},
	{"SetPassword", "with a session", true, func(f *fixture, s subject) func() error {
		return func() error {
			return f.SignIn.SetPassword(f.Context(), f.tenant.Name, address(s.name), "another "+password)
		}
	}},
	{"SetEmail", "", true, func(f *fixture, s subject) func() error {
		return func() error {
			return f.SignIn.SetEmail(f.Context(), f.tenant.Name, address(s.name), address("moved-"+s.name))
		}
	}},
	{"ResetFactorsOf", "", true, func(f *fixture, s subject) func() error {
		f.enrol(f.call(f.signIn(s.name)))
		return func() error { return f.SignIn.ResetFactorsOf(f.Context(), f.tenant.Name, address(s.name)) }
	}},
	{"AddOwner", "", true, func(f *fixture, s subject) func() error {
		return func() error { return f.Directory.AddOwner(f.Context(), f.tenant.Name, address(s.name)) }
	}},
	{"UpdateTenant", "", true, func(f *fixture, s subject) func() error {
		return func() error {
			return errorOf(f.Directory.UpdateTenant(f.Context(), f.owner, rolecall.TenantPatch{DisplayName: rolecall.Some("Of " + s.name)}, nil))
		}
	}},
	{"UpdateOperatedTenant", "", true, func(f *fixture, s subject) func() error {
		c := f.operates(s.name)
		return func() error {
			return errorOf(f.Directory.UpdateOperatedTenant(f.Context(), c, f.tenant.Name, rolecall.TenantPatch{DisplayName: rolecall.Some("Operated by " + s.name)}, nil))
		}
	}},
	{"SetLogo", "", true, func(f *fixture, s subject) func() error {
		file := rolecall.LogoFile{MediaType: "image/png", Content: aLogo(f, 64+len(s.name))}
		return func() error { return errorOf(f.Directory.SetLogo(f.Context(), f.owner, file, nil)) }
	}},
	{"RemoveLogo", "", true, func(f *fixture, s subject) func() error {
		file := rolecall.LogoFile{MediaType: "image/png", Content: aLogo(f, 64)}
		f.ok(errorOf(f.Directory.SetLogo(f.Context(), f.owner, file, nil)))
		return func() error { return f.Directory.RemoveLogo(f.Context(), f.owner, nil) }
	}},
	{"SuspendTenant", "", true, func(f *fixture, s subject) func() error {
		f.newTenant(s.name)
		return func() error {
			return errorOf(f.Directory.SuspendTenant(f.Context(), access.Command, s.name, ""))
		}
	}},
	{"ResumeTenant", "", true, func(f *fixture, s subject) func() error {
		f.newTenant(s.name)
		f.ok(errorOf(f.Directory.SuspendTenant(f.Context(), access.Command, s.name, "")))
		return func() error {
			return errorOf(f.Directory.ResumeTenant(f.Context(), access.Command, s.name, ""))
		}
	}},
	{"DeleteTenant", "", true, func(f *fixture, s subject) func() error {
		f.newTenant(s.name)
		return func() error { return f.Directory.DeleteTenant(f.Context(), access.Command, s.name, nil) }
	}},
	{"RestoreTenant", "", true, func(f *fixture, s subject) func() error {
		f.newTenant(s.name)
		f.ok(f.Directory.DeleteTenant(f.Context(), access.Command, s.name, nil))
		return func() error {
			return errorOf(f.Directory.RestoreTenant(f.Context(), access.Command, s.name, ""))
		}
	}},
	{"RestoreTenant", "that is not deleted", false, func(f *fixture, s subject) func() error {
		f.newTenant(s.name)
		return func() error {
			return errorOf(f.Directory.RestoreTenant(f.Context(), access.Command, s.name, ""))
		}
	}},
	{"RevokeOperatorKey", "", true, func(f *fixture, s subject) func() error {
		key, _ := f.operatorKey(s.name)
		return func() error { return f.Directory.RevokeOperatorKey(f.Context(), key.ID) }
	}},
	{"BeginTOTP", "", false, func(f *fixture, s subject) func() error {
		call := f.call(f.signIn(s.name))
		return func() error { return errorOf(f.SignIn.BeginTOTP(f.Context(), call)) }
	}},
	{"ConfirmTOTP", "", true, func(f *fixture, s subject) func() error {
		call := f.signInAlone(s)
		begun, err := f.SignIn.BeginTOTP(f.Context(), call)
		f.ok(err)
		return func() error { return errorOf(f.SignIn.ConfirmTOTP(f.Context(), call, f.appOf(begun).code())) }
	}},
	{"MakeRecoveryCodes", "", false, func(f *fixture, s subject) func() error {
		call := f.call(f.signIn(s.name))
		f.enrol(call)
		return func() error { return errorOf(f.SignIn.MakeRecoveryCodes(f.Context(), call)) }
	}},
	{"RemoveTOTP", "", true, func(f *fixture, s subject) func() error {
		call := f.signInAlone(s)
		f.enrol(call)
		return func() error { return f.SignIn.RemoveTOTP(f.Context(), call) }
	}},
	{"AddPasskey", "", true, func(f *fixture, s subject) func() error {
		call := f.signInAlone(s)
		options, err := f.SignIn.PasskeyCreationOptions(f.Context(), call)
		f.ok(err)
		document := passkeytest.New(origin).Create(f, options)
		return func() error {
			return errorOf(f.SignIn.AddPasskey(f.Context(), call, newKey(), "Telefon", document))
		}
	}},
	{"UpdatePasskey", "", false, func(f *fixture, s subject) func() error {
		call := f.signInAlone(s)
		key := f.passkey(call, passkeytest.New(origin))
		return func() error {
			return errorOf(f.SignIn.UpdatePasskey(f.Context(), call, key.ID, rolecall.Some("Key")))
		}
	}},
	{"RemovePasskey", "", true, func(f *fixture, s subject) func() error {
		call := f.signInAlone(s)
		key := f.passkey(call, passkeytest.New(origin))
		return func() error { return f.SignIn.RemovePasskey(f.Context(), call, key.ID) }
	}},
	{"PasskeySignIn", "", false, func(f *fixture, s subject) func() error {
		phone := passkeytest.New(origin)
		f.passkey(f.call(f.signIn(s.name)), phone)
		return func() error { return errorOf(f.byPasskey(phone.Get(f, f.signInOptions()))) }
	}},
	{"CompleteSignIn", "", false, func(f *fixture, s subject) func() error {
		_, codes := f.enrol(f.call(f.signIn(s.name)))
		challenge := f.factorChallenge(s.name)
		return func() error { return errorOf(f.answer(challenge, signin.Proof{RecoveryCode: string(codes[0])})) }
	}},
	{"ResetFactors", "", true, func(f *fixture, s subject) func() error {
		f.enrol(f.call(f.signIn(s.name)))
		return func() error { return f.SignIn.ResetFactors(f.Context(), f.owner, s.user.ID) }
	}},
	{"CreateServiceAccount", "", false, func(f *fixture, s subject) func() error {
		return func() error {
			return errorOf(f.Directory.CreateServiceAccount(f.Context(), f.owner, newKey(), rolecall.ServiceAccountDraft{Name: "Of " + s.name}))
		}
	}},
	{"UpdateServiceAccount", "", true, onAccount(func(f *fixture, s subject, id rolecall.ServiceAccountID) error {
		return errorOf(f.Directory.UpdateServiceAccount(f.Context(), f.owner, id, rolecall.ServiceAccountPatch{Name: rolecall.Some("Renamed of " + s.name)}, nil))
	})},
	{"DeleteServiceAccount", "", true, onAccount(func(f *fixture, _ subject, id rolecall.ServiceAccountID) error {
		return f.Directory.DeleteServiceAccount(f.Context(), f.owner, id, nil)
	})},
	{"SuspendServiceAccount", "", true, onAccount(func(f *fixture, _ subject, id rolecall.ServiceAccountID) error {
		return errorOf(f.Directory.SuspendServiceAccount(f.Context(), f.owner, id, ""))
	})},
	{"ResumeServiceAccount", "that is not suspended", false, onAccount(func(f *fixture, _ subject, id rolecall.ServiceAccountID) error {
		return errorOf(f.Directory.ResumeServiceAccount(f.Context(), f.owner, id, ""))
	})},
	{"AssignRole", "of a service account", true, onAccount(func(f *fixture, s subject, id rolecall.ServiceAccountID) error {
		return errorOf3(f.Directory.AssignRole(f.Context(), f.owner, rolecall.HolderOf(id), s.role.ID, rolecall.AssignmentDraft{}))
	})},
	{"UnassignRole", "of a service account", true, onAccount(func(f *fixture, s subject, id rolecall.ServiceAccountID) error {
		return f.Directory.UnassignRole(f.Context(), f.owner, rolecall.HolderOf(id), s.role.ID)
	})},
	{"CreateToken", "of a service account", false, onAccount(func(f *fixture, _ subject, id rolecall.ServiceAccountID) error {
		return errorOf(f.Directory.CreateToken(f.Context(), f.owner, newKey(), rolecall.HolderOf(id), f.tokenDraft("users:read")))
	})},
	{"RevokeToken", "of a service account", true, func(f *fixture, s subject) func() error {
		account := f.account("Account of "+s.name, s.role.ID)
		token := f.accountToken(account.ID, "users:read")
		return func() error {
			return f.Directory.RevokeToken(f.Context(), f.owner, rolecall.HolderOf(account.ID), token.ID)
		}
	}},
	{"CreateToken", "", false, func(f *fixture, s subject) func() error {
		call := f.call(f.signIn(s.name))
		return func() error {
			return errorOf(f.Directory.CreateToken(f.Context(), call, newKey(), rolecall.HolderOf(s.user.ID), f.tokenDraft("users:read")))
		}
	}},
	{"RevokeToken", "", true, func(f *fixture, s subject) func() error {
		call := f.call(f.signIn(s.name))
		token := f.userToken(call, "users:read")
		return func() error {
			return f.Directory.RevokeToken(f.Context(), call, rolecall.HolderOf(s.user.ID), token.ID)
		}
	}},
	{"AuthenticateBearer", "for the first time", false, func(f *fixture, s subject) func() error {
		token := f.userToken(f.call(f.signIn(s.name)), "users:read")
		return func() error { return errorOf(f.bears(f.Node, token)) }
	}},
	{"Purge", "", false, func(f *fixture, s subject) func() error {
		return func() error { return f.Node.Purge(f.Context()) }
	}},
}

// onAccount returns a test of a service method on a service account with the user's role.
func onAccount(act func(*fixture, subject, rolecall.ServiceAccountID) error) func(*fixture, subject) func() error {
	return func(f *fixture, s subject) func() error {
		account := f.account("Account of "+s.name, s.role.ID)
		return func() error { return act(f, s, account.ID) }
	}
}

// signInAlone ends all sessions of the user and then signs the user in. If the user had
// another session, the tested method could end it, and the end of a session is announced
// too.
func (f *fixture) signInAlone(s subject) access.Caller {
	f.Helper()
	f.ok(f.SignIn.EndUserSessions(f.Context(), f.owner, s.user.ID))
	return f.call(f.signIn(s.name))
}

// harmless are the methods that change no cached data.
var harmless = []string{
	"Access", "AssignmentPage", "Assignments", "AssignmentsAt", "AuthenticateOperator", "AwaitChanges", "AwaitTenantsChanges", "BeginAttempt", "BeginEnrolment", "CacheStats", "CancelJob", "Changes", "ChangesEnd", "CheckLink", "Checkpoint", "Consistency", "EventProof", "ClaimJob", "ContinueRoleDeletion", "CreateOperatorKey", "CreateTenant",
	"CreateTenantWithPassword", "CurrentTenant", "DeletedUser", "DeletedUsers", "Departments", "Events", "ExportEvents", "ExportRoleUsers", "ExportUsers", "FactorChallenge", "Factors", "HasPassword", "LinkIdentity", "OpenAttempt", "StartConnection", "Ticket",
	"Connection", "Connections", "CountIdentities", "CountShorterRetention", "CreateConnection", "CreateOwner", "DeleteConnection", "DeleteIdentity", "Find", "Identities", "Offered", "TestConnection", "UpdateConnection", "CreateWebhook", "Counts", "Deliveries", "DeleteWebhook", "Disabled", "Invitations", "Job", "JobResults", "Jobs", "KeptDevices", "Names", "Operated", "OperatedTenant", "OperatedTenants", "OperatorCheckpoint", "OperatorConsistency", "OperatorEventProof", "OperatorEvents", "OperatorKeys", "Overview",
	"PublicLogo", "TenantLogo",
	"PasskeyCreationOptions", "FeedLag", "Lag", "PasskeySignInOptions", "Preview", "ReplayWebhook", "Role", "RotateSecret", "SkipItems", "States", "TestWebhook", "UpdateWebhook", "Webhook", "Webhooks", "RoleUsers", "Roles", "Run", "RunJobs", "ServiceAccount",
	"ServiceAccountActions", "ServiceAccounts", "StartJob", "Summary", "Tenant", "Tenants", "TenantsChanges", "TenantsChangesEnd", "Tokens", "User", "UserEvents", "UserSessions", "UsersWithAddress", "UsersWithoutFactor",
	"Users",
}

func TestEveryServiceMethodAnnouncesChangesOfCachedData(t *testing.T) {
	onEachStoreInLong(t, func(f *fixture) {
		for i, mutation := range mutations {
			s := subject{name: fmt.Sprintf("someone-%d", i)}
			s.user, s.role = f.member(s.name), f.role("Role of "+s.name, "users:read")
			f.assign(s.user.ID, s.role.ID, rolecall.AssignmentDraft{})
			s.token = f.signIn(s.name).Token
			f.ok(errorOf(f.authenticate(f.Node, s.token)))

			act := mutation.prepare(f, s)
			asked := f.db.during(func() { f.ok(act()) })
			if announced := slices.Contains(asked, "announce"); announced != mutation.announced {
				t.Errorf("%s %s: announced is %v", mutation.method, mutation.what, announced)
			}
		}
	})
}

func TestEveryServiceMethodIsKnownToInvalidateOrNot(t *testing.T) {
	known := slices.Clone(harmless)
	for _, mutation := range mutations {
		known = append(known, mutation.method)
	}
	var methods []string
	for _, service := range []reflect.Type{reflect.TypeFor[*directory.Service](), reflect.TypeFor[*signin.Service](), reflect.TypeFor[*webhooks.Service](), reflect.TypeFor[*connections.Service](), reflect.TypeFor[*node.Node]()} {
		for method := range service.Methods() {
			methods = append(methods, method.Name)
			if !slices.Contains(known, method.Name) {
				t.Errorf("add %s to mutations, or to harmless if it changes nothing that is cached", method.Name)
			}
		}
	}
	for _, name := range known {
		if !slices.Contains(methods, name) {
			t.Errorf("no service has a method %s", name)
		}
	}
}
