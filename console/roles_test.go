package console

import (
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/patience"
)

// makeRole creates a role of acme as the owner.
func (f *fixture) makeRole(name string, permissions ...string) rolecall.Role {
	f.t.Helper()
	created, err := f.node.Directory.CreateRole(f.t.Context(), f.asOwner(), idempotency.Key{Text: name, Fingerprint: []byte(name)}, rolecall.RoleDraft{Name: name, Permissions: permissions})
	if err != nil {
		f.t.Fatal(err)
	}
	return created.Value
}

// builtIn returns the built-in role with the key.
func (f *fixture) builtIn(key string) rolecall.Role {
	f.t.Helper()
	page, err := f.node.Directory.Roles(f.t.Context(), f.asOwner(), directory.RoleListing{Key: key, Limit: 1})
	if err != nil || len(page.Items) != 1 {
		f.t.Fatal(page, err)
	}
	return page.Items[0]
}

// hiddenField returns the value of the hidden field of the page.
func (f *fixture) hiddenField(page, name string) string {
	f.t.Helper()
	found := regexp.MustCompile(`name="` + name + `" value="([^"]*)"`).FindStringSubmatch(page)
	if found == nil {
		f.t.Fatalf("no field %s in %s", name, page)
	}
	return html.UnescapeString(found[1])
}

// checkbox reports whether the page has a checkbox with the name and the value, and whether it is
// checked and disabled.
func checkbox(page, name, value string) (there, checked, disabled bool) {
	box := regexp.MustCompile(`<input type="checkbox" name="` + name + `" value="` + regexp.QuoteMeta(value) + `"( checked)?( disabled)?>`).FindStringSubmatch(page)
	return box != nil, box != nil && box[1] != "", box != nil && box[2] != ""
}

func TestARoleIsMadeAndSaysWhatItOpens(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	page := f.get("/console/acme/roles/create", cookie).body
	for _, p := range rolecall.OwnPermissions() {
		if there, _, disabled := checkbox(page, "permissions", p.String()); !there || disabled || !strings.Contains(page, html.EscapeString(openWords(p))) {
			t.Errorf("%s is not offered with %q", p, p.Opens())
		}
	}
	form := url.Values{"idempotency-key": {f.hiddenField(page, "idempotency-key")}, "name": {"Helper"}, "key": {"helper"},
		"permissions": {"users:read", "shop/invoices:read\r\n\r\nnonsense:fly"}, "grants": {"roles:read", ""}}
	a := f.send(http.MethodPost, "/console/acme/roles/create", cookie, form)
	if a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, "nonsense:fly is not one of Rolecall&#39;s own permissions") || !strings.Contains(a.body, "Correct the marked field") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if _, checked, _ := checkbox(a.body, "permissions", "users:read"); !checked || !strings.Contains(a.body, "shop/invoices:read\nnonsense:fly</textarea>") {
		t.Errorf("what was filled in is lost: %s", a.body)
	}
	form["permissions"] = []string{"users:read", "shop/invoices:read"}
	a = f.send(http.MethodPost, "/console/acme/roles/create", cookie, form)
	if a.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	made := f.get(strings.TrimSuffix(a.Header.Get("Location"), "?done=role-created"), cookie).body
	for _, part := range []string{"Helper", "View all user fields", "shop/invoices:read", "View roles and who has them", "No users"} {
		if !strings.Contains(made, part) {
			t.Errorf("the role lacks %s: %s", part, made)
		}
	}
	if again := f.send(http.MethodPost, "/console/acme/roles/create", cookie, form); again.Header.Get("Location") != a.Header.Get("Location") {
		t.Errorf("it is made twice: %s", again.Header.Get("Location"))
	}
}

func TestWhoEditsARoleKeepsWhatOthersChanged(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	role := f.makeRole("Helper", "users:read", "users:suspend")
	path := "/console/acme/roles/" + role.ID.String() + "/edit"
	shown := f.get(path, cookie).body
	form := url.Values{"if-match": {f.hiddenField(shown, "if-match")}, "was-name": {"Helper"}, "name": {"Assistant"}, "was-description": {""}, "description": {""},
		"was-permissions": {f.hiddenField(shown, "was-permissions")}, "permissions": {"users:read", "events:read", ""}, "was-grants": {""}, "grants": {""}}
	patch := rolecall.RolePatch{Name: rolecall.Some("Aide"), Permissions: rolecall.Some([]string{"users:suspend", "users:read", "sessions:read"})}
	if _, err := f.node.Directory.UpdateRole(t.Context(), f.asOwner(), role.ID, patch, nil); err != nil {
		t.Fatal(err)
	}
	a := f.send(http.MethodPost, path, cookie, form)
	for _, part := range []string{"This was changed", `value="Assistant"`, "Currently saved: <bdi>Aide", "Added by another user: sessions:read"} {
		if a.StatusCode != http.StatusPreconditionFailed || !strings.Contains(a.body, part) {
			t.Errorf("%d, lacks %s: %s", a.StatusCode, part, a.body)
		}
	}
	for permission, want := range map[string]bool{"users:read": true, "users:suspend": false, "events:read": true, "sessions:read": true, "roles:read": false} {
		if _, checked, _ := checkbox(a.body, "permissions", permission); checked != want {
			t.Errorf("%s is ticked: %v", permission, checked)
		}
	}
	form.Set("if-match", f.hiddenField(a.body, "if-match"))
	form.Set("was-permissions", f.hiddenField(a.body, "was-permissions"))
	form["permissions"] = []string{"users:read", "events:read", "sessions:read"}
	form.Set("was-name", "Aide")
	if a := f.send(http.MethodPost, path, cookie, form); a.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	saved, err := f.node.Directory.Role(t.Context(), f.asOwner(), role.ID)
	if err != nil || saved.Name != "Assistant" || !slices.Equal(texts(saved.Permissions), []string{"events:read", "sessions:read", "users:read"}) {
		t.Errorf("%+v %v", saved, err)
	}
}

