package signin_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
)

// TestACredentialChangeInvalidatesLinks creates an invitation, a link for a
// password reset and one for an email change, and then changes a credential.
func TestACredentialChangeInvalidatesLinks(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		for i, c := range []struct {
			what   string
			change func(name string, in signin.SignIn, reset, email secret.Token) error
		}{
			{"one's own password", func(_ string, in signin.SignIn, _, _ secret.Token) error {
				return nodetest.ErrorOf(f.SignIn.ChangePassword(f.Context(), f.CallerOf(in), nodetest.Password, nodetest.AnotherPassword))
			}},
			{"a password by an operator", func(name string, _ signin.SignIn, _, _ secret.Token) error {
				return f.SignIn.SetPassword(f.Context(), f.Tenant.Name, nodetest.Address(name), nodetest.AnotherPassword)
			}},
			{"a new password", func(_ string, _ signin.SignIn, reset, _ secret.Token) error {
				return f.ResetPassword(reset, nodetest.AnotherPassword)
			}},
			{"a new address", func(_ string, _ signin.SignIn, _, email secret.Token) error {
				return f.SignIn.ChangeEmail(f.Context(), f.Attempt(), email)
			}},
			{"an address by an operator", func(name string, _ signin.SignIn, _, _ secret.Token) error {
				return f.SignIn.SetEmail(f.Context(), f.Tenant.Name, nodetest.Address(name), nodetest.Address("operated-"+name))
			}},
		} {
			name := fmt.Sprintf("ada-%d", i)
			ada := f.NewMember(name)
			in, other := f.LogIn(name), f.LogIn(name)
			reset := f.ResetLink(name)
			email := f.EmailLink(f.CallerOf(in), ada.ID, "new-"+name)
			invitation := f.Invite(ada.ID)
			f.OK(c.change(name, in, reset, email))
			for link, err := range map[string]error{
				"reset": f.ResetPassword(reset, nodetest.Password), "change of address": f.SignIn.ChangeEmail(f.Context(), f.Attempt(), email),
				"invitation": nodetest.ErrorOf(f.AcceptInvitation(invitation, nodetest.Password)), "session": nodetest.ErrorOf(f.Authenticate(f.Node, other.Token)),
			} {
				if rolecall.KindOf(err) != rolecall.Unauthenticated {
					t.Errorf("%s: the %s still works: %v", c.what, link, err)
				}
			}
		}
	})
}

// TestAPasswordSetWithoutTheOldOneRevokesTokens creates API tokens of a user and then
// sets a new password. A password that is set by a link or by an operator revokes the
// tokens, because an attacker may have had access. A password change that proves the
// old password keeps the tokens.
func TestAPasswordSetWithoutTheOldOneRevokesTokens(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		for i, c := range []struct {
			what   string
			change func(name string, ada rolecall.User, in signin.SignIn) error
			keeps  bool
		}{
			{"a link", func(name string, _ rolecall.User, _ signin.SignIn) error {
				return f.ResetPassword(f.ResetLink(name), nodetest.AnotherPassword)
			}, false},
			{"an invitation", func(_ string, ada rolecall.User, _ signin.SignIn) error {
				return nodetest.ErrorOf(f.AcceptInvitation(f.Invite(ada.ID), nodetest.AnotherPassword))
			}, false},
			{"an operator", func(name string, _ rolecall.User, _ signin.SignIn) error {
				return f.SignIn.SetPassword(f.Context(), f.Tenant.Name, nodetest.Address(name), nodetest.AnotherPassword)
			}, false},
			{"the old one", func(_ string, _ rolecall.User, in signin.SignIn) error {
				return nodetest.ErrorOf(f.SignIn.ChangePassword(f.Context(), f.CallerOf(in), nodetest.Password, nodetest.AnotherPassword))
			}, true},
		} {
			name := fmt.Sprintf("ada-%d", i)
			ada := f.NewMember(name)
			f.Assign(ada.ID, f.NewRole("Reads "+name, "users:read").ID, rolecall.AssignmentDraft{})
			in := f.LogIn(name)
			tokens := []directory.APIToken{f.NewUserToken(f.CallerOf(in), "users:read"), f.NewUserToken(f.CallerOf(in), "users:read")}
			others := f.NewUserToken(f.Owner, "users:read")
			f.OK(c.change(name, ada, in))
			for _, token := range tokens {
				if _, err := f.AuthenticateToken(f.Node, token); (err == nil) != c.keeps {
					t.Errorf("by %s: a token is answered %v", c.what, err)
				}
			}
			f.OK(nodetest.ErrorOf(f.AuthenticateToken(f.Node, others)))
			revoked := slices.DeleteFunc(f.EventTypes(ada.ID), func(e rolecall.EventType) bool { return e != rolecall.EventTokenRevoked })
			mails := f.Mails()
			told := strings.Contains(mails[len(mails)-1].What, "API tokens")
			if (len(revoked) == 2) == c.keeps || told == c.keeps {
				t.Errorf("by %s: %d events, and told is %q", c.what, len(revoked), mails[len(mails)-1].What)
			}
		}
	})
}

func TestAFirstPasswordIsNotNotified(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada, bob := f.NewUser("ada"), f.NewUser("bob")
		token := f.Invite(ada.ID)
		f.ExpectMailed(func() {
			f.OK(nodetest.ErrorOf(f.AcceptInvitation(token, nodetest.Password)))
			f.OK(f.SignIn.SetPassword(f.Context(), f.Tenant.Name, bob.Email, nodetest.Password))
		})
		token = f.Invite(ada.ID)
		f.ExpectMailed(func() { f.OK(nodetest.ErrorOf(f.AcceptInvitation(token, nodetest.AnotherPassword))) }, "credentials-changed ada")
		f.ExpectMailed(func() {
			f.OK(f.SignIn.SetPassword(f.Context(), f.Tenant.Name, bob.Email, nodetest.AnotherPassword))
		}, "credentials-changed bob")

		active, _ := f.Person("") // signs in without a password
		f.OK(f.RequestReset("192.0.2.7", active.Email))
		name, _, _ := strings.Cut(active.Email, "@")
		f.ExpectMailed(func() { f.OK(f.ResetPassword(f.LastToken(rolecall.MailPasswordReset, name), nodetest.Password)) }, "credentials-changed "+name)
	})
}
