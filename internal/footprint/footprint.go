// Package footprint keeps small what lifeboatd has resident. What it does now and
// then, at its start and when many nodes go at once, takes several times the memory
// that it holds in between; left to itself, Go returns that over minutes, and the
// kernel takes the pages of a program back only once memory is short.
package footprint

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// interval is how often memory is given back, and worth the least of the heap that
	// garbage is collected for: that takes some 50 ms of one processor for 50 MiB that
	// are live, a thousandth or two of one. Pages of the program are given back each
	// time: those that are needed again, about a quarter, come back from the kernel's
	// cache as they are touched, in a microsecond each.
	interval = 30 * time.Second
	worth    = 4 << 20
)

// Keeper is a manager's Runnable that gives memory back, on every replica.
type Keeper struct {
	// Ready waits until the start is over, as far as it takes memory.
	Ready func(ctx context.Context) bool
}

// NeedLeaderElection says that it runs on replicas that do not lead as well.
func (k *Keeper) NeedLeaderElection() bool { return false }

// Start gives memory back once the start is over, and from then on at intervals,
// until ctx is done.
func (k *Keeper) Start(ctx context.Context) error {
	if !k.Ready(ctx) {
		return nil
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		if spare() >= worth {
			debug.FreeOSMemory()
		}
		dropProgram()
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// spare returns how much of the heap, in bytes, is garbage or free and not yet given
// back.
func spare() uint64 {
	samples := []metrics.Sample{
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/gc/heap/live:bytes"},
	}
	metrics.Read(samples)
	free, objects, live := samples[0].Value.Uint64(), samples[1].Value.Uint64(), samples[2].Value.Uint64()
	return free + objects - min(objects, live)
}
