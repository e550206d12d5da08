// Package sqlite implements store.Database with a SQLite file. Many connections read. One
// connection writes, and commits several waiting updates in one transaction.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
)

// busyTimeout is how long a statement waits for a lock that another process holds.
const busyTimeout = 5 * time.Second

// Options are the settings of Open.
type Options struct {
	Migrate  bool                    // create the file if it does not exist, and apply missing migrations
	Migrated func([]store.Migration) // receives the applied migrations; nil: not called
	Readers  int                     // number of reading connections; 0: the number of cores, at least two
}

// Database is one SQLite file. It implements store.Database. Several processes can open the
// same file.
type Database struct {
	path    string
	reads   *sql.DB
	writes  *sql.DB
	readers chan *conn   // free readers
	count   int          // number of all readers
	waits   atomic.Int64 // how many times no reader was free
	writer  *writer
	logs    *checkpointer
	closing chan struct{}
	close   func() error // runs once
}

var _ store.Database = (*Database)(nil)

// Open opens the database file at path. It returns an error if the schema is newer and
// this program cannot serve it. If options.Migrate is false, it also returns an error if
// the schema is older or the file does not exist. The caller must close the database.
func Open(ctx context.Context, path string, options Options) (*Database, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := prepareFile(path, options.Migrate); err != nil {
		return nil, err
	}
	if options.Readers == 0 {
		options.Readers = max(2, runtime.GOMAXPROCS(0))
	}
	d := &Database{path: path, readers: make(chan *conn, options.Readers), closing: make(chan struct{})}
	d.close = sync.OnceValue(d.closeAll)
	if err := d.open(ctx, path, options); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", path, err), d.Close())
	}
	return d, nil
}

func (d *Database) open(ctx context.Context, path string, options Options) (err error) {
	if d.writes, err = openPool(path, 2, url.Values{"_pragma": {"cache_size(-8000)", logMax}}); err != nil {
		return err
	}
	if err := connectFirst(ctx, d.writes); err != nil {
		return err
	}
	if err := ensureSchema(ctx, d.writes, options); err != nil {
		return err
	}
	w, err := d.writes.Conn(ctx)
	if err != nil {
		return err
	}
	c, err := d.writes.Conn(ctx)
	if err != nil {
		return err
	}
	turn, err := openTurn(path)
	if err != nil {
		return err
	}
	d.logs = startCheckpointer(newConn(c))
	d.writer = startWriter(newConn(w), turn, d.logs.wake)

	if d.reads, err = openPool(path, options.Readers, url.Values{"_pragma": {"cache_size(-4000)"}, "_query_only": {"on"}}); err != nil {
		return err
	}
	for range options.Readers {
		c, err := d.reads.Conn(ctx)
		if err != nil {
			return err
		}
		d.readers <- newConn(c)
		d.count++
	}
	return nil
}

// prepareFile checks that the file exists. If create is true, it creates a missing file
// that only its owner can read and write. SQLite gives the same permissions to the files
// that it creates next to it.
func prepareFile(path string, create bool) error {
	if !create {
		_, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("the database %s does not exist: create it with: rolecall migrate", path)
		}
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return file.Close()
}

