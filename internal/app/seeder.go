package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/progress"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/service"
	"github.com/rolecall/rolecall/internal/store"
)

// seeder fills a store as the command says.
type seeder struct {
	*seedCommand
	store   *store.Store
	service *service.Service
	hash    string // of the password
	tokens  io.Writer
	bar     *progress.Bar
}

// refuseKnown returns an error if a tenant to be made is there already. The tenants
// between the first and the last are looked for when their turn comes.
func (s *seeder) refuseKnown(ctx context.Context) error {
	for _, name := range []string{s.tenant(1), s.tenant(s.Tenants)} {
		tenant, err := s.service.Tenant(ctx, name)
		if err != nil {
			return err
		}
		if !tenant.ID.IsZero() {
			return known(name)
		}
	}
	return nil
}

func known(tenant string) error {
	return rolecall.ErrTenantExists.With(fmt.Sprintf("There is a tenant %s already. Made-up people go into new tenants only: give another NAME.", tenant))
}

// fill makes a tenant with its roles and users.
func (s *seeder) fill(ctx context.Context, name string) error {
	draft := rolecall.TenantDraft{Name: name, Owner: rolecall.UserDraft{Email: seedOwner, Name: "Owner of " + name}}
	tenant, owner, err := s.service.CreateTenant(ctx, draft, secret.RandomPassword())
	switch {
	case errors.Is(err, rolecall.ErrTenantExists):
		return known(name)
	case err != nil:
		return err
	}
	people := newPeople(s.seedCommand, name, owner.ID)
	if err := s.prepare(ctx, tenant.ID, owner.ID, people.roles); err != nil {
		return err
	}
	chunks := (s.Users + seedChunk - 1) / seedChunk
	if err := concurrently(chunks, max(1, seedWriters/s.Tenants), func(i int) error {
		return s.write(ctx, tenant.ID, people, i*seedChunk, min((i+1)*seedChunk, s.Users))
	}); err != nil {
		return err
	}
	s.bar.Add(1)
	if s.Sessions == "" {
		return nil
	}
	signedIn := []rolecall.UserID{owner.ID}
	for i := range min(s.Passwords, s.Users) {
		user, _ := people.person(i)
		signedIn = append(signedIn, user.ID)
	}
	return s.signIn(ctx, tenant, signedIn)
}

// prepare gives the owner the password and writes the roles.
func (s *seeder) prepare(ctx context.Context, tenant rolecall.TenantID, owner rolecall.UserID, roles []rolecall.Role) error {
	write := func(fn func(*store.Tx)) error {
		return s.store.Update(ctx, tenant, func(tx *store.Tx) error {
			fn(tx)
			return nil
		})
	}
	first := roles[:min(len(roles), seedChunk)]
	err := write(func(tx *store.Tx) {
		tx.SetPassword(owner, s.hash, now())
		insertRoles(tx, first)
	})
	for chunk := range slices.Chunk(roles[len(first):], seedChunk) {
		if err == nil {
			err = write(func(tx *store.Tx) { insertRoles(tx, chunk) })
		}
	}
	return err
}

func insertRoles(tx *store.Tx, roles []rolecall.Role) {
	for _, role := range roles {
		tx.InsertRole(role)
	}
}

// write writes the users from one number up to another, with what they hold.
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

// signIn gives each user a session and notes its token.
func (s *seeder) signIn(ctx context.Context, tenant rolecall.Tenant, users []rolecall.UserID) error {
	for chunk := range slices.Chunk(users, seedChunk) {
		var lines bytes.Buffer
		at := now()
		if err := s.store.Update(ctx, tenant.ID, func(tx *store.Tx) error {
			lines.Reset()
			for _, user := range chunk {
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
		if _, err := s.tokens.Write(lines.Bytes()); err != nil { // whole lines: those of others do not get between
			return err
		}
	}
	return nil
}
