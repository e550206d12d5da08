package console

import (
	"crypto/sha256"
	"encoding/hex"
	"html"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/typeface"
	"github.com/rolecall/rolecall/openapi"
)

// deeds maps the path of each form to the operation of the API that the form calls. Only
// these forms may change data.
var deeds = map[string]string{
	"/{tenant}/connections/create":                        "ConnectionsController_createConnection",
	"/{tenant}/connections/{id}/edit":                     "ConnectionsController_updateConnection",
	"/{tenant}/connections/{id}/test":                     "ConnectionsController_testConnection",
	"/{tenant}/connections/{id}/delete":                   "ConnectionsController_deleteConnection",
	"/{tenant}/directories/create":                        "DirectoriesController_createDirectory",
	"/{tenant}/directories/{id}/edit":                     "DirectoriesController_updateDirectory",
	"/{tenant}/directories/{id}/pause":                    "DirectoriesController_updateDirectory",
	"/{tenant}/directories/{id}/resume":                   "DirectoriesController_updateDirectory",
	"/{tenant}/directories/{id}/delete":                   "DirectoriesController_deleteDirectory",
	"/{tenant}/directories/{id}/tokens/create":            "DirectoriesController_createDirectoryToken",
	"/{tenant}/directories/{id}/tokens/{tokenId}/revoke":  "DirectoriesController_revokeDirectoryToken",
	"/{tenant}/webhooks/create":                           "WebhooksController_createWebhook",
	"/{tenant}/webhooks/{id}/edit":                        "WebhooksController_updateWebhook",
	"/{tenant}/webhooks/{id}/enable":                      "WebhooksController_updateWebhook",
	"/{tenant}/webhooks/{id}/disable":                     "WebhooksController_updateWebhook",
	"/{tenant}/webhooks/{id}/rotate-secret":               "WebhooksController_rotateSecret",
	"/{tenant}/webhooks/{id}/test":                        "WebhooksController_testWebhook",
	"/{tenant}/webhooks/{id}/replay":                      "WebhooksController_replayWebhook",
	"/{tenant}/webhooks/{id}/resend/{eventId}":            "WebhooksController_replayWebhook",
	"/{tenant}/webhooks/{id}/skip":                        "WebhooksController_skipItems",
	"/{tenant}/webhooks/{id}/delete":                      "WebhooksController_deleteWebhook",
	"/{tenant}/users/{id}/roles/copy":                     "UsersController_assignRole",
	"/":                                                   "AuthsController_login",
	"/{tenant}/sign-in":                                   "AuthsController_login",
	"/{tenant}/sign-in/second-factor":                     "AuthsController_completeLogin",
	"/{tenant}/sign-in/enrolment":                         "AuthsController_completeLogin",
	"/{tenant}/sign-in/connection":                        "AuthsController_startOidc",
	"/{tenant}/invitation/connection":                     "AuthsController_startOidc",
	"/{tenant}/sign-in/passkey":                           "AuthsController_signInByPasskey",
	"/{tenant}/sign-out":                                  "AuthsController_logout",
	"/{tenant}/invitation":                                "AuthsController_acceptInvitation",
	"/{tenant}/password-reset":                            "AuthsController_resetPassword",
	"/{tenant}/password-reset/request":                    "AuthsController_requestPasswordReset",
	"/{tenant}/email-change":                              "AuthsController_changeEmail",
	"/{tenant}/settings/edit":                             "TenantController_updateTenant",
	"/{tenant}/settings/logo":                             "TenantController_setLogo",
	"/{tenant}/settings/logo/remove":                      "TenantController_deleteLogo",
	"/{tenant}/users/{id}/identities/{identityId}/delete": "UsersController_deleteIdentity",
	"/{tenant}/account/identities/add":                    "AuthsController_linkOidc",
	"/{tenant}/account/identities/link":                   "AuthsController_linkOidc",
	"/{tenant}/account/confirm":                           "AuthsController_confirm",
	"/{tenant}/account/confirm/done":                      "AuthsController_confirm",
	"/{tenant}/account/password":                          "AuthsController_changePassword",
	"/{tenant}/account/app":                               "AuthsController_beginTotp",
	"/{tenant}/account/app/confirm":                       "AuthsController_confirmTotp",
	"/{tenant}/account/app/remove":                        "AuthsController_deleteTotp",
	"/{tenant}/account/recovery-codes":                    "AuthsController_makeRecoveryCodes",
	"/{tenant}/account/passkeys/add":                      "AuthsController_getPasskeyOptions",
	"/{tenant}/account/passkeys":                          "AuthsController_createPasskey",
	"/{tenant}/account/passkeys/{passkeyId}/rename":       "AuthsController_updatePasskey",
	"/{tenant}/account/passkeys/{passkeyId}/remove":       "AuthsController_deletePasskey",
	"/{tenant}/users/{id}/sessions/{sessionId}/end":       "UsersController_endUserSession",
	"/{tenant}/users/create":                              "UsersController_createUser",
	"/{tenant}/users/selected/give-role":                  "UsersController_assignRole",
	"/{tenant}/users/selected/suspend":                    "UsersController_suspendUser",
	"/{tenant}/users/selected/resume":                     "UsersController_resumeUser",
	"/{tenant}/users/all/give-role":                       "JobsController_assignRole",
	"/{tenant}/users/all/suspend":                         "JobsController_suspendUsers",
	"/{tenant}/users/all/resume":                          "JobsController_resumeUsers",
	"/{tenant}/jobs/{id}/cancel":                          "JobsController_cancelJob",
	"/{tenant}/users/{id}/edit":                           "UsersController_updateUser",
	"/{tenant}/users/{id}/invite":                         "UsersController_inviteUser",
	"/{tenant}/users/{id}/email":                          "UsersController_requestEmailChange",
	"/{tenant}/users/{id}/withdraw":                       "UsersController_withdrawInvitation",
	"/{tenant}/users/{id}/password-reset":                 "UsersController_sendPasswordReset",
	"/{tenant}/users/{id}/sign-out":                       "UsersController_endUserSessions",
	"/{tenant}/users/{id}/reset-factors":                  "UsersController_resetFactors",
	"/{tenant}/users/{id}/suspend":                        "UsersController_suspendUser",
	"/{tenant}/users/{id}/resume":                         "UsersController_resumeUser",
	"/{tenant}/users/{id}/delete":                         "UsersController_deleteUser",
	"/{tenant}/users/{id}/restore":                        "UsersController_restoreUser",
	"/{tenant}/users/{id}/erase":                          "UsersController_eraseUser",
	"/{tenant}/users/{id}/roles/{roleId}":                 "UsersController_assignRole",
	"/{tenant}/users/{id}/roles/{roleId}/take":            "UsersController_unassignRole",
	"/{tenant}/roles/create":                              "RolesController_createRole",
	"/{tenant}/roles/{id}/edit":                           "RolesController_updateRole",
	"/{tenant}/roles/{id}/delete":                         "RolesController_deleteRole",
	"/{tenant}/groups/create":                             "GroupsController_createGroup",
	"/{tenant}/groups/{id}/edit":                          "GroupsController_updateGroup",
	"/{tenant}/groups/{id}/delete":                        "GroupsController_deleteGroup",
	"/{tenant}/groups/{id}/users/{userId}":                "GroupsController_addGroupUser",
	"/{tenant}/groups/{id}/users/{userId}/remove":         "GroupsController_removeGroupUser",
	"/{tenant}/groups/{id}/roles/{roleId}":                "GroupsController_assignGroupRole",
	"/{tenant}/groups/{id}/roles/{roleId}/take":           "GroupsController_unassignGroupRole",

	"/{tenant}/service-accounts/create":                       "ServiceAccountsController_createServiceAccount",
	"/{tenant}/service-accounts/{id}/edit":                    "ServiceAccountsController_updateServiceAccount",
	"/{tenant}/service-accounts/{id}/suspend":                 "ServiceAccountsController_suspendServiceAccount",
	"/{tenant}/service-accounts/{id}/resume":                  "ServiceAccountsController_resumeServiceAccount",
	"/{tenant}/service-accounts/{id}/delete":                  "ServiceAccountsController_deleteServiceAccount",
	"/{tenant}/service-accounts/{id}/roles/{roleId}":          "ServiceAccountsController_assignServiceAccountRole",
	"/{tenant}/service-accounts/{id}/roles/{roleId}/take":     "ServiceAccountsController_unassignServiceAccountRole",
	"/{tenant}/service-accounts/{id}/tokens/create":           "ServiceAccountsController_createServiceAccountToken",
	"/{tenant}/service-accounts/{id}/tokens/{tokenId}/revoke": "ServiceAccountsController_revokeServiceAccountToken",
	"/{tenant}/users/{id}/tokens/create":                      "UsersController_createUserToken",
	"/{tenant}/users/{id}/tokens/{tokenId}/revoke":            "UsersController_revokeUserToken",
}

