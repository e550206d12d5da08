package console

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/httpapi"
)

// requestless has the pages with a session that show no API request, with the reason.
var requestless = map[string]string{
	"":                                   "has no operation",
	"/{tenant}":                          "redirects",
	"/{tenant}/":                         "redirects",
	"/{tenant}/{rest...}":                "does not exist",
	"/{tenant}/find":                     "only leads to other pages",
	"/{tenant}/users/{id}/roles/copy":    "sends a request for each role",
	"/{tenant}/users/selected/give-role": "sends a request for each user",
	"/{tenant}/users/selected/suspend":   "sends a request for each user",
	"/{tenant}/users/selected/resume":    "sends a request for each user",
}

func TestEachPageWithASessionShowsItsRequest(t *testing.T) {
	policies, left := httpapi.Policies(), len(requestless)
	for _, p := range new(console).pages() {
		policy, known := policies[p.operation]
		p.policy = policy
		shows := p.policy.Curl != nil && p.showsRequest()
		switch {
		case !known && p.act != nil:
			t.Errorf("%s: the form has no operation", p.path)
		case known && policy.Public:
			if shows {
				t.Errorf("%s needs no session and shows a request", p.path)
			}
		case shows == (requestless[p.path] != "" || !known):
			t.Errorf("%s shows a request: %v", p.path, shows)
		}
		if _, listed := requestless[p.path]; listed {
			left--
		}
	}
	if left != 0 {
		t.Errorf("%d paths in the list are not pages", left)
	}
}

// command returns the curl command in the page.
func command(t *testing.T, body string) string {
	t.Helper()
	found := regexp.MustCompile(`(?s)<pre[^>]*class="example"[^>]*>(.*?)</pre>`).FindAllStringSubmatch(body, -1)
	if len(found) == 0 {
		return ""
	}
	return html.UnescapeString(found[len(found)-1][1])
}

func TestRequestsHaveTheIDsAndFiltersOfThePage(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	eve := f.hire("eve@example.com", "Eve Adams", nil)
	token := `-H "authorization: Bearer $ROLECALL_TOKEN"`
	tenant := "-H 'x-tenant-schema: acme'"
	for path, parts := range map[string][]string{
		"/users?q=it%27s&status=active&done=saved": {"curl '" + f.url + `/users?q=it%27s&status=active'`, token, tenant},
		"/users/" + eve.ID.String() + "/suspend":   {"curl '" + f.url + "/users/" + eve.ID.String() + "/suspend'", token, tenant, "-d '{"},
		"/users/" + eve.ID.String() + "/delete":    {"curl -X DELETE '" + f.url + "/users/" + eve.ID.String() + "'", token, tenant},
		"/users/create":                            {"curl '" + f.url + "/users'", "-H 'idempotency-key: 0", tenant, "-H 'content-type: application/json'"},
		"/account/password":                        {"-b cookies", tenant},
		"/events?from=2026-01-31":                  {"curl '" + f.url + "/events'"},
		"/home":                                    {"curl '" + f.url + "/tenant/summary"},
	} {
		got := command(t, f.get("/console/acme"+path, cookie).body)
		for _, part := range parts {
			if !strings.Contains(got, part) {
				t.Errorf("%s lacks %s: %s", path, part, got)
			}
		}
		_, secret, _ := strings.Cut(cookie, "=")
		if strings.Contains(got, secret) || strings.Contains(got, "done=") {
			t.Errorf("%s: %s", path, got)
		}
	}
	for _, path := range []string{"/users/no-id", "/nowhere", "/sign-in", "/find"} {
		if got := command(t, f.get("/console/acme"+path, cookie).body); got != "" {
			t.Errorf("%s: %s", path, got)
		}
	}
}

func TestRequestsContainNoValueOfAForm(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	a := f.send(http.MethodPost, "/console/acme/account/password", cookie, url.Values{"currentPassword": {"my-secret-value"}, "newPassword": {"x"}})
	if got := command(t, a.body); a.StatusCode < 400 || got == "" || strings.Contains(got, "my-secret-value") {
		t.Errorf("%d %s", a.StatusCode, got)
	}
}

func TestFragmentsHaveTheirRequest(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	list := f.get("/console/acme/users?q=ada", cookie, "Hx-Request", "true", "Hx-Target", "results").body
	if !strings.Contains(list, `id="api-command" hx-swap-oob="true"`) || !strings.Contains(command(t, list), "?q=ada'") {
		t.Error(list)
	}
	dialog := f.get("/console/acme/users/create", cookie, "Hx-Request", "true", "Hx-Target", "dialog").body
	if strings.Contains(dialog, `id="api-command"`) || command(t, dialog) == "" {
		t.Error(dialog)
	}
}

func TestARefusalAtItsFieldsHasTheIDOfTheRequest(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	for path, form := range map[string]url.Values{
		"/users/create":            {"name": {"x"}, "email": {"x@example.com"}, "idempotency-key": {"k"}},
		"/roles/create":            {"name": {"x"}, "permissions": {"users:read"}, "idempotency-key": {"k"}},
		"/account/password":        {"currentPassword": {password}, "newPassword": {"x"}},
		"/service-accounts/create": {"name": {"x"}, "idempotency-key": {"k"}},
	} {
		a := f.send(http.MethodPost, "/console/acme"+path, cookie, form)
		if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, "Not accepted. Correct the marked field.") || !strings.Contains(a.body, "<code>"+a.Header.Get("X-Request-Id")+"</code>") {
			t.Errorf("%s: %d %s", path, a.StatusCode, a.body)
		}
	}
}
