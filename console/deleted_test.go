package console

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/idempotency"
)

// remove deletes the user as the owner.
func (f *fixture) remove(u rolecall.User) {
	f.t.Helper()
	if err := f.node.Directory.DeleteUser(f.t.Context(), f.asOwner(), u.ID, nil); err != nil {
		f.t.Fatal(err)
	}
}

func TestTheDeletedAreForThoseWhoMayRestoreThem(t *testing.T) {
	f := newFixture(t)
	user := f.hire("eve@example.com", "Eve Adams", nil)
	f.remove(user)
	f.hire("reader@example.com", "Rita Reader", []string{"users:read", "users:delete", "users:erase", "events:read"})
	f.hire("nameless@example.com", "Nina Nameless", []string{"users:restore", "users.status:read"})
	page := "/console/acme/users/" + user.ID.String()

	reader := f.signIn("acme", "reader@example.com")
	for _, path := range []string{"/console/acme/users/deleted", page + "/deleted", page + "/restore", page + "/erase"} {
		if a := f.get(path, reader); a.StatusCode != http.StatusForbidden || strings.Contains(a.body, "Eve Adams") {
			t.Errorf("%s: %d", path, a.StatusCode)
		}
	}
	for path, part := range map[string]string{"/console/acme/users": "/users/deleted", "/console/acme/users?q=": `value="deleted"`, "/console/acme/events": "Eve Adams"} {
		if a := f.get(path, reader); a.StatusCode != http.StatusOK || strings.Contains(a.body, part) {
			t.Errorf("%s: %d, has %s", path, a.StatusCode, part)
		}
	}
	nameless := f.signIn("acme", "nameless@example.com")
	for _, path := range []string{"/console/acme/users/deleted", page + "/deleted", page + "/restore"} {
		a := f.get(path, nameless)
		if a.StatusCode != http.StatusOK || strings.Contains(a.body, "Eve Adams") || strings.Contains(a.body, "eve@example.com") || !strings.Contains(a.body, user.ID.String()) {
			t.Errorf("%s: %d %s", path, a.StatusCode, a.body)
		}
	}
	if a := f.get(page+"/deleted", nameless); strings.Contains(a.body, "/erase") || !strings.Contains(a.body, "You need users.name:read") || !strings.Contains(a.body, "You need roles:read") {
		t.Errorf("%s", a.body)
	}
	owner := f.signIn("acme", ownerEmail)
	if a := f.get("/console/acme/users?status=deleted&q=ada", owner); a.Header.Get("Location") != "/console/acme/users/deleted" {
		t.Errorf("%d %s", a.StatusCode, a.Header.Get("Location"))
	}
	if a := f.get(page, owner); a.Header.Get("Location") != page+"/deleted" {
		t.Errorf("their page: %d", a.StatusCode)
	}
	if a := f.get(page, nameless); a.Header.Get("Location") != page+"/deleted" {
		t.Errorf("their page: %d", a.StatusCode)
	}
	if a := f.get(page, reader); a.StatusCode != http.StatusNotFound {
		t.Errorf("their page: %d", a.StatusCode)
	}
	if a := f.get("/console/acme/users/deleted?cursor=x", owner); a.StatusCode != http.StatusOK || !strings.Contains(a.body, `role="alert"`) {
		t.Errorf("%d", a.StatusCode)
	}
	if a := f.get("/console/acme/events", owner); !strings.Contains(a.body, page+"/deleted\"") {
		t.Error("the events do not lead to who was deleted")
	}
}