func TestEachPageNamesItsOperation(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range new(console).pages() {
		named := looks
		if p.act != nil {
			named = deeds
		}
		if operation, ok := named[p.path]; !ok || operation != p.operation {
			t.Errorf("%s stands for %q, and the list says %q", p.path, p.operation, operation)
		}
		seen[p.path] = true
	}
	if len(seen) != len(deeds)+len(looks) {
		t.Errorf("%d pages, and %d in the lists", len(seen), len(deeds)+len(looks))
	}
}

// elsewhere maps the operations of the API that have no page in the console to the reason.
var elsewhere = map[string]string{
	"AuthsController_beginEnrolment":          "a step of the sign-in",
	"AuthsController_getPasskeySignInOptions": "a step of the sign-in",
	"AuthsController_refresh":                 "sessions of the console keep their token",
	"AuthsController_check":                   "a question of applications",
	"AuthsController_checkAll":                "a question of applications",
	"TenantController_getLogo":                "the page of the settings shows the logo by its public address",
	"EventsController_listChanges":            "a feed for programs",
	"OperatorController_listChanges":          "a feed for programs",
	"EventsController_getConsistency":         "a proof for programs of auditors",
	"EventsController_getEventProof":          "a proof for programs of auditors",
	"AuthsController_listConnections":         "a part of the sign-in page",
	"AuthsController_findConnection":          "a part of the sign-in page",
	"JobsController_unassignRole":             "the console removes a role from one user at a time",
}

