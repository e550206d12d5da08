package nodetest

import (
	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/store"
)

// Attempt returns a request without a valid session. The browser sends the tokens.
func (f *Fixture) Attempt(tokens ...secret.Token) access.Anonymous {
	return access.Anonymous{Tenant: f.Tenant, TenantName: f.Tenant.Name, Presented: tokens, RequestID: "request", Source: "192.0.2.1"}
}

// LogIn signs in a user of the tenant.
func (f *Fixture) LogIn(name string) signin.SignIn {
	f.Helper()
	in, err := f.SignIn.Login(f.Context(), f.Attempt(), Address(name), Password)
	f.OK(err)
	return in
}

// CallerOf returns a request by the user who has signed in.
func (f *Fixture) CallerOf(in signin.SignIn) access.Caller {
	return access.Caller{Principal: in.Principal, RequestID: "request", Source: "192.0.2.1"}
}

// Authenticate returns the principal for a session token on a node. It counts as a use of
// the session.
func (f *Fixture) Authenticate(peer *node.Node, token secret.Token) (*authz.Principal, error) {
	return peer.SignIn.Authenticate(f.Context(), f.Tenant, []secret.Token{token}, true)
}

// CallerWith creates a user with the assignments and returns a request by that user.
func (f *Fixture) CallerWith(holds ...Held) access.Caller {
	f.Helper()
	user, assignments := f.Person("", holds...)
	return f.CallerAs(user, assignments)
}

// CallerAs returns a request by the user with the assignments.
func (f *Fixture) CallerAs(user rolecall.User, assignments []rolecall.Assignment) access.Caller {
	f.Helper()
	session := rolecall.Session{ID: rolecall.NewID[rolecall.Session](Start), UserID: user.ID, AuthenticatedAt: Start, LastUsedAt: Start, ExpiresAt: rolecall.Never}
	f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
		tx.InsertSession(session, session.ID[:])
		return nil
	}))
	return access.Caller{
		Principal: authz.NewPrincipal(f.Tenant, user, session, assignments, f.Clock.Now()),
		RequestID: "request", Source: "192.0.2.1",
	}
}

// Refresh exchanges the session token for the next one on a node. It fails the test if
// there is an error.
func (f *Fixture) Refresh(node *node.Node, token secret.Token) secret.Token {
	f.Helper()
	next, err := node.SignIn.Refresh(f.Context(), f.Attempt(token))
	f.OK(err)
	return next.Token
}

// Guess tries a password of a user from a source address.
func (f *Fixture) Guess(source, name, secret string) error {
	a := f.Attempt()
	a.Source = source
	return ErrorOf(f.SignIn.Login(f.Context(), a, Address(name), secret))
}
