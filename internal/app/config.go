package app

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"strings"
	"time"
)

// Where everything lives if nothing else is said. The demo's data never mix with
// real ones.
var (
	defaultDatabase = filepath.Join("rolecall-data", "rolecall.db")
	demoDatabase    = filepath.Join("rolecall-data", "demo.db")
)

// commandLine is everything that can be configured. Each flag can also be set by
// its environment variable.
type commandLine struct {
	globals

	Serve   serveCommand   `cmd:"" help:"Serve the HTTP interface."`
	Migrate migrateCommand `cmd:"" help:"Bring the schema of the database up to date."`
	Tenant  tenantCommands `cmd:"" help:"Make, list, suspend, resume and delete tenants."`
	User    userCommands   `cmd:"" help:"Repair a user from outside: password and address."`
	OpenAPI openAPICommand `cmd:"" name:"openapi" help:"Print the OpenAPI document of the HTTP interface."`
	Version versionCommand `cmd:"" help:"Print the version of this program."`
}

// globals are the flags of every command.
type globals struct {
	Database       string `placeholder:"FILE|URL" help:"SQLite file, or postgres:// URL. Default: ./rolecall-data/rolecall.db"`
	DirectDatabase string `placeholder:"URL" help:"PostgreSQL URL for migrations where a pooler stands between. Default: --database"`
	AllowSuperuser bool   `help:"Accept a PostgreSQL role that row-level security does not hold."`
	JSON           bool   `name:"json" help:"Print results and errors as JSON."`
}

// serveCommand configures the serving process.
type serveCommand struct {
	Listen        string        `default:"127.0.0.1:8080" placeholder:"ADDRESS" help:"Address to serve HTTP on. Default: ${default}"`
	PublicURL     string        `name:"public-url" placeholder:"URL" help:"URL under which clients reach the service; its path is the base of every route."`
	MetricsListen string        `placeholder:"ADDRESS" help:"Address to serve Prometheus metrics on. Default: none"`
	SecretKeyFile string        `placeholder:"FILE" help:"File with the instance's keys in base64, one a line, the current one first. Default: the keys in the database"`
	NoMigrate     bool          `help:"Leave the schema as it is, instead of bringing it up to date first."`
	Demo          bool          `help:"Serve a made-up tenant to try things with, on a loopback address only."`
	Drain         time.Duration `default:"0s" placeholder:"DURATION" help:"How long to serve on after a signal, while /readyz answers 503. Default: ${default}"`
	Attempts      attemptFlags  `embed:"" prefix:"attempts-per-"`
	LogFormat     string        `default:"json" enum:"json,text" placeholder:"FORMAT" help:"Format of the log on standard error: json or text. Default: ${default}"`
}

// attemptFlags bound failed sign-ins.
type attemptFlags struct {
	AccountAndSource int `default:"10" placeholder:"N" help:"Failed sign-ins of one account from one address in 15 minutes. Default: ${default}"`
	Account          int `default:"100" placeholder:"N" help:"Failed sign-ins of one account from anywhere in an hour. Default: ${default}"`
	Source           int `default:"100" placeholder:"N" help:"Failed sign-ins from one address over all accounts in 10 minutes. Default: ${default}"`
}

// Validate refuses a limit that would let nobody in, or that reads as none.
func (f *attemptFlags) Validate() error {
	if f.AccountAndSource < 1 || f.Account < 1 || f.Source < 1 {
		return fmt.Errorf("--attempts-per-…: each limit is at least 1")
	}
	return nil
}

// settings are what the flags of serve mean.
type settings struct {
	serveCommand
	publicURL      *url.URL // nil: none
	insecureCookie bool
	warnings       []string // what is weaker than it could be
}

// settings returns what the flags mean, or what is wrong with them.
func (c *serveCommand) settings(g *globals) (settings, error) {
	s := settings{serveCommand: *c}
	if c.Demo {
		if !isLoopback(c.Listen) {
			return s, fmt.Errorf("--demo listens on a loopback address only, such as 127.0.0.1:8080")
		}
		s.insecureCookie = true
		s.warnings = append(s.warnings, "demo: the session cookie is not marked Secure")
	}
	if c.PublicURL != "" {
		if err := s.readPublicURL(); err != nil {
			return s, err
		}
	}
	if g.AllowSuperuser && isPostgres(g.Database) {
		s.warnings = append(s.warnings, "--allow-superuser: row-level security may not hold this role, so the isolation of tenants rests on this program alone")
	}
	return s, nil
}

func (s *settings) readPublicURL() error {
	u, err := url.Parse(s.PublicURL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("--public-url must be an http or https URL with a host and perhaps a path, such as https://id.example.com/rolecall")
	}
	s.publicURL = u
	switch loopback := isLoopback(net.JoinHostPort(u.Hostname(), "0")); {
	case u.Scheme == "https" || s.Demo:
	case loopback:
		s.insecureCookie = true
		s.warnings = append(s.warnings, "--public-url is plain http: the session cookie is not marked Secure")
	default:
		s.warnings = append(s.warnings, "--public-url is plain http: browsers will not send the session cookie, which is marked Secure")
	}
	return nil
}

// isLoopback reports whether only this machine can reach the address, a host and
// a port.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// isPostgres reports whether a database is a URL of PostgreSQL; everything else
// is the path of a SQLite file.
func isPostgres(database string) bool {
	return strings.HasPrefix(database, "postgres://") || strings.HasPrefix(database, "postgresql://")
}
