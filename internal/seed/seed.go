// Package seed fills new tenants with sample users, for load tests. It writes many rows
// in each transaction, and does not call the service for each user.
package seed

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/progress"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// Owner is the email address of the owner of every sample tenant.
const Owner = "owner@seed.example"

const (
	writers = 8   // maximum number of transactions at the same time
	chunk   = 250 // maximum number of users, roles or sessions in a transaction
)

// Options has the numbers of objects to create. The tags of the members define the flags
// of the command.
type Options struct {
	Name        string `arg:"" default:"load" help:"Name of the tenant, or with --tenants the prefix of their names: NAME-1, NAME-2 and so on. Default: ${default}"`
	Tenants     int    `default:"1" placeholder:"N" help:"Number of tenants. Default: ${default}"`
	Users       int    `default:"1000" placeholder:"N" help:"Users per tenant, in addition to the owner. Default: ${default}"`
	Departments int    `default:"20" placeholder:"N" help:"Departments per tenant. Default: ${default}"`
	Roles       int    `default:"20" placeholder:"N" help:"Roles per tenant, in addition to the built-in ones. Default: ${default}"`
	Holders     int    `default:"100" placeholder:"N" help:"Users who have the first role. Default: ${default}"`
	Assignments int    `default:"10" placeholder:"N" help:"Roles of the first user. Default: ${default}"`
	Passwords   int    `default:"100" placeholder:"N" help:"Users per tenant who can sign in, with the same password as the owner. Default: ${default}"`
	Seed        uint64 `default:"1" placeholder:"N" help:"Seed of the random data. The same seed gives the same users. Default: ${default}"`
}

// Validate returns an error if a number is out of its range, or if the name of a tenant
// would be invalid.
func (o *Options) Validate() error {
	switch {
	case o.Tenants < 1 || o.Departments < 1:
		return errors.New("--tenants and --departments must be at least 1")
	case min(o.Users, o.Roles, o.Holders, o.Assignments, o.Passwords) < 0:
		return errors.New("--users, --roles, --holders, --assignments and --passwords must be at least 0")
	case o.Assignments > o.Roles:
		return errors.New("--assignments must be at most --roles")
	case !rolecall.IsTenantName(o.TenantName(o.Tenants)):
		return errors.New("NAME must have 1 to 63 characters of a-z, 0-9, - and _, including the number that is added, and must begin with a letter or digit")
	}
	return nil
}

// TenantName returns the name of the tenant with the number. The numbers begin with 1. A
// single tenant has the name o.Name without a number.
func (o *Options) TenantName(number int) string {
	if o.Tenants == 1 {
		return o.Name
	}
	return fmt.Sprintf("%s-%d", o.Name, number)
}

// Fill creates the tenants with their roles and users. The argument hash is the hash of a
// password. The owner and the first o.Passwords users of each tenant get this password.
// If sessions is not nil, Fill creates a session for each user with a password. For each
// session, it writes a line to sessions with the name of the tenant, the id of the user
// and the session token. It writes its progress to stderr.
func Fill(ctx context.Context, db store.Database, options access.Options, o *Options, hash string, sessions, stderr io.Writer) error {
	// The service hashes a random password for each owner. Fill replaces it immediately,
	// so a cheap hash is enough.
	options.Passwords = secret.NewPasswords(secret.Parameters{Time: 1, MemoryKiB: 8, Threads: 1}, writers, writers)
	s := &seeder{Options: o, store: store.New(db, nil), directory: directory.New(access.New(db, options)), hash: hash, sessions: sessions}
	if err := s.requireNew(ctx); err != nil {
		return err
	}
	s.bar = progress.Start(stderr, "users", o.Tenants*(o.Users+1))
	defer s.bar.End()
	tenants, ctx := errgroup.WithContext(ctx)
	tenants.SetLimit(writers)
	for i := range o.Tenants {
		tenants.Go(func() error { return s.fill(ctx, o.TenantName(i+1)) })
	}
	return tenants.Wait()
}

// seeder contains what Fill needs to create the tenants.
type seeder struct {
	*Options
	store     *store.Store
	directory *directory.Service
	hash      string    // hash of the password of the users
	sessions  io.Writer // nil: create no sessions
	bar       *progress.Bar
}

// requireNew returns an error if the first or the last tenant already exists. For every
// other tenant, fill returns this error when it creates the tenant.
func (s *seeder) requireNew(ctx context.Context) error {
	for _, name := range []string{s.TenantName(1), s.TenantName(s.Tenants)} {
		tenant, err := s.directory.Tenant(ctx, name)
		if err != nil {
			return err
		}
		if !tenant.ID.IsZero() {
			return errExists(name)
		}
	}
	return nil
}

