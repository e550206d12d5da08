package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/httpapi"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store/postgres"
)

func now() rolecall.Time { return rolecall.TimeOf(time.Now()) }

type migrateCommand struct {
	GrantTo    string `placeholder:"ROLE" help:"PostgreSQL role that may serve without owning the tables."`
	Distribute bool   `help:"Distribute the tables of a database that holds tenants over the nodes of its Citus cluster. Requests wait or fail until it is done."`
}

// Run brings the schema up to date.
func (c *migrateCommand) Run(ctx context.Context, p *program) error {
	switch {
	case isPostgres(p.Database):
	case c.GrantTo != "":
		return errors.New("--grant-to needs a postgres:// database")
	case c.Distribute:
		return errors.New("--distribute needs a postgres:// database")
	}
	s, err := p.open(ctx, true)
	if err != nil {
		return err
	}
	err = p.makeKey(ctx, s)
	if err == nil {
		_, err = p.loadKeys(ctx, s)
	}
	if err := errors.Join(err, s.close()); err != nil {
		return err
	}
	if c.GrantTo != "" {
		if err := postgres.Grant(ctx, p.direct(), c.GrantTo); err != nil {
			return err
		}
	}
	if c.Distribute {
		locked, err := postgres.Distribute(ctx, p.direct())
		if err != nil {
			return err
		}
		return p.print(distributed{"distributed", locked.Milliseconds()},
			fmt.Sprintf("The schema is up to date and distributed. The tables were locked for %v.", locked.Round(time.Millisecond)))
	}
	return p.print(done{"migrated"}, "The schema is up to date.")
}

// distributed is the result of a migration that distributes the tables.
type distributed struct {
	Done     string `json:"done"`
	LockedMS int64  `json:"lockedMilliseconds"`
}

// done is the result of a command that has nothing else to tell.
type done struct {
	Done string `json:"done"`
}

type tenantCommands struct {
	Create   tenantCreate   `cmd:"" help:"Make a tenant with the built-in roles and its first owner."`
	List     tenantList     `cmd:"" help:"List the tenants."`
	Suspend  tenantSuspend  `cmd:"" help:"Refuse a tenant's sessions and sign-ins until it is resumed."`
	Resume   tenantResume   `cmd:"" help:"Serve a suspended tenant again."`
	Delete   tenantDelete   `cmd:"" help:"Delete a tenant at once. It can be restored for 24 hours; its name stays unusable for 30 days."`
	Restore  tenantRestore  `cmd:"" help:"Restore a tenant that was deleted in the last 24 hours."`
	AddOwner tenantAddOwner `cmd:"" help:"Make a user an owner of the tenant."`
}

type tenantCreate struct {
	Name          string `arg:"" help:"Name of the tenant, as x-tenant-schema sends it."`
	DisplayName   string `placeholder:"TEXT" help:"Name for people. Default: NAME"`
	OwnerEmail    string `required:"" placeholder:"EMAIL" help:"Address of the first owner."`
	OwnerName     string `required:"" placeholder:"TEXT" help:"Name of the first owner."`
	PasswordStdin bool   `help:"Read the owner's password from standard input instead of making one."`
}

// Run makes the tenant.
func (c *tenantCreate) Run(ctx context.Context, p *program) error {
	password, made, err := p.password(c.PasswordStdin)
	if err != nil {
		return err
	}
	return p.operate(ctx, func(n *node.Node) error {
		draft := rolecall.TenantDraft{Name: c.Name, Owner: rolecall.UserDraft{Email: c.OwnerEmail, Name: c.OwnerName}}
		if c.DisplayName != "" {
			draft.DisplayName = &c.DisplayName
		}
		tenant, user, err := n.Directory.CreateTenantWithPassword(ctx, draft, password)
		if err != nil {
			return err
		}
		result := struct {
			ID       rolecall.TenantID `json:"id"`
			Name     string            `json:"name"`
			OwnerID  rolecall.UserID   `json:"ownerId"`
			Password string            `json:"password,omitempty"`
		}{tenant.ID, tenant.Name, user.ID, made}
		lines := []string{fmt.Sprintf("Tenant %s is ready; %s owns it.", tenant.Name, user.Email)}
		return p.print(result, append(lines, shownOnce(made)...)...)
	})
}

type tenantList struct {
	Status rolecall.TenantStatus `enum:",active,suspended,deleted" default:"" placeholder:"STATUS" help:"Only tenants of this status: active, suspended or deleted. Default: all that are not deleted"`
}

