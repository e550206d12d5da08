package node_test

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
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
)

// reconfirm re-authenticates in the session of a sign-in, with the token of that sign-in.
func (f *fixture) reconfirm(in signin.SignIn, password string, p signin.Proof) error {
	return errorOf(f.SignIn.Reauthenticate(f.Context(), f.call(in), []secret.Token{in.Token}, password, p))
}

func TestReauthenticationReplacesTheToken(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.member("ada")
		in := f.signIn("ada")
		confirm := func() secret.Token {
			confirmed, err := f.SignIn.Reauthenticate(f.Context(), f.call(in), []secret.Token{in.Token}, password, signin.Proof{})
			f.ok(err)
			if confirmed.Principal.Session.ID != in.Principal.Session.ID || confirmed.Principal.Session.ConfirmedAt != f.clock.Now() {
				t.Errorf("the session is %+v", confirmed.Principal.Session)
			}
			return confirmed.Token
		}
		next := confirm()
		if next == in.Token || next == "" {
			t.Fatalf("the token was not replaced")
		}
		f.clock.advance(time.Minute)
		if confirm() != next || f.refresh(f.Node, in.Token) != next {
			t.Error("the old token has two successors")
		}
		f.ok(errorOf(f.authenticate(f.Node, in.Token))) // another tab
		f.ok(errorOf(f.authenticate(f.node(), next)))
		f.clock.advance(rolecall.DefaultRefreshGrace - time.Microsecond)
		f.ok(errorOf(f.authenticate(f.node(), in.Token)))
		f.clock.advance(time.Microsecond)
		f.is(f.reconfirm(in, password, signin.Proof{}), rolecall.ErrUnauthenticated)
		f.is(errorOf(f.authenticate(f.Node, next)), rolecall.ErrUnauthenticated)
		if got := f.eventTypes(in.Principal.User.ID)[0]; got != rolecall.EventTokenReused {
			t.Errorf("the newest event is %s", got)
		}
	})
}