func TestAllThatPeopleCanDoCanBeDoneHere(t *testing.T) {
	here := map[string]bool{}
	for _, p := range new(console).pages() {
		here[p.operation] = true
	}
	found := regexp.MustCompile(`operationId:\s*((\w+)Controller_\w+)`).FindAllSubmatch(openapi.YAML, -1)
	if len(found) < 60 {
		t.Fatalf("%d operations", len(found))
	}
	for _, match := range found {
		operation, isOperators := string(match[1]), string(match[2]) == "Operator"
		if has := here[operation] || elsewhere[operation] != "" || isOperators; !has {
			t.Errorf("%s has no page in the console: add one, or add the reason to elsewhere", operation)
		}
		if here[operation] && (elsewhere[operation] != "" || isOperators) {
			t.Errorf("a page stands for %s", operation)
		}
	}
}

func TestEachClassHasItsLooksAndEachLookItsUse(t *testing.T) {
	looks := map[string]bool{}
	rules := regexp.MustCompile(`(?s)/\*.*?\*/|\{[^{}]*\}`).ReplaceAll(styleSheet(), nil)
	for _, match := range regexp.MustCompile(`\.([a-z][a-z-]*)`).FindAllSubmatch(rules, -1) {
		looks[string(match[1])] = true
	}
	used := map[string]bool{"status-active": true, "status-pending": true, "status-suspended": true, "htmx-request": true} // the code composes the first three, and htmx adds the last
	for _, pattern := range []string{"*.templ", "*.go", "assets/*.js"} {
		names, _ := filepath.Glob(pattern)
		for _, name := range names {
			if strings.HasSuffix(name, "_templ.go") || strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, ".min.js") {
				continue
			}
			source, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range regexp.MustCompile(`"[^"\n]*"`).FindAll(source, -1) {
				for _, word := range strings.Fields(strings.Trim(string(text), `"`)) {
					used[word] = true
				}
			}
			for _, classes := range regexp.MustCompile(`class="([^"]*)"`).FindAllSubmatch(source, -1) {
				for _, class := range strings.Fields(string(classes[1])) {
					if !looks[class] {
						t.Errorf("%s: nothing says how .%s looks", name, class)
					}
				}
			}
		}
	}
	for class := range looks {
		if !used[class] {
			t.Errorf("nothing is a .%s", class)
		}
	}
}

