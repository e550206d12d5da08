package signin_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
)

// reconfirm re-authenticates in the session of a sign-in, with the token of that sign-in.
func reconfirm(f *nodetest.Fixture, in signin.SignIn, password string, p signin.Proof) error {
	return nodetest.ErrorOf(f.SignIn.Reauthenticate(f.Context(), f.CallerOf(in), []secret.Token{in.Token}, password, p))
}

func TestReauthenticationReplacesTheToken(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.NewMember("ada")
		in := f.LogIn("ada")
		confirm := func() secret.Token {
			confirmed, err := f.SignIn.Reauthenticate(f.Context(), f.CallerOf(in), []secret.Token{in.Token}, nodetest.Password, signin.Proof{})
			f.OK(err)
			if confirmed.Principal.Session.ID != in.Principal.Session.ID || confirmed.Principal.Session.ConfirmedAt != f.Clock.Now() {
				t.Errorf("the session is %+v", confirmed.Principal.Session)
			}
			return confirmed.Token
		}
		next := confirm()
		if next == in.Token || next == "" {
			t.Fatalf("the token was not replaced")
		}
		f.Clock.Advance(time.Minute)
		if confirm() != next || f.Refresh(f.Node, in.Token) != next {
			t.Error("the old token has two successors")
		}
		f.OK(nodetest.ErrorOf(f.Authenticate(f.Node, in.Token))) // another tab
		f.OK(nodetest.ErrorOf(f.Authenticate(f.NewNode(), next)))
		f.Clock.Advance(rolecall.DefaultRefreshGrace - time.Microsecond)
		f.OK(nodetest.ErrorOf(f.Authenticate(f.NewNode(), in.Token)))
		f.Clock.Advance(time.Microsecond)
		f.Is(reconfirm(f, in, nodetest.Password, signin.Proof{}), rolecall.ErrUnauthenticated)
		f.Is(nodetest.ErrorOf(f.Authenticate(f.Node, next)), rolecall.ErrUnauthenticated)
		if got := f.EventTypes(in.Principal.User.ID)[0]; got != rolecall.EventTokenReused {
			t.Errorf("the newest event is %s", got)
		}
	})
}

func TestConcurrentReauthenticationsReturnOneToken(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.NewMember("ada")
		in := f.LogIn("ada")
		nodes := []*node.Node{f.Node, f.NewNode()}
		tokens := make([]secret.Token, 8)
		var running sync.WaitGroup
		for i := range tokens {
			running.Go(func() {
				confirmed, err := nodes[i%2].SignIn.Reauthenticate(f.Context(), f.CallerOf(in), []secret.Token{in.Token}, nodetest.Password, signin.Proof{})
				if err != nil {
					t.Error(err)
				}
				tokens[i] = confirmed.Token
			})
		}
		running.Wait()
		if slices.Sort(tokens); len(slices.Compact(tokens)) != 1 || tokens[0] == in.Token {
			t.Error("there are several successors")
		}
	})
}

func TestASignInIsRecentForTheConfiguredTime(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		in := f.LogIn("owner")
		recent := func() error {
			p, err := f.Authenticate(f.Node, in.Token)
			f.OK(err)
			return authz.RequireRecent(p, f.Access.Now())
		}
		f.OK(recent())
		f.Clock.Advance(rolecall.DefaultReauthentication)
		f.OK(recent())
		f.Clock.Advance(time.Microsecond)
		f.Is(recent(), rolecall.ErrNotRecent)
		for seconds, wanted := range map[int64]error{0: nil, 86400: nil, 899: rolecall.ErrNotRecent} {
			f.PatchTenant(nodetest.Setting("reauthenticationSeconds", &seconds))
			f.Is(recent(), wanted)
		}
		f.PatchTenant(nodetest.Setting("reauthenticationSeconds", nil))
		next := f.Refresh(f.Node, in.Token)
		in.Token = next
		f.Is(recent(), rolecall.ErrNotRecent) // a new token is not a re-authentication

		f.OK(reconfirm(f, in, nodetest.Password, signin.Proof{}))
		p, err := f.Authenticate(f.Node, in.Token)
		f.OK(err)
		if session := p.Session; session.ConfirmedAt != f.Clock.Now() || session.AuthenticatedAt != nodetest.Start || session.ExpiresAt != in.Principal.Session.ExpiresAt {
			t.Errorf("the session is %+v", session)
		}
		f.OK(recent())
		f.Clock.Advance(rolecall.DefaultReauthentication + time.Microsecond)
		f.Is(recent(), rolecall.ErrNotRecent)
		f.Clock.Until(nodetest.Start) // the clock is set back
		f.OK(recent())
	})
}

