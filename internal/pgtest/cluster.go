package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/process"
	"github.com/rolecall/rolecall/internal/store/postgres"
)

// CitusVariable is the environment variable that enables tests on Citus. The make target
// test-citus sets it.
const CitusVariable = "ROLECALL_TEST_CITUS"

// ErrNoCitus means that the PostgreSQL server of this machine cannot load the Citus
// extension. The text of the error that wraps ErrNoCitus contains the reason.
var ErrNoCitus = errors.New("PostgreSQL cannot load the Citus extension here")

// testShards is the number of shards of each distributed table. More shards make the tests
// slower.
const testShards = "4"

// Cluster is a temporary Citus cluster for tests. Only one goroutine at a time may call
// its methods.
type Cluster struct {
	Coordinator *Server
	Workers     []*Server

	settings []string
}

// StartCluster starts a coordinator and the given number of workers. The settings are in
// the form of Start. StartCluster returns ErrNotInstalled if PostgreSQL is not installed,
// and ErrNoCitus if the server cannot load the extension.
func StartCluster(workers int, settings ...string) (_ *Cluster, err error) {
	c := &Cluster{settings: settings}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	if c.Coordinator, err = c.start(); err != nil {
		return nil, err
	}
	for range workers {
		worker, err := c.start()
		if err != nil {
			return nil, err
		}
		c.Workers = append(c.Workers, worker)
	}
	return c, nil
}

// start starts a server of the cluster with the Citus extension loaded. The servers of a
// cluster connect to each other by TCP.
func (c *Cluster) start() (*Server, error) {
	address, err := process.FreeAddress()
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	s, err := Start(slices.Concat([]string{
		"listen_addresses=127.0.0.1", portSetting + port, "shared_preload_libraries=citus", "wal_level=logical",
		"max_prepared_transactions=300", "citus.shard_count=" + testShards, "citus.recover_2pc_interval=1s", "citus.enable_statistics_collection=off", "citus.node_conninfo=sslmode=disable",
	}, c.settings)...)
	if err != nil {
		switch text := err.Error(); {
		case strings.Contains(text, `could not access file "citus"`):
			err = fmt.Errorf("%w: it is not installed (Debian, Ubuntu: curl https://install.citusdata.com/community/deb.sh | sudo bash, then apt install postgresql-17-citus-13.0; Fedora, RHEL: the same with rpm.sh, then dnf install citus130_17)", ErrNoCitus)
		case strings.Contains(text, "could not load library"):
			err = fmt.Errorf("%w: the one that is installed needs another release of PostgreSQL", ErrNoCitus)
		}
		return nil, err
	}
	// Newer minor releases of PostgreSQL load an output plugin only if this setting lists
	// it.
	err = s.as(context.Background(), "postgres", "alter system set output_plugin_libraries = pgoutput, citus", "select pg_reload_conf()")
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "42704" { // there is no such setting
		err = nil
	}
	return s, err
}

// as runs the statements as the administrator in a database of the server.
func (s *Server) as(ctx context.Context, database string, statements ...string) (err error) {
	conn, err := pgx.Connect(ctx, s.url("admin", database))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	return nil
}

// NewDatabase creates an empty database with the extension on all servers of the cluster,
// and an ordinary role with the same name that owns the database. It returns the URL of
// the database on the coordinator, with this role as the user.
func (c *Cluster) NewDatabase(ctx context.Context, name string) (string, error) {
	for _, s := range c.servers() {
		if err := s.addDatabase(ctx, name); err != nil {
			return "", err
		}
	}
	return c.Coordinator.url(name, name), c.join(ctx, name)
}

// join connects the database on the coordinator to the databases with the same name on the
// workers.
func (c *Cluster) join(ctx context.Context, name string) error {
	if err := c.Coordinator.as(ctx, name, fmt.Sprintf("select citus_set_coordinator_host('127.0.0.1', %s)", c.Coordinator.port)); err != nil {
		return err
	}
	for _, worker := range c.Workers {
		if err := c.addNode(ctx, worker, name); err != nil {
			return err
		}
	}
	return nil
}

// AddWorker starts another worker and adds it to the database. The new worker has no
// shards until the database is rebalanced.
func (c *Cluster) AddWorker(ctx context.Context, database string) error {
	worker, err := c.start()
	if err != nil {
		return err
	}
	c.Workers = append(c.Workers, worker)
	if err := worker.addDatabase(ctx, database); err != nil {
		return err
	}
	return c.addNode(ctx, worker, database)
}

// Admin returns the URL of the database on the coordinator, with the administrator as the
// user.
func (c *Cluster) Admin(database string) string { return c.Coordinator.url("admin", database) }

func (c *Cluster) addNode(ctx context.Context, worker *Server, database string) error {
	return c.Coordinator.as(ctx, database, fmt.Sprintf("select citus_add_node('127.0.0.1', %s)", worker.port))
}