func TestEachChangeHasAMessage(t *testing.T) {
	for _, a := range slices.Concat(actions, serviceAccountActions) {
		if !hasMessage(donePrefix + a.done) {
			t.Errorf("%s: no message says what it did", a.path)
		}
	}
}

func TestMessagesNameTheUserAndComeOnlyFromTheConsole(t *testing.T) {
	f := newFixture(t)
	role := f.makeRole("<b>Helper", "users:read")
	eve := f.hire("eve@example.com", "Eve <i>", []string{"users:read"})
	page := "/console/acme/users/" + eve.ID.String() + "?done=role-given&role="
	owner, reader := f.signIn("acme", ownerEmail), f.signIn("acme", "eve@example.com")
	for _, c := range []struct {
		cookie, path, site string
		wanted             string // empty if nothing is expected
	}{
		{owner, page + role.ID.String(), "", "<bdi>&lt;b&gt;Helper</bdi> was assigned to <bdi>Eve &lt;i&gt;</bdi>."},
		{owner, page + role.ID.String(), "same-origin", "<bdi>&lt;b&gt;Helper</bdi> was assigned to"},
		{owner, page + role.ID.String(), "cross-site", ""},
		{owner, page + role.ID.String(), "none", ""},
		{owner, page + "x", "", "The role was assigned to <bdi>Eve"},
		{owner, page + eve.ID.String(), "", "The role was assigned to <bdi>Eve"},
		{reader, page + role.ID.String(), "", "The role was assigned to <bdi>Eve"},
		{owner, "/console/acme/users?done={name}", "", ""},
	} {
		headers := []string{}
		if c.site != "" {
			headers = []string{"Sec-Fetch-Site", c.site}
		}
		body := regexp.MustCompile(`>\s+<`).ReplaceAllString(f.get(c.path, c.cookie, headers...).body, "><")
		if c.wanted == "" && strings.Contains(body, "data-toast") || !strings.Contains(body, c.wanted) {
			t.Errorf("%s from %q: %s", c.path, c.site, body)
		}
	}
}

func TestRedirectsKeepTheMessage(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	for query, wanted := range map[string]string{"?done=role-created": "?done=role-created", "?done=x%26y": "", "": ""} {
		if a := f.get("/console/acme/"+query, cookie); a.Header.Get("Location") != "/console/acme/home"+wanted {
			t.Errorf("%s leads to %s", query, a.Header.Get("Location"))
		}
	}
}

func TestEveryPageHasItsPolicyAndIsKeptNowhere(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	for _, path := range []string{"/console/", "/console/acme/sign-in", "/console/acme/invitation", "/console/acme/users", "/console/acme/users/" + f.owner.ID.String(), "/console/acme/nowhere", "/console/acme/users/x"} {
		a := f.get(path, cookie, "Origin", "https://app.example.com")
		policy := a.Header.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
			if !strings.Contains(policy, part) {
				t.Errorf("%s: policy %q lacks %s", path, policy, part)
			}
		}
		if strings.Contains(policy, "unsafe") || a.Header.Get("Cache-Control") != "no-store" || a.Header.Get("X-Content-Type-Options") != "nosniff" ||
			a.Header.Get("Cross-Origin-Opener-Policy") != "same-origin" || !strings.Contains(a.Header.Get("Permissions-Policy"), "camera=()") || strings.Contains(a.Header.Get("Permissions-Policy"), "publickey-credentials") || a.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %v", path, a.Header)
		}
		if found := regexp.MustCompile(`(?i)<script[^>]*>[^<]|<style| style=| on[a-z]+=|javascript:|hx-on`).FindString(a.body); found != "" {
			t.Errorf("%s holds %q", path, found)
		}
	}
}

