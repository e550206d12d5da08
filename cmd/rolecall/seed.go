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

// seedCommand fills a store for tests under load.
type seedCommand struct {
	seed.Options
	Sessions      string `placeholder:"FILE" help:"Sign in everybody who has a password, and write tenant, user id and session token of each to a line of this new file."`
	PasswordStdin bool   `help:"Read the owners' password from standard input instead of making one."`
}

// Run makes the tenants and fills them.
func (c *seedCommand) Run(ctx context.Context, p *program) (err error) {
	password, made, err := p.password(c.PasswordStdin)
	if err != nil {
		return err
	}
	var faults rolecall.Faults
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
		return c.report(p, made)
	})
}

// report prints what was created, and how to sign in.
func (c *seedCommand) report(p *program, made string) error {
	result := struct {
		Tenants  []string `json:"tenants"` // the first and the last
		Users    int      `json:"users"`
		Email    string   `json:"email"`
		Password string   `json:"password,omitempty"`
	}{slices.Compact([]string{c.TenantName(1), c.TenantName(c.Tenants)}), c.Tenants * (c.Users + 1), seed.Owner, made}
	lines := []string{fmt.Sprintf("Tenant %s has %d made-up users.", c.Name, c.Users+1)}
	if c.Tenants > 1 {
		lines[0] = fmt.Sprintf("Each of the tenants %s to %s has %d made-up users.", c.TenantName(1), c.TenantName(c.Tenants), c.Users+1)
	}
	lines = append(lines, "Sign in as "+seed.Owner+".")
	return p.print(result, append(lines, shownOnce(made)...)...)
}