// Run lists the tenants by name.
func (c *tenantList) Run(ctx context.Context, p *program) error {
	type row struct {
		ID          rolecall.TenantID     `json:"id"`
		Name        string                `json:"name"`
		DisplayName string                `json:"displayName"`
		Status      rolecall.TenantStatus `json:"status"`
		CreatedAt   rolecall.Time         `json:"createdAt"`
		PurgeAt     rolecall.Time         `json:"purgeAt,omitzero"`
	}
	rows, lines := []row{}, []string{}
	return p.operate(ctx, func(n *node.Node) error {
		for after := ""; ; after = rows[len(rows)-1].Name {
			page, err := n.Directory.Tenants(ctx, c.Status, after, rolecall.MaxLimit)
			if err != nil {
				return err
			}
			if len(page) == 0 {
				return p.print(rows, lines...)
			}
			for _, t := range page {
				rows = append(rows, row{t.ID, t.Name, t.DisplayName, t.Status, t.CreatedAt, t.PurgeAt})
				line := fmt.Sprintf("%-24s %-10s %s", t.Name, t.Status, t.DisplayName)
				if t.PurgeAt != 0 {
					line += fmt.Sprintf(" (can be restored until %s)", t.PurgeAt)
				}
				lines = append(lines, line)
			}
		}
	})
}

// tenantName is the argument of the commands that only need one.
type tenantName struct {
	Name string `arg:"" help:"Name of the tenant."`
}

func (c tenantName) change(ctx context.Context, p *program, verb string, change func(*node.Node) error) error {
	return p.operate(ctx, func(n *node.Node) error {
		if err := change(n); err != nil {
			return err
		}
		return p.print(done{verb}, fmt.Sprintf("Tenant %s is %s.", c.Name, verb))
	})
}

type tenantSuspend struct{ tenantName }

// Run suspends the tenant.
func (c *tenantSuspend) Run(ctx context.Context, p *program) error {
	return c.change(ctx, p, "suspended", func(n *node.Node) error {
		_, err := n.Directory.SuspendTenant(ctx, access.Command, c.Name, "")
		return err
	})
}

type tenantResume struct{ tenantName }

// Run resumes the tenant.
func (c *tenantResume) Run(ctx context.Context, p *program) error {
	return c.change(ctx, p, "resumed", func(n *node.Node) error {
		_, err := n.Directory.ResumeTenant(ctx, access.Command, c.Name, "")
		return err
	})
}

type tenantDelete struct {
	tenantName
	Yes bool `help:"Delete the tenant without asking."`
}

// Run deletes the tenant.
func (c *tenantDelete) Run(ctx context.Context, p *program) error {
	if !c.Yes {
		warning := fmt.Sprintf("This deletes tenant %s with all its users. It can be restored for 24 hours.", c.Name)
		if err := p.confirm(ctx, warning, c.Name); err != nil {
			return err
		}
	}
	return p.operate(ctx, func(n *node.Node) error {
		if err := n.Directory.DeleteTenant(ctx, access.Command, c.Name, nil); err != nil {
			return err
		}
		return p.print(done{"deleted"}, fmt.Sprintf("Tenant %s is deleted.", c.Name),
			fmt.Sprintf("To restore it within 24 hours, run rolecall tenant restore %s.", c.Name))
	})
}

type tenantRestore struct{ tenantName }

// Run restores the tenant.
func (c *tenantRestore) Run(ctx context.Context, p *program) error {
	return c.change(ctx, p, "restored", func(n *node.Node) error {
		_, err := n.Directory.RestoreTenant(ctx, access.Command, c.Name, "")
		return err
	})
}

type tenantAddOwner struct {
	tenantName
	Email string `required:"" placeholder:"EMAIL" help:"Address of the user."`
}

// Run makes the user an owner.
func (c *tenantAddOwner) Run(ctx context.Context, p *program) error {
	return p.operate(ctx, func(n *node.Node) error {
		if err := n.Directory.AddOwner(ctx, c.Name, c.Email); err != nil {
			return err
		}
		return p.print(done{"owner added"}, fmt.Sprintf("%s owns tenant %s.", c.Email, c.Name))
	})
}

type userCommands struct {
	SetPassword userSetPassword `cmd:"" help:"Give a user a password and end all their sessions and API tokens."`
	SetEmail    userSetEmail    `cmd:"" help:"Change a user's address."`
}

