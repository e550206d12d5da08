package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/store/postgres"
)

// TestTheTenantDoesNotOutliveItsTransaction uses the only connection of a pool in every
// possible way, and checks that no tenant is set on it afterwards.
func TestTheTenantDoesNotOutliveItsTransaction(t *testing.T) { onServers(t, leaveNoTenant) }

func leaveNoTenant(t *testing.T, url string) {
	s := open(t, url+"&pool_max_conns=1", postgres.Options{})
	tenant, user := newTenant(t, s, "acme"), aUser("ada@example.com")
	errRefused := errors.New("refused")
	read := func(tx *store.Tx) error {
		_, err := tx.UserByID(user.ID)
		return err
	}
	for _, use := range []struct {
		name string
		use  func(ctx context.Context, cancel func()) error
		want error
	}{
		{"a blind update", func(ctx context.Context, _ func()) error {
			return store.New(s, nil).Update(ctx, tenant, func(tx *store.Tx) error { tx.InsertUser(user); return nil })
		}, nil},
		{"an update", func(ctx context.Context, _ func()) error { return store.New(s, nil).Update(ctx, tenant, read) }, nil},
		{"a view", func(ctx context.Context, _ func()) error { return store.New(s, nil).View(ctx, tenant, read) }, nil},
		{"an update that is refused", func(ctx context.Context, _ func()) error {
			return store.New(s, nil).Update(ctx, tenant, func(tx *store.Tx) error { return errors.Join(read(tx), errRefused) })
		}, errRefused},
		{"a violation", func(ctx context.Context, _ func()) error {
			return store.New(s, nil).Update(ctx, tenant, func(tx *store.Tx) error { tx.InsertUser(aUser(user.Email)); return nil })
		}, rolecall.ErrEmailTaken},
		{"a violation after a read", func(ctx context.Context, _ func()) error {
			return store.New(s, nil).Update(ctx, tenant, func(tx *store.Tx) error { tx.InsertUser(aUser(user.Email)); return read(tx) })
		}, rolecall.ErrEmailTaken},
		{"a panic in an update", func(ctx context.Context, _ func()) error {
			return store.New(s, nil).Update(ctx, tenant, func(tx *store.Tx) error { panic(errors.Join(read(tx), errRefused)) })
		}, errRefused},
		{"a panic in a view", func(ctx context.Context, _ func()) error {
			return store.New(s, nil).View(ctx, tenant, func(tx *store.Tx) error { panic(errors.Join(read(tx), errRefused)) })
		}, errRefused},
		{"a client who leaves amid an update", func(ctx context.Context, cancel func()) error {
			return store.New(s, nil).Update(ctx, tenant, func(tx *store.Tx) error { err := read(tx); cancel(); return err })
		}, context.Canceled},
		{"a client who leaves before the commit", func(ctx context.Context, cancel func()) error {
			return store.New(s, nil).Update(ctx, tenant, func(tx *store.Tx) error {
				err := read(tx)
				tx.SetPassword(user.ID, "", now)
				cancel()
				return err
			})
		}, context.Canceled},
		{"a wait that takes too long", func(ctx context.Context, _ func()) error {
			lock := connect(t, url)
			run(t, lock, "begin", "lock table users")
			defer run(t, lock, "rollback")
			ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			return store.New(s, nil).Update(ctx, tenant, read)
		}, context.DeadlineExceeded},
	} {
		t.Run(use.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if err := recovered(func() error { return use.use(ctx, cancel) }); !errors.Is(err, use.want) {
				t.Errorf("got %v, want %v", err, use.want)
			}
			if left, err := s.TenantLeft(t.Context()); err != nil || left != "" {
				t.Errorf("the next user of the connection finds the tenant %q (%v)", left, err)
			}
			if !has(t, s, tenant, user.ID) || has(t, s, rolecall.TenantID{}, user.ID) {
				t.Error("afterwards the store does not see just the tenant that it is asked for")
			}
		})
	}
}

// recovered runs fn and returns its error, or the error with which it panics.
func recovered(fn func() error) (err error) {
	defer func() {
		if thrown, ok := recover().(error); ok {
			err = thrown
		}
	}()
	return fn()
}

// A prepared statement with a generic plan still uses the current tenant.
func TestPreparedStatementsFollowTheTenant(t *testing.T) { onServers(t, followTheTenant) }

func followTheTenant(t *testing.T, url string) {
	s := open(t, url+"&pool_max_conns=1", postgres.Options{})
	tenants, users := [2]rolecall.TenantID{}, [2]rolecall.User{}
	for i, name := range []string{"acme", "other"} {
		tenants[i], users[i] = newTenant(t, s, name), aUser("ada@example.com")
		write(t, s, tenants[i], func(tx *store.Tx) { tx.InsertUser(users[i]) })
	}
	for i := range 20 { // the server uses a generic plan after five runs
		own, foreign := i%2, (i+1)%2
		if !has(t, s, tenants[own], users[own].ID) || has(t, s, tenants[own], users[foreign].ID) {
			t.Fatalf("use %d of the statement does not see just its tenant", i)
		}
	}
}
