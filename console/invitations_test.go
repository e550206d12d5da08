package console

import (
	"net/http"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/idempotency"
)

func TestAnInvitationOfASuspendedUserIsShownAsUnusable(t *testing.T) {
	f := newFixture(t)
	created, err := f.node.Directory.CreateUser(t.Context(), f.asOwner(), idempotency.Key{Text: "k", Fingerprint: []byte("k")},
		rolecall.UserDraft{Email: "eve@example.com", Name: "Eve Adams", Invite: true})
	if err != nil {
		t.Fatal(err)
	}
	page := "/console/acme/users/" + created.Value.ID.String()
	owner := f.signIn("acme", ownerEmail)
	const unusable = "t be used while the user is suspended"
	if a := f.get(page, owner); strings.Contains(a.body, unusable) || !strings.Contains(a.body, "expires <time") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	if _, err := f.node.Directory.SuspendUser(t.Context(), f.asOwner(), created.Value.ID, ""); err != nil {
		t.Fatal(err)
	}
	if a := f.get(page, owner); !strings.Contains(a.body, unusable) || strings.Contains(a.body, "expires <time") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

func TestInvitationsAreForThoseWhoMayInvite(t *testing.T) {
	f := newFixture(t)
	owner := f.signIn("acme", ownerEmail)
	if a := f.get("/console/acme/invitations", owner); a.StatusCode != http.StatusOK || !strings.Contains(a.body, "No open invitations") {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	sales := "Sales"
	created, err := f.node.Directory.CreateUser(t.Context(), f.asOwner(), idempotency.Key{Text: "k", Fingerprint: []byte("k")},
		rolecall.UserDraft{Email: "eve@example.com", Name: "<b>Eve</b> Adams", Department: &sales, Invite: true})
	if err != nil {
		t.Fatal(err)
	}
	page := "/console/acme/users/" + created.Value.ID.String()
	a := f.get("/console/acme/invitations", owner)
	for _, part := range []string{"&lt;b&gt;Eve", "eve@example.com", "by you", page + "/invite\"", page + "/withdraw\""} {
		if !strings.Contains(strings.Join(strings.Fields(a.body), " "), part) {
			t.Errorf("lacks %s", part)
		}
	}
	if strings.Contains(a.body, "<b>Eve") || !strings.Contains(f.get("/console/acme/users", owner).body, `href="/console/acme/invitations"`) {
		t.Error("a name is not text, or the users do not lead to the invitations")
	}
	f.hire("inviter@example.com", "Ivy Inviter", []string{"users:invite", "users.status:read"})
	a = f.get("/console/acme/invitations", f.signIn("acme", "inviter@example.com"))
	for _, secret := range []string{"Eve", "eve@example.com", "Ada Lovelace"} {
		if a.StatusCode != http.StatusOK || strings.Contains(a.body, secret) {
			t.Errorf("%d, shows %s", a.StatusCode, secret)
		}
	}
	if !strings.Contains(a.body, created.Value.ID.String()) || !strings.Contains(a.body, "another user") || !strings.Contains(a.body, "You need users.email:read") {
		t.Errorf("%s", a.body)
	}
	f.hire("reader@example.com", "Rita Reader", []string{"users:read"})
	reader := f.signIn("acme", "reader@example.com")
	if a := f.get("/console/acme/invitations", reader); a.StatusCode != http.StatusForbidden || strings.Contains(f.get("/console/acme/users", reader).body, "/invitations") {
		t.Errorf("%d", a.StatusCode)
	}
	if a := f.get("/console/acme/invitations?cursor=x", owner); a.StatusCode != http.StatusOK || !strings.Contains(a.body, `role="alert"`) {
		t.Errorf("%d", a.StatusCode)
	}
}
