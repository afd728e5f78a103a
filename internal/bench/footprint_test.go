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
	// podsEach is how many pods each of manyNodes has, and struckNodes is how many
	// of the nodes get a spot warning at the same moment.
	podsEach    = 20
	struckNodes = 500
)

// BenchmarkMemory reads the memory that lifeboatd has resident in a cluster of
// 5,000 nodes and 100,000 pods: idle, at the most while it started, and at the
// most while 500 of the nodes are struck at once.
func BenchmarkMemory(b *testing.B) {
	r := newRig(b)
	r.nodes(manyNodes)
	r.each(manyNodes-struckNodes, creators, func(ctx context.Context, i int) error { return r.createPods(ctx, struckNodes+i, podsEach) })
	r.each(struckNodes, creators, func(ctx context.Context, i int) error { return r.runPods(ctx, i, podsEach) })
	b.ResetTimer()
	r.start()
	b.ReportMetric(r.memory().most, "start-MiB")
	idle := r.steady()
	r.forgetMost()
	b.ReportMetric(idle.resident, "idle-MiB")
	b.ReportMetric(idle.anonymous, "idle-anon-MiB")
	b.ReportMetric(idle.file, "idle-file-MiB")

	r.fill(struckNodes, func(i int) string { return spot(fmt.Sprint("memory-", i), instance(i)) })
	r.evicted(struckNodes * podsEach)
	struck := r.steady()
	b.ReportMetric(struck.resident, "struck-MiB")
	b.ReportMetric(struck.anonymous, "struck-anon-MiB")
	b.ReportMetric(struck.file, "struck-file-MiB")
	b.ReportMetric(r.memory().most, "struck-most-MiB")
	r.stop()
	b.ReportMetric(0, "ns/op")
}

// memory is what a process has resident, in MiB (proc_pid_status(5)): what is
// its own, and pages of its program, which the kernel takes back at will and
// which several replicas on a machine share.
type memory struct{ resident, anonymous, file, most float64 }

func (r *rig) memory() memory {
	r.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.process.PID()))
	r.must(err)
	field := func(name string) float64 {
		_, after, _ := strings.Cut(string(text), "\n"+name+":")
		kib, err := strconv.ParseFloat(strings.Fields(after)[0], 64)
		r.must(err)
		return kib / 1024
	}
	return memory{resident: field("VmRSS"), anonymous: field("RssAnon"), file: field("RssFile"), most: field("VmHWM")}
}

// forgetMost begins anew to note the most memory that lifeboatd had (proc(5),
// clear_refs).
func (r *rig) forgetMost() {
	r.Helper()
	r.must(os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", r.process.PID()), []byte("5"), 0))
}

// steady waits until memory neither grows nor shrinks, and returns what it was when
// it was the most in its last minute: lifeboatd gives memory back twice a minute, and
// some of it comes again in between.
func (r *rig) steady() memory {
	r.Helper()
	last := r.mostOfMinute()
	for range 6 {
		now := r.mostOfMinute()
		if now.resident > last.resident*0.97 && now.resident < last.resident*1.03 {
			return now
		}
		last = now
	}
	r.Fatalf("memory is not steady after seven minutes: %+v", last)
	return last
}

// mostOfMinute watches memory for a minute and returns what it was at the most.
func (r *rig) mostOfMinute() memory {
	r.Helper()
	var most memory
	for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(100 * time.Millisecond) {
		if now := r.memory(); now.resident > most.resident {
			most = now
		}
	}
	return most
}