func TestARoleThatComesWithTheTenantIsShownAndNotEditable(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	path := "/console/acme/roles/" + f.builtIn(rolecall.OwnerKey).ID.String()
	a := f.get(path, cookie)
	if strings.Contains(a.body, path+"/edit") || strings.Contains(a.body, path+"/delete") || !strings.Contains(a.body, rolecall.ErrSystemRole.Detail) || !strings.Contains(a.body, "Everything in Rolecall") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	for _, deed := range []string{"/edit", "/delete"} {
		if a := f.get(path+deed, cookie); strings.Contains(a.body, "if-match") || strings.Contains(a.body, `<form method="post" action="`+path) || !strings.Contains(a.body, rolecall.ErrSystemRole.Detail) {
			t.Errorf("%s: %s", deed, a.body)
		}
		if a := f.send(http.MethodPost, path+deed, cookie, url.Values{"was-name": {"Owner"}, "name": {"Boss"}}); a.StatusCode != http.StatusConflict {
			t.Errorf("%s: %d", deed, a.StatusCode)
		}
	}
}

func TestOnlyWhatTheCeilingAllowsGoesIntoARole(t *testing.T) {
	f := newFixture(t)
	f.hire("clerk@example.com", "Clara Clerk", []string{"roles:*", "users:read"})
	cookie := f.signIn("acme", "clerk@example.com")
	page := f.get("/console/acme/roles/create", cookie).body
	for permission, want := range map[string]bool{"users:read": true, "users.name:read": true, "roles:delete": true, "users:delete": false, "*:*": false} {
		if there, _, disabled := checkbox(page, "permissions", permission); !there || disabled == want {
			t.Errorf("%s is offered: %v", permission, !disabled)
		}
	}
	if !strings.Contains(page, "You can only select permissions that you have") {
		t.Error("no reason is given")
	}
	a := f.get("/console/acme/roles/"+f.builtIn("administrator").ID.String(), cookie)
	if strings.Contains(a.body, "/edit") || !strings.Contains(a.body, "how this user signs in. You need") {
		t.Errorf("%s", a.body)
	}
}

func TestADeletionSaysWhoHoldsTheRoleAndTakesItFromThem(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	role := f.makeRole("Helper", "users:read")
	path := "/console/acme/roles/" + role.ID.String()
	if a := f.get(path+"/delete", cookie); !strings.Contains(a.body, "No user has this role.") || strings.Contains(a.body, `name="force"`) {
		t.Errorf("%s", a.body)
	}
	user := f.hire("eve@example.com", "Eve Adams", nil)
	if _, _, err := f.node.Directory.AssignRole(t.Context(), f.asOwner(), rolecall.HolderOf(user.ID), role.ID, rolecall.AssignmentDraft{}); err != nil {
		t.Fatal(err)
	}
	a := f.send(http.MethodPost, path+"/delete", cookie, nil) // from a page that was loaded before the assignment
	if a.StatusCode != http.StatusConflict || !strings.Contains(a.body, "1 user has this role.") || strings.Contains(a.body, "?force") || f.hiddenField(a.body, "force") != "true" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := f.get(path+"/users", cookie); !strings.Contains(a.body, "Eve Adams") || strings.Contains(a.body, f.owner.ID.String()+`" data-row`) {
		t.Errorf("%s", a.body)
	}
	if a := f.send(http.MethodPost, path+"/delete", cookie, url.Values{"force": {"true"}}); a.Header.Get("Location") != "/console/acme/roles?done=role-deleted" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if a := f.get(path, cookie); a.StatusCode != http.StatusNotFound {
		t.Errorf("%d", a.StatusCode)
	}
}

func TestRolesAreSearchedSortedAndPaged(t *testing.T) {
	f := newFixture(t)
	cookie := f.signIn("acme", ownerEmail)
	a := f.get("/console/acme/roles?q=own", cookie)
	if !strings.Contains(a.body, "1 role") || !strings.Contains(a.body, "Built-in") || strings.Contains(a.body, "Administrator") {
		t.Errorf("%s", a.body)
	}
	a = f.get("/console/acme/roles?sort=-name&limit=2", cookie)
	if strings.Index(a.body, ">Viewer<") > strings.Index(a.body, ">Owner<") || !strings.Contains(a.body, `rel="next"`) || !strings.Contains(a.body, `aria-sort="descending"`) {
		t.Errorf("%s", a.body)
	}
	if a := f.get("/console/acme/roles?sort=x", cookie); !strings.Contains(a.body, "The sort") {
		t.Errorf("%s", a.body)
	}
}

func TestASetOfThousandsIsComparedAtOnce(t *testing.T) {
	var texts, others []string
	for i := range 400_000 { // comparing each text with each other one would take several minutes
		texts, others = append(texts, fmt.Sprint("a", i)), append(others, fmt.Sprint("b", i))
	}
	compared := make(chan []string, 1)
	go func() { compared <- without(append(texts, "b7"), others) }()
	select {
	case rest := <-compared:
		if !slices.Equal(rest, texts) {
			t.Errorf("%d are left", len(rest))
		}
	case <-time.After(patience.Limit):
		t.Error("the comparison does not end")
	}
}

func TestEveryGroupOfPermissionsHasATitle(t *testing.T) {
	for _, g := range permissionGroups {
		if g.title == "" || msg(g.title) == "" {
			t.Errorf("the group of %v has no title", g.permissions)
		}
	}
}
