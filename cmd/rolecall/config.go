package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/rolecall/rolecall/internal/ratelimit"
)

// Where everything lives if nothing else is said. The demo's data never mix with
// real ones.
var (
	defaultDatabase = filepath.Join("rolecall-data", "rolecall.db")
	demoDatabase    = filepath.Join("rolecall-data", "demo.db")
	demoMailbox     = filepath.Join("rolecall-data", "demo-mail")
)

// commandLine is everything that can be configured. Each flag can also be set by
// its environment variable.
type commandLine struct {
	globals

	Serve       serveCommand        `cmd:"" help:"Serve the HTTP interface."`
	Migrate     migrateCommand      `cmd:"" help:"Bring the schema of the database up to date."`
	Tenant      tenantCommands      `cmd:"" help:"Make, list, suspend, resume, delete and restore tenants."`
	User        userCommands        `cmd:"" help:"Repair a user from outside: password and address."`
	OperatorKey operatorKeyCommands `cmd:"" help:"Make, list and revoke keys for programs that act as operators."`
	BreachList  breachedCommands    `cmd:"" name:"breached-passwords" help:"Build the file for --breached-passwords."`
	Seed        seedCommand         `cmd:"" help:"Fill new tenants with made-up people, to test under load."`
	OpenAPI     openAPICommand      `cmd:"" name:"openapi" help:"Print the OpenAPI document of the HTTP interface."`
	Version     versionCommand      `cmd:"" help:"Print the version of this program."`
}

// globals are the flags of every command.
type globals struct {
	Database       string `placeholder:"FILE|URL" help:"SQLite file, or postgres:// URL. Default: ./rolecall-data/rolecall.db"`
	DirectDatabase string `placeholder:"URL" help:"PostgreSQL URL past a pooler, for migrations and to listen on. Default: --database"`
	SecretKeyFile  string `placeholder:"FILE" help:"File with the instance's keys in base64, one a line, the current one first. Every command needs the same file. Default: the key in the database"`
	Breached       string `name:"breached-passwords" placeholder:"FILE" help:"Refuse new passwords whose SHA-1 is in this sorted file of HASH:COUNT lines, as rolecall breached-passwords build writes it. Default: none"`
	Forbidden      string `name:"forbidden-words" placeholder:"FILE" help:"Words, one a line, whose characters do not count in a new password, such as the names of your products. Default: none"`
	AllowSuperuser bool   `help:"Accept a PostgreSQL role that row-level security does not hold."`
	JSON           bool   `name:"json" help:"Print results and errors as JSON."`
}

// serveCommand configures the serving process.
type serveCommand struct {
	Listen         string        `default:"127.0.0.1:8080" placeholder:"ADDRESS" help:"Address to serve HTTP on, or fd:3 for a listening socket that is passed as descriptor 3. Default: ${default}"`
	PublicURL      string        `name:"public-url" placeholder:"URL" help:"URL under which clients reach the service; its path is the base of every route."`
	HSTSSubdomains bool          `name:"hsts-include-subdomains" help:"Send Strict-Transport-Security with includeSubDomains: browsers then refuse plain http on every host under the public one."`
	TLSCert        string        `name:"tls-cert" placeholder:"FILE" help:"Serve HTTPS with this certificate chain in PEM; read again when it changes."`
	TLSKey         string        `name:"tls-key" placeholder:"FILE" help:"Private key of --tls-cert in PEM; read again when it changes."`
	TrustedProxies []string      `placeholder:"CIDR" help:"Networks of proxies whose X-Forwarded-For and X-Request-Id are believed. Default: none"`
	AllowOrigin    []string      `placeholder:"ORIGIN" help:"Web origin whose pages may call from a browser, such as https://app.example.com; may be given several times. Default: none but the public one"`
	CookieDomain   string        `placeholder:"DOMAIN" help:"Parent domain of the public host, all hosts of which get the session cookie. Weaker. Default: the public host alone"`
	HostPrefix     bool          `name:"host-cookie-prefix" help:"Name the session cookie __Host-session, which no other host can set. Needs an https --public-url; not with --cookie-domain. Everybody signs in again once."`
	PasskeyDomain  string        `placeholder:"DOMAIN" help:"Domain that passkeys are bound to: the host of --public-url or of an --allow-origin, or a parent domain. It can never change without losing them. Default: the public host"`
	SMTP           string        `name:"smtp" placeholder:"URL" help:"Mail server, smtp://user:password@host:port, which is spoken to encrypted as soon as it offers that, or smtps:// for TLS from the start. Default: mail waits in the database"`
	MailFrom       string        `placeholder:"ADDRESS" help:"Address that mail is sent from; needed with --smtp."`
	MailTemplates  string        `placeholder:"FOLDER" help:"Templates that take the place of the program's, file by file. Default: the program's"`
	Mailbox        string        `placeholder:"FOLDER" help:"Keep mail in this folder, and print it, instead of sending it: to develop with."`
	MetricsListen  string        `placeholder:"ADDRESS" help:"Address to serve Prometheus metrics on. Default: none"`
	OperatorListen string        `placeholder:"ADDRESS" help:"Address to serve operators on, and nowhere else: /operator and the keys of operators. Default: they are served on --listen"`
	SecurityURI    string        `name:"security-contact" placeholder:"URI" help:"Where weaknesses of this service are reported, such as mailto:security@example.com; served as /.well-known/security.txt. Default: none"`
	NoMigrate      bool          `help:"Leave the schema as it is, instead of bringing it up to date first."`
	Demo           bool          `help:"Serve a made-up tenant to try things with, on a loopback address only."`
	Drain          time.Duration `default:"0s" placeholder:"DURATION" help:"How long to serve on after a signal, while /readyz answers 503. Default: ${default}"`
	Attempts       attemptFlags  `embed:"" prefix:"attempts-per-"`
	Resets         resetFlags    `embed:"" prefix:"resets-per-"`
	MailLimit      mailLimit     `default:"1000" placeholder:"N" help:"Invitations, password links and address changes that one tenant sends to other people in an hour. Default: ${default}"`
	LogFormat      string        `default:"json" enum:"json,text" placeholder:"FORMAT" help:"Format of the log on standard error: json or text. Default: ${default}"`
}

