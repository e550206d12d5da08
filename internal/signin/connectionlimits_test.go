package signin_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/nodetest"
	"github.com/rolecall/rolecall/internal/ratelimit"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
)

// ownCodeOf returns the code of an attempt with the purpose in the session of the sign-in.
func ownCodeOf(p *nodetest.Provided, in signin.SignIn, purpose signin.Purpose) secret.Token {
	p.Helper()
	cookie, query := begin(p, p.Attempt(in.Token), signin.ConnectionStart{Purpose: purpose})
	code, err := complete(p, p.Attempt(in.Token), cookie, query)
	p.OK(err)
	return code
}

func TestCodesOfAProviderThatWorkAreNotCounted(t *testing.T) {
	nodetest.OnEachStoreInLong(t, func(f *nodetest.Fixture) {
		p := nodetest.Provide(f, nil)
		ada := f.NewMember("ada")
		p.Identity(ada.ID, "ada")
		in := f.LogIn("ada")
		person(p, "ada", nil)
		for range 12 { // without links in between, which clear the same counter
			confirmed, err := f.SignIn.ReauthenticateByCode(t.Context(), f.CallerOf(in), []secret.Token{in.Token}, ownCodeOf(p, in, signin.PurposeConfirm), "", signin.Proof{})
			f.OK(err)
			in.Token = confirmed.Token
		}
		for i := range 12 {
			person(p, fmt.Sprint("ada-", i), nil)
			f.OK(nodetest.ErrorOf(f.SignIn.LinkIdentity(t.Context(), f.CallerOf(in), ownCodeOf(p, in, signin.PurposeLink), "")))
		}
		for range 10 {
			f.Is(nodetest.ErrorOf(f.SignIn.LinkIdentity(t.Context(), f.CallerOf(in), secret.NewToken(), "")), rolecall.ErrValidation)
		}
		f.Is(nodetest.ErrorOf(f.SignIn.LinkIdentity(t.Context(), f.CallerOf(in), secret.NewToken(), "")), rolecall.ErrTooManyAttempts)
	})
}

func TestAnUnavailableProviderIsNoFailedAttempt(t *testing.T) {
	nodetest.OnEachStoreLimited(t, ratelimit.Limits{Source: 3}, func(f *nodetest.Fixture) {
		p := nodetest.Provide(f, nil)
		p.Identity(f.NewMember("ada").ID, "ada")
		person(p, "ada", nil)
		f.OK(nodetest.ErrorOf(signInWith(p, signin.ConnectionStart{}))) // the metadata is now in the cache
		type begun struct {
			cookie string
			query  map[string][]string
		}
		var attempts []begun
		for range 5 {
			cookie, query := begin(p, f.Attempt(), signin.ConnectionStart{})
			attempts = append(attempts, begun{cookie, query})
		}
		p.Provider.Stop()
		for _, a := range attempts {
			f.Is(nodetest.ErrorOf(complete(p, f.Attempt(), a.cookie, a.query)), rolecall.ErrConnectionUnavailable)
		}
	})
}

func TestProviderCallsAreSharedBetweenTenants(t *testing.T) {
	nodetest.OnEachStore(t, func(f *nodetest.Fixture) {
		p := nodetest.Provide(f, nil)
		person(p, "ada", nil)
		var calls []context.Context
		var ends []func()
		begin := func(tenant rolecall.TenantID) error {
			call, end, err := f.SignIn.BeginProviderCall(t.Context(), tenant)
			if err == nil {
				calls, ends = append(calls, call), append(ends, end)
			}
			return err
		}
		for i := range 256 { // eight tenants with slow providers
			f.OK(begin(rolecall.TenantID{1: byte(i % 8), 15: 9}))
		}
		f.Is(begin(rolecall.TenantID{15: 9}), rolecall.ErrConnectionUnavailable)
		start := signin.ConnectionStart{Connection: p.Connection.ID, ReturnTo: returnTo, Purpose: signin.PurposeSignIn}
		f.OK(nodetest.ErrorOf(f.SignIn.StartConnection(t.Context(), f.Attempt(), start, noOp)))
		f.OK(begin(f.Tenant.ID))
		canceled := 0
		for _, call := range calls {
			if call.Err() != nil {
				canceled++
			}
		}
		if canceled != 1 { // the sign-in has made room for the last call
			t.Errorf("%d calls of the other tenants were canceled", canceled)
		}
		f.OK(nodetest.ErrorOf(f.SignIn.TestConnection(t.Context(), f.Owner, p.Connection.ID)))
		for _, end := range ends {
			end()
		}
		for range 256 {
			f.OK(begin(f.Tenant.ID))
		}
		f.Is(nodetest.ErrorOf(f.SignIn.TestConnection(t.Context(), f.Owner, p.Connection.ID)), rolecall.ErrConnectionUnavailable)
		f.Is(nodetest.ErrorOf(f.SignIn.StartConnection(t.Context(), f.Attempt(), start, noOp)), rolecall.ErrConnectionUnavailable)
		for _, end := range ends {
			end()
		}
	})
}
