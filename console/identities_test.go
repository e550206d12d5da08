package console

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/oidc/oidctest"
)

// signInByConnection signs a user with a new identity in.
func (s *surfer) signInByConnection(c rolecall.Connection, user rolecall.User, subject string) {
	s.t.Helper()
	s.identify(user, c, subject)
	s.person(subject, user.Email)
	s.signedInAtProvider(s.do(http.MethodPost, "/console/acme/sign-in/connection", url.Values{"connection": {c.ID.String()}}))
	if s.cookies["console-acme"] == "" {
		s.t.Fatal("the user is not signed in")
	}
}

func TestIdentitiesOfAUserInTheConsole(t *testing.T) {
	s, c := newSurfer(t)
	eve := s.hire("eve@acme.example", "Eve Adams", nil)
	identity := s.identify(eve, c, "eve-1")
	s.hire("reader@example.com", "Rita Reader", []string{"users:read", "identities:read"})
	owner, reader := s.signIn("acme", ownerEmail), s.signIn("acme", "reader@example.com")
	path := "/console/acme/users/" + eve.ID.String()
	shows(t, s.get(path, owner), "Identities", "Acme SSO", path+"/identities")
	remove := path + "/identities/" + identity.ID.String() + "/delete"
	shows(t, s.get(path+"/identities", owner), "Acme SSO", c.Issuer, "eve@acme.example", remove)
	if a := s.get(path+"/identities", reader); a.StatusCode != http.StatusOK || strings.Contains(a.body, remove) {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
	shows(t, s.get(remove, owner), "Remove the identity of <bdi>Acme SSO</bdi> from <bdi>Eve Adams</bdi>?")
	if a := s.send(http.MethodPost, remove, owner, url.Values{}); a.StatusCode != http.StatusSeeOther {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	shows(t, s.get(path+"/identities", owner), "No identities")
}

func TestThePageOfAUserSaysThatTheySignInByAConnectionOnly(t *testing.T) {
	s, c := newSurfer(t)
	eve, bob := s.hire("eve@acme.example", "Eve Adams", nil), s.hire("bob@acme.example", "Bob Brown", nil)
	s.identify(eve, c, "eve-1")
	s.identify(s.owner, c, "owner-1")
	cookie := s.signIn("acme", ownerEmail)
	const only = "Signs in by Acme SSO only."
	page := func(u rolecall.User) reply { return s.get("/console/acme/users/"+u.ID.String(), cookie) }
	if strings.Contains(page(eve).body, only) {
		t.Error("passwords are allowed")
	}
	s.settings(rolecall.SettingsPatch{Passwords: rolecall.Some(string(rolecall.PasswordsOfOwners))})
	shows(t, page(eve), only, "Can sign in")
	shows(t, page(bob), "the user has no identity at an identity provider")
	if strings.Contains(page(s.owner).body, only) {
		t.Error("owners can sign in with a password")
	}
}

func TestAnIdentityIsAddedInTheAccount(t *testing.T) {
	s, c := newSurfer(t)
	cookie := strings.SplitN(s.signIn("acme", ownerEmail), "=", 2)
	s.cookies[cookie[0]] = cookie[1]
	s.person("owner-1", ownerEmail)
	shows(t, s.do(http.MethodGet, "/console/acme/account", nil), "/console/acme/account/identities/add")
	shows(t, s.do(http.MethodGet, "/console/acme/account/identities/add", nil), "Sign in with Acme SSO")
	back := s.signedInAtProvider(s.do(http.MethodPost, "/console/acme/account/identities/add", url.Values{"connection": {c.ID.String()}}))
	shows(t, back, "You have signed in at the identity provider")
	form := url.Values{"connectionCode": {fieldOf(t, back.body, "connectionCode", "value")}}
	stranger := s.send(http.MethodPost, "/console/acme/account/identities/link", s.signIn("acme", ownerEmail), form)
	if stranger.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("another session adds the identity: %d", stranger.StatusCode)
	}
	if a := s.do(http.MethodPost, "/console/acme/account/identities/link", form); a.Header.Get("Location") != "/console/acme/account?done=identity-added" {
		t.Fatalf("%d %s", a.StatusCode, a.body)
	}
	shows(t, s.do(http.MethodGet, "/console/acme/account", nil), "<bdi>Acme SSO</bdi>")

	s.provider.Set(func(p *oidctest.Settings) {
		p.Callback = func(q url.Values) { q.Del("code"); q.Set("error", "access_denied") }
	})
	shows(t, s.signedInAtProvider(s.do(http.MethodPost, "/console/acme/account/identities/add", url.Values{"connection": {c.ID.String()}})), "The sign-in was refused.")
}

func TestAUserWithoutAPasswordIsNotAskedForOne(t *testing.T) {
	s, c := newSurfer(t, func(d *rolecall.ConnectionDraft) {
		d.Provisioning = &rolecall.Provisioning{RoleIDs: []rolecall.RoleID{}}
	})
	s.person("new-1", "new@acme.example")
	s.signedInAtProvider(s.do(http.MethodPost, "/console/acme/sign-in/connection", url.Values{"connection": {c.ID.String()}}))
	s.await()
	stale := s.do(http.MethodGet, "/console/acme/account/passkeys/add", nil)
	shows(t, stale, "/console/acme/account/confirm?return=", "You have no password here.")
	if strings.Contains(stale.body, "current-password") {
		t.Error("the form asks for a password that the user does not have")
	}
}

func TestAUserWithoutAnIdentityConfirmsWithThePassword(t *testing.T) {
	s, _ := newSurfer(t)
	if a := s.get("/console/acme/account/confirm?return=/roles/create", s.signIn("acme", ownerEmail)); a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/console/acme/roles/create" {
		t.Errorf("%d %q: %s", a.StatusCode, a.Header.Get("Location"), a.body)
	}
}

func TestAUserConfirmsWithAConnection(t *testing.T) {
	s, c := newSurfer(t)
	s.signInByConnection(c, s.owner, "owner-1")
	const form = "/console/acme/roles/create"
	if strings.Contains(s.do(http.MethodGet, form, nil).body, "/account/confirm") {
		t.Error("the form of a recent sign-in asks for a confirmation")
	}
	s.await()
	shows(t, s.do(http.MethodGet, form, nil), `href="/console/acme/account/confirm?return=%2Froles%2Fcreate"`, "current-password")
	shows(t, s.do(http.MethodGet, "/console/acme/account/confirm?return=/roles/create", nil), "Confirm with Acme SSO")
	confirm := url.Values{"connection": {c.ID.String()}, "return": {"/roles/create"}}
	a := s.signedInAtProvider(s.do(http.MethodPost, "/console/acme/account/confirm", confirm))
	if a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != form || strings.Contains(s.do(http.MethodGet, form, nil).body, "/account/confirm") {
		_, main, _ := strings.Cut(a.body, "<main")
		t.Fatalf("%d to %s: %s", a.StatusCode, a.Header.Get("Location"), main)
	}
	s.person("stranger", "stranger@acme.example")
	a = s.signedInAtProvider(s.do(http.MethodPost, "/console/acme/account/confirm", confirm))
	shows(t, a, "isn&#39;t linked to a user here", "Confirm with Acme SSO")
	if a := s.do(http.MethodGet, "/console/acme/account/confirm/done?code=x&return=/roles", nil); a.Header.Get("Location") != "/console/acme/account/confirm?error=sign-in-code-invalid&return=%2Froles" {
		t.Errorf("%d to %s", a.StatusCode, a.Header.Get("Location"))
	}
}
