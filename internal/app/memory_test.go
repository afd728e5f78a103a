package app

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

func TestGOGCIsRespected(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	percent := func() uint64 {
		sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	t.Setenv("GOGC", "70")
	if ConfigureRuntime(); percent() != 100 {
		t.Errorf("GOGC is set, but the percentage changed to %d", percent())
	}
	t.Setenv("GOGC", "")
	if ConfigureRuntime(); percent() != garbagePercent {
		t.Errorf("the percentage is %d, want %d", percent(), garbagePercent)
	}
}

func TestMemoryIsFreedAfterCacheSync(t *testing.T) {
	released := func() uint64 {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/released:bytes"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	garbage := make([]byte, 64<<20)
	for i := range garbage { // touched, so that it is resident
		garbage[i] = 1
	}
	before := released()
	garbage = nil
	for _, synced := range []bool{false, true} {
		f := freeMemory{synced: func(context.Context) bool { return synced }}
		if err := f.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if freed := released() > before+32<<20; freed != synced {
			t.Errorf("synced %t: freed %t", synced, freed)
		}
	}
	if (freeMemory{}).NeedLeaderElection() {
		t.Error("replicas that do not lead keep the memory of their lists")
	}
	_ = garbage
}

// The table of sampled allocations grows with each new call stack, for hours.
func TestAllocationsAreNotSampled(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	if ConfigureRuntime(); runtime.MemProfileRate != 0 {
		t.Errorf("one allocation in %d bytes is sampled", runtime.MemProfileRate)
	}
}
