// Package nodetest provides a node on a new database for the tests of the services, with a clock that the test moves,
// and the steps that the tests of several services share. A package that uses it has a TestMain that calls
// sqlitetest.Main.
package nodetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/idempotency"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/passkey"
	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/pgtest"
	"github.com/rolecall/rolecall/internal/ratelimit"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/sqlitetest"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/store/postgres"
	"github.com/rolecall/rolecall/internal/store/sqlite"
)

// Origin is the origin of the pages in the tests.
const Origin = "https://id.example.com"

// Fixture is a store with a node, and a tenant with its owner.
type Fixture struct {
	*testing.T
	Clock    *Clock
	Open     func() store.Database // opens the same database as another process
	DB       *Recorded
	Store    *store.Store // on DB
	Keys     *secret.Keys
	Limits   ratelimit.Limits
	Hashes   *secret.Passwords
	Passkeys *passkey.RelyingParty
	*node.Node
	Tenant rolecall.Tenant
	Owner  access.Caller
}

// OnEachStore runs the test on a new SQLite database and on a new PostgreSQL database.
// With -short, it runs only on SQLite, because the tests of internal/store/storetest and
// internal/e2e depend more on the store.
func OnEachStore(t *testing.T, run func(*Fixture)) {
	t.Helper()
	OnEachStoreLimited(t, ratelimit.Limits{}, run)
}

// OnEachStoreInLong is like OnEachStore, but skips the test with -short, because it takes long.
func OnEachStoreInLong(t *testing.T, run func(*Fixture)) {
	t.Helper()
	if testing.Short() {
		t.Skip("takes long: runs without -short")
	}
	OnEachStore(t, run)
}

// OnEachStoreLimited is like OnEachStore, with other limits of attempts.
func OnEachStoreLimited(t *testing.T, limits ratelimit.Limits, run func(*Fixture)) {
	t.Helper()
	t.Parallel()
	for name, database := range map[string]func(*testing.T) (store.Database, func() store.Database){"sqlite": OnSQLite, "postgres": onPostgres} {
		if name == "postgres" && testing.Short() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, open := database(t)
			f := &Fixture{T: t, Clock: &Clock{}, Open: open, DB: &Recorded{Database: db}, Keys: secret.NewKeys(secret.NewKey()), Limits: limits}
			f.Store = store.New(f.DB, nil)
			f.Clock.Until(Start)
			var err error
			f.Passkeys, err = passkey.New("example.com", []string{Origin})
			f.OK(err)
			f.Node = f.NewNode()
			f.Tenant = f.NewTenant("acme")
			f.Owner = f.CallerOf(f.LogIn("owner"))
			run(f)
			f.checkEvents()
			f.CheckLog()
		})
	}
}

// OnSQLite returns an empty database, and a function that opens it again.
func OnSQLite(t *testing.T) (store.Database, func() store.Database) {
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

// OK stops the test if err is not nil.
func (f *Fixture) OK(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// Is fails the test unless err is the wanted error. If wanted is nil, err must be nil.
func (f *Fixture) Is(err, wanted error) {
	f.Helper()
	if !errors.Is(err, wanted) {
		f.Errorf("the error is %v, not %v", err, wanted)
	}
}

// Serial makes names and keys that differ.
var Serial atomic.Int64

// NewKey returns an idempotency key that no request has used.
func NewKey() idempotency.Key {
	text := fmt.Sprintf("key-%d", Serial.Add(1))
	return idempotency.Key{Text: text, Fingerprint: secret.Digest([]byte(text))}
}

// Eventually fails the test unless the condition becomes true soon. It uses the real clock.
func (f *Fixture) Eventually(holds func() bool) {
	f.Helper()
	if !patience.Poll(holds) {
		f.Fatal("it did not come to pass")
	}
}

// InParallel runs fn n times concurrently and counts its results by error.
func (f *Fixture) InParallel(n int, fn func(i int) error) map[error]int {
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