// attemptFlags bound failed sign-ins.
type attemptFlags struct {
	AccountAndSource int `default:"10" placeholder:"N" help:"Failed sign-ins of one account from one address in 15 minutes. Default: ${default}"`
	Account          int `default:"100" placeholder:"N" help:"Failed sign-ins of one account from anywhere in an hour. Default: ${default}"`
	Source           int `default:"100" placeholder:"N" help:"Failed sign-ins from one address over all accounts in 10 minutes. Default: ${default}"`
}

// Validate refuses a limit that allows no sign-in, or that looks like no limit.
func (f *attemptFlags) Validate() error {
	if f.AccountAndSource < 1 || f.Account < 1 || f.Source < 1 {
		return fmt.Errorf("--attempts-per-…: each limit is at least 1")
	}
	return nil
}

// resetFlags limit the requests for password resets.
type resetFlags struct {
	Account int `default:"3" placeholder:"N" help:"New passwords that are mailed to one account in an hour. Default: ${default}"`
	Source  int `default:"30" placeholder:"N" help:"Requests for new passwords from one address in 10 minutes. Default: ${default}"`
}

// Validate refuses a limit that allows no password reset.
func (f *resetFlags) Validate() error {
	if f.Account < 1 || f.Source < 1 {
		return fmt.Errorf("--resets-per-…: each limit is at least 1")
	}
	return nil
}

// mailLimit bounds the links that a tenant sends to other people.
type mailLimit int

// Validate refuses a limit that allows no invitation.
func (l mailLimit) Validate() error {
	if l < 1 {
		return fmt.Errorf("--mail-limit is at least 1")
	}
	return nil
}

// limits returns the flags as the service takes them.
func (c *serveCommand) limits() ratelimit.Limits {
	return ratelimit.Limits{
		AccountAndSource: c.Attempts.AccountAndSource, Account: c.Attempts.Account, Source: c.Attempts.Source,
		AccountResets: c.Resets.Account, SourceResets: c.Resets.Source, TenantMails: int(c.MailLimit),
	}
}

// isPostgres reports whether a database is a URL of PostgreSQL; everything else
// is the path of a SQLite file.
func isPostgres(database string) bool {
	return strings.HasPrefix(database, "postgres://") || strings.HasPrefix(database, "postgresql://")
}

// isKeywords reports whether a database is named by keywords of libpq, which would
// otherwise be a strange file.
func isKeywords(database string) bool {
	return strings.Contains(database, "dbname=") || strings.HasPrefix(database, "host=") || strings.HasPrefix(database, "service=")
}
