package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rolecall/rolecall/bench/load"
)

// compare measures an operation on the minimal server and on Rolecall in turn.
func (b *bench) compare(ctx context.Context, op *operation, s schedule) (*row, error) {
	r, err := comparePairs(op, s,
		func() (sample, error) { return b.window(ctx, op, s, b.floor.Address, b.floor.PID()) },
		func() (sample, error) { return b.window(ctx, op, s, b.Address, b.PID()) })
	if err == nil && s.connections == crowd {
		r.Goal = op.goal
	}
	return r, err
}

// comparePairs measures windows of the reference and of the program in turn.
func comparePairs(op *operation, s schedule, reference, program func() (sample, error)) (*row, error) {
	r := &row{Operation: op.title, Connections: s.connections}
	var references, programs []sample
	for range s.pairs {
		first, err := reference()
		if err != nil {
			return nil, fmt.Errorf("the reference: %w", err)
		}
		second, err := program()
		if err != nil {
			return nil, fmt.Errorf("the program: %w", err)
		}
		references, programs, r.Ratios = append(references, first), append(programs, second), append(r.Ratios, second.Rate/first.Rate)
		r.Others += (first.Others + second.Others) / float64(2*s.pairs)
	}
	r.Rolecall, r.Floor, r.Ratio = middle(programs), middle(references), median(r.Ratios)
	if r.Rolecall.CPU > 0 {
		r.RatioByCPU = r.Floor.CPU / r.Rolecall.CPU
	}
	return r, nil
}

// window measures an operation once on the server at the address.
func (b *bench) window(ctx context.Context, op *operation, s schedule, address string, pid int) (sample, error) {
	if err := b.LogFile.Truncate(0); err != nil {
		return sample{}, err
	}
	measured, err := measureWindow(ctx, op, s, address, pid, b.database)
	if err == nil {
		b.bar.Add(1)
	}
	return measured, err
}

// measureWindow measures an operation once on the server at the address. The server consists
// of the processes with these ids and their descendants.
func measureWindow(ctx context.Context, op *operation, s schedule, address string, processes ...int) (sample, error) {
	begun := time.Now()
	before, err := measureCPU(processes...)
	if err != nil {
		return sample{}, err
	}
	got, err := load.RunApart(ctx, load.Plan{
		Address: address, Connections: s.connections, WarmUp: s.warmUp, Duration: s.window,
		Requests: op.requests, Status: op.status, AtLeast: op.atLeast,
	})
	if err != nil {
		return sample{}, err
	}
	if err := got.Err(); err != nil {
		return sample{}, err
	}
	if got.Counted() == 0 { // the machine is busy, or a response takes long
		s.window *= 2
		return measureWindow(ctx, op, s, address, processes...)
	}
	after, err := measureCPU(processes...)
	if err != nil {
		return sample{}, err
	}
	spent := after.processes - before.processes
	foreign := max(0, after.machine-before.machine-spent-got.Spent)
	return sample{
		Rate: got.PerSecond(), P50: milliseconds(got.Latency.Quantile(0.5)), P99: milliseconds(got.Latency.Quantile(0.99)),
		CPU: microseconds(spent) / float64(got.Right), Generator: microseconds(got.Spent) / float64(got.Right),
		Others: foreign.Seconds() / time.Since(begun).Seconds(),
	}, nil
}

// warmUp is how long reads run before their responses are counted, alone or together with sign-ins.
const warmUp = time.Second

// readWhileSigningIn returns the latency of reads at a steady rate, first alone and then
// while sign-ins wait for every core.
func (b *bench) readWhileSigningIn(ctx context.Context, reads, logins *operation, window time.Duration) (alone, during load.Histogram, err error) {
	if err := b.LogFile.Truncate(0); err != nil {
		return alone, during, err
	}
	if alone, err = b.readSteadily(ctx, reads, window); err != nil {
		return alone, during, err
	}
	signedIn := make(chan error, 1)
	go func() {
		got, err := load.RunApart(ctx, load.Plan{
			Address: b.Address, Connections: crowd, Duration: warmUp + window + warmUp, Requests: logins.requests, Status: logins.status, AtLeast: logins.atLeast,
		})
		if err == nil {
			err = got.Err()
		}
		signedIn <- err
	}()
	during, err = b.readSteadily(ctx, reads, window)
	return alone, during, errors.Join(err, <-signedIn)
}

// readSteadily returns the latency of 500 reads a second.
func (b *bench) readSteadily(ctx context.Context, reads *operation, window time.Duration) (load.Histogram, error) {
	got, err := load.RunApart(ctx, load.Plan{
		Address: b.Address, Connections: crowd, Rate: 500, WarmUp: warmUp, Duration: window,
		Requests: reads.requests, Status: reads.status, AtLeast: reads.atLeast,
	})
	if err != nil {
		return load.Histogram{}, err
	}
	return got.Latency, got.Err()
}

// middle returns the sample with the median rate.
func middle(samples []sample) sample {
	sorted := slices.SortedFunc(slices.Values(samples), func(a, b sample) int { return cmp.Compare(a.Rate, b.Rate) })
	return sorted[len(sorted)/2]
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func milliseconds(d time.Duration) float64 { return float64(d) / 1e6 }
func microseconds(d time.Duration) float64 { return float64(d) / 1e3 }
func mebibytes(n int64) float64            { return float64(n) / (1 << 20) }
