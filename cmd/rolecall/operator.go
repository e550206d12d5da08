package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/httpapi"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/store/postgres"
)

func now() rolecall.Time { return rolecall.TimeOf(time.Now()) }

type migrateCommand struct {
	GrantTo    string `placeholder:"ROLE" help:"Grant this PostgreSQL role what serve needs, so that serve need not run as the owner of the tables."`
	Distribute bool   `help:"Distribute the tables of a database that already has tenants over the nodes of its Citus cluster. Requests wait or fail until this is done."`
}

// Run creates or updates the schema, and creates the instance key if it is missing and no key file
// is set. With --grant-to it also grants a role access to the tables. With --distribute it also
// distributes the tables over a Citus cluster.
func (c *migrateCommand) Run(ctx context.Context, p *program) error {
	switch {
	case isPostgres(p.Database):
	case c.GrantTo != "":
		return errors.New("--grant-to requires a postgres:// database: set --database")
	case c.Distribute:
		return errors.New("--distribute requires a postgres:// database: set --database")
	}
	state := "is up to date"
	if p.hasNoSchema(ctx) {
		state = "was created"
	}
	s, err := p.open(ctx, logMigrations(slog.New(slog.NewTextHandler(p.stderr, nil))))
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
	lines := []string{fmt.Sprintf("The schema of %s %s.", p.databaseName(), state)}
	if c.GrantTo != "" {
		if err := postgres.Grant(ctx, p.direct(), c.GrantTo); err != nil {
			return err
		}
		lines = append(lines, fmt.Sprintf("Role %s can use the tables.", c.GrantTo))
	}
	if c.Distribute {
		locked, err := postgres.Distribute(ctx, p.direct())
		if err != nil {
			return err
		}
		return p.print(distributed{"distributed", locked.Milliseconds()},
			append(lines, fmt.Sprintf("The tables are distributed. They were locked for %v.", locked.Round(time.Millisecond)))...)
	}
	return p.print(done{"migrated"}, lines...)
}

// hasNoSchema reports whether the database is new. It returns false if it cannot open the database: the
// migration then reports why.
func (g *globals) hasNoSchema(ctx context.Context) bool {
	if !isPostgres(g.Database) && !exists(g.sqliteFile()) {
		return true
	}
	db, err := g.open(ctx, nil)
	if err == nil {
		err = db.close()
	}
	return errors.Is(err, store.ErrNoSchema)
}

// distributed is the JSON output of migrate --distribute.
type distributed struct {
	Done     string `json:"done"`
	LockedMS int64  `json:"lockedMilliseconds"`
}

// done is the JSON output of a command that only reports its success.
type done struct {
	Done string `json:"done"`
}

type tenantCommands struct {
	Create   tenantCreate   `cmd:"" help:"Create a tenant with the built-in roles and its first owner."`
	List     tenantList     `cmd:"" help:"List tenants."`
	Suspend  tenantSuspend  `cmd:"" help:"Block all sessions and sign-ins of a tenant until it is resumed."`
	Resume   tenantResume   `cmd:"" help:"Resume a suspended tenant."`
	Delete   tenantDelete   `cmd:"" help:"Delete a tenant with all its users. It can be restored for 24 hours. Its name cannot be used for 30 days."`
	Restore  tenantRestore  `cmd:"" help:"Restore a tenant that was deleted less than 24 hours ago."`
	AddOwner tenantAddOwner `cmd:"" help:"Make a user an owner of a tenant, for a tenant that lost its owners."`
}

type tenantCreate struct {
	Name          string `arg:"" help:"Name of the tenant, as sent in x-tenant-schema: 1 to 63 of a-z, 0-9, - and _."`
	DisplayName   string `placeholder:"TEXT" help:"Name that users see, such as \"Acme Inc.\". Default: NAME"`
	OwnerEmail    string `required:"" placeholder:"EMAIL" help:"Email address of the first owner."`
	OwnerName     string `required:"" placeholder:"TEXT" help:"Full name of the first owner."`
	NameMinimum   int    `enum:"1,2,3" default:"3" placeholder:"N" help:"Setting nameMinimum of the tenant: the minimum length of the names of users, departments, roles and service accounts, from 1 to 3. Default: ${default}"`
	PasswordStdin bool   `help:"Read the owner's password from standard input. Default: generate a password and print it"`
	served
}