func TestFilesAreKeptForEver(t *testing.T) {
	f := newFixture(t)
	page := f.get("/console/", "").body
	found := regexp.MustCompile(`(?:src|href)="(/console/-/[^"]+)"`).FindAllStringSubmatch(page, -1)
	if len(found) < 4 {
		t.Fatalf("%d files", len(found))
	}
	for _, match := range found {
		a := f.get(match[1], "", "Accept-Encoding", "gzip")
		gzipped := a.Header.Get("Content-Encoding") == "gzip"
		if a.StatusCode != http.StatusOK || !strings.Contains(a.Header.Get("Cache-Control"), "immutable") || gzipped == strings.HasSuffix(match[1], ".woff2") && len(a.body) > 1400 {
			t.Errorf("%s: %d %v", match[1], a.StatusCode, a.Header)
		}
	}
}

func TestTheSessionIsOfTheTenantInTheAddress(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("other", ownerEmail)
	a := f.get("/console/acme/users?q=ada", cookie)
	if want := "/console/acme/sign-in?return=%2Fusers%3Fq%3Dada"; a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != want {
		t.Errorf("%d %s", a.StatusCode, a.Header.Get("Location"))
	}
	if a := f.get("/console/other/users", cookie); a.StatusCode != http.StatusOK {
		t.Errorf("%d", a.StatusCode)
	}
	a = f.send(http.MethodPost, "/console/acme/users/"+f.owner.ID.String()+"/suspend", cookie, nil)
	if a.StatusCode != http.StatusSeeOther || !strings.HasPrefix(a.Header.Get("Location"), "/console/acme/sign-in") {
		t.Errorf("%d %s", a.StatusCode, a.Header.Get("Location"))
	}
	if api := f.get("/auths/session", cookie, "X-Tenant-Schema", "other"); api.StatusCode != http.StatusUnauthorized {
		t.Errorf("the API accepts the cookie of the console: %d", api.StatusCode)
	}
}

