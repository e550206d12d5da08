// Command speed compares the speed of Rolecall with that of a minimal server, which
// does the least possible work (package floor). For each store, it runs the program as
// in production, and a minimal server with the same data. One generator sends the same
// requests to both in turn. It prints one table for each store, and fails if any
// response was wrong.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rolecall/rolecall/bench/floor"
	"github.com/rolecall/rolecall/bench/load"
	"github.com/rolecall/rolecall/internal/pgtest"
	"github.com/rolecall/rolecall/internal/process"
	"github.com/rolecall/rolecall/internal/progress"
)

// options are the flags of the command line.
type options struct {
	stores     string
	operations string
	binary     string
	before     string
	full       bool
	json       bool
	markdown   bool
	peers      bool
	citus      bool
}

func main() {
	load.Serve()
	floor.Serve()
	var o options
	flag.StringVar(&o.stores, "store", "sqlite,postgres", "stores to measure")
	flag.StringVar(&o.operations, "only", "", "operations to measure, such as read,page; empty: all of session, read, page, create, login")
	flag.StringVar(&o.binary, "binary", "", "the program to measure; empty: it is built from this tree")
	flag.StringVar(&o.before, "before", "", "an older program to measure against, instead of the floor: five pairs of windows in turn")
	flag.BoolVar(&o.full, "full", false, "measure for a quarter of an hour, not two minutes")
	flag.BoolVar(&o.peers, "peers", false, "measure other services next to Rolecall; the first time, this downloads them")
	flag.BoolVar(&o.citus, "citus", false, "measure what operations cost on Citus clusters, next to one PostgreSQL server")
	flag.BoolVar(&o.json, "json", false, "print JSON")
	flag.BoolVar(&o.markdown, "markdown", false, "print tables for docs/performance.md")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "speed:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) (err error) {
	folder, err := os.MkdirTemp("", "rolecall-speed")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	binary, err := build(ctx, o.binary, folder)
	if err != nil {
		return err
	}
	machine, err := describeMachine(folder)
	if err != nil {
		return err
	}
	if o.peers {
		return comparePeers(ctx, o, machine, binary, folder)
	}
	if o.citus {
		return compareClusters(ctx, o, machine, binary, folder)
	}
	r := report{Machine: machine}
	measureErr := r.measure(ctx, o, binary, folder)
	if len(r.Stores) == 0 {
		return measureErr
	}
	return errors.Join(measureErr, write(&r, o))
}

// measure measures every requested store. It omits a store that is not installed if another store
// was measured before.
func (r *report) measure(ctx context.Context, o options, binary, folder string) error {
	for store := range strings.SplitSeq(o.stores, ",") {
		measure := measureStore
		if o.before != "" {
			measure = compareVersions
		}
		measured, err := measure(ctx, o, store, binary, folder)
		switch {
		case errors.Is(err, pgtest.ErrNotInstalled) && len(r.Stores) > 0:
			fmt.Fprintln(os.Stderr, "speed:", err)
		case err != nil:
			return fmt.Errorf("%s: %w", store, err)
		default:
			r.Stores = append(r.Stores, *measured)
		}
	}
	return nil
}

// tables are results that write prints as Markdown or as text.
type tables interface {
	writeMarkdown(w io.Writer) error
	writeText(w io.Writer) error
}

// write prints the results in the format of the options.
func write(t tables, o options) error {
	switch {
	case o.json:
		return json.NewEncoder(os.Stdout).Encode(t)
	case o.markdown:
		return t.writeMarkdown(os.Stdout)
	default:
		return t.writeText(os.Stdout)
	}
}

// build returns the program to measure. If no program is given, it builds one as for
// production.
func build(ctx context.Context, given, folder string) (string, error) {
	if given != "" {
		return filepath.Abs(given)
	}
	if err := os.Setenv("CGO_ENABLED", "0"); err != nil {
		return "", err
	}
	binary := filepath.Join(folder, "rolecall")
	return binary, process.Build(ctx, binary, "-trimpath", "-ldflags=-s -w")
}

