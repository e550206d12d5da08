package nodetest

import (
	"net/netip"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/oidc"
	"github.com/rolecall/rolecall/internal/oidc/oidctest"
	"github.com/rolecall/rolecall/internal/store"
)

// Provided is a fixture with an identity provider and a connection to it.
type Provided struct {
	*Fixture
	Provider   *oidctest.Provider
	Connection rolecall.Connection
}

// Provide starts an identity provider, and stores a connection to it. If change is not nil, it changes the connection
// before.
func Provide(f *Fixture, change func(*rolecall.Connection)) *Provided {
	f.Helper()
	p := &Provided{Fixture: f, Provider: oidctest.Start(f)}
	p.Provider.SetClock(func() time.Time { return f.Clock.Now().Std() })
	options := f.Options()
	options.OIDC = oidc.New(oidc.Options{
		Networks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Roots: p.Provider.Roots(), Now: func() time.Time { return f.Clock.Now().Std() },
	})
	f.Node = node.New(f.DB, options)
	now := f.Clock.Now()
	p.Connection = rolecall.Connection{
		ID: rolecall.NewID[rolecall.Connection](now), Name: "Acme SSO", Issuer: p.Provider.Issuer, ClientID: oidctest.ClientID, Domains: []string{},
		Linking: rolecall.LinkInvited, SecondFactor: rolecall.FactorRequire, ACRValues: []string{}, AMRValues: []string{},
		CreatedAt: now, UpdatedAt: now, Version: 1, ProvisionedBy: f.Owner.User.ID,
	}
	p.Connection.Secret = []byte(f.Keys.Seal("connection", []byte(oidctest.ClientSecret), append(f.Tenant.ID[:], p.Connection.ID[:]...)))
	if change != nil {
		change(&p.Connection)
	}
	f.OK(f.Store.Update(f.Context(), f.Tenant.ID, func(tx *store.Tx) error {
		tx.InsertConnection(p.Connection)
		return nil
	}))
	return p
}

// Identity links a new identity to the user.
func (p *Provided) Identity(user rolecall.UserID, subject string) rolecall.Identity {
	p.Helper()
	identity := rolecall.Identity{
		ID: rolecall.NewID[rolecall.Identity](p.Clock.Now()), UserID: user, ConnectionID: p.Connection.ID,
		Issuer: p.Connection.Issuer, Subject: subject, CreatedAt: p.Clock.Now(),
	}
	p.OK(p.Store.Update(p.Context(), p.Tenant.ID, func(tx *store.Tx) error {
		tx.InsertIdentity(identity)
		return nil
	}))
	return identity
}
