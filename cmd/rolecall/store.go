package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/store/postgres"
	"github.com/rolecall/rolecall/internal/store/sqlite"
)

// queuedHashes is the maximum number of password hashes per core that wait to be computed. They
// take about a second.
const queuedHashes = 50

// openDatabase is a database and the function that closes it.
type openDatabase struct {
	store.Database
	close    func() error
	warnings []string // messages about settings of the server that are less safe than they could be
}

// open opens the database that the flags name. If migrated is not nil, it first creates or updates the
// schema, and passes the applied migrations to migrated.
func (g *globals) open(ctx context.Context, migrated func([]store.Migration)) (*openDatabase, error) {
	if !isPostgres(g.Database) {
		return g.openFile(ctx, migrated)
	}
	if migrated != nil {
		if err := postgres.MigrateAndReport(ctx, g.direct(), migrated); err != nil {
			return nil, err
		}
	}
	s, err := postgres.Open(ctx, g.Database, postgres.Options{AllowSuperuser: g.AllowSuperuser, Direct: g.DirectDatabase})
	if err != nil {
		return nil, err
	}
	return &openDatabase{s, func() error { s.Close(); return nil }, s.Warnings()}, nil
}

func (g *globals) openFile(ctx context.Context, migrated func([]store.Migration)) (*openDatabase, error) {
	file := g.sqliteFile()
	if err := checkFileName(file); err != nil {
		return nil, err
	}
	if migrated == nil && g.Database == "" && !exists(file) && exists(demoDatabase) {
		return nil, fmt.Errorf("the database %s does not exist: to use the demo's, add --database %s; to create a new one, run: rolecall migrate", file, demoDatabase)
	}
	s, err := sqlite.Open(ctx, file, sqlite.Options{Migrate: migrated != nil, Migrated: migrated})
	if err != nil {
		return nil, err
	}
	return &openDatabase{Database: s, close: s.Close}, nil
}

// logMigrations returns a function that logs the applied migrations. It logs no migrations of a new
// database.
func logMigrations(logger *slog.Logger) func([]store.Migration) {
	return func(applied []store.Migration) {
		if len(applied) > 0 && applied[0].Number == 1 {
			return
		}
		for i := range applied {
			m := &applied[i]
			logger.Info("migrated the schema: "+afterMigration(m), "migration", m.Name, "duration", m.Took.Round(time.Millisecond).String())
		}
	}
}

// afterMigration says whether older programs can serve the schema after the migration.
func afterMigration(m *store.Migration) string {
	if m.ServesOlder() {
		return fmt.Sprintf("older programs that know migration %d can still serve it", m.Oldest)
	}
	return "older programs cannot serve it"
}

