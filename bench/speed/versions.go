package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rolecall/rolecall/internal/progress"
)

// versionPairs is the number of pairs of windows that are measured to compare two versions.
const versionPairs = 5

// compareVersions measures the program against the older program that the flag -before names. Both
// programs run for the whole time, each on a separate store with the same users. Their windows
// alternate, so that other work on the machine affects both equally.
func compareVersions(ctx context.Context, o options, store, binary, folder string) (_ *storeReport, err error) {
	before, err := startVersion(ctx, store, o.before, filepath.Join(folder, store+"-before"))
	if err != nil {
		return nil, fmt.Errorf("the program before: %w", err)
	}
	defer func() { err = errors.Join(err, before.close()) }()
	now, err := startVersion(ctx, store, binary, filepath.Join(folder, store+"-now"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, now.close()) }()
	chosen := now.choose(o.operations)
	now.bar = progress.Start(os.Stderr, "measurements", 2*versionPairs*len(chosen))
	before.bar = now.bar
	r := &storeReport{Store: store, Reference: "before"}
	for _, op := range chosen {
		earlier := find(before.operations, op.name)
		window := schedule{crowd, versionPairs, 300 * time.Millisecond, time.Second}
		if o.full {
			window.window = 5 * time.Second
		}
		measured, err := comparePairs(op, window,
			func() (sample, error) { return before.window(ctx, earlier, window, before.Address, before.PID()) },
			func() (sample, error) { return now.window(ctx, op, window, now.Address, now.PID()) })
		if err != nil {
			return nil, fmt.Errorf("%s: %w", op.title, err)
		}
		r.Rows = append(r.Rows, *measured)
	}
	now.bar.End()
	for _, b := range []*bench{before, now} {
		peak, err := peakMemory(b.PID())
		if err != nil {
			return nil, err
		}
		r.Facts = append(r.Facts, fact{"memory at its peak, " + filepath.Base(b.folder), mebibytes(peak), "MiB", 120})
	}
	return r, nil
}

// startVersion fills a store with the program, and leaves it running.
func startVersion(ctx context.Context, store, program, folder string) (*bench, error) {
	program, err := filepath.Abs(program)
	if err != nil {
		return nil, err
	}
	s, err := fillStore(ctx, store, program, folder)
	if err != nil {
		return nil, err
	}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.close())
	}
	b, _, err := s.planBench(ctx)
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	for _, op := range b.operations {
		if _, err := op.measureAnswer(ctx, b.Address); err != nil {
			return nil, errors.Join(err, s.close())
		}
	}
	return b, nil
}