func TestFormsComeFromHereOnly(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	user := f.hire("eve@example.com", "Eve Adams", nil)
	path := "/console/acme/users/" + user.ID.String() + "/suspend"
	for _, headers := range [][]string{
		{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"}, {"Origin", "https://evil.example"}, {"Origin", "null"},
		{"Origin", "https://app.example.com"}, {"Content-Type", "application/json"}, {"Content-Type", "text/plain"}, {"Content-Type", "multipart/form-data; boundary=x"},
	} {
		if a := f.send(http.MethodPost, path, cookie, nil, headers...); a.StatusCode != http.StatusForbidden && a.StatusCode != http.StatusUnsupportedMediaType {
			t.Errorf("%v: %d", headers, a.StatusCode)
		}
	}
	if a := f.get(path, cookie); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "Suspend <bdi>Eve Adams") {
		t.Errorf("it was done: %d", a.StatusCode)
	}
	a := f.send(http.MethodPost, path, cookie, url.Values{"reason": {"left"}}, "Sec-Fetch-Site", "same-origin")
	if a.StatusCode != http.StatusSeeOther || !strings.HasSuffix(a.Header.Get("Location"), user.ID.String()+"?done=suspended") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

func TestOnlyWhatIsAllowedIsOfferedAndDone(t *testing.T) {
	f := newFixture(t)
	f.hire("clerk@example.com", "Clara Clerk", []string{"users:read"})
	cookie := f.signIn("acme", "clerk@example.com")
	page := f.get("/console/acme/users/"+f.owner.ID.String(), cookie)
	if page.StatusCode != http.StatusOK || strings.Contains(page.body, "/suspend") || !strings.Contains(page.body, rolecall.RolesRead.String()) {
		t.Errorf("%d %s", page.StatusCode, page.body)
	}
	for path := range deeds {
		if !strings.Contains(path, "{id}") {
			continue
		}
		want := http.StatusForbidden
		if path == "/{tenant}/jobs/{id}/cancel" { // jobs that the caller may not read are not found
			want = http.StatusNotFound
		}
		path = "/console" + strings.NewReplacer("{tenant}", "acme", "{id}", f.owner.ID.String(), "{sessionId}", f.owner.ID.String(), "{roleId}", f.owner.ID.String(), "{userId}", f.owner.ID.String(), "{tokenId}", f.owner.ID.String()).Replace(path)
		if a := f.send(http.MethodPost, path, cookie, url.Values{"idempotency-key": {"k"}}); a.StatusCode != want || !strings.Contains(a.body, "<code>"+a.Header.Get("X-Request-Id")+"</code> <button") {
			t.Errorf("%s: %d, want %d", path, a.StatusCode, want)
		}
	}
}

func TestReturnsStayInTheTenant(t *testing.T) {
	f := newFixture(t)
	for text, want := range map[string]string{
		"/users?q=a%26b":            "/console/acme/users?q=a%26b",
		"/users?done=erased":        "/console/acme/users",
		"/users?q=a%26b&done=saved": "/console/acme/users?q=a%26b",
		"":                          "/console/acme/",
		"//evil.example":            "/console/acme/",
		"https://evil.example":      "/console/acme/",
		"/\\evil.example":           "/console/acme/",
		"/../../docs":               "/console/acme/",
		"/%2e%2e/x":                 "/console/acme/",
		"javascript:alert(1)":       "/console/acme/",
		"/sign-out":                 "/console/acme/",
		"/users\r\nSet-Cookie: a=b": "/console/acme/",
	} {
		a := f.send(http.MethodPost, "/console/acme/sign-in", "", url.Values{"email": {ownerEmail}, "password": {password}, "return": {text}})
		if got := a.Header.Get("Location"); got != want {
			t.Errorf("%q leads to %q, want %q", text, got, want)
		}
	}
}

func TestAPartIsAnsweredAlone(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	a := f.get("/console/acme/users?q=ada&status=", cookie, "Hx-Request", "true", "Hx-Target", "results")
	if strings.Contains(a.body, "<html") || !strings.Contains(a.body, `id="results"`) || a.Header.Get("Hx-Replace-Url") != "/console/acme/users?q=ada" {
		t.Errorf("%s %s", a.Header.Get("Hx-Replace-Url"), a.body)
	}
	if a := f.get("/console/acme/users", "", "Hx-Request", "true", "Hx-Target", "results", "Hx-Current-Url", f.url+"/console/acme/users?q=ada"); a.StatusCode != http.StatusNoContent || a.Header.Get("Hx-Redirect") != "/console/acme/sign-in?return=%2Fusers%3Fq%3Dada" {
		t.Errorf("%d %s", a.StatusCode, a.Header.Get("Hx-Redirect"))
	}
	if a := f.get("/console/acme/users", cookie, "Hx-Request", "true", "Hx-Target", "anything"); !strings.Contains(a.body, "<html") {
		t.Errorf("an unknown part: %s", a.body)
	}
}

func TestWhatIsWrongWithAnAddressIsSaidInItsList(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	own := "/users/" + f.owner.ID.String()
	for _, path := range []string{"/users", "/users/deleted", "/invitations", "/events", "/roles", "/groups", "/service-accounts", own + "/events", own + "/groups", own + "/sessions", own + "/tokens"} {
		if a := f.get("/console/acme"+path+"?cursor=x", cookie); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "<strong>The page</strong>") || !strings.Contains(a.body, "Clear all filters") {
			t.Errorf("%s: %d %s", path, a.StatusCode, a.body)
		}
	}
}

func TestUnknownValuesOfFiltersAreSaid(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	for query, want := range map[string]string{
		"status=bogus": "“<bdi>bogus</bdi>” is unknown",
		"role=019d83e6-1ef1-7001-8c02-5a1f0c5d3e11": "is unknown: it is not the ID of a role",
		"role=support":       "role",
		"department=Nowhere": "“<bdi>Nowhere</bdi>” is unknown: it has no users that you can view",
		"columns=sessions":   "“<bdi>sessions</bdi>” is unknown",
	} {
		if a := f.get("/console/acme/users?"+query, cookie); strings.Contains(a.body, "No users match") || !strings.Contains(a.body, want) || !strings.Contains(a.body, "Clear all filters") {
			t.Errorf("%s: %s", query, a.body)
		}
	}
}

