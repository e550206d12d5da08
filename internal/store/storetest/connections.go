package storetest

import (
	"fmt"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

var connectionCases = []testCase{
	{"A connection reads back in every member", func(f *fixture) {
		want := f.newConnection("acme")
		same(f, f.connection(want.ID), want)
		changed, department := want, "Sales"
		changed.Name, changed.ClientID, changed.Secret, changed.Domains = "Änderung", "other", []byte("new"), []string{}
		changed.Linking, changed.SecondFactor = rolecall.LinkVerifiedEmail, rolecall.FactorTrust
		changed.ACRValues, changed.AMRValues = []string{"phr"}, []string{"mfa", "hwk"}
		changed.Provisioning = &rolecall.Provisioning{RoleIDs: []rolecall.RoleID{rolecall.NewID[rolecall.Role](start)}, Department: &department}
		changed.Groups = &rolecall.ConnectionGroups{Claim: "groups", MatchBy: rolecall.MatchExternalID, Create: true, Scopes: []string{"groups"}}
		changed.ProvisionedBy, changed.UpdatedAt, changed.Version = aUser("Ada Lovelace").ID, start+1, 2
		update := func() bool {
			return change(f, func(tx *store.Tx) (bool, error) { return tx.UpdateConnection(want, changed) })
		}
		same(f, update(), true)
		same(f, f.connection(want.ID), changed)
		same(f, update(), false)
		_, err := tryRead(f, func(tx *store.Tx) (rolecall.Connection, error) {
			return tx.Connection(rolecall.NewID[rolecall.Connection](start))
		})
		f.is(err, rolecall.ErrNotFound)
	}},
	{"The names and the issuers of connections are unique in a tenant", func(f *fixture) {
		first, second := f.newConnection("acme"), f.newConnection("beta")
		same(f, f.connections(), []rolecall.Connection{first, second})
		for _, test := range []struct {
			change func(*rolecall.Connection)
			err    error
		}{
			{func(c *rolecall.Connection) { c.Name = "ACME" }, rolecall.ErrConnectionNameTaken},
			{func(c *rolecall.Connection) { c.Issuer = first.Issuer }, rolecall.ErrIssuerTaken},
		} {
			c := aConnection("gamma")
			test.change(&c)
			f.is(f.tryWrite(func(tx *store.Tx) { tx.InsertConnection(c) }), test.err)
			f.in(f.newTenant(fmt.Sprintf("other-%d", len(c.Name)))).write(func(tx *store.Tx) { tx.InsertConnection(c) })
		}
		renamed := second
		renamed.Name, renamed.Version = "Acme", 2
		f.is(f.tryUpdate(func(tx *store.Tx) error { _, err := tx.UpdateConnection(second, renamed); return err }), rolecall.ErrConnectionNameTaken)
		same(f, f.connections(), []rolecall.Connection{first, second})
	}},
	{"An identity reads back by its subject and in the list of its user", func(f *fixture) {
		c, ada, grace := f.newConnection("acme"), f.newUser("Ada Lovelace"), f.newUser("Grace Hopper")
		first, second, other := f.link(ada, c, "1"), f.link(ada, f.newConnection("beta"), "1"), f.link(grace, c, "A")
		same(f, f.identities(ada), []rolecall.Identity{first, second})
		same(f, f.identities(grace), []rolecall.Identity{other})
		got, err := f.tryIdentity(c.Issuer, "1")
		f.is(err, nil)
		same(f, got, first)
		for _, unknown := range [][2]string{{c.Issuer, "2"}, {c.Issuer, "a"}, {c.Issuer + "/", "1"}, {"", ""}} {
			_, err := f.tryIdentity(unknown[0], unknown[1])
			f.is(err, rolecall.ErrNotFound)
		}
	}},
	{"The issuer and the subject of an identity are unique in a tenant", func(f *fixture) {
		c, ada, grace := f.newConnection("acme"), f.newUser("Ada Lovelace"), f.newUser("Grace Hopper")
		f.link(ada, c, "1")
		f.is(f.tryWrite(func(tx *store.Tx) { tx.InsertIdentity(anIdentity(grace, c, "1")) }), rolecall.ErrIdentityTaken)
		f.is(f.tryWrite(func(tx *store.Tx) { tx.InsertIdentity(anIdentity(aUser("Nobody"), c, "2")) }), rolecall.ErrNotFound)
		f.is(f.tryWrite(func(tx *store.Tx) { tx.InsertIdentity(anIdentity(grace, aConnection("beta"), "2")) }), rolecall.ErrNotFound)
		other := f.in(f.newTenant("other"))
		other.link(other.newUser("Ada Lovelace"), other.newConnection("acme"), "1")
	}},
	{"Only one of fifty concurrent links of a subject succeeds", func(f *fixture) {
		c, u := f.newConnection("acme"), f.newUser("Ada Lovelace")
		f.oneWins(parallel(50, func(int) error {
			return f.tryWrite(func(tx *store.Tx) { tx.InsertIdentity(anIdentity(u, c, "1")) })
		}), rolecall.ErrIdentityTaken)
	}},
	{"A touch stores the address and the time, until the identity is deleted with its sessions", func(f *fixture) {
		c, u, other := f.newConnection("acme"), f.newUser("Ada Lovelace"), f.newUser("Grace Hopper")
		i := f.link(u, c, "1")
		session := f.signInWith(u, i)
		kept := f.signInWith(u, f.link(u, c, "2"))
		touch := func() bool {
			return change(f, func(tx *store.Tx) (bool, error) { return tx.TouchIdentity(i.ID, "ada@other.example", start+hour) })
		}
		unlink := func(u rolecall.User) (ended []rolecall.SessionID, deleted bool) {
			f.update(func(tx *store.Tx) (err error) {
				ended, deleted, err = tx.DeleteIdentity(u.ID, i.ID)
				return err
			})
			return ended, deleted
		}
		same(f, touch(), true)
		i.Email, i.LastUsedAt = "ada@other.example", start+hour
		same(f, f.identities(u)[0], i)
		_, deleted := unlink(other)
		same(f, deleted, false)
		ended, deleted := unlink(u)
		same(f, deleted, true)
		same(f, ended, []rolecall.SessionID{session})
		same(f, touch(), false)
		same(f, len(f.identities(u)), 1)
		same(f, f.sessionsOf(u, start, 10)[0], kept)
		_, deleted = unlink(u)
		same(f, deleted, false)
	}},
	{"A connection is deleted with its identities and the sessions that began with them", func(f *fixture) {
		gone, stays, u := f.newConnection("acme"), f.newConnection("beta"), f.newUser("Ada Lovelace")
		session, other := f.signInWith(u, f.link(u, gone, "1")), f.signInWith(u, f.link(u, stays, "1"))
		f.link(f.newUser("Grace Hopper"), gone, "2")
		inUse := func(c rolecall.Connection) bool {
			return read(f, func(tx *store.Tx) (bool, error) { return tx.ConnectionInUse(c.ID) })
		}
		same(f, inUse(gone), true)
		same(f, read(f, func(tx *store.Tx) (rolecall.Total, error) { return tx.CountIdentities(gone.ID) }), rolecall.Total{Count: 2, Exact: true})
		stale := gone
		stale.Version = 7
		f.is(f.tryUpdate(func(tx *store.Tx) error {
			if _, _, ok, err := tx.DeleteConnection(stale); err != nil || ok {
				return err
			}
			return errRefused
		}), errRefused)
		same(f, inUse(gone), true)
		identities, sessions, deleted := f.deleteConnection(gone)
		same(f, deleted, true)
		same(f, identities, 2)
		same(f, sessions, []rolecall.SessionID{session})
		same(f, inUse(gone), false)
		same(f, inUse(stays), true)
		same(f, f.connections(), []rolecall.Connection{stays})
		same(f, len(f.identities(u)), 1)
		same(f, f.sessionsOf(u, start, 10)[0], other)
	}},
	{"Identities are deleted with their user", func(f *fixture) {
		c, u := f.newConnection("acme"), f.newUser("Ada Lovelace")
		f.link(u, c, "1")
		same(f, f.deleteUser(u), true)
		_, err := f.tryIdentity(c.Issuer, "1")
		f.is(err, rolecall.ErrNotFound)
		f.link(f.newUser("Grace Hopper"), c, "1")
	}},
}

func (f *fixture) connection(id rolecall.ConnectionID) rolecall.Connection {
	f.Helper()
	return read(f, func(tx *store.Tx) (rolecall.Connection, error) { return tx.Connection(id) })
}

func (f *fixture) connections() []rolecall.Connection {
	f.Helper()
	return read(f, (*store.Tx).Connections)
}

// aConnection returns a connection that is not stored yet.
func aConnection(name string) rolecall.Connection {
	draft := rolecall.ConnectionDraft{Name: name, Issuer: "https://" + name + ".example", ClientID: "rolecall", Domains: []string{name + ".example"}}
	c := draft.Connection(start)
	c.Secret = []byte("sealed")
	return c
}

func (f *fixture) newConnection(name string) rolecall.Connection {
	f.Helper()
	c := aConnection(name)
	f.write(func(tx *store.Tx) { tx.InsertConnection(c) })
	return c
}

// anIdentity returns an identity of the user that is not stored yet.
func anIdentity(u rolecall.User, c rolecall.Connection, subject string) rolecall.Identity {
	return rolecall.Identity{ID: rolecall.NewID[rolecall.Identity](start), UserID: u.ID, ConnectionID: c.ID, Issuer: c.Issuer, Subject: subject, Email: u.Email, CreatedAt: start}
}

func (f *fixture) link(u rolecall.User, c rolecall.Connection, subject string) rolecall.Identity {
	f.Helper()
	i := anIdentity(u, c, subject)
	f.write(func(tx *store.Tx) { tx.InsertIdentity(i) })
	return i
}

func (f *fixture) identities(u rolecall.User) []rolecall.Identity {
	f.Helper()
	return read(f, func(tx *store.Tx) ([]rolecall.Identity, error) { return tx.Identities(u.ID) })
}

func (f *fixture) tryIdentity(issuer, subject string) (rolecall.Identity, error) {
	f.Helper()
	return tryRead(f, func(tx *store.Tx) (rolecall.Identity, error) { return tx.Identity(issuer, subject) })
}

func (f *fixture) deleteConnection(c rolecall.Connection) (identities int, sessions []rolecall.SessionID, deleted bool) {
	f.Helper()
	f.update(func(tx *store.Tx) (err error) {
		identities, sessions, deleted, err = tx.DeleteConnection(c)
		return err
	})
	return identities, sessions, deleted
}

// signInWith starts a session of the user with the identity.
func (f *fixture) signInWith(u rolecall.User, i rolecall.Identity) rolecall.SessionID {
	f.Helper()
	s := rolecall.Session{ID: rolecall.NewID[rolecall.Session](start), UserID: u.ID, AuthenticatedAt: start, LastUsedAt: start, ExpiresAt: start + day, Identity: i.ID, Connection: i.ConnectionID}
	f.write(func(tx *store.Tx) { tx.InsertSession(s, aHash()) })
	same(f, read(f, func(tx *store.Tx) (rolecall.Session, error) { return tx.SessionByID(s.ID) }), s)
	_, err := f.tryIDToken(s.ID)
	f.is(err, rolecall.ErrNotFound)
	f.write(func(tx *store.Tx) { tx.InsertIDToken(s.ID, "sealed") })
	sealed, err := f.tryIDToken(s.ID)
	if f.is(err, nil); sealed != "sealed" {
		f.Errorf("the ID token is %q", sealed)
	}
	return s.ID
}

func (f *fixture) tryIDToken(session rolecall.SessionID) (string, error) {
	f.Helper()
	return tryRead(f, func(tx *store.Tx) (string, error) { return tx.IDToken(session) })
}
