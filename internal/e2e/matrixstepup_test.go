package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// The effects that an operation can have on access.
const (
	changesNothing = "none"    // no user gains or loses access
	grantsAccess   = "grants"  // gives or changes rights, a way to sign in or a credential
	removesForGood = "removes" // removes something that the caller cannot simply restore
	endsAccess     = "ends"    // ends access immediately
	provesItself   = "proves"  // the request itself authenticates the user
)

// effects maps the id of each operation to its effect on access. The table is written
// independently of the program's own declarations, to check them.
var effects = map[string]string{
	"UsersController_listUsers":          changesNothing,
	"UsersController_createUser":         changesNothing, // a new user holds no role
	"UsersController_getUser":            changesNothing,
	"UsersController_updateUser":         changesNothing,
	"UsersController_deleteUser":         removesForGood,
	"UsersController_suspendUser":        endsAccess,
	"UsersController_resumeUser":         grantsAccess,
	"UsersController_restoreUser":        grantsAccess,
	"UsersController_eraseUser":          removesForGood,
	"UsersController_resetFactors":       removesForGood,
	"UsersController_inviteUser":         changesNothing, // the link goes to the address of the user
	"UsersController_withdrawInvitation": endsAccess,
	"UsersController_sendPasswordReset":  changesNothing, // anonymous callers can cause the same mail
	"UsersController_requestEmailChange": grantsAccess,
	"UsersController_getUserOverview":    changesNothing,
	"UsersController_listUserEvents":     changesNothing,
	"UsersController_listUserRoles":      changesNothing,
	"UsersController_assignRole":         grantsAccess,
	"UsersController_unassignRole":       removesForGood,
	"UsersController_listUserSessions":   changesNothing,
	"UsersController_endUserSession":     endsAccess,
	"UsersController_endUserSessions":    endsAccess,
	"UsersController_listUserTokens":     changesNothing,
	"UsersController_createUserToken":    grantsAccess,
	"UsersController_revokeUserToken":    endsAccess,

	"InvitationsController_listInvitations": changesNothing,

	"JobsController_suspendUsers":   endsAccess,
	"JobsController_resumeUsers":    grantsAccess,
	"JobsController_assignRole":     grantsAccess,
	"JobsController_unassignRole":   removesForGood,
	"JobsController_listJobs":       changesNothing,
	"JobsController_getJob":         changesNothing,
	"JobsController_listJobResults": changesNothing,
	"JobsController_cancelJob":      changesNothing, // users that the job has changed stay changed

	"RolesController_listRoles":     changesNothing,
	"RolesController_createRole":    grantsAccess,
	"RolesController_getRole":       changesNothing,
	"RolesController_updateRole":    grantsAccess,
	"RolesController_deleteRole":    removesForGood,
	"RolesController_listRoleUsers": changesNothing,
	"AccessController_listAccess":   changesNothing,

	"ExportsController_exportUsers":     changesNothing,
	"ExportsController_exportRoleUsers": changesNothing,
	"ExportsController_exportEvents":    changesNothing,

	"ServiceAccountsController_listServiceAccounts":        changesNothing,
	"ServiceAccountsController_createServiceAccount":       changesNothing, // it has no role and no token
	"ServiceAccountsController_getServiceAccount":          changesNothing,
	"ServiceAccountsController_updateServiceAccount":       changesNothing,
	"ServiceAccountsController_deleteServiceAccount":       removesForGood,
	"ServiceAccountsController_suspendServiceAccount":      endsAccess,
	"ServiceAccountsController_resumeServiceAccount":       grantsAccess,
	"ServiceAccountsController_listServiceAccountRoles":    changesNothing,
	"ServiceAccountsController_assignServiceAccountRole":   grantsAccess,
	"ServiceAccountsController_unassignServiceAccountRole": removesForGood,
	"ServiceAccountsController_listServiceAccountTokens":   changesNothing,
	"ServiceAccountsController_createServiceAccountToken":  grantsAccess,
	"ServiceAccountsController_revokeServiceAccountToken":  endsAccess,

	"EventsController_listEvents":            changesNothing,
	"EventsController_listChanges":           changesNothing,
	"EventsController_getCheckpoint":         changesNothing,
	"EventsController_getConsistency":        changesNothing,
	"EventsController_getEventProof":         changesNothing,
	"TenantController_getTenant":             changesNothing,
	"TenantController_getSummary":            changesNothing,
	"WebhooksController_listWebhooks":        changesNothing,
	"WebhooksController_createWebhook":       grantsAccess, // its endpoint receives the values that the service account may read
	"WebhooksController_getWebhook":          changesNothing,
	"WebhooksController_updateWebhook":       grantsAccess,
	"WebhooksController_deleteWebhook":       removesForGood,
	"WebhooksController_rotateSecret":        grantsAccess,
	"WebhooksController_testWebhook":         changesNothing,
	"WebhooksController_replayWebhook":       changesNothing, // the endpoint receives these items anyway
	"WebhooksController_skipItems":           changesNothing,
	"WebhooksController_listDeliveries":      changesNothing,
	"ConnectionsController_listConnections":  changesNothing,
	"ConnectionsController_createConnection": grantsAccess,
	"ConnectionsController_getConnection":    changesNothing,
	"ConnectionsController_updateConnection": grantsAccess,
	"ConnectionsController_deleteConnection": removesForGood,
	"ConnectionsController_testConnection":   changesNothing,
	"AuthsController_listConnections":        changesNothing,
	"AuthsController_findConnection":         changesNothing,
	"UsersController_listIdentities":         changesNothing,
	"UsersController_deleteIdentity":         removesForGood,

	"TenantController_updateTenant": grantsAccess, // the settings decide who can sign in, and how
	"TenantController_getLogo":      changesNothing,
	"TenantController_setLogo":      grantsAccess, // users recognise the page for their password by it
	"TenantController_deleteLogo":   grantsAccess,

	"AuthsController_getSession":              changesNothing,
	"AuthsController_check":                   changesNothing,
	"AuthsController_checkAll":                changesNothing,
	"AuthsController_refresh":                 changesNothing,
	"AuthsController_logout":                  endsAccess,
	"AuthsController_login":                   provesItself,
	"AuthsController_completeLogin":           provesItself,
	"AuthsController_beginEnrolment":          provesItself,
	"AuthsController_getPasskeySignInOptions": changesNothing,
	"AuthsController_signInByPasskey":         provesItself,
	"AuthsController_confirm":                 provesItself,
	"AuthsController_changePassword":          provesItself,
	"AuthsController_acceptInvitation":        provesItself,
	"AuthsController_requestPasswordReset":    changesNothing,
	"AuthsController_resetPassword":           provesItself,
	"AuthsController_changeEmail":             provesItself,
	"AuthsController_startOidc":               changesNothing,
	"AuthsController_signOutOidc":             endsAccess,
	"AuthsController_exchangeCode":            provesItself,
	"AuthsController_linkOidc":                grantsAccess,

	"AuthsController_getFactors":        changesNothing,
	"AuthsController_beginTotp":         grantsAccess,
	"AuthsController_confirmTotp":       grantsAccess,
	"AuthsController_deleteTotp":        removesForGood,
	"AuthsController_makeRecoveryCodes": grantsAccess,
	"AuthsController_getPasskeyOptions": grantsAccess,
	"AuthsController_createPasskey":     grantsAccess,
	"AuthsController_updatePasskey":     grantsAccess, // users recognise their credentials by the names
	"AuthsController_deletePasskey":     removesForGood,

	"OperatorController_listTenants": changesNothing,
	"OperatorController_listChanges": changesNothing,
	"OperatorController_findUsers":   changesNothing,

	"OperatorController_listEvents":     changesNothing,
	"OperatorController_getCheckpoint":  changesNothing,
	"OperatorController_getConsistency": changesNothing,
	"OperatorController_getEventProof":  changesNothing,

	"OperatorController_listWebhooks":   changesNothing,
	"OperatorController_createWebhook":  grantsAccess, // its endpoint receives the changes of all tenants
	"OperatorController_getWebhook":     changesNothing,
	"OperatorController_updateWebhook":  grantsAccess,
	"OperatorController_deleteWebhook":  removesForGood,
	"OperatorController_rotateSecret":   grantsAccess,
	"OperatorController_testWebhook":    changesNothing,
	"OperatorController_replayWebhook":  changesNothing,
	"OperatorController_skipItems":      changesNothing,
	"OperatorController_listDeliveries": changesNothing,

	"OperatorController_createTenant":  grantsAccess,
	"OperatorController_getTenant":     changesNothing,
	"OperatorController_updateTenant":  grantsAccess,
	"OperatorController_deleteTenant":  removesForGood,
	"OperatorController_restoreTenant": grantsAccess,
	"OperatorController_suspendTenant": endsAccess,
	"OperatorController_resumeTenant":  grantsAccess,
}

