package main

import (
	"errors"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/rolecall/rolecall/internal/ratelimit"
)

// The default files. The demo has its own files, so its data never mixes with real data.
var (
	defaultDatabase = filepath.Join("rolecall-data", "rolecall.db")
	demoDatabase    = filepath.Join("rolecall-data", "demo.db")
	demoMailbox     = filepath.Join("rolecall-data", "demo-mail")
)

// commandLine has all commands and flags. Only flags with a group tag can also be set by environment
// variables and by the file of --config. The tag secret marks flags whose value can contain a password.
type commandLine struct {
	globals `group:"Global flags:"`

	Serve       serveCommand        `cmd:"" help:"Start the server: the HTTP API and the console."`
	Migrate     migrateCommand      `cmd:"" help:"Create or update the database schema."`
	Tenant      tenantCommands      `cmd:"" help:"Create, list, suspend, resume, delete and restore tenants, and add owners."`
	User        userCommands        `cmd:"" help:"Set a user's password or email address, for users who cannot sign in."`
	Events      eventCommands       `cmd:"" help:"Verify the audit log of a tenant, or that of the operators."`
	OperatorKey operatorKeyCommands `cmd:"" help:"Create, list and revoke keys for programs that manage tenants."`
	Health      healthCommand       `cmd:"" help:"Check whether the node on this machine is ready. Exit code 1: it is not. For containers without a shell."`
	Config      configCommands      `cmd:"" help:"Check the settings of serve."`
	Mail        mailCommands        `cmd:"" help:"Preview the mail that users receive."`
	BreachList  breachedCommands    `cmd:"" name:"breached-passwords" help:"Build the file for --breached-passwords."`
	Seed        seedCommand         `cmd:"" help:"Create tenants with sample users, for load tests."`
	OpenAPI     openAPICommand      `cmd:"" name:"openapi" help:"Print the OpenAPI document of the HTTP API, as YAML or with --json as JSON."`
	Version     versionCommand      `cmd:"" help:"Print the version of Rolecall, of Go, and the commit."`
}

// globals are the flags of every command.
type globals struct {
	Config         string `placeholder:"FILE" help:"YAML file with settings, by the names of flags without --, such as public-url: https://id.example.com. Flags and environment variables have precedence. Default: none"`
	Database       string `secret:"" placeholder:"FILE|URL" help:"SQLite file or postgres:// URL, such as postgres://rolecall@db.example.com/rolecall. Default: rolecall-data/rolecall.db"`
	DirectDatabase string `secret:"" placeholder:"URL" help:"PostgreSQL URL that bypasses a connection pooler, for migrations and notifications. Default: --database"`
	SecretKeyFile  string `placeholder:"FILE" help:"File with the instance keys in base64, one per line, the current one first. Give every node and every command the same keys. Default: the key in the database"`
	Breached       string `name:"breached-passwords" placeholder:"FILE" help:"Reject new passwords that are in this file, which rolecall breached-passwords build writes. Default: none"`
	Forbidden      string `name:"forbidden-words" placeholder:"FILE" help:"File of words, one per line, that do not count toward the length of a new password, such as your product names. Default: none"`
	AllowSuperuser bool   `help:"Accept a PostgreSQL role that bypasses row-level security. Less secure: only Rolecall itself then isolates tenants."`
	JSON           bool   `name:"json" help:"Print results and errors as JSON."`

	configWarnings []string // about the file of --config

	Version kong.VersionFlag `help:"Print the version, as rolecall version does."`
}