func TestConcurrentReauthenticationsReturnOneToken(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.member("ada")
		in := f.signIn("ada")
		nodes := []*node.Node{f.Node, f.node()}
		tokens := make([]secret.Token, 8)
		var running sync.WaitGroup
		for i := range tokens {
			running.Go(func() {
				confirmed, err := nodes[i%2].SignIn.Reauthenticate(f.Context(), f.call(in), []secret.Token{in.Token}, password, signin.Proof{})
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
	onEachStore(t, func(f *fixture) {
		in := f.signIn("owner")
		recent := func() error {
			p, err := f.authenticate(f.Node, in.Token)
			f.ok(err)
			return authz.RequireRecent(p, f.Access.Now())
		}
		f.ok(recent())
		f.clock.advance(rolecall.DefaultReauthentication)
		f.ok(recent())
		f.clock.advance(time.Microsecond)
		f.is(recent(), rolecall.ErrNotRecent)
		for seconds, wanted := range map[int64]error{0: nil, 86400: nil, 899: rolecall.ErrNotRecent} {
			f.patchTenant(setting("reauthenticationSeconds", &seconds))
			f.is(recent(), wanted)
		}
		f.patchTenant(setting("reauthenticationSeconds", nil))
		next := f.refresh(f.Node, in.Token)
		in.Token = next
		f.is(recent(), rolecall.ErrNotRecent) // a new token is not a re-authentication

		f.ok(f.reconfirm(in, password, signin.Proof{}))
		p, err := f.authenticate(f.Node, in.Token)
		f.ok(err)
		if session := p.Session; session.ConfirmedAt != f.clock.Now() || session.AuthenticatedAt != start || session.ExpiresAt != in.Principal.Session.ExpiresAt {
			t.Errorf("the session is %+v", session)
		}
		f.ok(recent())
		f.clock.advance(rolecall.DefaultReauthentication + time.Microsecond)
		f.is(recent(), rolecall.ErrNotRecent)
		f.clock.until(start) // the clock is set back
		f.ok(recent())
	})
}

func TestProgramsNeedNoRecentSignIn(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.clock.advance(aDay)
		for what, p := range map[string]*authz.Principal{
			"a token":           {Tenant: f.tenant, Token: &rolecall.APIToken{}},
			"a service account": {Tenant: f.tenant, Kind: authz.PrincipalServiceAccount, Token: &rolecall.APIToken{}},
			"an operator":       {Tenant: f.tenant, Kind: authz.PrincipalOperator},
		} {
			if err := authz.RequireRecent(p, f.Access.Now()); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

func TestReauthenticationAppliesToOneSession(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		ada, far := f.member("ada"), f.watchingNode()
		one, other := f.signIn("ada"), f.signIn("ada")
		for _, node := range []*node.Node{f.Node, far} {
			f.ok(errorOf(f.authenticate(node, one.Token)))
		}
		f.clock.advance(time.Second)
		f.ok(f.reconfirm(one, password, signin.Proof{}))
		confirmed := func(node *node.Node, in signin.SignIn) rolecall.Time {
			p, err := f.authenticate(node, in.Token)
			f.ok(err)
			return p.Session.ConfirmedAt
		}
		if got := confirmed(f.Node, one); got != f.clock.Now() {
			t.Errorf("the next request on the same node sees %v", got)
		}
		f.eventually(func() bool { return confirmed(far, one) == f.clock.Now() })
		if got := confirmed(f.Node, other); got != 0 {
			t.Errorf("another session is confirmed at %v", got)
		}
		events := f.events(f.owner, directory.EventListing{Type: string(rolecall.EventSessionConfirmed)})
		if len(events) != 1 || events[0].SessionID != one.Principal.Session.ID || events[0].Subject.ID != rolecall.AnyID(ada.ID) {
			t.Errorf("the events are %+v", events)
		}
		f.ok(f.SignIn.EndUserSessions(f.Context(), f.owner, ada.ID))
		f.is(f.reconfirm(one, password, signin.Proof{}), rolecall.ErrUnauthenticated)
	})
}

func TestAWrongPasswordDoesNotReauthenticate(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		f.member("ada")
		in := f.signIn("ada")
		try := func(password string) error {
			return f.reconfirm(in, password, signin.Proof{})
		}
		for range 3 {
			for range 9 {
				err := try("wrong")
				f.is(err, rolecall.ErrValidation)
				if got := faultsOf(err); len(got) != 1 || got[0] != "/password wrong" {
					t.Errorf("the faults are %q", got)
				}
			}
			f.ok(try(password)) // resets the counter
		}
		f.clock.advance(time.Hour)
		var evaluated, refused int
		var mu sync.Mutex
		var running sync.WaitGroup
		before := f.hashes.Hashed()
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
		if evaluated != 10 || refused != 40 || f.hashes.Hashed()-before != 10 {
			t.Errorf("%d were evaluated and %d refused, with %d hashes", evaluated, refused, f.hashes.Hashed()-before)
		}
		f.is(try(password), rolecall.ErrTooManyAttempts)
		f.ok(f.guess("203.0.113.1", "ada", password)) // sign-ins have a separate counter
		p, err := f.authenticate(f.Node, in.Token)
		f.ok(err)
		f.is(authz.RequireRecent(p, f.Access.Now()), rolecall.ErrNotRecent)
	})
}

func TestReauthenticationNeedsTheSecondFactor(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		user, app, codes := f.protected("ada")
		in, err := f.answer(f.factorChallenge("ada"), signin.Proof{Code: app.next()})
		f.ok(err)
		try := func(password string, p signin.Proof) error {
			return f.reconfirm(in, password, p)
		}
		asked, err := f.SignIn.Reauthenticate(f.Context(), f.call(in), []secret.Token{in.Token}, password, signin.Proof{})
		f.is(errorOf(asked, err), rolecall.ErrSecondFactorRequired)
		if len(asked.Challenge.Methods) != 2 || asked.Principal != nil || asked.Token != "" {
			t.Errorf("the password alone: %+v", asked)
		}
		code := app.next()
		for _, wrong := range []struct {
			password string
			proof    signin.Proof
			fault    string
		}{
			{"wrong", signin.Proof{}, "/password wrong"},
			{"wrong", signin.Proof{Code: code}, "/password wrong"},
			{"", signin.Proof{Code: code}, "/password wrong"},
			{password, signin.Proof{Code: "000000"}, "/code wrong"},
			{password, signin.Proof{RecoveryCode: "AAAA-AAAA-AAAA-AAAA"}, "/recoveryCode wrong"},
			{password, signin.Proof{Passkey: []byte("{}")}, "/passkey wrong"},
		} {
			err := try(wrong.password, wrong.proof)
			f.is(err, rolecall.ErrValidation)
			if got := faultsOf(err); len(got) != 1 || got[0] != wrong.fault {
				t.Errorf("%+v: %q", wrong, got)
			}
		}
		f.ok(try(password, signin.Proof{Code: code})) // a failed attempt has not consumed the code
		if got := faultsOf(try(password, signin.Proof{Code: code})); len(got) != 1 || got[0] != "/code wrong" {
			t.Errorf("the same code again: %q", got)
		}
		recovery := signin.Proof{RecoveryCode: string(codes[0])}
		results := f.inParallel(50, func(int) error { return try(password, recovery) })
		if results[nil] != 1 {
			t.Errorf("one recovery code confirmed %v", results)
		}
		if p, err := f.authenticate(f.Node, in.Token); err != nil || p.Session.ConfirmedAt != f.clock.Now() {
			t.Errorf("%+v, %v", p, err)
		}
		plain := f.member("plain")
		in = f.signIn("plain")
		if got := faultsOf(try(password, signin.Proof{Code: app.next()})); len(got) != 1 || got[0] != "/code wrong" {
			t.Errorf("a second factor of %s, who has none: %q", plain.Name, got)
		}
		if got := len(f.events(f.owner, directory.EventListing{Type: string(rolecall.EventSessionConfirmed), Subject: rolecall.AnyID(user.ID)})); got != 2 {
			t.Errorf("there are %d confirmations", got)
		}
	})
}