// stepsUp reports whether the effect requires a recent sign-in. Ending access does not,
// because it must be quick.
func stepsUp(effect string) bool { return effect == grantsAccess || effect == removesForGood }

// wrongQuery is a parameter that no operation has, so that a request with it changes nothing.
// Such a request is refused with 400 right after the check of the caller's permission for the
// operation.
const wrongQuery = "wrong-parameter=1"

// testStepUp checks which operations require a recent sign-in (step-up). Every principal sends
// every operation soon after the sign-in, and again when the sign-in is no longer recent. The
// expected difference follows from effects.
func testStepUp(t *testing.T, p *program) {
	for id := range effects {
		if !p.document.has(id) {
			t.Errorf("no operation is called %s", id)
		}
	}
	for _, op := range p.document.operations {
		t.Run("document of "+op.id, func(t *testing.T) { checkDocumentedStepUp(t, op) })
	}
	m := newMatrix(t, p)
	user, role := m.user(t, "somebody", ""), m.roles[0].id
	soon := map[string]*answer{}
	everyCell := func(send func(name string, op operation, who *principal, line string)) {
		for _, op := range p.document.operations {
			for _, who := range m.principals {
				abouts := []string{user}
				if who.id != "" && strings.HasPrefix(op.path, "/users/{id}") {
					abouts = append(abouts, who.id)
				}
				for i, about := range abouts {
					send(fmt.Sprintf("%s by %s, user %d", op.id, who.name, i+1), op, who, op.wrongLine(about, role))
				}
			}
		}
	}
	everyCell(func(name string, _ operation, who *principal, line string) { soon[name] = who.do(t, line, "") })

	operator := m.operator(t)
	operator.do(t, "PATCH /tenant", `{"settings":{"reauthenticationSeconds":1}}`).expect(t, 200)
	for _, who := range m.principals {
		if who.isPerson() {
			who.awaitStale(t)
		}
	}
	refused := map[string]bool{}
	everyCell(func(name string, op operation, who *principal, line string) {
		t.Run(name, func(t *testing.T) {
			status, code := soon[name].status, soon[name].text("/code")
			if stepsUp(effects[op.id]) && who.isPerson() && status == http.StatusBadRequest {
				status, code, refused[op.id] = http.StatusForbidden, "reauthentication-required", true
			}
			if a := who.do(t, line, ""); a.status != status || a.text("/code") != code {
				t.Errorf("%s long after the sign-in: answered %d %s, not %d %s", a.line, a.status, a.text("/code"), status, code)
			}
		})
	})
	for _, op := range p.document.operations {
		if stepsUp(effects[op.id]) && !op.isOperators() && !refused[op.id] {
			t.Errorf("%s: nobody was refused", op.id)
		}
	}
	owner := m.principals[0]
	operator.do(t, "PATCH /tenant", `{"settings":{"reauthenticationSeconds":0}}`).expect(t, 200)
	everyCell(func(name string, _ operation, who *principal, line string) {
		if who != owner {
			return
		}
		if a := who.do(t, line, ""); a.status != soon[name].status || a.text("/code") != soon[name].text("/code") {
			t.Errorf("%s in a tenant without step-up: answered %d %s", a.line, a.status, a.text("/code"))
		}
	})
}