// serveCommand has the flags of rolecall serve.
type serveCommand struct {
	Listen           string        `group:"Addresses and TLS:" default:"127.0.0.1:8080" placeholder:"ADDRESS" help:"Address to listen on, such as :8080, or fd:3 for a socket passed as file descriptor 3. Default: ${default}"`
	PublicURL        string        `group:"Addresses and TLS:" name:"public-url" placeholder:"URL" help:"URL that clients use, such as https://id.example.com. A path in it is the base path of all routes. Default: none"`
	HSTSSubdomains   bool          `group:"Addresses and TLS:" name:"hsts-include-subdomains" help:"Add includeSubDomains to Strict-Transport-Security. Browsers then refuse plain http for every subdomain of the public host."`
	TLSCert          string        `group:"Addresses and TLS:" name:"tls-cert" placeholder:"FILE" help:"Serve HTTPS with this PEM certificate chain. A changed file is reloaded. Default: plain http"`
	TLSKey           string        `group:"Addresses and TLS:" name:"tls-key" placeholder:"FILE" help:"PEM private key of --tls-cert. A changed file is reloaded."`
	TrustedProxies   []string      `group:"Addresses and TLS:" placeholder:"CIDR" help:"Proxies whose X-Forwarded-For and X-Request-Id are accepted, such as 10.0.0.0/8,192.0.2.1. Default: none"`
	OperatorListen   string        `group:"Addresses and TLS:" placeholder:"ADDRESS" help:"Accept operator keys and serve /operator on this address only, such as 10.0.0.5:8085. Default: --listen"`
	MetricsListen    string        `group:"Addresses and TLS:" placeholder:"ADDRESS" help:"Serve Prometheus metrics on this address, such as 127.0.0.1:9090. Default: no metrics"`
	OperatorNetworks []string      `group:"Addresses and TLS:" name:"operator-webhook-networks" placeholder:"CIDR" help:"Private networks that the webhooks of /operator/webhooks may reach, such as 10.1.2.0/24. Less secure. Default: only the internet"`
	AllowOrigin      []string      `group:"Browsers:" placeholder:"ORIGIN" help:"Web origin whose pages may call the API, such as https://app.example.com. Repeatable. Default: only the origin of --public-url"`
	CookieDomain     string        `group:"Browsers:" placeholder:"DOMAIN" help:"Send the session cookie to all hosts under this parent domain of the public host. Less secure. Default: only the public host"`
	HostPrefix       bool          `group:"Browsers:" name:"host-cookie-prefix" help:"Name the session cookie __Host-session, so that no other host can set it. Requires an https --public-url and excludes --cookie-domain. All users must sign in again."`
	PasskeyDomain    string        `group:"Browsers:" placeholder:"DOMAIN" help:"Domain of passkeys: the host of --public-url or of an --allow-origin, or a parent domain of one. If you change it, all passkeys stop working. Default: the public host"`
	OIDCNetworks     []string      `group:"Browsers:" name:"oidc-networks" placeholder:"CIDR" help:"Private networks in which identity providers of tenants may be, such as 10.1.2.0/24. Less secure. Default: only the internet"`
	ReturnURLs       []string      `group:"Browsers:" name:"oidc-return-urls" placeholder:"URL" help:"Addresses of your pages or apps to which a sign-in with an identity provider may return, such as https://{tenant}.example.com/signed-in,com.example.app:/signed-in. Default: none"`
	SecurityURI      string        `group:"Browsers:" name:"security-contact" placeholder:"URI" help:"Contact for security reports, such as mailto:security@example.com, published in /.well-known/security.txt. Default: none"`
	SMTP             string        `group:"Mail:" name:"smtp" secret:"" placeholder:"URL" help:"Mail server: smtps://user:password@host:port for TLS, or smtp://… for STARTTLS. Default: none, and mail waits in the database"`
	SMTPHello        string        `group:"Mail:" name:"smtp-hello" placeholder:"DOMAIN" help:"Name with which Rolecall introduces itself to the mail server (EHLO), such as mail.example.com. Default: the host of --public-url"`
	MailFrom         string        `group:"Mail:" placeholder:"ADDRESS" help:"Sender address, such as rolecall@example.com. Required with --smtp."`
	MailWebhook      string        `group:"Mail:" placeholder:"URL" help:"Pass each mail to your application at this https URL, signed, instead of sending it. It excludes --smtp. Default: none"`
	MailWebhookKey   string        `group:"Mail:" name:"mail-webhook-key-file" placeholder:"FILE" help:"File with the secret that signs these requests: whsec_ and base64. Required with --mail-webhook."`
	MailNetworks     []string      `group:"Mail:" name:"mail-webhook-networks" placeholder:"CIDR" help:"Private networks that --mail-webhook may reach, such as 10.1.2.0/24. Less secure. Default: only the internet"`
	MailTemplates    string        `group:"Mail:" placeholder:"FOLDER" help:"Folder with your own mail templates, each replacing the built-in one of the same name. Preview them with rolecall mail preview. Default: built-in templates"`
	Mailbox          string        `group:"Mail:" placeholder:"FOLDER" help:"For development: write mail to this folder and print it, instead of sending it."`
	InvitationURL    string        `group:"Mail:" name:"invitation-url" placeholder:"URL" help:"Your own page for invitations, such as https://{tenant}.example.com/welcome#{token}. The token must be after the #. Default: the page of the console"`
	PasswordResetURL string        `group:"Mail:" name:"password-reset-url" placeholder:"URL" help:"Your own page for new passwords, in the same form. Default: the page of the console"`
	EmailChangeURL   string        `group:"Mail:" name:"email-change-url" placeholder:"URL" help:"Your own page that confirms a new email address, in the same form. Default: the page of the console"`
	MailLimit        limit         `group:"Mail:" default:"1000" placeholder:"N" help:"Invitations, password links and address changes that one tenant can mail to other people per hour. Default: ${default}"`
	Attempts         attemptFlags  `embed:"" group:"Limits:" prefix:"attempts-per-"`
	Resets           resetFlags    `embed:"" group:"Limits:" prefix:"resets-per-"`
	KeepEvents       keepEvents    `group:"Limits:" name:"events-kept-at-least" default:"90d" placeholder:"DURATION" help:"Minimum of the setting eventsKeptSeconds of all tenants, such as 400d. Tenants with a lower value keep it until it is changed. Give every node the same value. Default: ${default}"`
	NameMinimum      int           `group:"Limits:" name:"name-minimum" enum:"1,2,3" default:"3" placeholder:"N" help:"Setting nameMinimum of new tenants: the minimum length of the names of users, departments, roles and service accounts, from 1 to 3. Default: ${default}"`
	NoMigrate        bool          `group:"Operation:" help:"Do not update the schema at the start. Fail if it is too old."`
	Drain            drainDuration `group:"Operation:" default:"0s" placeholder:"DURATION" help:"How long to keep serving after SIGTERM while /readyz answers 503, such as 10s. Default: ${default}"`
	LogFormat        string        `group:"Operation:" default:"json" enum:"json,text" placeholder:"FORMAT" help:"Format of the log on standard error: json or text. Default: ${default}"`
	Demo             bool          `group:"Operation:" help:"Serve a tenant with sample data, on a loopback address only."`
}

