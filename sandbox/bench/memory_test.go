package bench

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// The sizes of the memory benchmark. Deployments are larger than in a storm, as they are in
// large clusters.
const (
	memoryNodes, memoryPods, memoryReplicas = 5000, 20, 50
	memoryInterrupted                       = 500
)

// memoryReport is lifeboatd's memory in MiB. It has the peaks of four periods: the start, an idle
// minute, the interruption of some nodes, and a minute after that.
type memoryReport struct {
	Start       memoryPeak `json:"start"`
	Idle        memoryPeak `json:"idle"`
	Interrupted memoryPeak `json:"interrupted"`
	After       memoryPeak `json:"after"`
}

// BenchmarkMemory measures lifeboatd's memory on a cluster of 5,000 nodes and 100,000 pods: idle,
// and while 500 of the nodes are interrupted at once.
func BenchmarkMemory(b *testing.B) {
	r := newRig(b)
	r.rebuild(memoryNodes, memoryPods, memoryInterrupted, memoryReplicas)
	report := r.measureMemory(memoryInterrupted, time.Minute)
	text, err := json.Marshal(report)
	must(b, err)
	fmt.Printf("JSON %s\n", text)
	for name, m := range map[string]memoryPeak{"start": report.Start, "idle": report.Idle, "interrupted": report.Interrupted, "after": report.After} {
		b.ReportMetric(m.Resident, name+"-resident-MiB")
		b.ReportMetric(m.MostAnonymous, name+"-anonymous-MiB")
	}
	b.ReportMetric(0, "ns/op")
}

// measureMemory starts lifeboatd, watches it idle for a while, interrupts some nodes, and watches it
// again.
func (r *rig) measureMemory(interrupted int, while time.Duration) memoryReport {
	r.Helper()
	var report memoryReport
	r.start()
	samples := r.sampleMemory()
	r.untilIdle()
	report.Start = samples.stop()
	report.Idle = r.sampleFor(while)

	log := r.audit()
	samples = r.sampleMemory()
	r.fill(interrupted, func(i int) string { return spot(fmt.Sprint("memory-", i), instance(i)) })
	if !r.untilAccounted(interrupted) {
		r.Errorf("%d of %d Interruptions account for all their pods after %s", r.recorded(), interrupted, patience)
	}
	r.untilQuiet(log)
	report.Interrupted = samples.stop()
	report.After = r.sampleFor(while)
	r.stop()
	return report
}

// sampleFor samples lifeboatd's memory for some time.
func (r *rig) sampleFor(d time.Duration) memoryPeak {
	r.Helper()
	samples := r.sampleMemory()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done():
	}
	return samples.stop()
}