// has reports whether the document has the operation.
func (d *document) has(id string) bool {
	for _, op := range d.operations {
		if op.id == id {
			return true
		}
	}
	return false
}

// wrongLine returns "METHOD /path" of the operation, as line does, and adds wrongQuery to the
// path.
func (op *operation) wrongLine(user, role string) string {
	line := op.line(user, role)
	if strings.Contains(line, "?") {
		return line + "&" + wrongQuery
	}
	return line + "?" + wrongQuery
}

// checkDocumentedStepUp checks that the OpenAPI document states the operation's effect, and
// that it documents the error reauthentication-required if the operation requires a recent
// sign-in.
func checkDocumentedStepUp(t *testing.T, op operation) {
	if _, ok := effects[op.id]; !ok {
		t.Fatalf("%s is not in effects: what does it do to access?", op.id)
	}
	var marked string
	if raw, err := json.Marshal(op.spec.Extensions["x-access-effect"]); err != nil || json.Unmarshal(raw, &marked) != nil || marked != effects[op.id] {
		t.Errorf("x-access-effect is %s, not %q", raw, effects[op.id])
	}
	var documented bool
	for _, response := range op.spec.Responses.Map() {
		documented = documented || strings.Contains(*response.Value.Description, "reauthentication-required")
	}
	if wanted := stepsUp(effects[op.id]) && !op.isOperators(); documented != wanted {
		t.Errorf("reauthentication-required is documented: %v", documented)
	}
}