// openPool returns a pool of up to size connections to the file. The settings of the
// connections are in the address, because a pragma statement would change only one
// connection.
func openPool(path string, size int, options url.Values) (*sql.DB, error) {
	options.Set("_busy_timeout", strconv.FormatInt(busyTimeout.Milliseconds(), 10))
	options.Set("_foreign_keys", "on")
	options.Set("_journal_mode", "wal")
	options.Set("_synchronous", "full")
	options.Set("_txlock", "immediate")
	options.Set("_dqs", "0")
	options.Add("_pragma", "temp_store(memory)")
	address := url.URL{Scheme: "file", Path: path, RawQuery: options.Encode()}
	db, err := sql.Open("sqlite", address.String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return db, nil
}

// connectFirst opens the first connection of the pool, and checks that its commits are
// durable.
//
// SQLite does not apply the busy timeout in two cases: while another process turns the
// file into a WAL database, and while the last process that closes the file removes the
// log. Both take milliseconds. So if the file is busy, connectFirst tries again until
// busyTimeout has passed.
func connectFirst(ctx context.Context, db *sql.DB) error {
	ctx, cancel := context.WithTimeout(ctx, busyTimeout)
	defer cancel()
	retry := time.NewTicker(10 * time.Millisecond)
	defer retry.Stop()
	for {
		err := checkDurable(ctx, db)
		if !isBusy(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-retry.C:
		}
	}
}

// checkDurable returns an error if SQLite does not sync commits to the disk. Tests that
// kill the process cannot detect this. The kernel still writes its cache after the process
// has died, but not after a loss of power.
func checkDurable(ctx context.Context, db *sql.DB) error {
	const full = 2 // PRAGMA synchronous
	var journal string
	var synchronous int
	err := db.QueryRowContext(ctx, "select journal_mode, synchronous from pragma_journal_mode, pragma_synchronous").Scan(&journal, &synchronous)
	if err == nil && (journal != "wal" || synchronous < full) {
		err = fmt.Errorf("commits are not durable: journal_mode is %s and synchronous is %d", journal, synchronous)
	}
	return err
}

// View calls fn with a Querier that can only read. Each statement is a separate
// transaction on a free connection. The end of ctx ends the wait for a connection. It does
// not interrupt a statement, because the work of a statement is bounded.
func (d *Database) View(ctx context.Context, _ rolecall.TenantID, fn func(store.Querier) error) error {
	v := &view{ctx: ctx, db: d}
	err := fn(v)
	if err == nil {
		err = v.err
	}
	return err
}

// Update calls fn in a transaction and commits the transaction, possibly together with
// other updates. It returns ErrUnavailable if too many updates are waiting, if the file is
// being closed, or if SQLite cannot write at the moment.
func (d *Database) Update(ctx context.Context, _ rolecall.TenantID, fn func(store.Querier) error) error {
	return store.Repeat(func() error { return d.writer.do(ctx, fn) })
}

// Ready returns nil if the database answers and this program can serve its schema.
func (d *Database) Ready(ctx context.Context) error {
	v := &view{ctx: ctx, db: d}
	var schema versions
	_, err := v.Query(selectVersions, nil, func(scan func(dest ...any) error) error {
		return scan(&schema.stored, &schema.oldest)
	})
	if err != nil {
		return err
	}
	return schema.check()
}

// Connections returns how many connections for reads are in use.
func (d *Database) Connections() store.Connections {
	return store.Connections{InUse: d.count - len(d.readers), Max: d.count, Waits: d.waits.Load()}
}

// Close waits for running work and closes the file.
func (d *Database) Close() error { return d.close() }

func (d *Database) closeAll() error {
	close(d.closing)
	var errs []error
	if d.writer != nil {
		errs = append(errs, d.writer.close(), d.logs.close())
	}
	for range d.count {
		errs = append(errs, (<-d.readers).Close())
	}
	for _, db := range []*sql.DB{d.reads, d.writes} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}

var errWriteInView = errors.New("sqlite: write in View")

// view is the Querier of one View.
type view struct {
	ctx context.Context
	db  *Database
	err error
}

func (v *view) Exec(string, ...any) { v.err = errWriteInView }

func (v *view) Announce(rolecall.AnyID) { v.err = errWriteInView }

func (v *view) AnnounceChanges(rolecall.TenantID) { v.err = errWriteInView }

// SetTenant does nothing, because SQLite has no row security.
func (v *view) SetTenant(rolecall.TenantID) {}

// AllowAddressInAllTenants does nothing, because SQLite has no row security.
func (v *view) AllowAddressInAllTenants(string) {}

func (v *view) Query(query string, args []any, each func(scan func(dest ...any) error) error) (rows int, err error) {
	c, err := v.db.reader(v.ctx)
	if err != nil {
		return 0, err
	}
	defer func() { v.db.readers <- c }()
	rows, err = c.query(query, args, each)
	return rows, translate(err)
}

// reader returns a free reading connection. After its use, the caller must send the
// connection back to the channel d.readers.
func (d *Database) reader(ctx context.Context) (*conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case c := <-d.readers:
		return c, nil
	default:
		d.waits.Add(1)
	}
	select {
	case <-d.closing:
		return nil, rolecall.ErrUnavailable
	case <-ctx.Done():
		return nil, ctx.Err()
	case c := <-d.readers:
		return c, nil
	}
}
