package app

import (
	"context"
	"os"
	"runtime/debug"
)

// garbagePercent replaces Go's default GOGC of 100. Most of the heap is caches, so that a
// default heap is half garbage; memory is dearer here than the processor time to collect
// more often. The chart sets GOMEMLIMIT, which bounds the heap in a storm.
const garbagePercent = 25

// LimitGarbage makes the garbage collector run early, unless GOGC says otherwise.
func LimitGarbage() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
}

// freeMemory returns memory to the operating system once the caches have synced: the first
// lists take several times the memory of the caches that they fill. It is a manager's
// Runnable.
type freeMemory struct {
	synced func(ctx context.Context) bool
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: every replica has caches.
func (freeMemory) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (f freeMemory) Start(ctx context.Context) error {
	if f.synced(ctx) {
		debug.FreeOSMemory()
	}
	return nil
}
