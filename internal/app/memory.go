package app

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
)

// garbagePercent replaces Go's default GOGC of 100. Most of the heap is caches,
// so a default heap is half garbage. Memory costs more here than the processor
// time of more collections. The chart sets GOMEMLIMIT, which bounds the heap
// under load.
const garbagePercent = 25

// ConfigureRuntime lowers GOGC unless the environment sets it, and stops the sampling of allocations:
// lifeboatd serves no profiles, and their table grows with each new call stack. It is called first.
func ConfigureRuntime() {
	runtime.MemProfileRate = 0
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbagePercent)
	}
}

// freeMemory returns memory to the operating system after the caches have
// synced: the first lists need several times the memory of the caches. It is a
// manager Runnable.
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