func TestAPasskeyResponseReauthenticatesOnce(t *testing.T) {
	onEachStore(t, func(f *fixture) {
		_, phone := f.withPasskey("ada")
		in, err := f.byPasskey(phone.Get(t, f.signInOptions()))
		f.ok(err)
		_, another := f.withPasskey("another")
		ask := func(in signin.SignIn) []byte {
			asked, err := f.SignIn.Reauthenticate(f.Context(), f.call(in), []secret.Token{in.Token}, password, signin.Proof{})
			f.ok(err)
			if asked.Challenge == nil || asked.Challenge.PublicKey == nil {
				t.Fatalf("%+v asks for no passkey", asked)
			}
			return asked.Challenge.PublicKey
		}
		other, err := f.byPasskey(another.Get(t, f.signInOptions()))
		f.ok(err)
		signed, old := phone.Get(t, ask(in)), phone.Get(t, ask(in))
		for what, wrong := range map[string]signin.Proof{
			"another's":          {Passkey: another.Get(t, ask(other))},
			"of a sign-in":       {Passkey: phone.Get(t, f.signInOptions())},
			"for another person": {Passkey: phone.Sign(t, phone.Keys[0], "AAAA")},
		} {
			if got := faultsOf(f.reconfirm(in, password, wrong)); len(got) != 1 || got[0] != "/passkey wrong" {
				t.Errorf("%s: %q", what, got)
			}
		}
		results := f.inParallel(20, func(int) error {
			return f.reconfirm(in, password, signin.Proof{Passkey: signed})
		})
		if results[nil] != 1 {
			t.Errorf("one answer confirmed %v", results)
		}
		f.clock.advance(time.Hour)
		if got := faultsOf(f.reconfirm(in, password, signin.Proof{Passkey: old})); len(got) != 1 {
			t.Errorf("an answer to what was asked an hour ago: %q", got)
		}
		f.ok(f.reconfirm(in, password, signin.Proof{Passkey: phone.Get(t, ask(in))}))
	})
}
