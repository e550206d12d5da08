package node_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/authz"
	"github.com/rolecall/rolecall/internal/directory"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/passkey"
	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/pgtest"
	"github.com/rolecall/rolecall/internal/ratelimit"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/signin"
	"github.com/rolecall/rolecall/internal/sqlitetest"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/store/postgres"
	"github.com/rolecall/rolecall/internal/store/sqlite"
)

func TestMain(m *testing.M) { os.Exit(sqlitetest.Main(m)) }

// start is the time of the clock at the start of each test.
const start rolecall.Time = 1_800_000_000_000_000

const password = "correct horse battery"

// origin is the origin of the pages in the tests.
const origin = "https://id.example.com"

// clock is a clock that only the test moves.
type clock struct {
	now   atomic.Int64
	mu    sync.Mutex
	wakes []func() // are called when time has passed, so that no test waits until a worker looks again
}

// Now returns the current time of the clock.
func (c *clock) Now() rolecall.Time { return rolecall.Time(c.now.Load()) }

func (c *clock) advance(d time.Duration) {
	c.now.Add(d.Microseconds())
	c.passed()
}

// until sets the clock to the time t.
func (c *clock) until(t rolecall.Time) {
	c.now.Store(int64(t))
	c.passed()
}

func (c *clock) passed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, wake := range c.wakes {
		wake()
	}
}

// wake calls the function whenever time has passed.
func (c *clock) wake(fn func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wakes = append(c.wakes, fn)
}

// fixture is a store with a node, and a tenant with its owner.
type fixture struct {
	*testing.T
	clock    *clock
	open     func() store.Database // opens the same database as another process
	db       *recorded
	store    *store.Store // on db
	keys     *secret.Keys
	limits   ratelimit.Limits
	hashes   *secret.Passwords
	passkeys *passkey.RelyingParty
	*node.Node
	tenant rolecall.Tenant
	owner  access.Caller
}

// onEachStore runs the test on a new SQLite database and on a new PostgreSQL database.
// With -short, it runs only on SQLite, because the tests of internal/store/storetest and
// internal/e2e depend more on the store.
func onEachStore(t *testing.T, run func(*fixture)) {
	t.Helper()
	onEachStoreLimited(t, ratelimit.Limits{}, run)
}

// onEachStoreInLong is like onEachStore, but skips the test with -short, because it takes long.
func onEachStoreInLong(t *testing.T, run func(*fixture)) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long")
	}
	onEachStore(t, run)
}

func onEachStoreLimited(t *testing.T, limits ratelimit.Limits, run func(*fixture)) {
	t.Helper()
	t.Parallel()
	for name, database := range map[string]func(*testing.T) (store.Database, func() store.Database){"sqlite": onSQLite, "postgres": onPostgres} {
		if name == "postgres" && testing.Short() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, open := database(t)
			f := &fixture{T: t, clock: &clock{}, open: open, db: &recorded{Database: db}, keys: secret.NewKeys(secret.NewKey()), limits: limits}
			f.store = store.New(f.db, nil)
			f.clock.until(start)
			var err error
			f.passkeys, err = passkey.New("example.com", []string{origin})
			f.ok(err)
			f.Node = f.node()
			f.tenant = f.newTenant("acme")
			f.owner = f.call(f.signIn("owner"))
			run(f)
			f.checkEvents()
			f.checkLog()
		})
	}
}

// checkEvents fails the test if an event differs from its description in docs/events.md.
func (f *fixture) checkEvents() {
	f.Helper()
	q := rolecall.EventQuery{Limit: rolecall.MaxLimit}
	for {
		var page rolecall.Page[rolecall.Event]
		f.ok(store.New(f.db.Database, nil).View(f.Context(), f.tenant.ID, func(tx *store.Tx) (err error) {
			page, err = tx.Events(q)
			return err
		}))
		for _, e := range page.Items {
			f.checkEvent(&e)
		}
		if q.After = page.Next; q.After == nil {
			return
		}
	}
}

