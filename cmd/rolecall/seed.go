package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/seed"
	"github.com/rolecall/rolecall/internal/store"
)

// seedCommand creates tenants with sample users.
type seedCommand struct {
	seed.Options
	Sessions      string `placeholder:"FILE" help:"Create a session for each user with a password, and write tenant, user id and session token to this new file, one user per line. Default: none"`
	PasswordStdin bool   `help:"Read the password of all users from standard input. Default: generate a password and print it"`
}

// Run creates the tenants with their users.
func (c *seedCommand) Run(ctx context.Context, p *program) (err error) {
	password, generated, err := p.password(c.PasswordStdin)
	if err != nil {
		return err
	}
	var faults rolecall.FieldErrors
	code, detail := secret.CheckPassword(password, rolecall.DefaultPasswordMin, secret.Words{}, seed.Owner, c.Name)
	faults.Add("/password", code, detail)
	if err := faults.Err(); err != nil {
		return err
	}
	hash, err := newPasswords().Hash(ctx, password)
	if err != nil {
		return err
	}
	var sessions io.Writer
	if c.Sessions != "" {
		file, err := os.OpenFile(c.Sessions, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return fmt.Errorf("--sessions: %w", err)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		sessions = file
	}
	return p.opened(ctx, func(db store.Database, options access.Options) error {
		if err := seed.Fill(ctx, db, options, &c.Options, hash, sessions, p.stderr); err != nil {
			return err
		}
		return c.report(p, generated)
	})
}

// report prints what was created, and how to sign in.
func (c *seedCommand) report(p *program, generated string) error {
	result := struct {
		Tenants  []string `json:"tenants"` // the names of the first and the last tenant
		Users    int      `json:"users"`
		Email    string   `json:"email"`
		Password string   `json:"password,omitempty"`
	}{slices.Compact([]string{c.TenantName(1), c.TenantName(c.Tenants)}), c.Tenants * (c.Users + 1), seed.Owner, generated}
	lines := []string{fmt.Sprintf("Created tenant %s with %d sample users.", c.Name, c.Users+1)}
	if c.Tenants > 1 {
		lines[0] = fmt.Sprintf("Created tenants %s to %s with %d sample users each.", c.TenantName(1), c.TenantName(c.Tenants), c.Users+1)
	}
	lines = append(lines, "Sign in as "+seed.Owner+".")
	return p.print(result, append(lines, shownOnce(generated)...)...)
}
