// Command scale measures whether the cost of operations grows with the amount of data. It
// fills a small and a large store of each kind, and serves both with the unmodified program (except for
// webhooks, which otherwise reach only the internet).
// It sends the same requests to both in turn, and prints the ratios. It fails if a response is
// wrong, or if a statement reads rows without an index. A ratio above its goal is marked.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rolecall/rolecall/bench/load"
	"github.com/rolecall/rolecall/internal/pgtest"
	"github.com/rolecall/rolecall/internal/process"
)

// sizes are the numbers of objects in the large stores.
type sizes struct {
	users, roles, assignments, holders, tenants int
	logged                                      int // events in the large audit log
	subscribers                                 int // tenants with webhooks
}

var (
	large = sizes{users: 1_000_000, roles: 10_000, assignments: 1_000, holders: 100_000, tenants: 100_000, logged: 1_000_000, subscribers: 50}
	quick = sizes{users: 20_000, roles: 1_000, assignments: 1_000, holders: 10_000, tenants: 500, logged: 5_000, subscribers: 3}
)

// settings give PostgreSQL enough memory for a large store, as in production.
var settings = []string{"shared_buffers=1GB", "max_wal_size=8GB"}

func main() {
	load.Serve()
	b := &bench{sizes: large}
	small := flag.Bool("small", false, "large stores of 20,000 users and 500 tenants: a minute or two, for development")
	stores := flag.String("stores", "sqlite,postgres", "stores to measure")
	parts := flag.String("parts", "tenant,tenants,nodes,console,feed,log,webhooks", "what to measure: one large tenant, many tenants, several nodes, pages of the console, followers of the change feeds, the audit log, deliveries of webhooks")
	flag.IntVar(&b.rounds, "rounds", 5, "how often small and large take turns")
	flag.StringVar(&b.only, "only", "", "measure only the operations on a large tenant whose names contain this")
	flag.IntVar(&b.events, "events", 0, "about how many events to add to the large tenant, such as 10000000")
	flag.DurationVar(&b.duration, "duration", 500*time.Millisecond, "of each turn")
	flag.Parse()
	if *small {
		b.sizes = quick
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := b.run(ctx, strings.Split(*stores, ","), strings.Split(*parts, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

// bench is one run of this program.
type bench struct {
	sizes
	rounds   int
	duration time.Duration
	only     string // part of the names of operations
	events   int    // about how many events to add to the large tenant
	folder   string // of the store that is measured
	binary   string
	log      *os.File       // of all nodes
	server   *pgtest.Server // nil while SQLite is measured
	table    table
}

func (b *bench) run(ctx context.Context, stores, parts []string) (err error) {
	folder, err := os.MkdirTemp("", "rolecall-scale")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if b.log, err = os.Create(filepath.Join(folder, "log")); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.log.Close()) }()
	b.binary = filepath.Join(folder, "rolecall")
	if err := process.Build(ctx, b.binary); err != nil {
		return err
	}
	for _, store := range stores {
		b.folder = filepath.Join(folder, store)
		if err := b.measure(ctx, store, parts); err != nil {
			return fmt.Errorf("%s: %w", store, err)
		}
	}
	return nil
}

// measure measures the parts on one kind of store, and prints the table of results.
func (b *bench) measure(ctx context.Context, store string, parts []string) (err error) {
	switch store {
	case "sqlite":
		b.server = nil
	case "postgres":
		if b.server, err = pgtest.Start(append(slices.Clone(pgtest.Production), settings...)...); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, b.server.Stop()) }()
	default:
		return errors.New("there is no store of this name")
	}
	if err := os.Mkdir(b.folder, 0o700); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.folder)) }()
	b.table = table{title: store, columns: [2]string{"small", "large"}}
	defer func() { err = errors.Join(err, b.table.print(os.Stdout)) }()
	for _, part := range []struct {
		name string
		run  func(context.Context) error
	}{{"tenant", b.oneTenant}, {"tenants", b.manyTenants}, {"nodes", b.manyNodes}, {"console", b.manyPages}, {"feed", b.followers}, {"log", b.oneLog}, {"webhooks", b.deliveries}} {
		if !slices.Contains(parts, part.name) {
			continue
		}
		if err := part.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return nil
}
