// Package footprint keeps small what lifeboatd has resident. What it does now and
// then, at its start and when many nodes go at once, takes several times the memory
// that it holds in between; left to itself, Go returns that over minutes, and the
// kernel takes the pages of a program back only once memory is short.
package footprint

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/calm"
)

const (
	// interval is how often memory is given back, and worth the least of the heap that
	// garbage is collected for: that takes some 50 ms of one processor for 50 MiB that
	// are live, a thousandth or two of one. Pages of the program are given back each
	// time: those that are needed again, about a quarter, come back from the kernel's
	// cache as they are touched, in a microsecond each.
	interval = 30 * time.Second
	worth    = 4 << 20
	// tight is the garbage that may be there while it is calm, in percent of what is live
	// (runtime/debug, SetGCPercent), and loose the least that may be there otherwise. What
	// is kept is caches, and is small: memory is dearer here than the time to sweep it.
	tight, loose = 10, 20
	// room is up to what size, in bytes, the heap may grow before it is swept, while
	// something urgent is being done: a quarter of the processor time went into that
	// otherwise, where many nodes go at once in a small cluster.
	room = 40 << 20
	// again is how often it is looked how much of the room is live.
	again = 250 * time.Millisecond
	// often is how often memory is given back meanwhile, and for aftermath after it, when what
	// has waited is written: storms last a minute, and in the midst of one there are 10 MiB
	// and more that nothing needs any longer.
	often, aftermath = 5 * time.Second, time.Minute
	// oftenProgram is how often pages of the program are given back meanwhile, which costs
	// less: each lasts until something is done that is not done all the time.
	oftenProgram = time.Second
)

// Tighten has garbage collected early, from the start of a program on. Who sets GOGC
// decides that themselves.
func Tighten() { setPercent(tight) }

func setPercent(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// Keeper is a manager's Runnable that gives memory back, on every replica.
type Keeper struct {
	// Ready waits until the start is over, as far as it takes memory.
	Ready func(ctx context.Context) bool
	// Calm tells when something urgent is being done.
	Calm *calm.Calm
}

// NeedLeaderElection says that it runs on replicas that do not lead as well.
func (k *Keeper) NeedLeaderElection() bool { return false }

// Start gives memory back once the start is over, and from then on at intervals,
// until ctx is done.
func (k *Keeper) Start(ctx context.Context) error {
	if !k.Ready(ctx) {
		return nil
	}
	giveBack()
	calmSince, due := time.Time{}, time.Now().Add(interval)
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for {
		timer.Reset(time.Until(due))
		select {
		case <-ctx.Done():
			return nil
		case <-k.Calm.Begun():
			k.loosen(ctx)
			calmSince = time.Now()
			if soon := calmSince.Add(often); soon.Before(due) {
				due = soon
			}
		case <-timer.C:
			giveBack()
			due = time.Now().Add(pause(time.Since(calmSince)))
		}
	}
}

// pause is how long after it was done memory is given back again, by how long it has been
// calm.
func pause(calm time.Duration) time.Duration {
	if calm < aftermath {
		return often
	}
	return interval
}

func giveBack() {
	if spare() >= worth {
		debug.FreeOSMemory()
	}
	dropProgram()
}

// loosen lets the heap grow into its room until it is calm again, and gives memory back
// meanwhile too.
func (k *Keeper) loosen(ctx context.Context) {
	tick, back, program := time.NewTicker(again), time.NewTicker(often), time.NewTicker(oftenProgram)
	defer tick.Stop()
	defer back.Stop()
	defer program.Stop()
	defer Tighten()
	for {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		setPercent(percent(live[0].Value.Uint64()))
		select {
		case <-ctx.Done():
			return
		case <-k.Calm.Here():
			return
		case <-back.C:
			giveBack()
		case <-program.C:
			dropProgram()
		case <-tick.C:
		}
	}
}

// percent is how much garbage may be there so that the heap fills its room.
func percent(live uint64) int {
	if live == 0 || live >= room {
		return loose
	}
	return max(loose, int((room-live)*100/live))
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