// addDatabase creates the database and its role on this server only.
func (s *Server) addDatabase(ctx context.Context, name string) error {
	err := s.as(ctx, "postgres", fmt.Sprintf("create role %s login", quoted(name)),
		fmt.Sprintf("create database %[1]s owner %[1]s template template0", quoted(name)))
	if err != nil {
		return err
	}
	return s.as(ctx, name, "create extension citus")
}

func (c *Cluster) servers() []*Server { return append([]*Server{c.Coordinator}, c.Workers...) }

// Stop stops all servers immediately and removes their data.
func (c *Cluster) Stop() (err error) {
	for _, s := range c.servers() {
		if s != nil {
			err = errors.Join(err, s.Stop())
		}
	}
	return err
}

// ownCluster starts the cluster of this process when it is first called. Later calls
// return the same cluster.
var ownCluster = sync.OnceValues(func() (*Cluster, error) { return StartCluster(2) })

// RequireCitus skips the test unless make test-citus runs it.
func RequireCitus(t testing.TB) {
	t.Helper()
	if os.Getenv(CitusVariable) == "" {
		t.Skip("NOT TESTED ON CITUS: make test-citus does it")
	}
}

// OwnCluster returns the cluster of this process. The test is skipped unless make
// test-citus runs it.
func OwnCluster(t testing.TB) *Cluster {
	t.Helper()
	RequireCitus(t)
	c, err := ownCluster()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return c
}

// clusterMutex guards the cluster of this process and its free databases.
var clusterMutex sync.Mutex

// CitusURL returns the URL of a new empty database on OwnCluster. The user of the URL is
// the ordinary role that owns the database. The database is dropped when the test ends.
func CitusURL(t testing.TB) string {
	t.Helper()
	c := OwnCluster(t)
	clusterMutex.Lock()
	defer clusterMutex.Unlock()
	name := "citus_" + strings.ReplaceAll(rolecall.NewID[any](rolecall.TimeOf(time.Now())).String(), "-", "_")
	databaseURL, err := c.NewDatabase(t.Context(), name)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		clusterMutex.Lock()
		defer clusterMutex.Unlock()
		for _, s := range c.servers() {
			if err := s.dropDatabase(name); err != nil {
				t.Errorf("pgtest: %v", err)
			}
		}
	})
	return databaseURL
}

// dropDatabase drops a database. If the database is in use, it tries again, because the
// background process of Citus may have connected to it.
func (s *Server) dropDatabase(name string) (err error) {
	patience.Poll(func() bool {
		err = s.as(context.Background(), "postgres", fmt.Sprintf("drop database %s with (force)", quoted(name)))
		e, ok := errors.AsType[*pgconn.PgError](err)
		return !ok || e.Code != "55006" // in use
	})
	return err
}

// CitusMigrated is like CitusURL, but the new database has the schema of this program.
func CitusMigrated(t testing.TB) string {
	t.Helper()
	databaseURL := CitusURL(t)
	if err := postgres.Migrate(t.Context(), databaseURL); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return databaseURL
}

// AddCitus adds the extension to a database of OwnCluster. It is for tests that have
// dropped the extension.
func AddCitus(t testing.TB, databaseURL string) {
	t.Helper()
	c := OwnCluster(t)
	u, err := url.Parse(databaseURL)
	if err == nil {
		err = c.Coordinator.as(t.Context(), u.Path[1:], "create extension citus")
	}
	if err == nil {
		err = c.join(t.Context(), u.Path[1:])
	}
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
}

// clusterLease is a migrated database of OwnCluster that one test after another uses.
type clusterLease struct {
	url  string
	open *postgres.Database
}

var freeOnCluster []*clusterLease

// CitusOpened is like Opened, but the database is on the cluster of OwnCluster.
func CitusOpened(t testing.TB) (database *postgres.Database, url string) {
	t.Helper()
	l := borrowOnCluster(t, OwnCluster(t))
	t.Cleanup(func() {
		clusterMutex.Lock()
		defer clusterMutex.Unlock()
		freeOnCluster = append(freeOnCluster, l)
	})
	return l.open, l.url
}

func borrowOnCluster(t testing.TB, c *Cluster) *clusterLease {
	t.Helper()
	clusterMutex.Lock()
	defer clusterMutex.Unlock()
	ctx := context.WithoutCancel(t.Context())
	if last := len(freeOnCluster) - 1; last >= 0 {
		l := freeOnCluster[last]
		freeOnCluster = freeOnCluster[:last]
		u, err := url.Parse(l.url)
		if err == nil {
			err = c.Coordinator.as(ctx, u.Path[1:], deleteRows)
		}
		if err != nil {
			t.Fatalf("pgtest: %v", err)
		}
		return l
	}
	name := "citus_" + strings.ReplaceAll(rolecall.NewID[any](rolecall.TimeOf(time.Now())).String(), "-", "_")
	databaseURL, err := c.NewDatabase(ctx, name)
	if err == nil {
		err = postgres.Migrate(ctx, databaseURL)
	}
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	open, err := postgres.Open(ctx, closingIdle(t, databaseURL), postgres.Options{})
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return &clusterLease{databaseURL, open}
}