// checkFileName returns an error if the name of a SQLite file is a URL or a libpq keyword string.
func checkFileName(file string) error {
	if strings.Contains(file, "://") || isKeywords(file) {
		return errors.New("--database must be the path of a SQLite file or a postgres:// URL, such as postgres://rolecall@db.example.com/rolecall")
	}
	return nil
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// direct returns the URL for work that a connection pooler does not support, such as migrations.
func (g *globals) direct() string {
	if g.DirectDatabase != "" {
		return g.DirectDatabase
	}
	return g.Database
}

// makeKey creates a random key in the database of a new instance. It does nothing if the flags name
// a key file.
//
// If the database has tenants or key fingerprints but no key, the keys of the instance are in a
// file that the flags do not name. A new key could not decrypt the existing data, so makeKey
// creates no key.
//
// If two processes create the first key at the same time, both keys have the creation time 0, which
// is also their id. So one insert fails, and that process uses the key of the other.
func (g *globals) makeKey(ctx context.Context, db store.Database) error {
	if g.SecretKeyFile != "" {
		return nil
	}
	err := store.New(db, nil).Update(ctx, rolecall.TenantID{}, func(tx *store.Tx) error {
		secrets, err := tx.InstanceKeys()
		if err != nil || len(secrets) > 0 {
			return err
		}
		known, err := tx.KeyFingerprints()
		if err != nil || len(known) > 0 {
			return err
		}
		for _, status := range []rolecall.TenantStatus{"", rolecall.TenantDeleted} { // deleted tenants too, because they can be restored
			tenants, err := tx.Tenants(rolecall.TenantQuery{Status: status, Limit: 1})
			if err != nil || len(tenants) > 0 {
				return err
			}
		}
		tx.InsertInstanceKey(secret.NewKey(), 0)
		return nil
	})
	if err == nil {
		return nil
	}
	if _, loadErr := g.loadKeys(ctx, db); loadErr != nil {
		return errors.Join(err, loadErr)
	}
	return nil
}

// loadKeys returns the keys of the instance from the key file, or from the database if no file is
// set. It returns errOtherKeys if the instance has used keys before, but none of these.
func (g *globals) loadKeys(ctx context.Context, db store.Database) (*secret.Keys, error) {
	keys, err := g.readKeys(ctx, db)
	if err != nil {
		return nil, err
	}
	return keys, verifyKeys(ctx, db, keys)
}

func (g *globals) readKeys(ctx context.Context, db store.Database) (*secret.Keys, error) {
	if g.SecretKeyFile != "" {
		return readKeyFile(g.SecretKeyFile)
	}
	secrets, err := store.Read(ctx, store.New(db, nil), rolecall.TenantID{}, (*store.Tx).InstanceKeys)
	switch {
	case err != nil:
		return nil, err
	case len(secrets) == 0:
		return nil, errors.New("the database has no instance key: if the keys are in a file, set --secret-key-file; if the instance is new, run: rolecall migrate")
	}
	return secret.NewKeys(secrets[0], secrets[1:]...), nil
}

// errOtherKeys is returned if the instance has used other keys before, but none of the given keys.
var errOtherKeys = errors.New("none of the given keys was used with this database before, so they cannot decrypt its secrets: set --secret-key-file to the key file of this instance (if the keys are lost, see docs/operations.md)")

// verifyKeys returns errOtherKeys if the instance has used other keys before, but none of the given
// keys. Otherwise, it records the fingerprints of the keys that are new to the instance.
func verifyKeys(ctx context.Context, db store.Database, keys *secret.Keys) error {
	added, err := newFingerprints(ctx, db, keys)
	if err != nil || len(added) == 0 {
		return err
	}
	return store.New(db, nil).Update(ctx, rolecall.TenantID{}, func(tx *store.Tx) error {
		for _, fingerprint := range added {
			tx.InsertKeyFingerprint(fingerprint)
		}
		return nil
	})
}

// newFingerprints returns the fingerprints of the keys that are new to the instance. It returns
// errOtherKeys if the instance has used other keys before, but none of the given keys.
func newFingerprints(ctx context.Context, db store.Database, keys *secret.Keys) ([][]byte, error) {
	known, err := store.Read(ctx, store.New(db, nil), rolecall.TenantID{}, (*store.Tx).KeyFingerprints)
	if err != nil {
		return nil, err
	}
	given := keys.Fingerprints()
	added := slices.DeleteFunc(slices.Clone(given), func(f []byte) bool {
		return slices.ContainsFunc(known, func(k []byte) bool { return bytes.Equal(k, f) })
	})
	if len(known) > 0 && len(added) == len(given) {
		return nil, errOtherKeys
	}
	return added, nil
}

// leastKey is the minimum length of a key in bytes.
const leastKey = 32

func readKeyFile(file string) (*secret.Keys, error) {
	content, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("--secret-key-file: %s does not exist: copy the key file of this instance to it, or, for a new instance, create one with openssl rand -base64 %d", file, leastKey)
	case err != nil:
		return nil, fmt.Errorf("--secret-key-file: %w", err)
	}
	var secrets [][]byte
	for line := range bytes.Lines(content) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		key, err := base64.StdEncoding.DecodeString(string(line))
		if err != nil || len(key) < leastKey {
			return nil, fmt.Errorf("--secret-key-file: line %d of %s is not a key of at least %d bytes in base64: create one with openssl rand -base64 %d",
				len(secrets)+1, file, leastKey, leastKey)
		}
		secrets = append(secrets, key)
	}
	if len(secrets) == 0 {
		return nil, fmt.Errorf("--secret-key-file: %s is empty: create a key with openssl rand -base64 %d", file, leastKey)
	}
	return secret.NewKeys(secrets[0], secrets[1:]...), nil
}

// newPasswords returns a Passwords that computes at most one hash per core at a time.
func newPasswords() *secret.Passwords {
	cores := runtime.GOMAXPROCS(0)
	return secret.NewPasswords(secret.DefaultParameters, cores, queuedHashes*cores)
}

// operate opens the database, calls fn with a node that uses it, and closes the database.
func (p *program) operate(ctx context.Context, fn func(*node.Node) error) error {
	return p.opened(ctx, func(db store.Database, options access.Options) error {
		n := node.New(db, options)
		err := fn(n)
		if err := n.Access.Feed.Flush(ctx); err != nil {
			options.Logger.WarnContext(ctx, "cannot number events for the change feed; a running node does it later", "error", err)
		}
		return err
	})
}

// opened opens the database, calls fn with it and with the options for a node, and closes the
// database.
func (p *program) opened(ctx context.Context, fn func(store.Database, access.Options) error) error {
	db, err := p.open(ctx, nil)
	if err != nil {
		return err
	}
	options, closeFiles, err := p.options(ctx, db, slog.New(slog.NewTextHandler(p.stderr, nil)))
	if err != nil {
		return errors.Join(err, db.close())
	}
	return errors.Join(fn(db, options), closeFiles(), db.close())
}

// options returns the options for a node that uses the database. closeFiles closes the files that
// these options read.
func (g *globals) options(ctx context.Context, db store.Database, logger *slog.Logger) (o access.Options, closeFiles func() error, err error) {
	o = access.Options{Passwords: newPasswords(), Logger: logger}
	if o.Keys, err = g.loadKeys(ctx, db); err != nil {
		return o, nil, err
	}
	closeFiles, err = g.readPasswordRules(&o)
	return o, closeFiles, err
}