// Run creates the tenant. Like serve, it first creates the SQLite file if it does not exist.
func (c *tenantCreate) Run(ctx context.Context, p *program) error {
	password, generated, err := p.password(c.PasswordStdin)
	if err != nil {
		return err
	}
	console := c.console(c.Name)
	if err := p.createFile(ctx); err != nil {
		return err
	}
	return p.operate(ctx, func(n *node.Node) error {
		draft := rolecall.TenantDraft{Name: c.Name, Owner: rolecall.UserDraft{Email: c.OwnerEmail, Name: c.OwnerName}, NameMin: c.NameMinimum}
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
			Console  string            `json:"console"`
			Password string            `json:"password,omitempty"`
		}{tenant.ID, tenant.Name, user.ID, console, generated}
		lines := []string{fmt.Sprintf("Created tenant %s with owner %s.", tenant.Name, user.Email), "Console, while a node serves: " + console}
		return p.print(result, append(lines, shownOnce(generated)...)...)
	})
}

type tenantList struct {
	Status rolecall.TenantStatus `enum:",active,suspended,deleted" default:"" placeholder:"STATUS" help:"List only tenants with this status: active, suspended or deleted. Default: active and suspended"`
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
	const columns = "%-24s %-10s %s"
	rows, lines := []row{}, []string{fmt.Sprintf(columns, "NAME", "STATUS", "DISPLAY NAME")}
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
				line := fmt.Sprintf(columns, t.Name, t.Status, t.DisplayName)
				if t.PurgeAt != 0 {
					line += fmt.Sprintf(" (can be restored until %s)", t.PurgeAt)
				}
				lines = append(lines, line)
			}
		}
	})
}

// createFile creates the SQLite file of a new instance, with the schema and the instance key. It does
// nothing if the file exists, or if the file of the demo may be meant.
func (p *program) createFile(ctx context.Context) error {
	if isPostgres(p.Database) || exists(p.sqliteFile()) || p.Database == "" && exists(demoDatabase) {
		return nil
	}
	db, err := p.open(ctx, func([]store.Migration) {})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.stderr, "Created the database "+p.databaseName()+".")
	return errors.Join(err, p.makeKey(ctx, db), db.close())
}

// tenantName is the argument that commands embed to select a tenant by its name.
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

// reason is a flag that commands embed to record why an operator changes a tenant.
type reason struct {
	Reason string `placeholder:"TEXT" help:"Reason that the event shows to the tenant's auditors."`
}

type tenantSuspend struct {
	tenantName
	reason
}

// Run suspends the tenant.
func (c *tenantSuspend) Run(ctx context.Context, p *program) error {
	return c.change(ctx, p, "suspended", func(n *node.Node) error {
		_, err := n.Directory.SuspendTenant(ctx, access.Command, c.Name, c.Reason)
		return err
	})
}

type tenantResume struct {
	tenantName
	reason
}

// Run resumes the tenant.
func (c *tenantResume) Run(ctx context.Context, p *program) error {
	return c.change(ctx, p, "resumed", func(n *node.Node) error {
		_, err := n.Directory.ResumeTenant(ctx, access.Command, c.Name, c.Reason)
		return err
	})
}

type tenantDelete struct {
	tenantName
	Yes bool `help:"Delete the tenant without confirmation."`
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

type tenantRestore struct {
	tenantName
	reason
}

// Run restores the tenant.
func (c *tenantRestore) Run(ctx context.Context, p *program) error {
	return c.change(ctx, p, "restored", func(n *node.Node) error {
		_, err := n.Directory.RestoreTenant(ctx, access.Command, c.Name, c.Reason)
		return err
	})
}

type tenantAddOwner struct {
	tenantName
	Email         string `required:"" placeholder:"EMAIL" help:"Email address of the user."`
	NewName       string `name:"name" placeholder:"TEXT" help:"Full name of a new user. With it, the command creates the user."`
	PasswordStdin bool   `help:"Read the password of the new user from standard input. Default: generate a password and print it"`
}

// Run makes the user an owner. With --name, it creates the user.
func (c *tenantAddOwner) Run(ctx context.Context, p *program) error {
	if c.NewName != "" {
		return c.create(ctx, p)
	}
	if c.PasswordStdin {
		return errors.New("--password-stdin needs --name, because only a new user gets a password")
	}
	return p.operate(ctx, func(n *node.Node) error {
		if err := n.Directory.AddOwner(ctx, c.Name, c.Email); err != nil {
			return err
		}
		return p.print(done{"owner added"}, fmt.Sprintf("%s is now an owner of tenant %s.", c.Email, c.Name))
	})
}

// create creates the user as an owner.
func (c *tenantAddOwner) create(ctx context.Context, p *program) error {
	password, generated, err := p.password(c.PasswordStdin)
	if err != nil {
		return err
	}
	return p.operate(ctx, func(n *node.Node) error {
		user, err := n.Directory.CreateOwner(ctx, c.Name, rolecall.UserDraft{Email: c.Email, Name: c.NewName}, password)
		if err != nil {
			return err
		}
		result := struct {
			Done     string          `json:"done"`
			UserID   rolecall.UserID `json:"userId"`
			Password string          `json:"password,omitempty"`
		}{"owner created", user.ID, generated}
		lines := []string{fmt.Sprintf("Created %s as an owner of tenant %s.", user.Email, c.Name)}
		return p.print(result, append(lines, shownOnce(generated)...)...)
	})
}

type userCommands struct {
	SetPassword  userSetPassword  `cmd:"" help:"Set a user's password, end their sessions and revoke their API tokens."`
	SetEmail     userSetEmail     `cmd:"" help:"Set a user's email address and end their sessions."`
	ResetFactors userResetFactors `cmd:"" help:"Remove all second factors of a user who has lost them, and end their sessions."`
}

// userName has the flags that identify a user.
type userName struct {
	Tenant string `required:"" placeholder:"NAME" help:"Name of the tenant."`
	Email  string `required:"" placeholder:"EMAIL" help:"Current email address of the user."`
}

type userSetPassword struct {
	userName
	PasswordStdin bool `help:"Read the password from standard input. Default: generate a password and print it"`
}

// Run sets the password.
func (c *userSetPassword) Run(ctx context.Context, p *program) error {
	password, generated, err := p.password(c.PasswordStdin)
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
		}{"password set", generated}
		lines := []string{fmt.Sprintf("Set the password of %s, ended their sessions and revoked their API tokens.", c.Email)}
		return p.print(result, append(lines, shownOnce(generated)...)...)
	})
}

