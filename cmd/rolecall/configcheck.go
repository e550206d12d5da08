package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

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