func TestARestoreSaysWhichRolesDidNotComeBack(t *testing.T) {
	f := newFixture(t)
	user := f.hire("eve@example.com", "Eve Adams", []string{"shop/orders:approve"})
	f.hire("helper@example.com", "Helen Helper", []string{"users:restore", "users:read", "roles:read", "roles:assign"})
	f.hire("blind@example.com", "Bill Blind", []string{"users:restore", "users:read"})
	path := "/console/acme/users/" + user.ID.String()

	f.remove(user)
	helper := f.signIn("acme", "helper@example.com")
	if a := f.get(path+"/restore", helper); !strings.Contains(a.body, "need a new invitation") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	a := f.send(http.MethodPost, path+"/restore", helper, nil, "Hx-Request", "true", "Hx-Target", "confirm")
	if a.StatusCode != http.StatusOK || strings.Contains(a.body, "<html") || !strings.Contains(a.body, "Role of eve@example.com") || !strings.Contains(a.body, "sign in yet") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	for range 2 { // the form is sent twice, and the address of the deleted user is opened later
		if a := f.send(http.MethodPost, path+"/restore", helper, nil); a.Header.Get("Location") != path {
			t.Errorf("%d %s", a.StatusCode, a.Header.Get("Location"))
		}
		if a := f.get(path+"/deleted", helper); a.Header.Get("Location") != path {
			t.Errorf("%d %s", a.StatusCode, a.Header.Get("Location"))
		}
	}
	for _, email := range []string{ownerEmail, "blind@example.com"} { // no role was lost, or the caller may not read roles
		f.remove(user)
		a := f.send(http.MethodPost, path+"/restore", f.signIn("acme", email), nil)
		if a.Header.Get("Location") != path+"?done=restored" {
			t.Errorf("%s: %d %s", email, a.StatusCode, a.body)
		}
	}

	f.remove(user)
	if _, err := f.node.Directory.CreateUser(t.Context(), f.asOwner(), idempotency.Key{Text: "k", Fingerprint: []byte("k")}, rolecall.UserDraft{Email: "eve@example.com", Name: "Another Eve"}); err != nil {
		t.Fatal(err)
	}
	if a := f.send(http.MethodPost, path+"/restore", helper, nil); a.StatusCode != http.StatusConflict || !strings.Contains(a.body, `role="alert"`) || !strings.Contains(a.body, "Restore <bdi>Eve Adams") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

func TestWhoIsErasedIsNamedFirst(t *testing.T) {
	f := newFixture(t)
	owner := f.signIn("acme", ownerEmail)
	living, gone := f.hire("eve@example.com", "Eve Adams", nil), f.hire("zoe@example.com", "Zoë Perlman", nil)
	f.remove(gone)
	if a := f.get("/console/acme/users/"+living.ID.String(), owner); !strings.Contains(a.body, "/erase") {
		t.Error("the menu does not offer it")
	}
	for _, user := range []rolecall.User{living, gone} {
		path := "/console/acme/users/" + user.ID.String() + "/erase"
		a := f.get(path, owner)
		if a.StatusCode != http.StatusOK || !strings.Contains(a.body, "Erase <bdi>"+user.Name) || !strings.Contains(a.body, user.Email) || !strings.Contains(a.body, "undo it or restore") {
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
		for _, typed := range []string{"", "x", ownerEmail} {
			if a := f.send(http.MethodPost, path, owner, url.Values{"sure": {typed}}); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, `id="fault-sure"`) {
				t.Errorf("%q: %d", typed, a.StatusCode)
			}
		}
		if a := f.send(http.MethodPost, path, owner, url.Values{"sure": {" " + strings.ToUpper(user.Email)}}); a.StatusCode != http.StatusSeeOther || !strings.HasSuffix(a.Header.Get("Location"), "?done=erased") {
			t.Errorf("%d %s", a.StatusCode, a.body)
		}
		if a := f.send(http.MethodPost, path, owner, url.Values{"sure": {user.Email}}); a.StatusCode != http.StatusNotFound {
			t.Errorf("again: %d", a.StatusCode)
		}
		events, err := f.node.Directory.Events(t.Context(), f.asOwner(), directory.EventListing{Subject: rolecall.AnyID(user.ID), Limit: 10})
		if err != nil || !slices.ContainsFunc(events.Items, func(e rolecall.Event) bool { return e.Type == rolecall.EventUserErased }) {
			t.Errorf("%v %v", events.Items, err)
		}
	}
	if a := f.get("/console/acme/events", owner); strings.Contains(a.body, "Eve Adams") || strings.Contains(a.body, "Zoë") || !strings.Contains(a.body, "User erased") {
		t.Error("the events still name who was erased")
	}
}