type userSetEmail struct {
	userName
	NewEmail string `required:"" placeholder:"EMAIL" help:"New email address."`
}

// Run changes the email address of the user.
func (c *userSetEmail) Run(ctx context.Context, p *program) error {
	return p.operate(ctx, func(n *node.Node) error {
		if err := n.SignIn.SetEmail(ctx, c.Tenant, c.Email, c.NewEmail); err != nil {
			return err
		}
		return p.print(done{"address changed"}, fmt.Sprintf("Changed the email address from %s to %s.", c.Email, c.NewEmail))
	})
}

type userResetFactors struct{ userName }

// Run removes the second factors of the user.
func (c *userResetFactors) Run(ctx context.Context, p *program) error {
	return p.operate(ctx, func(n *node.Node) error {
		if err := n.SignIn.ResetFactorsOf(ctx, c.Tenant, c.Email); err != nil {
			return err
		}
		return p.print(done{"second factors reset"}, fmt.Sprintf("%s has no second factors now.", c.Email))
	})
}

type openAPICommand struct{}

// Run prints the OpenAPI document of this version, as YAML or JSON.
func (c *openAPICommand) Run(p *program) error {
	document, err := httpapi.YAML()
	if p.JSON {
		document, err = json.MarshalIndent(httpapi.Document(), "", "  ")
		document = append(document, '\n')
	}
	if err != nil {
		return fmt.Errorf("create the OpenAPI document: %w", err)
	}
	_, err = p.stdout.Write(document)
	return err
}

// longestInput is the maximum number of bytes that a command reads from standard input for a
// password or a confirmation.
const longestInput = 8 << 10

// password returns the password that a command sets. If stdin is true, password reads it from
// standard input and removes one trailing newline. Otherwise, password generates it and also
// returns it as generated, so that the command can print it.
func (p *program) password(stdin bool) (password, generated string, err error) {
	if !stdin {
		generated = secret.RandomPassword()
		return generated, generated, nil
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

// errNotConfirmed is the error of a command if the user does not type the requested word, or
// interrupts the command.
var errNotConfirmed = errors.New("not confirmed: nothing was changed")

// confirm prints the warning and waits until the user types a line. It returns nil if the line is
// the word. It returns an error if standard input is not a terminal.
func (p *program) confirm(ctx context.Context, warning, word string) error {
	if file, ok := p.stdin.(*os.File); !ok || !term.IsTerminal(int(file.Fd())) {
		return errors.New("this command needs confirmation, but standard input is not a terminal: run it again with --yes")
	}
	fmt.Fprintf(p.stderr, "%s\nType %s to continue: ", warning, word)
	typed := make(chan string, 1)
	go func() { // in a goroutine, because reading from the terminal cannot be interrupted
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

// shownOnce returns the output line with a generated password, or nothing if no password was
// generated. The password cannot be shown again, because only its hash is stored.
func shownOnce(generated string) []string {
	if generated == "" {
		return nil
	}
	return []string{"Password (shown only once): " + generated}
}