func TestNamesAreText(t *testing.T) {
	f := newFixture(t)
	const name = `<img src=x onerror=alert(1)>"'&lt;`
	user := f.hire("eve@example.com", name, nil)
	cookie := f.signIn("acme", ownerEmail)
	for _, path := range []string{"/console/acme/users", "/console/acme/users/" + user.ID.String(), "/console/acme/users/" + user.ID.String() + "/delete"} {
		if a := f.get(path, cookie); strings.Contains(a.body, "<img src=x") || !strings.Contains(a.body, "&lt;img src=x") {
			t.Errorf("%s: %d", path, a.StatusCode)
		}
	}
}

func TestEachTemplateIsCompiled(t *testing.T) {
	templates, err := filepath.Glob("*.templ")
	if err != nil || len(templates) < 5 {
		t.Fatal(templates, err)
	}
	for _, name := range templates {
		if _, err := os.Stat(strings.TrimSuffix(name, ".templ") + "_templ.go"); err != nil {
			t.Error(err)
		}
	}
}

func TestWhoChangesWhatSomebodyElseHasChangedSeesBoth(t *testing.T) {
	f := newFixture(t)
	user := f.hire("eve@example.com", "Eve Adams", nil)
	cookie := f.signIn("acme", ownerEmail)
	path := "/console/acme/users/" + user.ID.String() + "/edit"
	shown := f.get(path, cookie).body
	tag := html.UnescapeString(regexp.MustCompile(`name="if-match" value="([^"]+)"`).FindStringSubmatch(shown)[1])
	patch := rolecall.UserPatch{Name: rolecall.Some("Eva Adams"), ExternalID: rolecall.Some(orNil("E1"))}
	if _, err := f.node.Directory.UpdateUser(t.Context(), f.asOwner(), user.ID, patch, nil); err != nil {
		t.Fatal(err)
	}
	form := url.Values{"if-match": {tag}, "name": {"Evelyn Adams"}, "was-name": {"Eve Adams"}, "externalId": {""}, "was-externalId": {""}}
	a := f.send(http.MethodPost, path, cookie, form)
	for _, part := range []string{"This was changed", `value="Evelyn Adams"`, "Currently saved: <bdi>Eva", `name="externalId" value="E1"`} {
		if a.StatusCode != http.StatusPreconditionFailed || !strings.Contains(a.body, part) {
			t.Errorf("%d, lacks %s: %s", a.StatusCode, part, a.body)
		}
	}
	form.Set("if-match", html.UnescapeString(regexp.MustCompile(`name="if-match" value="([^"]+)"`).FindStringSubmatch(a.body)[1]))
	form.Set("externalId", "E1")
	form.Set("was-externalId", "E1")
	if a := f.send(http.MethodPost, path, cookie, form); a.StatusCode != http.StatusSeeOther {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	saved, err := f.node.Directory.User(t.Context(), f.asOwner(), user.ID)
	if err != nil || saved.Name != "Evelyn Adams" || *saved.ExternalID != "E1" {
		t.Errorf("%+v %v", saved, err)
	}
	a = f.send(http.MethodPost, path, cookie, url.Values{"name": {"x"}, "was-name": {"Evelyn Adams"}})
	if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, `id="fault-name">Must have 3 to 255 characters.`) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

func TestWhatIsRefusedBeforeThereIsAPageIsSaidOnOne(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{http.MethodPut, "/console/acme/users", http.StatusMethodNotAllowed},
		{http.MethodPost, "/console/acme/users", http.StatusMethodNotAllowed},
		{http.MethodDelete, "/console", http.StatusMethodNotAllowed},
		{http.MethodGet, "/console/acme/users?q=" + strings.Repeat("x", 9000), http.StatusRequestURITooLong},
		{http.MethodGet, "/console/acme//users", http.StatusNotFound},
		{http.MethodGet, "/console/acme%2Fusers", http.StatusNotFound},
		{http.MethodGet, "/console/A!/users", http.StatusNotFound},
	} {
		a := f.send(c.method, c.path, cookie, nil, "Origin", f.url)
		if a.StatusCode != c.status || !strings.Contains(a.body, "<h1") || !strings.Contains(a.body, a.Header.Get("X-Request-Id")) ||
			!strings.Contains(a.Header.Get("Content-Security-Policy"), "script-src 'self'") || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s %.40s: %d %v %.300s", c.method, c.path, a.StatusCode, a.Header, a.body)
		}
	}
	if a := f.get("/console/ac%6De/users", cookie); a.StatusCode != http.StatusOK || !strings.Contains(a.body, `href="/console/acme/users"`) {
		t.Errorf("an encoded letter: %d %.300s", a.StatusCode, a.body)
	}
	if a := f.get("/console/acme/users/no-id", cookie); a.StatusCode != http.StatusNotFound || !strings.Contains(a.body, `aria-label="Sections"`) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := f.get("/console/acme/users/no-id", ""); a.StatusCode != http.StatusSeeOther {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	for _, path := range []string{"/users", "/consoles", "/console/-/none.js"} {
		if a := f.send(http.MethodPut, path, cookie, nil); a.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s: %v", path, a.Header)
		}
	}
	for _, path := range []string{"/console/-/none.js", "/console/-/users", "/console/-/users/no-id/edit", "/console/-%2Fx/users"} {
		if a := f.get(path, cookie); a.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, a.StatusCode, a.body)
		}
	}
}

