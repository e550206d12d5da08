package postgres_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/internal/patience"
	"github.com/rolecall/rolecall/internal/pgtest"
	"github.com/rolecall/rolecall/internal/store"
	"github.com/rolecall/rolecall/internal/store/postgres"
)

// hole is a network that can start to lose data. On each connection, it then drops
// everything after the first message, which opens the connection.
type hole struct{ open atomic.Bool }

func (h *hole) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, address)
	return &holeConn{Conn: conn, hole: h}, err
}

type holeConn struct {
	net.Conn
	hole  *hole
	begun atomic.Bool
}

func (c *holeConn) Write(b []byte) (int, error) {
	if c.begun.Swap(true) && c.hole.open.Load() {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// If the network fails while a connection is opened, the connection keeps its place in the
// pool no longer than the connect timeout.
func TestAConnectionThatIsNeverSettledGivesUpItsPlace(t *testing.T) {
	var network hole
	url := pgtest.Migrated(t)
	s := open(t, url+"&pool_max_conns=1&connect_timeout=1", postgres.Options{Dial: network.dial})
	tenant := newTenant(t, s, "acme")
	network.open.Store(true)
	cutAll(t, connect(t, pgtest.Admin(t, url)))
	read := func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		return store.New(s, nil).View(ctx, tenant, func(tx *store.Tx) error {
			_, err := tx.Tenants(rolecall.TenantQuery{Limit: 1})
			return err
		})
	}
	if err := read(500 * time.Millisecond); err == nil {
		t.Fatal("something was read through a hole")
	}
	network.open.Store(false)
	if err := read(patience.Limit); err != nil {
		t.Errorf("after the fault: %v", err)
	}
}
