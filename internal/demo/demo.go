// Package demo fills a database with one tenant that has sample users and their history.
// It also returns the address and the password to sign in with. It calls the methods of
// the service with a simulated clock, so that the store contains the same events as after
// a real history.
package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/store"
)

// The name of the demo's tenant, and the email address of its owner.
const (
	Tenant = "demo"
	Email  = "ada.lovelace@demo.example"
)

// Access has the data with which a person signs in to the demo.
type Access struct {
	Address  string `json:"address"`
	Tenant   string `json:"tenant"`
	Email    string `json:"email"`
	Password string `json:"password"`
	Mailbox  string `json:"mailbox"` // the directory to which mails are written
	Curl     string `json:"curl"`
}

// Prepare creates the tenant of the demo if it does not exist, and sets a new random
// password for its owner. It returns the data to sign in at the URL base. It returns an
// error if the database has other tenants, because sample users must not be mixed with
// real ones.
func Prepare(ctx context.Context, db store.Database, options access.Options, base, mailbox string) (Access, error) {
	if err := requireOwnDatabase(ctx, db, options); err != nil {
		return Access{}, err
	}
	options.DivertMail = func(rolecall.Mail) {} // Prepare sends no mail
	if err := Seed(ctx, db, options); err != nil {
		return Access{}, err
	}
	password := secret.RandomPassword()
	if err := signin.New(access.New(db, options)).SetPassword(ctx, Tenant, Email, password); err != nil {
		return Access{}, err
	}
	return Access{
		Address: base, Tenant: Tenant, Email: Email, Password: password, Mailbox: mailbox,
		Curl: fmt.Sprintf(`curl -i -X POST %s/auths/login -H 'x-tenant-schema: %s' -H 'content-type: application/json' -d '{"email":"%s","password":"%s"}'`,
			base, Tenant, Email, password),
	}, nil
}

func requireOwnDatabase(ctx context.Context, db store.Database, options access.Options) error {
	tenants, err := directory.New(access.New(db, options)).Tenants(ctx, "", "", 2)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(tenants, func(t rolecall.Tenant) bool { return t.Name != Tenant }) {
		return errors.New("--demo requires a separate database, but this one has other tenants: remove --database and ROLECALL_DATABASE")
	}
	return nil
}

// Lines returns a text for the terminal that explains how to sign in, as lines.
func (a Access) Lines() []string {
	return []string{
		fmt.Sprintf("Rolecall demo with %d sample users in %d departments, reachable from this machine only", personCount+1, len(departments)),
		"",
		"  console   " + a.Address + "/console/" + a.Tenant,
		"  sign in   " + a.Email,
		"  password  " + a.Password + "   (changes at each start)",
		"",
		"  API       " + a.Address + " (tenant " + a.Tenant + ")",
		"  docs      " + a.Address + "/docs",
		"  mail      printed here and written to " + a.Mailbox,
		"",
		a.Curl,
		"",
	}
}

// Seed creates the tenant of the demo if it does not exist. It then creates the sample
// users and their history, unless the tenant already has users other than its owner.
func Seed(ctx context.Context, db store.Database, options access.Options) error {
	end := rolecall.TimeOf(time.Now())
	clock := end.Add(-age)
	options.Clock = func() rolecall.Time { return clock }
	tenants := directory.New(access.New(db, options))
	tenant, err := tenants.Tenant(ctx, Tenant)
	if err != nil {
		return err
	}
	if tenant.ID.IsZero() {
		display := "Demo Incorporated"
		draft := rolecall.TenantDraft{Name: Tenant, DisplayName: &display, Owner: rolecall.UserDraft{Email: Email, Name: "Ada Lovelace"}}
		tenant, _, err = tenants.CreateTenantWithPassword(ctx, draft, secret.RandomPassword())
		if err != nil {
			return err
		}
	}
	// The hashes of the sample users protect random passwords that are not stored
	// anywhere, so cheap hashes are enough.
	options.Passwords = secret.NewPasswords(secret.Parameters{Time: 1, MemoryKiB: 8, Threads: 1}, 1, 0)
	return store.New(db, nil).Update(ctx, tenant.ID, func(tx *store.Tx) error {
		people, err := tx.Users(rolecall.UserQuery{Within: rolecall.Everywhere(), Limit: 2})
		if err != nil || len(people.Items) > 1 {
			return err
		}
		owner, _, err := tx.UserByEmail(Email)
		if err != nil {
			return err
		}
		assignments, err := tx.Assignments(rolecall.HolderOf(owner.ID))
		if err != nil {
			return err
		}
		h := &history{
			tenant: tenant, clock: &clock, end: end,
			owner: access.Caller{Principal: authz.NewPrincipal(tenant, owner, rolecall.Session{}, assignments, clock), Source: sources[0]},
		}
		options.DivertMail = func(m rolecall.Mail) { h.lastMail = m }
		h.access = access.New(store.Nested(tx), options)
		h.directory, h.signin = directory.New(h.access), signin.New(h.access)
		return h.run(ctx)
	})
}