// attemptFlags limit failed sign-ins.
type attemptFlags struct {
	AccountAndSource limit `default:"10" placeholder:"N" help:"Failed sign-ins to one account from one client address per 15 minutes. Default: ${default}"`
	Account          limit `default:"100" placeholder:"N" help:"Failed sign-ins to one account from all addresses per hour. Default: ${default}"`
	Source           limit `default:"100" placeholder:"N" help:"Failed sign-ins from one client address to all accounts per 10 minutes. Default: ${default}"`
}

// resetFlags limit the requests for password resets.
type resetFlags struct {
	Account limit `default:"3" placeholder:"N" help:"Password reset mails to one account per hour. Default: ${default}"`
	Source  limit `default:"30" placeholder:"N" help:"Requests for password resets from one client address per 10 minutes. Default: ${default}"`
}

// limit is a number that must be at least 1. Zero would block all sign-ins, password resets or invitations,
// and could be mistaken for unlimited.
type limit int

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *limit) UnmarshalText(text []byte) error {
	n, err := strconv.Atoi(string(text))
	if err != nil || n < 1 {
		return errors.New("must be a number, at least 1")
	}
	*l = limit(n)
	return nil
}

// drainDuration is how long a node serves after a signal.
type drainDuration time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *drainDuration) UnmarshalText(text []byte) error {
	read, err := time.ParseDuration(string(text))
	if err != nil || read < 0 {
		return errors.New("must be a duration such as 5s or 1m")
	}
	*d = drainDuration(read)
	return nil
}

// keepEvents is how long events of every tenant are kept at least. Zero means that it is not set.
type keepEvents days

// UnmarshalText implements encoding.TextUnmarshaler.
func (k *keepEvents) UnmarshalText(text []byte) error {
	if err := (*days)(k).UnmarshalText(text); err != nil {
		return err
	}
	if time.Duration(*k) < 24*time.Hour || time.Duration(*k) > 3660*24*time.Hour { // the bounds of the setting
		return errors.New("must be from 1d to 3660d")
	}
	return nil
}

func (c *serveCommand) limits() ratelimit.Limits {
	return ratelimit.Limits{
		AccountAndSource: int(c.Attempts.AccountAndSource), Account: int(c.Attempts.Account), Source: int(c.Attempts.Source),
		AccountResets: int(c.Resets.Account), SourceResets: int(c.Resets.Source), TenantMails: int(c.MailLimit),
	}
}

// databaseName returns the absolute path of the SQLite file, or the PostgreSQL URL without the
// user, the password and the parameters.
func (g *globals) databaseName() string {
	if isPostgres(g.Database) {
		u, err := url.Parse(g.Database)
		if err != nil {
			return "PostgreSQL"
		}
		return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	}
	if path, err := filepath.Abs(g.sqliteFile()); err == nil {
		return path
	}
	return g.sqliteFile()
}

// databaseSystem returns the name of the kind of database in spans.
func (g *globals) databaseSystem() string {
	if isPostgres(g.Database) {
		return "postgresql"
	}
	return "sqlite"
}

// sqliteFile returns the path of the SQLite file.
func (g *globals) sqliteFile() string {
	if g.Database == "" {
		return defaultDatabase
	}
	return g.Database
}

// isPostgres reports whether the database setting is a PostgreSQL URL.
func isPostgres(database string) bool {
	return strings.HasPrefix(database, "postgres://") || strings.HasPrefix(database, "postgresql://")
}

// isKeywords reports whether the database setting is a libpq keyword string, such as "host=db
// dbname=x". Without this check, the program would create a SQLite file with that name.
func isKeywords(database string) bool {
	return strings.Contains(database, "dbname=") || strings.HasPrefix(database, "host=") || strings.HasPrefix(database, "service=")
}