func TestTheConsoleIsBelowTheBase(t *testing.T) {
	f := newFixtureAt(t, "/id/people")
	a := f.get("/id/people/console/", "")
	for _, match := range regexp.MustCompile(`(?:src|href|action)="([^"]+)"`).FindAllStringSubmatch(a.body, -1) {
		if !strings.HasPrefix(match[1], "/id/people/console/") && match[1] != "#main" {
			t.Errorf("leads to %s", match[1])
		}
	}
	if a.StatusCode != http.StatusOK || f.get("/console/", "").StatusCode != http.StatusNotFound {
		t.Errorf("%d", a.StatusCode)
	}
	if a := f.get("/id/people/console/acme/users", ""); a.Header.Get("Location") != "/id/people/console/acme/sign-in?return=%2Fusers" {
		t.Errorf("%s", a.Header.Get("Location"))
	}
}

func TestAnInvalidFormIsRefused(t *testing.T) {
	f := newFixture(t)
	for _, form := range []url.Values{
		{"email": {"\xff"}, "password": {"x"}}, {"\xff": {"x"}},
	} {
		if a := f.send(http.MethodPost, "/console/acme/sign-in", "", form); a.StatusCode != http.StatusBadRequest {
			t.Errorf("%v: %d", form, a.StatusCode)
		}
	}
	if a := f.send(http.MethodPost, "/console/acme/sign-in", "", url.Values{"email": {strings.Repeat("x", 70_000)}}); a.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("%d", a.StatusCode)
	}
	if a := f.send(http.MethodPost, "/console/", "", url.Values{"tenant": {"../acme"}}); a.StatusCode != http.StatusBadRequest || !strings.Contains(a.body, `id="fault-tenant"`) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

func TestFilesOfOthersAreThoseThatTheReadmeNames(t *testing.T) {
	for folder, content := range map[string][]byte{"assets": embedded("htmx.min.js"), "../internal/typeface": typeface.Font} {
		readme, err := os.ReadFile(folder + "/README.md")
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(content)
		if !strings.Contains(string(readme), hex.EncodeToString(sum[:])) {
			t.Errorf("%s: the README names another SHA-256 than %x", folder, sum)
		}
	}
	if !strings.Contains(string(embedded("htmx.min.js")), `version:"2.0.11"`) {
		t.Error("another version of htmx than the README names")
	}
}

func TestTheStyleSheetNamesTheTypefaceThatPagesPreload(t *testing.T) {
	f := newFixture(t)
	page := f.get("/console/", "").body
	preloaded := regexp.MustCompile(`<link rel="preload" href="/console/-/(inter\.[^"]+\.woff2)" as="font"`).FindStringSubmatch(page)
	sheet := regexp.MustCompile(`<link rel="stylesheet" href="([^"]+)"`).FindStringSubmatch(page)
	if preloaded == nil || sheet == nil {
		t.Fatal(page)
	}
	if css := f.get(sheet[1], "").body; !strings.Contains(css, `url("`+preloaded[1]+`")`) {
		t.Errorf("the style sheet does not name %s", preloaded[1])
	}
	if size := len(typeface.Font); size > largestPage {
		t.Errorf("the typeface has %d bytes", size)
	}
}
