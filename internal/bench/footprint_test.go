package bench

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	// doomedAtOnce of the nodes get a spot warning, and podsEach is how many pods
	// each node of the cluster has.
	doomedAtOnce = 1000
	podsEach     = 4
)

// BenchmarkMemory reads the memory that lifeboatd has resident in a cluster of
// 5,000 nodes: without pods, with 20,000, and with 1,000 nodes doomed at once.
func BenchmarkMemory(b *testing.B) {
	r := newRig(b)
	for range b.N {
		r.nodes(manyNodes)
		r.start()
		b.ReportMetric(r.resident(), "idle-MiB")
		r.stop()

		r.each(manyNodes, 16, func(ctx context.Context, i int) error { return r.createPods(ctx, i, podsEach) })
		r.start()
		b.ReportMetric(r.resident(), "pods-MiB")

		tainted := r.watchTaints()
		r.fill(doomedAtOnce, func(i int) string { return spot(fmt.Sprint("memory-", i), instance(i)) })
		r.emptied(0)
		for range doomedAtOnce {
			<-tainted
		}
		r.evicted(doomedAtOnce * podsEach)
		b.ReportMetric(r.resident(), "doomed-MiB")
		r.stop()
	}
	b.ReportMetric(0, "ns/op")
}

// resident is the memory of lifeboatd in MiB, once it stops growing.
func (r *rig) resident() float64 {
	r.Helper()
	last, steady := 0.0, time.Now()
	r.until("memory to be steady", 2*time.Minute, func() (bool, error) {
		if now := r.rss(); now > last*1.01 {
			last, steady = now, time.Now()
		}
		return time.Since(steady) > 3*time.Second, nil
	})
	return last
}

// rss reads VmRSS (proc_pid_status(5)).
func (r *rig) rss() float64 {
	r.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.process.PID()))
	r.must(err)
	_, after, _ := strings.Cut(string(text), "VmRSS:")
	kib, err := strconv.ParseFloat(strings.Fields(after)[0], 64)
	r.must(err)
	return kib / 1024
}
