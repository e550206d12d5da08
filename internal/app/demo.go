package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/service"
	"github.com/rolecall/rolecall/internal/store"
)

const (
	demoTenant = "demo"
	demoEmail  = "ada.lovelace@demo.example"
)

// demoAccess is how to get into the demo.
type demoAccess struct {
	Address  string `json:"address"`
	Tenant   string `json:"tenant"`
	Email    string `json:"email"`
	Password string `json:"password"`
	Mailbox  string `json:"mailbox"` // the folder
	Curl     string `json:"curl"`
}

// prepareDemo makes the demo's tenant unless the store has it, gives its owner a
// new password, and returns how to sign in at the address.
func prepareDemo(ctx context.Context, db store.Database, options service.Options, settings settings, address net.Addr) (demoAccess, error) {
	if err := onlyDemo(ctx, db, options); err != nil {
		return demoAccess{}, err
	}
	options.DivertMail = func(rolecall.Mail) {} // nobody is to be notified of the setup
	if err := seedDemo(ctx, db, options); err != nil {
		return demoAccess{}, err
	}
	password := secret.RandomPassword()
	if err := service.New(db, options).SetPassword(ctx, demoTenant, demoEmail, password); err != nil {
		return demoAccess{}, err
	}
	base := "http://" + address.String()
	if settings.publicURL != nil {
		base += strings.TrimRight(settings.publicURL.EscapedPath(), "/")
	}
	return demoAccess{
		Address: base, Tenant: demoTenant, Email: demoEmail, Password: password, Mailbox: settings.Mailbox,
		Curl: fmt.Sprintf(`curl -i -X POST %s/auths/login -H 'x-tenant-schema: %s' -H 'content-type: application/json' -d '{"email":"%s","password":"%s"}'`,
			base, demoTenant, demoEmail, password),
	}, nil
}

// onlyDemo refuses a database that serves anybody else: made-up people are not to
// be mixed with real ones.
func onlyDemo(ctx context.Context, db store.Database, options service.Options) error {
	tenants, err := service.New(db, options).Tenants(ctx, "", "", 2)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(tenants, func(t rolecall.Tenant) bool { return t.Name != demoTenant }) {
		return errors.New("--demo needs a database of its own, and this one holds other tenants: leave out --database and ROLECALL_DATABASE")
	}
	return nil
}

// lines returns the access for a person.
func (a demoAccess) lines() []string {
	return []string{
		fmt.Sprintf("Rolecall demo: %d made-up people in %d departments, on this machine only.", demoPeople+1, len(demoDepartments)),
		"",
		"  console   " + a.Address + "/console/" + a.Tenant,
		"  sign in   " + a.Email,
		"  password  " + a.Password + "   (a new one at each start)",
		"",
		"  API       " + a.Address + " for the tenant " + a.Tenant,
		"  docs      " + a.Address + "/docs",
		"  mail      printed here, and kept in " + a.Mailbox,
		"",
		a.Curl,
		"",
	}
}

// seedDemo fills the store with the demo's tenant if there are no people in it.
// What happens there happens through the verbs of the service, under a clock of
// its own, so that the history is as real as the data.
func seedDemo(ctx context.Context, db store.Database, options service.Options) error {
	clock := now().Add(-demoAge)
	options.Clock = func() rolecall.Time { return clock }
	tenant, err := service.New(db, options).Tenant(ctx, demoTenant)
	if err != nil {
		return err
	}
	if tenant.ID.IsZero() {
		display := "Demo Incorporated"
		draft := rolecall.TenantDraft{Name: demoTenant, DisplayName: &display, Owner: rolecall.UserDraft{Email: demoEmail, Name: "Ada Lovelace"}}
		tenant, _, err = service.New(db, options).CreateTenant(ctx, draft, secret.RandomPassword())
		if err != nil {
			return err
		}
	}
	// These hashes guard random passwords that nobody keeps: they may be cheap.
	options.Passwords = secret.NewPasswords(secret.Parameters{Time: 1, MemoryKiB: 8, Threads: 1}, 1, 0)
	return store.New(db, nil).Update(ctx, tenant.ID, func(tx *store.Tx) error {
		people, err := tx.Users(rolecall.UserQuery{Within: rolecall.Everywhere(), Limit: 2})
		if err != nil || len(people.Items) > 1 {
			return err
		}
		owner, _, err := tx.UserByEmail(rolecall.EmailKey(demoEmail))
		if err != nil {
			return err
		}
		assignments, err := tx.Assignments(owner.ID)
		if err != nil {
			return err
		}
		d := &demo{
			tenant: tenant, clock: &clock, end: now(),
			owner: service.Call{Principal: rolecall.NewPrincipal(tenant, owner, rolecall.Session{}, assignments, clock), Source: demoSources[0]},
		}
		options.DivertMail = func(m rolecall.Mail) { d.lastMail = m }
		d.service = service.New(store.Nested(tx), options)
		return d.play(ctx)
	})
}
