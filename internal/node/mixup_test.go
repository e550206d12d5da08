package node_test

import (
	"errors"
	"net/url"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/oidc/oidctest"
	"github.com/rolecall/rolecall/internal/signin"
)

// An owner of a connection lets it lead to the provider of another connection, with the client, the nonce and the
// challenge of an attempt there. The code of the person who then signs in must not reach the owner's provider.
func TestACodeForOneConnectionReachesNoOtherProvider(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		same := *f
		for name, owner := range map[string]*fixture{"another tenant": f.also("mallory"), "the same tenant": &same} {
			honest := provide(f, func(c *rolecall.Connection) { c.Name = "Honest for " + name })
			honest.provider.Set(func(s *oidctest.Settings) { s.Callback = func(back url.Values) { back.Del("iss") } })
			honest.person("ada-1", verified(address("ada")))
			evil := provide(owner, func(c *rolecall.Connection) { c.Name = "Evil for " + name })
			evil.person("mallory-1", nil)

			ticket, err := honest.SignIn.StartConnection(t.Context(), f.attempt(), signin.ConnectionStart{Connection: honest.connection.ID, ReturnTo: returnTo, Purpose: signin.PurposeSignIn}, noOp)
			f.ok(err)
			of, err := honest.SignIn.BeginAttempt(t.Context(), f.attempt(), ticket, origin, noOp)
			f.ok(err)
			cookie, query := evil.begin(owner.attempt(), signin.ConnectionStart{})
			page, err := url.Parse(of.URL)
			f.ok(err)
			parameters := page.Query()
			parameters.Set("state", query.Get("state"))
			page.RawQuery = parameters.Encode()
			back := honest.provider.Authorize(t, page.String())

			if want := "/auths/oidc/callback/" + honest.connection.ID.String(); back.Path != want || back.Query().Get("code") == "" || back.Query().Has("iss") {
				t.Fatalf("%s: the provider returns to %s", name, back)
			}
			_, err = evil.SignIn.OpenAttempt(cookie, back.Query().Get("state"), honest.connection.ID)
			f.is(err, rolecall.ErrAttemptInvalid)
			if sent := evil.provider.Last(oidctest.PathToken); sent != nil {
				t.Errorf("%s: the provider of the attempt gets %v", name, sent)
			}
			_, err = evil.complete(owner.attempt(), cookie, query)
			if _, ok := errors.AsType[*signin.Refusal](err); !ok {
				t.Errorf("%s: the attempt was used up: %v", name, err)
			}
		}
	})
}
