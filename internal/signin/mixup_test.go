package signin_test

import (
	"errors"
	"net/url"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/oidc/oidctest"
	"github.com/rolecall/rolecall/internal/signin"
)

// An owner of a connection lets it lead to the provider of another connection, with the client, the nonce and the
// challenge of an attempt there. The code of the person who then signs in must not reach the owner's provider.
func TestACodeForOneConnectionReachesNoOtherProvider(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		same := *f
		for name, owner := range map[string]*nodetest.Fixture{"another tenant": f.InNewTenant("mallory"), "the same tenant": &same} {
			honest := nodetest.Provide(f, func(c *rolecall.Connection) { c.Name = "Honest for " + name })
			honest.Provider.Set(func(s *oidctest.Settings) { s.Callback = func(back url.Values) { back.Del("iss") } })
			person(honest, "ada-1", verified(nodetest.Address("ada")))
			evil := nodetest.Provide(owner, func(c *rolecall.Connection) { c.Name = "Evil for " + name })
			person(evil, "mallory-1", nil)

			ticket, err := honest.SignIn.StartConnection(t.Context(), f.Attempt(), signin.ConnectionStart{Connection: honest.Connection.ID, ReturnTo: returnTo, Purpose: signin.PurposeSignIn}, noOp)
			f.OK(err)
			of, err := honest.SignIn.BeginAttempt(t.Context(), f.Attempt(), ticket, nodetest.Origin, noOp)
			f.OK(err)
			cookie, query := begin(evil, owner.Attempt(), signin.ConnectionStart{})
			page, err := url.Parse(of.URL)
			f.OK(err)
			parameters := page.Query()
			parameters.Set("state", query.Get("state"))
			page.RawQuery = parameters.Encode()
			back := honest.Provider.Authorize(t, page.String())

			if want := "/auths/oidc/callback/" + honest.Connection.ID.String(); back.Path != want || back.Query().Get("code") == "" || back.Query().Has("iss") {
				t.Fatalf("%s: the provider returns to %s", name, back)
			}
			_, err = evil.SignIn.OpenAttempt(cookie, back.Query().Get("state"), honest.Connection.ID)
			f.Is(err, rolecall.ErrAttemptInvalid)
			if sent := evil.Provider.Last(oidctest.PathToken); sent != nil {
				t.Errorf("%s: the provider of the attempt gets %v", name, sent)
			}
			_, err = complete(evil, owner.Attempt(), cookie, query)
			if _, ok := errors.AsType[*signin.Refusal](err); !ok {
				t.Errorf("%s: the attempt was used up: %v", name, err)
			}
		}
	})
}
