package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rolecall/rolecall/bench/peers"
)

// entrant is a service with a filled store. It does not run yet.
type entrant struct {
	server
	about    peers.About
	address  string
	ready    string // path that returns 200 as soon as it serves
	postgres *peers.Postgres
	plan     func(context.Context) ([]*operation, error)
}

// contender is a service that comparePeers measures.
type contender struct {
	about   peers.About
	measure func(ctx context.Context, folder string, postgres *peers.Postgres) (*service, error)
}

// comparePeers measures Rolecall on both stores and then each peer, and prints the report. If
// a service cannot be measured, the report contains the reason.
func comparePeers(ctx context.Context, o options, m machine, binary, folder string) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	cache = filepath.Join(cache, "rolecall-bench")
	var contenders []contender
	for _, store := range []string{"SQLite", peers.PostgreSQL} {
		about := peers.About{Name: "Rolecall, " + store, Version: "this tree", Store: store, Hash: "argon2id, 19 MiB, 2 passes"}
		contenders = append(contenders, contender{about, func(ctx context.Context, folder string, postgres *peers.Postgres) (*service, error) {
			return measureRolecall(ctx, o, about, binary, folder, postgres)
		}})
	}
	for _, peer := range peers.All() {
		contenders = append(contenders, contender{peer.About(), func(ctx context.Context, folder string, postgres *peers.Postgres) (*service, error) {
			return measurePeer(ctx, o, peer, cache, folder, postgres)
		}})
	}
	r := &peersReport{Machine: m}
	for i, c := range contenders {
		fmt.Fprintf(os.Stderr, "speed: %s (%s)\n", c.about.Name, c.about.Version)
		measured, err := c.measureWithDatabase(ctx, filepath.Join(folder, fmt.Sprint("service-", i)))
		if ctx.Err() != nil {
			return errors.Join(ctx.Err(), err)
		}
		if err != nil {
			fmt.Fprintf(os.Stderr, "speed: %s: %v\n", c.about.Name, err)
			measured = &service{About: c.about, Problems: []string{err.Error()}}
		}
		r.Services = append(r.Services, *measured)
	}
	return write(r, o)
}

// measureWithDatabase starts a separate PostgreSQL server for the service if it uses one.
func (c *contender) measureWithDatabase(ctx context.Context, folder string) (_ *service, err error) {
	if c.about.Store != peers.PostgreSQL {
		return c.measure(ctx, folder, nil)
	}
	postgres, err := peers.StartPostgres()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, postgres.Stop()) }()
	return c.measure(ctx, folder, postgres)
}

func measureRolecall(ctx context.Context, o options, about peers.About, binary, folder string, postgres *peers.Postgres) (_ *service, err error) {
	store := "sqlite"
	if postgres != nil {
		if store, err = postgres.NewDatabase(ctx, "rolecall"); err != nil {
			return nil, err
		}
	}
	s, err := fillStore(ctx, store, binary, folder)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	e := entrant{server: s, about: about, address: s.Address, ready: "/readyz", postgres: postgres}
	e.plan = func(ctx context.Context) ([]*operation, error) {
		b, _, err := s.planBench(ctx)
		if err != nil {
			return nil, err
		}
		slices.SortFunc(b.operations, func(x, y *operation) int {
			return slices.Index(peers.Operations, x.name) - slices.Index(peers.Operations, y.name)
		})
		return b.operations, nil
	}
	return e.measure(ctx, o)
}

func measurePeer(ctx context.Context, o options, peer peers.Peer, cache, folder string, postgres *peers.Postgres) (_ *service, err error) {
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, err
	}
	s, err := peers.New(ctx, peer, cache, folder, postgres)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err = errors.Join(err, s.Close()); err != nil {
			err = fmt.Errorf("%w\n%s", err, s.Log())
		}
	}()
	// The first start may create the tables, so it is not measured.
	if _, err := measureStart(ctx, s, peer.Ready(), 1); err != nil {
		return nil, err
	}
	if err := peer.Fill(ctx, s, users); err != nil {
		return nil, err
	}
	if err := s.Stop(); err != nil {
		return nil, err
	}
	e := entrant{server: s, about: peer.About(), address: s.Address, ready: peer.Ready(), postgres: postgres}
	e.plan = func(ctx context.Context) ([]*operation, error) {
		planned, err := peer.Plan(ctx, s)
		if err != nil {
			return nil, err
		}
		var list []*operation
		for _, op := range planned {
			requests := op.Requests
			rand.Shuffle(len(requests), func(i, j int) { requests[i], requests[j] = requests[j], requests[i] })
			list = append(list, &operation{name: op.Name, title: titles[op.Name], requests: requests, status: op.Status})
		}
		return list, nil
	}
	return e.measure(ctx, o)
}

// measure starts the service, measures it, and leaves it running. A failed operation is added
// to the problems of the result.
func (e *entrant) measure(ctx context.Context, o options) (*service, error) {
	const starts = 3
	started, err := measureStart(ctx, e, e.ready, starts)
	if err != nil {
		return nil, err
	}
	if err := pause(ctx, o.idle()); err != nil {
		return nil, err
	}
	idle, err := memoryOf(e.PID(), residentMemory)
	if err != nil {
		return nil, err
	}
	operations, err := e.plan(ctx)
	if err != nil {
		return nil, err
	}
	processes := []int{e.PID()}
	if e.postgres != nil {
		pid, err := e.postgres.PID()
		if err != nil {
			return nil, err
		}
		processes = append(processes, pid)
	}
	result := &service{About: e.about, Start: milliseconds(started), Idle: mebibytes(idle), Samples: map[string]sample{}}
	for _, op := range operations {
		_, err := op.measureAnswer(ctx, e.address)
		var measured sample
		if err == nil {
			measured, err = measureWindow(ctx, op, e.schedule(op, o.full), e.address, processes...)
		}
		if err != nil {
			result.Problems = append(result.Problems, fmt.Sprintf("%s: %v", op.title, err))
			continue
		}
		fmt.Fprintf(os.Stderr, "speed: %s: %s: %s\n", e.about.Name, op.title, rate(measured.Rate))
		result.Samples[op.name] = measured
	}
	peak, err := memoryOf(e.PID(), peakMemory)
	result.Peak = mebibytes(peak)
	return result, err
}

// schedule returns the schedule of the operation.
func (e *entrant) schedule(op *operation, full bool) schedule {
	s := schedule{connections: crowd, warmUp: 3 * time.Second, window: 3 * time.Second}
	if e.about.Compiles {
		s.warmUp = 15 * time.Second
	}
	if full {
		s.warmUp *= 2
		s.window = 10 * time.Second
	}
	if op.name == "login" {
		s.window *= 2
	}
	return s
}
