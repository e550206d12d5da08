package console

import (
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/rolecall/rolecall/internal/passkey/passkeytest"
	"github.com/rolecall/rolecall/openapi"
)

// stepUpOperations returns the ids of the operations that need step-up according to the
// OpenAPI document.
func stepUpOperations(t *testing.T) (ids []string) {
	t.Helper()
	document, err := openapi3.NewLoader().LoadFromData(openapi.YAML)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range document.Paths.Map() {
		for _, operation := range path.Operations() {
			if operation.Extensions["x-step-up"] == true {
				ids = append(ids, operation.OperationID)
			}
		}
	}
	if len(ids) < 20 {
		t.Fatalf("%d operations need step-up", len(ids))
	}
	return ids
}

func TestFormsAskForThePasswordWhereTheContractNeedsStepUp(t *testing.T) {
	f := newFixture(t)
	eve, gone := f.hire("eve@example.com", "Eve Adams", nil), f.hire("gone@example.com", "Gwen Gone", nil)
	f.remove(gone)
	role := f.makeRole("Helper", "users:read")
	account, group := f.makeAccount("Import", role), f.makeGroup("Night shift", role)
	hook := f.makeWebhook(account)
	connection, directory := f.makeConnection("https://login.acme.example"), f.makeDirectory("Acme Entra")
	identity := f.identify(eve, connection, "eve-1")
	cookie := f.signIn("acme", ownerEmail)
	const passkeys = "/console/acme/account/passkeys"
	made := passkeytest.New("https://example.com").Create(t, []byte(fieldOf(t, f.get(passkeys+"/add", cookie).body, "passkey", "data-passkey")))
	f.send(http.MethodPost, passkeys, cookie, url.Values{"idempotency-key": {"k"}, "name": {"Key"}, "passkey": {string(made)}})
	passkey := regexp.MustCompile(passkeys + `/([\w-]+)/rename`).FindStringSubmatch(f.get("/console/acme/account", cookie).body)[1]
	f.await()

	needing, seen := stepUpOperations(t), map[string]bool{}
	for _, page := range new(console).pages() {
		if page.act == nil || !slices.Contains(needing, page.operation) {
			continue
		}
		user := eve.ID
		switch page.operation {
		case "UsersController_restoreUser":
			user = gone.ID
		case "UsersController_createUserToken":
			user = f.owner.ID
		}
		path := "/console" + strings.NewReplacer("{tenant}", "acme", "/roles/{id}", "/roles/"+role.ID.String(), "/service-accounts/{id}", "/service-accounts/"+account.ID.String(), "/webhooks/{id}", "/webhooks/"+hook.ID.String(),
			"/connections/{id}", "/connections/"+connection.ID.String(), "/groups/{id}", "/groups/"+group.ID.String(), "/directories/{id}", "/directories/"+directory.ID.String(), "{userId}", user.String(),
			"{id}", user.String(), "{roleId}", role.ID.String(), "{passkeyId}", passkey, "{identityId}", identity.ID.String()).Replace(page.path)
		if strings.HasSuffix(path, "/roles/copy") {
			path += "?with=" + f.owner.ID.String()
		}
		seen[page.operation] = true
		a := f.send(http.MethodPost, path, cookie, url.Values{"return": {"/users"}, "user": {user.String()}, "email": {"new@example.com"}, "name": {"New"}, "sure": {"Eve Adams"}})
		if a.StatusCode != http.StatusForbidden || !strings.Contains(a.body, `name="current-password"`) {
			t.Errorf("%s: %d %s", path, a.StatusCode, a.body)
		}
	}
	for _, operation := range needing {
		if !seen[operation] && elsewhere[operation] == "" {
			t.Errorf("no form does %s", operation)
		}
	}
}

func TestARoleIsMadeWithAStaleSignInAfterThePassword(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	f.await()
	const path = "/console/acme/roles/create"
	form := url.Values{"idempotency-key": {"r"}, "name": {"Night shift"}, "permissions": {"users:read"}}
	a := f.send(http.MethodPost, path, cookie, form)
	if a.StatusCode != http.StatusForbidden || fieldOf(t, a.body, "name", "value") != form.Get("name") || fieldOf(t, a.body, "idempotency-key", "value") != form.Get("idempotency-key") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	form.Set("current-password", "not "+password)
	if a := f.send(http.MethodPost, path, cookie, form); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, `id="fault-current-password"`) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	form.Set("current-password", password)
	if a := f.send(http.MethodPost, path, cookie, form); a.StatusCode != http.StatusSeeOther {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}
