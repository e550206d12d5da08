package server

import (
	"context"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// ballast is memory that is never touched, and so takes no room, but counts as
	// live: the collector then runs when the heap has grown by as much, and not each
	// few milliseconds because what really lives is so little.
	ballast = 16 << 20

	// leastMemory is how much a process may have whatever lives.
	leastMemory = 100 << 20
)

// boundMemory keeps the process, until ctx ends, to twice what lives on its heap,
// or leastMemory. The collector by itself aims at that too, but it is overtaken by
// password hashes, which allocate 19 MiB at once. An operator's GOMEMLIMIT stays.
func boundMemory(ctx context.Context) {
	if debug.SetMemoryLimit(-1) != math.MaxInt64 {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		metrics.Read(live)
		debug.SetMemoryLimit(max(leastMemory, 2*(int64(live[0].Value.Uint64())-ballast)))
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}