func TestProgramsNeedNoRecentSignIn(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.Clock.Advance(nodetest.Day)
		for what, p := range map[string]*authz.Principal{
			"a token":           {Tenant: f.Tenant, Token: &rolecall.APIToken{}},
			"a service account": {Tenant: f.Tenant, Kind: authz.PrincipalServiceAccount, Token: &rolecall.APIToken{}},
			"an operator":       {Tenant: f.Tenant, Kind: authz.PrincipalOperator},
		} {
			if err := authz.RequireRecent(p, f.Access.Now()); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

func TestReauthenticationAppliesToOneSession(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		ada, far := f.NewMember("ada"), f.NewWatchingNode()
		one, other := f.LogIn("ada"), f.LogIn("ada")
		for _, node := range []*node.Node{f.Node, far} {
			f.OK(nodetest.ErrorOf(f.Authenticate(node, one.Token)))
		}
		f.Clock.Advance(time.Second)
		f.OK(reconfirm(f, one, nodetest.Password, signin.Proof{}))
		confirmed := func(node *node.Node, in signin.SignIn) rolecall.Time {
			p, err := f.Authenticate(node, in.Token)
			f.OK(err)
			return p.Session.ConfirmedAt
		}
		if got := confirmed(f.Node, one); got != f.Clock.Now() {
			t.Errorf("the next request on the same node sees %v", got)
		}
		f.Eventually(func() bool { return confirmed(far, one) == f.Clock.Now() })
		if got := confirmed(f.Node, other); got != 0 {
			t.Errorf("another session is confirmed at %v", got)
		}
		events := f.Events(f.Owner, directory.EventListing{Type: string(rolecall.EventSessionConfirmed)})
		if len(events) != 1 || events[0].SessionID != one.Principal.Session.ID || events[0].Subject.ID != rolecall.AnyID(ada.ID) {
			t.Errorf("the events are %+v", events)
		}
		f.OK(f.SignIn.EndUserSessions(f.Context(), f.Owner, ada.ID))
		f.Is(reconfirm(f, one, nodetest.Password, signin.Proof{}), rolecall.ErrUnauthenticated)
	})
}

func TestAWrongPasswordDoesNotReauthenticate(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		f.NewMember("ada")
		in := f.LogIn("ada")
		try := func(password string) error {
			return reconfirm(f, in, password, signin.Proof{})
		}
		for range 3 {
			for range 9 {
				err := try("wrong")
				f.Is(err, rolecall.ErrValidation)
				if got := nodetest.FaultsOf(err); len(got) != 1 || got[0] != "/password wrong" {
					t.Errorf("the faults are %q", got)
				}
			}
			f.OK(try(nodetest.Password)) // resets the counter
		}
		f.Clock.Advance(time.Hour)
		var evaluated, refused int
		var mu sync.Mutex
		var running sync.WaitGroup
		before := f.Hashes.Hashed()
		for range 50 {
			running.Go(func() {
				err := try("wrong")
				mu.Lock()
				defer mu.Unlock()
				switch {
				case errors.Is(err, rolecall.ErrValidation):
					evaluated++
				case errors.Is(err, rolecall.ErrTooManyAttempts):
					refused++
				default:
					t.Error(err)
				}
			})
		}
		running.Wait()
		if evaluated != 10 || refused != 40 || f.Hashes.Hashed()-before != 10 {
			t.Errorf("%d were evaluated and %d refused, with %d hashes", evaluated, refused, f.Hashes.Hashed()-before)
		}
		f.Is(try(nodetest.Password), rolecall.ErrTooManyAttempts)
		f.OK(f.Guess("203.0.113.1", "ada", nodetest.Password)) // sign-ins have a separate counter
		p, err := f.Authenticate(f.Node, in.Token)
		f.OK(err)
		f.Is(authz.RequireRecent(p, f.Access.Now()), rolecall.ErrNotRecent)
	})
}

