package console

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/scim"
)

// directorySecretOf matches the secret of a token of a directory.
var directorySecretOf = regexp.MustCompile(`rd_[A-Za-z0-9_-]{40,}`)

// makeDirectory creates a directory with the name.
func (f *fixture) makeDirectory(name string) rolecall.Directory {
	f.t.Helper()
	created, err := f.node.Directory.CreateDirectory(f.t.Context(), f.asOwner(), idempotency.Key{Text: name, Fingerprint: []byte(name)}, rolecall.DirectoryDraft{Name: name})
	if err != nil {
		f.t.Fatal(err)
	}
	return created.Value
}

func TestTheBaseURLOfDirectoriesIsThatOfSCIM(t *testing.T) {
	if scimPath != scim.Root+"/" {
		t.Errorf("%s and %s", scimPath, scim.Root)
	}
}

func TestDirectoriesInTheConsole(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	shows(t, f.get("/console/acme/directories", cookie), "No directories", "New directory")
	shows(t, f.get("/console/acme/directories/create", cookie), "Refuse them", "If another user has the address", `value="refuse" checked`, `value="suspend" checked`)
	form := url.Values{"idempotency-key": {"k"}, "name": {"Acme <b>Entra"}, "matching": {"email"}, "deprovisioning": {"delete"}}
	made := f.send(http.MethodPost, "/console/acme/directories/create", cookie, form)
	list, err := f.node.Directory.Directories(t.Context(), f.asOwner())
	if made.StatusCode != http.StatusSeeOther || err != nil || len(list) != 1 {
		t.Fatalf("%d %v %v %s", made.StatusCode, list, err, made.body)
	}
	d := list[0]
	if d.Matching != rolecall.MatchEmail || d.Deprovisioning != rolecall.DeprovisionDelete {
		t.Errorf("%+v", d)
	}
	if again := f.send(http.MethodPost, "/console/acme/directories/create", cookie, form); again.Header.Get("Location") != made.Header.Get("Location") {
		t.Errorf("%d %s", again.StatusCode, again.body)
	}
	path := "/console/acme/directories/" + d.ID.String()
	shows(t, f.get("/console/acme/directories", cookie), "Acme &lt;b&gt;Entra", path, "Take them over by their address", "Active")
	shows(t, f.get(made.Header.Get("Location"), cookie), "Acme &lt;b&gt;Entra", scim.Root+"/acme</code>", "Tenant URL", "SCIM connector base URL", "Google Workspace provisions only",
		"No tokens. Without a token", "0 users", "0 groups", "You created a directory", "created. Create a token for the identity provider.")
	form.Set("idempotency-key", "k2")
	taken := f.send(http.MethodPost, "/console/acme/directories/create", cookie, form)
	shows(t, taken, `value="delete" checked`, `aria-describedby="fault-name"`)
	form.Set("name", "A")
	shows(t, f.send(http.MethodPost, "/console/acme/directories/create", cookie, form), `aria-describedby="fault-name"`)
}

