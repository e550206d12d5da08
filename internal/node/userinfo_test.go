package node_test

import (
	"net/http"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/oidc"
	"github.com/rolecall/rolecall/internal/oidc/oidctest"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/store"
)

// userInfoFails makes the userinfo endpoint respond in another way.
func (p *provided) userInfoFails(respond http.HandlerFunc) {
	p.provider.Set(func(s *oidctest.Settings) {
		s.Handlers = map[string]http.HandlerFunc{oidctest.PathUserInfo: respond}
	})
}

func TestAUserInfoEndpointDecidesOnlyForUnknownIdentities(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		p := provide(f, func(c *rolecall.Connection) { c.Linking = rolecall.LinkVerifiedEmail })
		ada := f.member("ada")
		person := func(subject string) {
			p.provider.Set(func(s *oidctest.Settings) {
				s.Person = oidctest.Person{Subject: subject, UserInfo: map[string]any{"email": address("ada"), "email_verified": true}}
			})
		}
		person("ada-1")
		p.provider.Set(func(s *oidctest.Settings) { s.UserInfo = func(*oidctest.Token) {} }) // signed
		in, err := p.signInWith(signin.ConnectionStart{})
		f.ok(err)
		if in.Principal.User.ID != ada.ID {
			t.Errorf("who is signed in is %+v", in.Principal.User)
		}
		for name, respond := range map[string]http.HandlerFunc{
			"403":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) },
			"404":  http.NotFound,
			"500":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
			"HTML": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html></html>")) },
			"JWT": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/jwt")
				_, _ = w.Write([]byte("a.b.c"))
			},
		} {
			before := p.provider.Requests(oidctest.PathUserInfo)
			p.userInfoFails(respond)
			person("ada-1")
			in, err := p.signInWith(signin.ConnectionStart{})
			if err != nil || in.Principal.User.ID != ada.ID {
				t.Errorf("%s: the linked user is refused: %v", name, err)
				continue
			}
			p.ownCodeOf(in, signin.PurposeConfirm)
			if n := p.provider.Requests(oidctest.PathUserInfo) - before; n != 0 {
				t.Errorf("%s: %d requests for a linked user", name, n)
			}
			person("unknown to " + name)
			_, err = p.signInWith(signin.ConnectionStart{})
			if name == "500" {
				f.is(err, rolecall.ErrConnectionUnavailable)
			} else {
				p.refused(err, signin.CodeRefused, oidc.ReasonUserInfoResponse)
			}
			f.ok(errorOf(f.SignIn.LinkIdentity(t.Context(), f.call(in), p.ownCodeOf(in, signin.PurposeLink), ""))) // needs no address
		}
		f.ok(f.store.View(t.Context(), f.tenant.ID, func(tx *store.Tx) error {
			identity, err := tx.Identity(p.connection.Issuer, "ada-1")
			if identity.Email != address("ada") {
				t.Errorf("the identity lost its address: %+v", identity)
			}
			return err
		}))
	})
}