func TestReauthenticationNeedsTheSecondFactor(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		user, app, codes := f.Protected("ada")
		in, err := f.Answer(f.FactorChallenge("ada"), signin.Proof{Code: app.Next()})
		f.OK(err)
		try := func(password string, p signin.Proof) error {
			return reconfirm(f, in, password, p)
		}
		asked, err := f.SignIn.Reauthenticate(f.Context(), f.CallerOf(in), []secret.Token{in.Token}, nodetest.Password, signin.Proof{})
		f.Is(nodetest.ErrorOf(asked, err), rolecall.ErrSecondFactorRequired)
		if len(asked.Challenge.Methods) != 2 || asked.Principal != nil || asked.Token != "" {
			t.Errorf("the password alone: %+v", asked)
		}
		code := app.Next()
		for _, wrong := range []struct {
			password string
			proof    signin.Proof
			fault    string
		}{
			{"wrong", signin.Proof{}, "/password wrong"},
			{"wrong", signin.Proof{Code: code}, "/password wrong"},
			{"", signin.Proof{Code: code}, "/password wrong"},
			{nodetest.Password, signin.Proof{Code: "000000"}, "/code wrong"},
			{nodetest.Password, signin.Proof{RecoveryCode: "AAAA-AAAA-AAAA-AAAA"}, "/recoveryCode wrong"},
			{nodetest.Password, signin.Proof{Passkey: []byte("{}")}, "/passkey wrong"},
		} {
			err := try(wrong.password, wrong.proof)
			f.Is(err, rolecall.ErrValidation)
			if got := nodetest.FaultsOf(err); len(got) != 1 || got[0] != wrong.fault {
				t.Errorf("%+v: %q", wrong, got)
			}
		}
		f.OK(try(nodetest.Password, signin.Proof{Code: code})) // a failed attempt has not consumed the code
		if got := nodetest.FaultsOf(try(nodetest.Password, signin.Proof{Code: code})); len(got) != 1 || got[0] != "/code wrong" {
			t.Errorf("the same code again: %q", got)
		}
		recovery := signin.Proof{RecoveryCode: string(codes[0])}
		results := f.InParallel(50, func(int) error { return try(nodetest.Password, recovery) })
		if results[nil] != 1 {
			t.Errorf("one recovery code confirmed %v", results)
		}
		if p, err := f.Authenticate(f.Node, in.Token); err != nil || p.Session.ConfirmedAt != f.Clock.Now() {
			t.Errorf("%+v, %v", p, err)
		}
		plain := f.NewMember("plain")
		in = f.LogIn("plain")
		if got := nodetest.FaultsOf(try(nodetest.Password, signin.Proof{Code: app.Next()})); len(got) != 1 || got[0] != "/code wrong" {
			t.Errorf("a second factor of %s, who has none: %q", plain.Name, got)
		}
		if got := len(f.Events(f.Owner, directory.EventListing{Type: string(rolecall.EventSessionConfirmed), Subject: rolecall.AnyID(user.ID)})); got != 2 {
			t.Errorf("there are %d confirmations", got)
		}
	})
}

func TestAPasskeyResponseReauthenticatesOnce(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		_, phone := f.WithPasskey("ada")
		in, err := byPasskey(f, phone.Get(t, signInOptions(f)))
		f.OK(err)
		_, another := f.WithPasskey("another")
		ask := func(in signin.SignIn) []byte {
			asked, err := f.SignIn.Reauthenticate(f.Context(), f.CallerOf(in), []secret.Token{in.Token}, nodetest.Password, signin.Proof{})
			f.OK(err)
			if asked.Challenge == nil || asked.Challenge.PublicKey == nil {
				t.Fatalf("%+v asks for no passkey", asked)
			}
			return asked.Challenge.PublicKey
		}
		other, err := byPasskey(f, another.Get(t, signInOptions(f)))
		f.OK(err)
		signed, old := phone.Get(t, ask(in)), phone.Get(t, ask(in))
		for what, wrong := range map[string]signin.Proof{
			"another's":          {Passkey: another.Get(t, ask(other))},
			"of a sign-in":       {Passkey: phone.Get(t, signInOptions(f))},
			"for another person": {Passkey: phone.Sign(t, phone.Keys[0], "AAAA")},
		} {
			if got := nodetest.FaultsOf(reconfirm(f, in, nodetest.Password, wrong)); len(got) != 1 || got[0] != "/passkey wrong" {
				t.Errorf("%s: %q", what, got)
			}
		}
		results := f.InParallel(20, func(int) error {
			return reconfirm(f, in, nodetest.Password, signin.Proof{Passkey: signed})
		})
		if results[nil] != 1 {
			t.Errorf("one answer confirmed %v", results)
		}
		f.Clock.Advance(time.Hour)
		if got := nodetest.FaultsOf(reconfirm(f, in, nodetest.Password, signin.Proof{Passkey: old})); len(got) != 1 {
			t.Errorf("an answer to what was asked an hour ago: %q", got)
		}
		f.OK(reconfirm(f, in, nodetest.Password, signin.Proof{Passkey: phone.Get(t, ask(in))}))
	})
}