// measureStore fills a store and measures Rolecall and the minimal server on it.
func measureStore(ctx context.Context, o options, store, binary, folder string) (_ *storeReport, err error) {
	s, err := fillStore(ctx, store, binary, filepath.Join(folder, store))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	r := &storeReport{Store: store, Reference: "floor"}
	if err := s.measureIdle(ctx, o, r); err != nil {
		return nil, err
	}
	if err := s.measureOperations(ctx, o, r); err != nil {
		return nil, err
	}
	peak, err := peakMemory(s.PID())
	if err != nil {
		return nil, err
	}
	r.Facts = append(r.Facts, fact{"memory at its peak", mebibytes(peak), "MiB", 120})
	return r, nil
}

// measureIdle measures Rolecall before the first request, and leaves it running.
func (s *subject) measureIdle(ctx context.Context, o options, r *storeReport) error {
	const starts = 5
	started, err := measureStart(ctx, s, "/readyz", starts)
	if err != nil {
		return err
	}
	if err := pause(ctx, o.idle()); err != nil {
		return err
	}
	idle, err := residentMemory(s.PID())
	if err != nil {
		return err
	}
	program, err := os.Stat(s.Binary)
	if err != nil {
		return err
	}
	r.Facts = append(r.Facts,
		fact{"size of the program", mebibytes(program.Size()), "MiB", 35},
		fact{"start to first answer", milliseconds(started), "ms", 50},
		fact{"memory when idle", mebibytes(idle), "MiB", 30},
	)
	return nil
}

// measureOperations measures the chosen operations, and adds them to the report.
func (s *subject) measureOperations(ctx context.Context, o options, r *storeReport) (err error) {
	b, err := s.openBench(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.floor.Stop()) }()
	chosen := b.choose(o.operations)
	if len(chosen) == 0 {
		return fmt.Errorf("no operation is named %q", o.operations)
	}
	fmt.Fprintf(os.Stderr, "speed: process %d is Rolecall, %d the floor\n", s.PID(), b.floor.PID())
	windows := 0
	for _, op := range chosen {
		for _, schedule := range op.schedules(o.full) {
			windows += 2 * schedule.pairs
		}
	}
	b.bar = progress.Start(os.Stderr, "measurements", windows)
	for _, op := range chosen {
		for _, schedule := range op.schedules(o.full) {
			measured, err := b.compare(ctx, op, schedule)
			if err != nil {
				return fmt.Errorf("%s, %d connections: %w", op.title, schedule.connections, err)
			}
			r.Rows = append(r.Rows, *measured)
			if op.name == "read" && schedule.connections == crowd {
				r.Facts = append(r.Facts, fact{"p99 of reads", measured.Rolecall.P99, "ms", 10})
			}
		}
	}
	b.bar.End()
	if reads, logins := find(chosen, "read"), find(chosen, "login"); reads != nil && logins != nil {
		alone, during, err := b.readWhileSigningIn(ctx, reads, logins, o.mixed())
		if err != nil {
			return fmt.Errorf("reads while people sign in: %w", err)
		}
		median := microseconds(alone.Quantile(0.5))
		r.Facts = append(r.Facts,
			fact{"median of reads", median, "µs", 1000},
			fact{"median of reads while sign-ins wait for a core", microseconds(during.Quantile(0.5)), "µs", 2 * median},
			fact{"p99 of reads while sign-ins wait for a core", milliseconds(during.Quantile(0.99)), "ms", 20})
	}
	return nil
}

// idle returns the time without requests before memory is measured.
func (o *options) idle() time.Duration {
	if o.full {
		return 10 * time.Second
	}
	return 3 * time.Second
}

// mixed returns the duration for which reads are measured during sign-ins.
func (o *options) mixed() time.Duration {
	if o.full {
		return 20 * time.Second
	}
	return 4 * time.Second
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
