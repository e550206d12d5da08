package signin_test

import (
	"net/http"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/oidc"
	"github.com/rolecall/rolecall/internal/oidc/oidctest"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/store"
)

// userInfoFails makes the userinfo endpoint respond in another way.
func userInfoFails(p *nodetest.Provided, respond http.HandlerFunc) {
	p.Provider.Set(func(s *oidctest.Settings) {
		s.Handlers = map[string]http.HandlerFunc{oidctest.PathUserInfo: respond}
	})
}

func TestAUserInfoEndpointDecidesOnlyForUnknownIdentities(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		p := nodetest.Provide(f, func(c *rolecall.Connection) { c.Linking = rolecall.LinkVerifiedEmail })
		ada := f.NewMember("ada")
		person := func(subject string) {
			p.Provider.Set(func(s *oidctest.Settings) {
				s.Person = oidctest.Person{Subject: subject, UserInfo: map[string]any{"email": nodetest.Address("ada"), "email_verified": true}}
			})
		}
		person("ada-1")
		p.Provider.Set(func(s *oidctest.Settings) { s.UserInfo = func(*oidctest.Token) {} }) // signed
		in, err := signInWith(p, signin.ConnectionStart{})
		f.OK(err)
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
			before := p.Provider.Requests(oidctest.PathUserInfo)
			userInfoFails(p, respond)
			person("ada-1")
			in, err := signInWith(p, signin.ConnectionStart{})
			if err != nil || in.Principal.User.ID != ada.ID {
				t.Errorf("%s: the linked user is refused: %v", name, err)
				continue
			}
			ownCodeOf(p, in, signin.PurposeConfirm)
			if n := p.Provider.Requests(oidctest.PathUserInfo) - before; n != 0 {
				t.Errorf("%s: %d requests for a linked user", name, n)
			}
			person("unknown to " + name)
			_, err = signInWith(p, signin.ConnectionStart{})
			if name == "500" {
				f.Is(err, rolecall.ErrConnectionUnavailable)
			} else {
				refused(p, err, signin.CodeRefused, oidc.ReasonUserInfoResponse)
			}
			f.OK(nodetest.ErrorOf(f.SignIn.LinkIdentity(t.Context(), f.CallerOf(in), ownCodeOf(p, in, signin.PurposeLink), ""))) // needs no address
		}
		f.OK(f.Store.View(t.Context(), f.Tenant.ID, func(tx *store.Tx) error {
			identity, err := tx.Identity(p.Connection.Issuer, "ada-1")
			if identity.Email != nodetest.Address("ada") {
				t.Errorf("the identity lost its address: %+v", identity)
			}
			return err
		}))
	})
}
