package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/progress"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/service"
	"github.com/rolecall/rolecall/internal/store"
)

const (
	seedWriters = 8   // transactions at once
	seedChunk   = 250 // users, or roles, in a transaction
	seedOwner   = "owner@seed.example"
)

// seedCommand fills a store for tests under load.
type seedCommand struct {
	Name          string `arg:"" default:"load" help:"Name of the tenant; of several, what their names begin with: NAME-1, NAME-2 and so on. Default: ${default}"`
	Tenants       int    `default:"1" placeholder:"N" help:"How many tenants to make. Default: ${default}"`
	Users         int    `default:"1000" placeholder:"N" help:"Users of each tenant, besides its owner. Default: ${default}"`
	Departments   int    `default:"20" placeholder:"N" help:"Departments that they are spread over. Default: ${default}"`
	Roles         int    `default:"20" placeholder:"N" help:"Roles of each tenant, besides the built-in ones. Default: ${default}"`
	Holders       int    `default:"100" placeholder:"N" help:"Users who hold the first role. Default: ${default}"`
	Assignments   int    `default:"10" placeholder:"N" help:"Roles that the first user holds. Default: ${default}"`
	Passwords     int    `default:"100" placeholder:"N" help:"Users who can sign in, with the owner's password. Default: ${default}"`
	Seed          uint64 `default:"1" placeholder:"N" help:"The same number makes the same people. Default: ${default}"`
	Sessions      string `placeholder:"FILE" help:"Sign in everybody who has a password, and write tenant, user id and session token of each to a line of this new file."`
	PasswordStdin bool   `help:"Read the owners' password from standard input instead of making one."`
}

// Validate refuses numbers that do not fit together.
func (c *seedCommand) Validate() error {
	switch {
	case c.Tenants < 1 || c.Departments < 1:
		return errors.New("--tenants and --departments are at least 1")
	case min(c.Users, c.Roles, c.Holders, c.Assignments, c.Passwords) < 0:
		return errors.New("no number is less than 0")
	case c.Assignments > c.Roles:
		return errors.New("--assignments is at most --roles")
	case !rolecall.IsTenantName(c.tenant(c.Tenants)):
		return errors.New("NAME is 1 to 63 of a to z, 0 to 9, - and _, with the number that follows, and begins with a letter or digit")
	}
	return nil
}

// tenant returns the name of the tenant with this number, from 1.
func (c *seedCommand) tenant(number int) string {
	if c.Tenants == 1 {
		return c.Name
	}
	return fmt.Sprintf("%s-%d", c.Name, number)
}

// Run makes the tenants and fills them.
func (c *seedCommand) Run(ctx context.Context, p *program) (err error) {
	password, made, err := p.password(c.PasswordStdin)
	if err != nil {
		return err
	}
	var faults rolecall.Faults
	code, detail := secret.CheckPassword(password, rolecall.DefaultPasswordMin, secret.Words{}, seedOwner, c.Name)
	faults.Add("/password", code, detail)
	if err := faults.Err(); err != nil {
		return err
	}
	hash, err := newPasswords().Hash(ctx, password)
	if err != nil {
		return err
	}
	tokens, err := c.tokenFile()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, tokens.Close()) }()
	return p.opened(ctx, func(db store.Database, options service.Options) error {
		// The service hashes random passwords that are replaced at once: cheaply.
		options.Passwords = secret.NewPasswords(secret.Parameters{Time: 1, MemoryKiB: 8, Threads: 1}, seedWriters, seedWriters)
		s := &seeder{seedCommand: c, store: store.New(db, nil), service: service.New(db, options), hash: hash, tokens: tokens}
		if err := s.refuseKnown(ctx); err != nil {
			return err
		}
		s.bar = progress.Start(p.stderr, "users", c.Tenants*(c.Users+1))
		err := concurrently(c.Tenants, seedWriters, func(i int) error { return s.fill(ctx, c.tenant(i+1)) })
		s.bar.End()
		if err != nil {
			return err
		}
		return c.report(p, password, made)
	})
}

// report prints what there is now, and how to sign in.
func (c *seedCommand) report(p *program, password, made string) error {
	result := struct {
		Tenants  []string `json:"tenants"` // the first and the last
		Users    int      `json:"users"`
		Email    string   `json:"email"`
		Password string   `json:"password,omitempty"`
	}{slices.Compact([]string{c.tenant(1), c.tenant(c.Tenants)}), c.Tenants * (c.Users + 1), seedOwner, made}
	lines := []string{fmt.Sprintf("Tenant %s has %d made-up users.", c.Name, c.Users+1)}
	if c.Tenants > 1 {
		lines[0] = fmt.Sprintf("Each of the tenants %s to %s has %d made-up users.", c.tenant(1), c.tenant(c.Tenants), c.Users+1)
	}
	lines = append(lines, "Sign in as "+seedOwner+".")
	return p.print(result, append(lines, shownOnce(made)...)...)
}

// tokenFile makes the file that --sessions names, for its owner's eyes alone.
func (c *seedCommand) tokenFile() (io.WriteCloser, error) {
	if c.Sessions == "" {
		return discard{io.Discard}, nil
	}
	file, err := os.OpenFile(c.Sessions, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--sessions: %w", err)
	}
	return file, nil
}

// discard is a file that keeps nothing.
type discard struct{ io.Writer }

// Close does nothing.
func (discard) Close() error { return nil }

// concurrently calls fn with 0 to n-1, at most limit at a time, until one of them
// fails, and returns the failures.
func concurrently(n, limit int, fn func(int) error) error {
	var all sync.WaitGroup
	var failed atomic.Bool
	places := make(chan struct{}, limit)
	errs := make([]error, n)
	for i := range n {
		places <- struct{}{}
		if failed.Load() {
			break
		}
		all.Go(func() {
			defer func() { <-places }()
			errs[i] = fn(i)
			if errs[i] != nil {
				failed.Store(true)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
