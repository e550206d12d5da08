package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/tracing"
)

// errBadConfiguration is returned by rolecall config check, which has already printed the errors.
var errBadConfiguration = errors.New("the configuration is invalid")

type configCommands struct {
	Check configCheckCommand `cmd:"" help:"Check the settings of serve, the files that they name and the database, without serving or changing anything."`
}

// configCheckCommand has the flags of serve.
type configCheckCommand struct{ serveCommand }

// configReport is the result of config check.
type configReport struct {
	Valid    bool     `json:"valid"`
	Errors   []string `json:"errors"`
	Warnings []string `json:"warnings"`
}

func (r *configReport) add(err error) {
	if err != nil {
		r.Errors = append(r.Errors, explain(err))
	}
}

// Run prints the errors that would prevent rolecall serve from starting with these settings, and the
// warnings that it would log. It does not check whether the addresses are in use, so that it can run
// next to a server.
func (c *configCheckCommand) Run(ctx context.Context, p *program) error {
	report := configReport{Errors: []string{}, Warnings: []string{}}
	if c.Demo && p.Database == "" {
		p.Database = demoDatabase
	}
	s, err := c.settings(&p.globals)
	report.add(err)
	report.Warnings = append(report.Warnings, s.warnings...)
	if err == nil {
		c.checkFiles(&s, &report)
	}
	report.add(checkAddress("--listen", c.Listen))
	report.add(checkAddress("--metrics-listen", c.MetricsListen))
	report.add(checkAddress("--operator-listen", c.OperatorListen))
	var options access.Options
	if closeFiles, err := p.readPasswordRules(&options); err != nil {
		report.add(err)
	} else {
		report.add(closeFiles())
	}
	_, err = tracing.IsEnabled(p.getenv)
	report.add(err)
	c.checkDatabase(ctx, p, &report)
	return p.printReport(report)
}

func (p *program) printReport(report configReport) error {
	report.Valid = len(report.Errors) == 0
	var lines []string
	for _, text := range report.Errors {
		lines = append(lines, "error: "+text)
	}
	for _, text := range report.Warnings {
		lines = append(lines, "warning: "+text)
	}
	if !report.Valid {
		return errors.Join(p.print(report, append(lines, "The configuration is invalid.")...), errBadConfiguration)
	}
	return p.print(report, append(lines, "The configuration is valid.")...)
}

// checkFiles reads the files of the settings, except those of the flags of every command.
func (c *configCheckCommand) checkFiles(s *settings, report *configReport) {
	if c.TLSCert != "" {
		_, err := loadCertificate(c.TLSCert, c.TLSKey, slog.New(slog.DiscardHandler))
		report.add(err)
	}
	if c.MailWebhook != "" {
		_, err := s.mailWebhook(nil)
		report.add(err)
	}
	if s.Mailbox != "" {
		report.add(checkFolder("--mailbox", s.Mailbox))
	}
	if c.MailWebhook == "" && c.SMTP == "" && s.Mailbox == "" {
		report.Warnings = append(report.Warnings, noMailer)
	}
}

// checkFolder returns an error if serve can neither use nor create the folder: the folder, or the nearest
// parent that exists, is a file or is read-only.
func checkFolder(flag, folder string) error {
	path, err := filepath.Abs(folder)
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	info, err := os.Stat(path)
	for errors.Is(err, fs.ErrNotExist) && path != filepath.Dir(path) {
		path = filepath.Dir(path)
		info, err = os.Stat(path)
	}
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", flag, err)
	case !info.IsDir():
		return fmt.Errorf("%s %s: %s is not a folder", flag, folder, path)
	case !canWrite(path):
		return fmt.Errorf("%s %s: no permission to write to %s", flag, folder, path)
	}
	return nil
}

// checkAddress returns an error if the program cannot listen on the address, because it is malformed or
// its host name is unknown.
func checkAddress(flag, address string) error {
	if number, isFile := strings.CutPrefix(address, "fd:"); isFile {
		if _, err := strconv.ParseUint(number, 10, 16); err != nil {
			return fmt.Errorf("%s %s: write the number of a file descriptor after fd:, such as fd:3", flag, address)
		}
		return nil
	}
	if address == "" {
		return nil
	}
	if _, err := net.ResolveTCPAddr("tcp", address); err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}