func errExists(tenant string) error {
	return rolecall.ErrTenantExists.With(fmt.Sprintf("Tenant %s already exists. Sample users are only added to new tenants. Choose another NAME.", tenant))
}

// fill creates the tenant with the name, and its roles, users and sessions.
func (s *seeder) fill(ctx context.Context, name string) error {
	draft := rolecall.TenantDraft{Name: name, Owner: rolecall.UserDraft{Email: Owner, Name: "Owner of " + name}}
	tenant, owner, err := s.directory.CreateTenantWithPassword(ctx, draft, secret.RandomPassword())
	switch {
	case errors.Is(err, rolecall.ErrTenantExists):
		return errExists(name)
	case err != nil:
		return err
	}
	people := newPeople(s.Options, name, owner.ID)
	if err := s.prepare(ctx, tenant.ID, owner.ID, people.roles); err != nil {
		return err
	}
	chunks := (s.Users + chunk - 1) / chunk
	parts, partsCtx := errgroup.WithContext(ctx)
	parts.SetLimit(max(1, writers/s.Tenants))
	for i := range chunks {
		parts.Go(func() error { return s.write(partsCtx, tenant.ID, people, i*chunk, min((i+1)*chunk, s.Users)) })
	}
	if err := parts.Wait(); err != nil {
		return err
	}
	s.bar.Add(1)
	if s.sessions == nil {
		return nil
	}
	signedIn := []rolecall.UserID{owner.ID}
	for i := range min(s.Passwords, s.Users) {
		user, _ := people.person(i)
		signedIn = append(signedIn, user.ID)
	}
	return s.signIn(ctx, tenant, signedIn)
}

// prepare sets the password of the owner and writes the roles.
func (s *seeder) prepare(ctx context.Context, tenant rolecall.TenantID, owner rolecall.UserID, roles []rolecall.Role) error {
	write := func(fn func(*store.Tx)) error {
		return s.store.Update(ctx, tenant, func(tx *store.Tx) error {
			fn(tx)
			return nil
		})
	}
	first := roles[:min(len(roles), chunk)]
	err := write(func(tx *store.Tx) {
		tx.SetPassword(owner, s.hash, rolecall.TimeOf(time.Now()))
		insertRoles(tx, first)
	})
	for part := range slices.Chunk(roles[len(first):], chunk) {
		if err == nil {
			err = write(func(tx *store.Tx) { insertRoles(tx, part) })
		}
	}
	return err
}

func insertRoles(tx *store.Tx, roles []rolecall.Role) {
	for _, role := range roles {
		tx.InsertRole(role)
	}
}

// write stores the users whose numbers are at least from and less than to, with their
// assignments and passwords.
func (s *seeder) write(ctx context.Context, tenant rolecall.TenantID, people *people, from, to int) error {
	users := make([]rolecall.User, 0, to-from)
	var assignments []rolecall.Assignment
	for i := from; i < to; i++ {
		user, held := people.person(i)
		users, assignments = append(users, user), append(assignments, held...)
	}
	defer s.bar.Add(to - from)
	return s.store.Update(ctx, tenant, func(tx *store.Tx) error {
		tx.InsertUsers(users)
		tx.InsertAssignments(assignments)
		for _, user := range users[:min(len(users), max(0, s.Passwords-from))] {
			tx.SetPassword(user.ID, s.hash, user.CreatedAt)
		}
		return nil
	})
}

// signIn creates a session for each user and writes its line to s.sessions.
func (s *seeder) signIn(ctx context.Context, tenant rolecall.Tenant, users []rolecall.UserID) error {
	for part := range slices.Chunk(users, chunk) {
		var lines bytes.Buffer
		at := rolecall.TimeOf(time.Now())
		if err := s.store.Update(ctx, tenant.ID, func(tx *store.Tx) error {
			lines.Reset()
			for _, user := range part {
				token := secret.NewToken()
				fmt.Fprintln(&lines, tenant.Name, user, token)
				tx.InsertSession(rolecall.Session{
					ID: rolecall.NewID[rolecall.Session](at), UserID: user,
					AuthenticatedAt: at, LastUsedAt: at, ExpiresAt: at.Add(tenant.Settings.AbsoluteLifetime()),
				}, token.Hash())
			}
			return nil
		}); err != nil {
			return err
		}
		if _, err := s.sessions.Write(lines.Bytes()); err != nil { // one call of Write, so that the lines of other tenants do not mix with these lines
			return err
		}
	}
	return nil
}