// userName says which user is meant.
type userName struct {
	Tenant string `required:"" placeholder:"NAME" help:"Name of the tenant."`
	Email  string `required:"" placeholder:"EMAIL" help:"Address of the user."`
}

type userSetPassword struct {
	userName
	PasswordStdin bool `help:"Read the password from standard input instead of making one."`
}

// Run sets the password.
func (c *userSetPassword) Run(ctx context.Context, p *program) error {
	password, made, err := p.password(c.PasswordStdin)
	if err != nil {
		return err
	}
	return p.operate(ctx, func(n *node.Node) error {
		if err := n.SignIn.SetPassword(ctx, c.Tenant, c.Email, password); err != nil {
			return err
		}
		result := struct {
			Done     string `json:"done"`
			Password string `json:"password,omitempty"`
		}{"password set", made}
		lines := []string{fmt.Sprintf("%s has a new password; all sessions and API tokens of theirs have ended.", c.Email)}
		return p.print(result, append(lines, shownOnce(made)...)...)
	})
}

type userSetEmail struct {
	userName
	NewEmail string `required:"" placeholder:"EMAIL" help:"The new address."`
}

// Run changes the address.
func (c *userSetEmail) Run(ctx context.Context, p *program) error {
	return p.operate(ctx, func(n *node.Node) error {
		if err := n.SignIn.SetEmail(ctx, c.Tenant, c.Email, c.NewEmail); err != nil {
			return err
		}
		return p.print(done{"address changed"}, fmt.Sprintf("%s is now %s.", c.Email, c.NewEmail))
	})
}

type openAPICommand struct{}

// Run prints the document as the program's operations make it: YAML, or JSON.
func (c *openAPICommand) Run(p *program) error {
	document, err := httpapi.YAML()
	if p.JSON {
		document, err = json.MarshalIndent(httpapi.Document(), "", "  ")
		document = append(document, '\n')
	}
	if err != nil {
		return fmt.Errorf("make the document: %w", err)
	}
	_, err = p.stdout.Write(document)
	return err
}

type versionCommand struct{}

// Run prints the version, the commit and the toolchain that made this program.
func (c *versionCommand) Run(p *program) error {
	result := struct {
		Version string `json:"version"`
		Commit  string `json:"commit,omitempty"`
		Go      string `json:"go"`
	}{Version: "(devel)", Go: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok {
		result.Version = info.Main.Version
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				result.Commit = setting.Value
			}
		}
	}
	return p.print(result, strings.TrimSpace(fmt.Sprintf("rolecall %s %s %s", result.Version, result.Go, result.Commit)))
}

// longestInput bounds what is read as a password, in bytes.
const longestInput = 8 << 10

// password returns the password that a command sets: read from standard input
// without one trailing newline, or else made, and then returned a second time to
// be shown.
func (p *program) password(stdin bool) (password, made string, err error) {
	if !stdin {
		made = secret.RandomPassword()
		return made, made, nil
	}
	input, err := io.ReadAll(io.LimitReader(p.stdin, longestInput))
	if err != nil {
		return "", "", fmt.Errorf("read the password: %w", err)
	}
	line, found := strings.CutSuffix(string(input), "\n")
	if found {
		line = strings.TrimSuffix(line, "\r")
	}
	return line, "", nil
}

// errNotConfirmed is the error of a command whose prompt was not confirmed.
var errNotConfirmed = errors.New("nothing was changed: the command was not confirmed")

// confirm returns nil once the word was typed on a terminal after the warning.
func (p *program) confirm(ctx context.Context, warning, word string) error {
	if file, ok := p.stdin.(*os.File); !ok || !term.IsTerminal(int(file.Fd())) {
		return errors.New("this command asks for confirmation on a terminal; without one, repeat it with --yes")
	}
	fmt.Fprintf(p.stderr, "%s\nType %s to continue: ", warning, word)
	typed := make(chan string, 1)
	go func() { // reading cannot be interrupted
		line, _ := bufio.NewReader(io.LimitReader(p.stdin, longestInput)).ReadString('\n')
		typed <- strings.TrimSpace(line)
	}()
	select {
	case line := <-typed:
		if line == word {
			return nil
		}
	case <-ctx.Done():
	}
	return errNotConfirmed
}

func shownOnce(made string) []string {
	if made == "" {
		return nil
	}
	return []string{"Password, shown only now: " + made}
}