// checkDatabase checks the key file, the role and the schema of the database, and whether the keys belong
// to the database.
func (c *configCheckCommand) checkDatabase(ctx context.Context, p *program, report *configReport) {
	if p.SecretKeyFile != "" {
		if _, err := readKeyFile(p.SecretKeyFile); err != nil {
			report.add(err)
			return
		}
	}
	file := p.sqliteFile()
	if !c.NoMigrate && !isPostgres(p.Database) && checkFileName(file) == nil && !exists(file) {
		report.Warnings = append(report.Warnings, "the database "+p.databaseName()+" does not exist: serve creates it")
		return
	}
	db, err := p.open(ctx, nil)
	switch {
	case errors.Is(err, store.ErrOldSchema) && !c.NoMigrate:
		report.Warnings = append(report.Warnings, pendingMigrations(err)...)
		return
	case err != nil:
		report.add(err)
		return
	}
	report.Warnings = append(report.Warnings, db.warnings...)
	keys, err := p.readKeys(ctx, db)
	if err == nil {
		_, err = newFingerprints(ctx, db, keys)
	}
	report.add(errors.Join(err, db.close()))
}

// pendingMigrations returns the warnings for a schema that serve updates.
func pendingMigrations(err error) []string {
	warnings := []string{"the database has an older schema, or none: serve updates it, so back it up first"}
	if old, ok := errors.AsType[*store.OldSchemaError](err); ok {
		for i := range old.Pending {
			warnings = append(warnings, "migration "+old.Pending[i].Name+": "+afterMigration(&old.Pending[i]))
		}
	}
	return warnings
}

// healthLimit is how long the node may take to answer.
const healthLimit = 5 * time.Second

// served has the flags of serve that say at which addresses a node answers.
type served struct {
	Listen    string `group:"Addresses and TLS:" default:"127.0.0.1:8080" placeholder:"ADDRESS" help:"Address at which the node listens. Default: ${default}"`
	PublicURL string `group:"Addresses and TLS:" name:"public-url" placeholder:"URL" help:"URL that clients use. Default: the address of --listen"`
	TLSCert   string `group:"Addresses and TLS:" name:"tls-cert" placeholder:"FILE" help:"PEM certificate chain with which the node serves HTTPS. Default: plain http"`
}

// local returns the URL of the service for programs on this machine.
func (s *served) local() (string, error) {
	host, port, err := net.SplitHostPort(s.Listen)
	if err != nil || strings.HasPrefix(s.Listen, "fd:") {
		return "", fmt.Errorf("--listen %s is not an address on the network: set --url", s.Listen)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme, path := "http", ""
	if s.TLSCert != "" {
		scheme = "https"
	}
	if public, err := url.Parse(s.PublicURL); err == nil {
		path = strings.TrimSuffix(public.Path, "/")
	}
	return scheme + "://" + net.JoinHostPort(host, port) + path, nil
}

// console returns the address of the console of a tenant, or only its path if the address of the node is not
// known.
func (s *served) console(tenant string) string {
	base := strings.TrimSuffix(s.PublicURL, "/")
	if local, err := s.local(); base == "" && err == nil {
		base = local
	}
	return base + "/console/" + tenant
}

// healthCommand checks a node that runs.
type healthCommand struct {
	served
	URL string `name:"url" placeholder:"URL" help:"Address to check, such as http://127.0.0.1:8080/livez. Default: /readyz at the address of --listen"`
}

// Run sends the request. It returns an error if the answer is not 200.
func (c *healthCommand) Run(ctx context.Context, p *program) error {
	address := c.URL
	if address == "" {
		base, err := c.local()
		if err != nil {
			return err
		}
		address = base + "/readyz"
	}
	transport := &http.Transport{} // without the proxy of the environment, because the node is on this machine
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if c.URL == "" && c.TLSCert != "" {
		config, err := onlyWith(c.TLSCert)
		if err != nil {
			return err
		}
		transport.TLSClientConfig = config
	}
	ctx, cancel := context.WithTimeout(ctx, healthLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fmt.Errorf("--url: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("the node does not answer: %w", err)
	}
	_, err = io.Copy(io.Discard, response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", address, response.Status)
	}
	return p.print(done{"ready"}, address+" answered 200.")
}

// onlyWith returns a configuration that accepts only the certificate in the file. The address of this machine
// is usually not a name in it, so the certificates are compared.
func onlyWith(file string) (*tls.Config, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--tls-cert: %w", err)
	}
	block, _ := pem.Decode(content)
	if block == nil {
		return nil, fmt.Errorf("--tls-cert: %s has no certificate in PEM", file)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true, VerifyConnection: func(state tls.ConnectionState) error {
		if !bytes.Equal(state.PeerCertificates[0].Raw, block.Bytes) {
			return fmt.Errorf("the node has another certificate than %s", file)
		}
		return nil
	}}, nil
}
