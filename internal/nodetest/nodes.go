package nodetest

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/rolecall/rolecall/internal/access"
	"github.com/rolecall/rolecall/internal/node"
	"github.com/rolecall/rolecall/internal/secret"
	"github.com/rolecall/rolecall/internal/store"
)

// NewNode returns a node like that of another process on the same database. The node does not
// receive invalidations.
func (f *Fixture) NewNode() *node.Node {
	return f.NewNodeWith(secret.Parameters{Time: 1, MemoryKiB: 64, Threads: 1})
}

// NewWatchingNode returns a node like that of another process on the same database. The node
// receives invalidations.
func (f *Fixture) NewWatchingNode() *node.Node {
	f.Helper()
	db := &watchedDatabase{Database: f.Open(), told: make(chan struct{})}
	peer := node.New(db, f.Options())
	ctx, stop := context.WithCancel(f.Context())
	ended := make(chan error, 1)
	go func() { ended <- peer.Run(ctx) }()
	f.Cleanup(func() {
		stop()
		f.OK(<-ended)
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

// NewNodeWith returns a node like that of NewNode, but password hashes have the given cost.
func (f *Fixture) NewNodeWith(cost secret.Parameters) *node.Node {
	f.Hashes = secret.NewPasswords(cost, 4, 1000)
	return node.New(f.DB, f.Options())
}

// Options returns the options of all nodes.
func (f *Fixture) Options() access.Options {
	return access.Options{
		Clock: f.Clock.Now, Passwords: f.Hashes, Keys: f.Keys, Passkeys: f.Passkeys, Logger: slog.New(slog.DiscardHandler), Limits: f.Limits,
	}
}