func (f *fixture) checkEvent(e *rolecall.Event) {
	f.Helper()
	all := rolecall.EventDescriptions()
	i := slices.IndexFunc(all, func(d rolecall.EventDescription) bool { return d.Type == e.Type })
	if i < 0 {
		f.Errorf("%s has no description", e.Type)
		return
	}
	d := all[i]
	if !slices.Contains(d.Subjects, e.Subject.Type) {
		f.Errorf("%s is about a %s", e.Type, e.Subject.Type)
	}
	for _, member := range e.Members {
		if !slices.Contains(d.Members, member) {
			f.Errorf("%s names the member %s", e.Type, member)
		}
	}
	if e.Reason != "" && d.Reason == "" {
		f.Errorf("%s has the reason %q", e.Type, e.Reason)
	}
	if e.Values != nil && (e.Values.Before != nil && d.Before == "" || e.Values.After != nil && d.After == "") {
		f.Errorf("%s has the values %s, %s", e.Type, e.Values.Before, e.Values.After)
	}
}

// onSQLite returns an empty database, and a function that opens it again.
func onSQLite(t *testing.T) (store.Database, func() store.Database) {
	database, path := sqlitetest.Opened(t)
	return database, func() store.Database {
		s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		return s
	}
}

// onPostgres returns an empty database, and a function that opens it again.
func onPostgres(t *testing.T) (store.Database, func() store.Database) {
	db, url := pgtest.Opened(t)
	return db, func() store.Database {
		s, err := postgres.Open(t.Context(), url, postgres.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		return s
	}
}

// node returns a node like that of another process on the same database. The node does not
// receive invalidations.
func (f *fixture) node() *node.Node {
	return f.nodeWith(secret.Parameters{Time: 1, MemoryKiB: 64, Threads: 1})
}

// watchingNode returns a node like that of another process on the same database. The node
// receives invalidations.
func (f *fixture) watchingNode() *node.Node {
	f.Helper()
	db := &watchedDatabase{Database: f.open(), told: make(chan struct{})}
	peer := node.New(db, f.options())
	ctx, stop := context.WithCancel(f.Context())
	ended := make(chan error, 1)
	go func() { ended <- peer.Run(ctx) }()
	f.Cleanup(func() {
		stop()
		f.ok(<-ended)
	})
	<-db.told
	return peer
}

// watchedDatabase closes a channel when a watch has caught up.
type watchedDatabase struct {
	store.Database
	once sync.Once
	told chan struct{} // closed when the watch has caught up
}

// Watch watches the store and detects when the watch has caught up.
func (s *watchedDatabase) Watch(ctx context.Context, w store.Watcher) error {
	return s.Database.Watch(ctx, notedWatcher{w, s})
}

type notedWatcher struct {
	store.Watcher
	db *watchedDatabase
}

// CaughtUp closes the channel at the first call.
func (w notedWatcher) CaughtUp(lag time.Duration) {
	w.Watcher.CaughtUp(lag)
	w.db.once.Do(func() { close(w.db.told) })
}

// nodeWith returns a node like that of node, but password hashes have the given cost.
func (f *fixture) nodeWith(cost secret.Parameters) *node.Node {
	f.hashes = secret.NewPasswords(cost, 4, 1000)
	return node.New(f.db, f.options())
}

// options returns the options of all nodes.
func (f *fixture) options() access.Options {
	return access.Options{
		Clock: f.clock.Now, Passwords: f.hashes, Keys: f.keys, Passkeys: f.passkeys, Logger: slog.New(slog.DiscardHandler), Limits: f.limits,
	}
}

// ok stops the test if err is not nil.
func (f *fixture) ok(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// is fails the test unless err is the wanted error. If wanted is nil, err must be nil.
func (f *fixture) is(err, wanted error) {
	f.Helper()
	if !errors.Is(err, wanted) {
		f.Errorf("the error is %v, not %v", err, wanted)
	}
}

func (f *fixture) newTenant(name string) rolecall.Tenant {
	f.Helper()
	tenant, _, err := f.Directory.CreateTenantWithPassword(f.Context(), rolecall.TenantDraft{Name: name, Owner: rolecall.UserDraft{Email: address("owner"), Name: "Olga Owner"}}, password)
	f.ok(err)
	return tenant
}

func address(name string) string { return name + "@example.com" }

// attempt returns a request without a valid session. The browser sends the tokens.
func (f *fixture) attempt(tokens ...secret.Token) access.Anonymous {
	return access.Anonymous{Tenant: f.tenant, TenantName: f.tenant.Name, Presented: tokens, RequestID: "request", Source: "192.0.2.1"}
}

// signIn signs in a user of the tenant.
func (f *fixture) signIn(name string) signin.SignIn {
	f.Helper()
	in, err := f.SignIn.Login(f.Context(), f.attempt(), address(name), password)
	f.ok(err)
	return in
}

// call returns a request by the user who has signed in.
func (f *fixture) call(in signin.SignIn) access.Caller {
	return access.Caller{Principal: in.Principal, RequestID: "request", Source: "192.0.2.1"}
}

// authenticate returns the principal for a session token on a node. It counts as a use of
// the session.
func (f *fixture) authenticate(peer *node.Node, token secret.Token) (*authz.Principal, error) {
	return peer.SignIn.Authenticate(f.Context(), f.tenant, []secret.Token{token}, true)
}

var serial atomic.Int64

func newKey() idempotency.Key {
	text := fmt.Sprintf("key-%d", serial.Add(1))
	return idempotency.Key{Text: text, Fingerprint: secret.Digest([]byte(text))}
}

// user creates a pending user.
func (f *fixture) user(name string) rolecall.User {
	f.Helper()
	created, err := f.Directory.CreateUser(f.Context(), f.owner, newKey(), rolecall.UserDraft{Email: address(name), Name: "User " + name})
	f.ok(err)
	return created.Value
}

// member creates a user who can sign in.
func (f *fixture) member(name string) rolecall.User {
	f.Helper()
	user := f.user(name)
	f.ok(f.SignIn.SetPassword(f.Context(), f.tenant.Name, address(name), password))
	return user
}

func (f *fixture) role(name string, permissions ...string) rolecall.Role {
	f.Helper()
	created, err := f.Directory.CreateRole(f.Context(), f.owner, newKey(), rolecall.RoleDraft{Name: name, Permissions: permissions})
	f.ok(err)
	return created.Value
}

func (f *fixture) assign(user rolecall.UserID, role rolecall.RoleID, draft rolecall.AssignmentDraft) {
	f.Helper()
	_, _, err := f.Directory.AssignRole(f.Context(), f.owner, rolecall.HolderOf(user), role, draft)
	f.ok(err)
}

func (f *fixture) ownerRole() rolecall.RoleID {
	f.Helper()
	page, err := f.Directory.Roles(f.Context(), f.owner, directory.RoleListing{Key: rolecall.OwnerKey, Limit: 1})
	f.ok(err)
	return page.Items[0].ID
}

// settings writes the settings of the tenant to the store, without authorization and events.
func (f *fixture) settings(settings rolecall.TenantSettings) {
	f.Helper()
	changed := f.tenant
	changed.Settings, changed.Version = settings, f.tenant.Version+1
	f.ok(f.store.Update(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
		_, err := tx.UpdateTenant(f.tenant, changed)
		return err
	}))
	f.tenant = changed
}

// eventTypes returns the types of the events about a user, newest first.
func (f *fixture) eventTypes(id rolecall.UserID) (types []rolecall.EventType) {
	f.Helper()
	f.ok(f.store.View(f.Context(), f.tenant.ID, func(tx *store.Tx) error {
		events, err := tx.Events(rolecall.EventQuery{Subject: rolecall.AnyID(id), Limit: 100})
		for _, e := range events.Items {
			types = append(types, e.Type)
		}
		return err
	}))
	return types
}

// eventually fails the test unless the condition becomes true soon. It uses the real clock.
func (f *fixture) eventually(holds func() bool) {
	f.Helper()
	if !patience.Poll(holds) {
		f.Fatal("it did not come to pass")
	}
}

// inParallel runs fn n times concurrently and counts its results by error.
func (f *fixture) inParallel(n int, fn func(i int) error) map[error]int {
	f.Helper()
	var mu sync.Mutex
	results := map[error]int{}
	var running sync.WaitGroup
	for i := range n {
		running.Go(func() {
			err := fn(i)
			for _, known := range []error{rolecall.ErrWrongCode, rolecall.ErrChallengeInvalid, rolecall.ErrTooManyAttempts, rolecall.ErrPasskeyRefused, rolecall.ErrFactorDemanded, rolecall.ErrPasskeyTaken} {
				if errors.Is(err, known) {
					err = known
				}
			}
			mu.Lock()
			defer mu.Unlock()
			results[err]++
		})
	}
	running.Wait()
	return results
}