func TestADirectoryIsEditedPausedAndDeletedInTheConsole(t *testing.T) {
	f := newFixture(t)
	cookie, d := f.signIn("acme", ownerEmail), f.makeDirectory("Acme Okta")
	path := "/console/acme/directories/" + d.ID.String()
	tag := fieldOf(t, f.get(path+"/edit", cookie).body, "if-match", "value")
	form := url.Values{
		"if-match": {tag}, "name": {"Okta"}, "was-name": {d.Name}, "matching": {"email"}, "was-matching": {"refuse"}, "deprovisioning": {"suspend"}, "was-deprovisioning": {"suspend"},
	}
	if a := f.send(http.MethodPost, path+"/edit", cookie, form); a.Header.Get("Location") != path+"?done=saved" {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	changed, err := f.node.Directory.Directory(t.Context(), f.asOwner(), d.ID)
	if err != nil || changed.Name != "Okta" || changed.Matching != rolecall.MatchEmail || changed.Deprovisioning != d.Deprovisioning {
		t.Errorf("%+v %v", changed, err)
	}
	form.Set("matching", "refuse")
	form.Set("was-matching", "email")
	if a := f.send(http.MethodPost, path+"/edit", cookie, form); a.StatusCode != http.StatusPreconditionFailed || !strings.Contains(a.body, "while you were editing") || !strings.Contains(a.body, `value="refuse" checked`) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}

	shows(t, f.get(path+"/pause", cookie), "Pause the directory <bdi>Okta</bdi>?", "get 503")
	if a := f.send(http.MethodPost, path+"/pause", cookie, url.Values{}); a.Header.Get("Location") != path+"?done=directory-paused" {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	paused := f.get(path, cookie)
	shows(t, paused, "This directory is paused.", path+"/resume", "You updated a directory: Paused")
	if strings.Contains(paused.body, path+"/pause") {
		t.Error("a paused directory can be paused")
	}
	if a := f.send(http.MethodPost, path+"/resume", cookie, url.Values{}); a.StatusCode != http.StatusSeeOther || strings.Contains(f.get(path, cookie).body, "This directory is paused.") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}

	shows(t, f.get(path+"/delete", cookie), "0 users and 0 groups remain")
	if a := f.send(http.MethodPost, path+"/delete", cookie, url.Values{}); a.StatusCode != http.StatusSeeOther || f.get(path, cookie).StatusCode != http.StatusNotFound {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

func TestATokenOfADirectoryIsShownOnceAndRevoked(t *testing.T) {
	f := newFixture(t)
	cookie, d := f.signIn("acme", ownerEmail), f.makeDirectory("Acme Entra")
	path := "/console/acme/directories/" + d.ID.String()
	year := time.Now().UTC().Add(directoryTokenLifetime)
	if shown := fieldOf(t, f.get(path+"/tokens/create", cookie).body, "expiresAt", "value"); !strings.HasPrefix(shown, year.Format(time.DateOnly)) {
		t.Errorf("the default is %s", shown)
	}
	form := url.Values{"idempotency-key": {"k"}, "name": {"Entra <b>2026"}, "expiresAt": {year.Format(inputLayout)}}
	made := f.send(http.MethodPost, path+"/tokens/create", cookie, form)
	secret := directorySecretOf.FindString(made.body)
	if made.StatusCode != http.StatusOK || secret == "" || strings.Count(made.body, secret) != 1 || made.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %s", made.StatusCode, made.body)
	}
	shows(t, made, "You won&#39;t see it again.", scim.Root+"/acme</code>", "Entra &lt;b&gt;2026")
	again := f.send(http.MethodPost, path+"/tokens/create", cookie, form)
	if again.StatusCode != http.StatusOK || directorySecretOf.MatchString(again.body) || !strings.Contains(again.body, "This token was already created") {
		t.Errorf("%d %s", again.StatusCode, again.body)
	}
	form.Set("idempotency-key", "k2")
	form.Set("expiresAt", year.AddDate(1, 0, 0).Format(inputLayout))
	shows(t, f.send(http.MethodPost, path+"/tokens/create", cookie, form), `aria-describedby="fault-expiresAt"`)
	form.Set("expiresAt", time.Now().UTC().Add(48*time.Hour).Format(inputLayout))
	if a := f.send(http.MethodPost, path+"/tokens/create", cookie, form); a.StatusCode != http.StatusOK {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	shown := f.get(path, cookie)
	shows(t, shown, "Entra &lt;b&gt;2026", "Not used yet", "Expires soon", "A directory can have two tokens")
	if directorySecretOf.MatchString(shown.body) || strings.Contains(shown.body, path+"/tokens/create") {
		t.Errorf("%s", shown.body)
	}
	form.Set("idempotency-key", "k3")
	if a := f.send(http.MethodPost, path+"/tokens/create", cookie, form); a.StatusCode != http.StatusConflict || !strings.Contains(a.body, "maximum number of tokens") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	list := f.get(path+"/tokens", cookie)
	shows(t, list, "Entra &lt;b&gt;2026", "by you")
	revoke := regexp.MustCompile(`href="([^"]+/revoke)"`).FindStringSubmatch(list.body)[1]
	shows(t, f.get(revoke, cookie), "Revoke <bdi>Entra", "get 401")
	if a := f.send(http.MethodPost, revoke, cookie, nil); a.Header.Get("Location") != path+"?done=directory-token-revoked" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := f.get(revoke, cookie); a.StatusCode != http.StatusNotFound {
		t.Errorf("%d", a.StatusCode)
	}
}

func TestThePageOfADirectoryShowsWhatItManagesAndItsRequests(t *testing.T) {
	f := newFixture(t)
	cookie, d := f.signIn("acme", ownerEmail), f.makeDirectory("Acme Entra")
	draft := rolecall.DirectoryTokenDraft{Name: "Token", ExpiresAt: f.node.Access.Now().Add(time.Hour)}
	made, err := f.node.Directory.CreateDirectoryToken(t.Context(), f.asOwner(), idempotency.Key{Text: "t", Fingerprint: []byte("t")}, d.ID, draft)
	if err != nil {
		t.Fatal(err)
	}
	p, err := f.node.Directory.AuthenticateDirectory(t.Context(), f.asOwner().Tenant, made.Value.Secret)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.node.Directory.ProvisionGroup(t.Context(), p, rolecall.GroupDraft{Name: "Staff"}, nil); err != nil {
		t.Fatal(err)
	}
	path := "/console/acme/directories/" + d.ID.String()
	shows(t, f.get(path, cookie), "1 group<", `href="/console/acme/groups"`, "appears here after about a second")
	for i := range requestsShown + 1 {
		f.node.Directory.RecordDirectoryRequest(p.Caller, rolecall.DirectoryRequest{At: f.node.Access.Now(), Method: "POST", Path: "/Users/" + string(rune('a'+i)), Status: http.StatusConflict, Detail: "Another user <has> it."})
	}
	if err := f.node.Directory.FlushDirectoryRequests(t.Context()); err != nil {
		t.Fatal(err)
	}
	shown := f.get(path, cookie)
	shows(t, shown, "<code>POST /Users/b</code>", "409", "Another user &lt;has&gt; it.")
	if strings.Contains(shown.body, "/Users/a</code>") {
		t.Error("the page shows more than the newest requests")
	}
	shows(t, f.get(path+"/requests", cookie), "<code>POST /Users/a</code>", "<code>POST /Users/b</code>")
	shows(t, f.get("/console/acme/events", cookie), `<a href="`+path+`">A directory</a> created`, "over SCIM")
	shows(t, f.get(path+"/delete", cookie), "1 group remain", "gets a longer name")
}

func TestOnlyThoseWithAllPermissionsConfigureDirectories(t *testing.T) {
	f := newFixture(t)
	d := f.makeDirectory("Acme Entra")
	f.hire("reader@example.com", "Rita Reader", []string{"connections:read", "connections:create", "connections:update", "connections:delete", "tenant:read"})
	f.hire("user@example.com", "Uma User", []string{"tenant:read"})
	reader, user := f.signIn("acme", "reader@example.com"), f.signIn("acme", "user@example.com")
	path := "/console/acme/directories/" + d.ID.String()
	for _, page := range []string{"/console/acme/directories", path, path + "/tokens", path + "/requests"} {
		a := f.get(page, reader)
		shows(t, a, "Acme Entra")
		for _, change := range []string{"/directories/create", path + "/edit", path + "/pause", path + "/delete", path + "/tokens/create"} {
			if strings.Contains(a.body, change) {
				t.Errorf("%s offers %s", page, change)
			}
		}
		if a := f.get(page, user); a.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d", page, a.StatusCode)
		}
	}
	for _, page := range []string{"/console/acme/directories/create", path + "/edit", path + "/pause", path + "/delete", path + "/tokens/create"} {
		if a := f.get(page, reader); a.StatusCode != http.StatusForbidden {
			t.Errorf("%s: %d", page, a.StatusCode)
		}
	}
	if strings.Contains(f.get("/console/acme/settings", user).body, "/acme/directories") {
		t.Error("the tab of directories is shown to callers without connections:read")
	}
}
