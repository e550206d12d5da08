package console

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/idempotency"
)

// makeAccount makes a service account of acme that holds the roles.
func (f *fixture) makeAccount(name string, roles ...rolecall.Role) rolecall.ServiceAccount {
	f.t.Helper()
	c := f.asOwner()
	created, err := f.node.Directory.CreateServiceAccount(f.t.Context(), c, idempotency.Key{Text: name, Fingerprint: []byte(name)}, rolecall.ServiceAccountDraft{Name: name})
	for _, role := range roles {
		if err == nil {
			_, _, err = f.node.Directory.AssignRole(f.t.Context(), c, rolecall.HolderOf(created.Value.ID), role.ID, rolecall.AssignmentDraft{})
		}
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return created.Value
}

func TestAServiceAccountIsMadeOnceEditedSuspendedAndDeleted(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	const list = "/console/acme/service-accounts"
	if a := f.get(list, cookie); !strings.Contains(a.body, "No service accounts yet") || !strings.Contains(a.body, list+"/create") {
		t.Errorf("%s", a.body)
	}
	if a := f.send(http.MethodPost, list+"/create", cookie, url.Values{"idempotency-key": {"j"}, "name": {"x"}}); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, `id="fault-name"`) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	form := url.Values{"idempotency-key": {"k"}, "name": {"Nightly import"}, "description": {"Brings <people>."}}
	first := f.send(http.MethodPost, list+"/create", cookie, form)
	home, _, _ := strings.Cut(first.Header.Get("Location"), "?")
	if again := f.send(http.MethodPost, list+"/create", cookie, form); first.StatusCode != http.StatusSeeOther || again.Header.Get("Location") != first.Header.Get("Location") {
		t.Fatalf("%d %s, then %d %s", first.StatusCode, first.Header.Get("Location"), again.StatusCode, again.Header.Get("Location"))
	}
	if a := f.get(list+"?q=night", cookie); !strings.Contains(a.body, home) || !strings.Contains(a.body, "1 service account<") || !strings.Contains(a.body, "Brings &lt;people&gt;.") {
		t.Errorf("%s", a.body)
	}

	tag := html.UnescapeString(regexp.MustCompile(`name="if-match" value="([^"]+)"`).FindStringSubmatch(f.get(home+"/edit", cookie).body)[1])
	change := url.Values{"if-match": {tag}, "name": {"Import"}, "was-name": {"Nightly import"}, "description": {"Brings <people>."}, "was-description": {"Brings <people>."}}
	if a := f.send(http.MethodPost, home+"/edit", cookie, change); a.Header.Get("Location") != home+"?done=saved" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	change.Set("name", "Imports")
	if a := f.send(http.MethodPost, home+"/edit", cookie, change); a.StatusCode != http.StatusPreconditionFailed || !strings.Contains(a.body, "Currently saved: <bdi>Import<") || !strings.Contains(a.body, `value="Imports"`) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}

	if a := f.send(http.MethodPost, home+"/suspend", cookie, url.Values{"reason": {"runs wild"}}); a.Header.Get("Location") != home+"?done=service-account-suspended" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := f.get(home, cookie); !strings.Contains(a.body, "status-suspended") || !strings.Contains(a.body, home+"/resume") || !strings.Contains(a.body, "runs wild") || strings.Contains(a.body, home+"/suspend") {
		t.Errorf("%s", a.body)
	}
	if a := f.send(http.MethodPost, home+"/delete", cookie, nil); a.Header.Get("Location") != list+"?done=service-account-deleted" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := f.get(home, cookie); a.StatusCode != http.StatusNotFound {
		t.Errorf("%d", a.StatusCode)
	}
}

func TestAServiceAccountHoldsRolesAsAUserDoes(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	role, account := f.makeRole("Helper", "users:read"), f.makeAccount("Import")
	home := "/console/acme/service-accounts/" + account.ID.String()
	path := home + "/roles/" + role.ID.String()
	if a := f.get(home+"/roles/give?q=help", cookie); !strings.Contains(a.body, path) || !strings.Contains(a.body, `aria-current="page" data-keys="g m"`) {
		t.Errorf("%s", a.body)
	}
	if a := f.send(http.MethodPost, path, cookie, url.Values{"where": {"departments"}, "reach/departments": {"Sales"}}); a.Header.Get("Location") != home+"?done=role-given&role="+role.ID.String() {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	for _, page := range []string{home, home + "/roles"} {
		if a := f.get(page, cookie); !strings.Contains(a.body, "In Sales") || !strings.Contains(a.body, path+"/take") {
			t.Errorf("%s: %s", page, a.body)
		}
	}
	if a := f.send(http.MethodPost, path+"/take", cookie, nil); !strings.HasPrefix(a.Header.Get("Location"), home+"?done=role-taken&role="+role.ID.String()) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

func TestWhoMayOnlyReadServiceAccountsIsOfferedNothingElse(t *testing.T) {
	f := newFixture(t)
	account := f.makeAccount("Import", f.makeRole("Helper", "users:read"))
	f.hire("clerk@example.com", "Clara Clerk", []string{"service-accounts:read"})
	cookie := f.signIn("acme", "clerk@example.com")
	home := "/console/acme/service-accounts/" + account.ID.String()
	list := f.get("/console/acme/service-accounts", cookie)
	if list.StatusCode != http.StatusOK || strings.Contains(list.body, "/create") || strings.Contains(list.body, `href="/console/acme/roles"`) {
		t.Errorf("%d %s", list.StatusCode, list.body)
	}
	page := f.get(home, cookie)
	for _, offer := range []string{"/edit", "/suspend", "/delete", "/give", "/take", "/tokens/create", "/revoke"} {
		if strings.Contains(page.body, home+offer) {
			t.Errorf("%s is offered", offer)
		}
	}
	if !strings.Contains(page.body, "You need service-accounts:update to assign roles") {
		t.Errorf("%s", page.body)
	}
	if a := f.get(home+"/tokens", cookie); !strings.Contains(a.body, "You need service-accounts:update to create tokens for this service account.") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	f.hire("none@example.com", "Nora None", []string{"users:read"})
	if a := f.get("/console/acme/service-accounts", f.signIn("acme", "none@example.com")); a.StatusCode != http.StatusForbidden || strings.Contains(a.body, `data-keys="g m"`) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}
