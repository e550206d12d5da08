package node_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
)

// TestACredentialChangeInvalidatesLinks creates an invitation, a link for a
// password reset and one for an email change, and then changes a credential.
func TestACredentialChangeInvalidatesLinks(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		for i, c := range []struct {
			what   string
			change func(name string, in signin.SignIn, reset, email secret.Token) error
		}{
			{"one's own password", func(_ string, in signin.SignIn, _, _ secret.Token) error {
				return errorOf(f.SignIn.ChangePassword(f.Context(), f.call(in), password, anotherPassword))
			}},
			{"a password by an operator", func(name string, _ signin.SignIn, _, _ secret.Token) error {
				return f.SignIn.SetPassword(f.Context(), f.tenant.Name, address(name), anotherPassword)
			}},
			{"a new password", func(_ string, _ signin.SignIn, reset, _ secret.Token) error { return f.reset(reset, anotherPassword) }},
			{"a new address", func(_ string, _ signin.SignIn, _, email secret.Token) error {
				return f.SignIn.ChangeEmail(f.Context(), f.attempt(), email)
			}},
			{"an address by an operator", func(name string, _ signin.SignIn, _, _ secret.Token) error {
				return f.SignIn.SetEmail(f.Context(), f.tenant.Name, address(name), address("operated-"+name))
			}},
		} {
			name := fmt.Sprintf("ada-%d", i)
			ada := f.member(name)
			in, other := f.signIn(name), f.signIn(name)
			reset := f.resetLink(name)
			email := f.emailLink(f.call(in), ada.ID, "new-"+name)
			invitation := f.invite(ada.ID)
			f.ok(c.change(name, in, reset, email))
			for link, err := range map[string]error{
				"reset": f.reset(reset, password), "change of address": f.SignIn.ChangeEmail(f.Context(), f.attempt(), email),
				"invitation": errorOf(f.accept(invitation, password)), "session": errorOf(f.authenticate(f.Node, other.Token)),
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
	onEachStore(t, func(f *fixture) {
		for i, c := range []struct {
			what   string
			change func(name string, ada rolecall.User, in signin.SignIn) error
			keeps  bool
		}{
			{"a link", func(name string, _ rolecall.User, _ signin.SignIn) error {
				return f.reset(f.resetLink(name), anotherPassword)
			}, false},
			{"an invitation", func(_ string, ada rolecall.User, _ signin.SignIn) error {
				return errorOf(f.accept(f.invite(ada.ID), anotherPassword))
			}, false},
			{"an operator", func(name string, _ rolecall.User, _ signin.SignIn) error {
				return f.SignIn.SetPassword(f.Context(), f.tenant.Name, address(name), anotherPassword)
			}, false},
			{"the old one", func(_ string, _ rolecall.User, in signin.SignIn) error {
				return errorOf(f.SignIn.ChangePassword(f.Context(), f.call(in), password, anotherPassword))
			}, true},
		} {
			name := fmt.Sprintf("ada-%d", i)
			ada := f.member(name)
			f.assign(ada.ID, f.role("Reads "+name, "users:read").ID, rolecall.AssignmentDraft{})
			in := f.signIn(name)
			tokens := []directory.APIToken{f.userToken(f.call(in), "users:read"), f.userToken(f.call(in), "users:read")}
			others := f.userToken(f.owner, "users:read")
			f.ok(c.change(name, ada, in))
			for _, token := range tokens {
				if _, err := f.bears(f.Node, token); (err == nil) != c.keeps {
					t.Errorf("by %s: a token is answered %v", c.what, err)
				}
			}
			f.ok(errorOf(f.bears(f.Node, others)))
			revoked := slices.DeleteFunc(f.eventTypes(ada.ID), func(e rolecall.EventType) bool { return e != rolecall.EventTokenRevoked })
			mails := f.mails()
			told := strings.Contains(mails[len(mails)-1].What, "API tokens")
			if (len(revoked) == 2) == c.keeps || told == c.keeps {
				t.Errorf("by %s: %d events, and told is %q", c.what, len(revoked), mails[len(mails)-1].What)
			}
		}
	})
}

func TestAFirstPasswordIsNotNotified(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada, bob := f.user("ada"), f.user("bob")
		token := f.invite(ada.ID)
		f.expectMailed(func() {
			f.ok(errorOf(f.accept(token, password)))
			f.ok(f.SignIn.SetPassword(f.Context(), f.tenant.Name, bob.Email, password))
		})
		token = f.invite(ada.ID)
		f.expectMailed(func() { f.ok(errorOf(f.accept(token, anotherPassword))) }, "credentials-changed ada")
		f.expectMailed(func() {
			f.ok(f.SignIn.SetPassword(f.Context(), f.tenant.Name, bob.Email, anotherPassword))
		}, "credentials-changed bob")

		active, _ := f.person("") // signs in without a password
		f.ok(f.requestReset("192.0.2.7", active.Email))
		name, _, _ := strings.Cut(active.Email, "@")
		f.expectMailed(func() { f.ok(f.reset(f.lastToken(rolecall.MailPasswordReset, name), password)) }, "credentials-changed "+name)
	})
}
