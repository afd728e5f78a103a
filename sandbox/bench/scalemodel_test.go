package bench

import (
	"math"
	"testing"
)

// slopes are the costs of one more object, calculated from runs of BenchmarkScale. Memory is anonymous.
type slopes struct {
	// Memory when idle: of an empty cluster in MiB, of the objects in KiB.
	Empty, IdleNode, InterruptedNode, Record float64
	// The peak at the start: of an empty cluster in MiB, of a node in KiB.
	StartEmpty, StartNode float64
	// What a node costs at the start and in an idle minute, in KiB.
	ReceivedStart, ReceivedIdle float64
}

// size is a cluster. Interrupted nodes have as many pods as in the calibration.
type size struct{ nodes, interrupted, records int }

// expected is what the model expects of one replica, in MiB.
type expected struct{ Start, Idle, Busy, ReceivedStart, ReceivedIdle float64 }

const kib = 1.0 / 1024

// expect adds up the slopes. It assumes that costs are linear beyond the measured sizes too.
func (s slopes) expect(c size) expected {
	n, records := float64(c.nodes), float64(c.records)*s.Record*kib
	idle := s.Empty + n*s.IdleNode*kib + records
	return expected{
		Start: s.StartEmpty + n*s.StartNode*kib + records, Idle: idle, Busy: idle + float64(c.interrupted)*s.InterruptedNode*kib,
		ReceivedStart: n * s.ReceivedStart * kib, ReceivedIdle: n * s.ReceivedIdle * kib,
	}
}

// calibrate calculates the slopes from clusters of different sizes. The first one has records.
func calibrate(sizes []scaleResult) slopes {
	var x []float64
	for _, r := range sizes {
		x = append(x, float64(r.Nodes))
	}
	line := func(of func(scaleResult) float64) (at0, slope float64) {
		var y []float64
		for _, r := range sizes {
			y = append(y, of(r))
		}
		at0, slope = leastSquares(x, y)
		return at0, slope / kib
	}
	var s slopes
	s.Empty, s.IdleNode = line(func(r scaleResult) float64 { return r.Idle.Settled.Anonymous })
	s.StartEmpty, s.StartNode = line(func(r scaleResult) float64 { return r.Start.Peak.MostAnonymous })
	_, s.ReceivedStart = line(func(r scaleResult) float64 { return r.Start.ReceivedMiB })
	_, s.ReceivedIdle = line(func(r scaleResult) float64 { return perMinute(r.Idle, r.Idle.ReceivedMiB) })
	for _, r := range sizes {
		s.InterruptedNode += busyNode(r) / kib / float64(len(sizes))
	}
	first := sizes[0]
	s.Record = (first.WithRecords.Settled.Anonymous - first.WithPolicies.Settled.Anonymous) / float64(first.Records) / kib
	return s
}

// busyNode is the peak of an interrupted node in MiB.
func busyNode(r scaleResult) float64 {
	return (r.Interruption.Peak.MostAnonymous - r.Idle.Settled.Anonymous) / float64(r.Interrupted)
}

// leastSquares fits y = at0 + slope*x.
func leastSquares(x, y []float64) (at0, slope float64) {
	var sx, sy, sxx, sxy float64
	n := float64(len(x))
	for i := range x {
		sx, sy, sxx, sxy = sx+x[i], sy+y[i], sxx+x[i]*x[i], sxy+x[i]*y[i]
	}
	slope = (n*sxy - sx*sy) / (n*sxx - sx*sx)
	return (sy - slope*sx) / n, slope
}

// TestScaleModel calibrates the model with clusters whose costs are known.
func TestScaleModel(t *testing.T) {
	want := slopes{Empty: 30, IdleNode: 6, InterruptedNode: 300, Record: 5, StartEmpty: 60, StartNode: 20, ReceivedStart: 2, ReceivedIdle: 3}
	of := func(nodes int) scaleResult {
		r := scaleResult{Nodes: nodes, Interrupted: 200, Records: 1000}
		n := float64(nodes)
		r.Idle.Seconds, r.Idle.ReceivedMiB = 30, n*want.ReceivedIdle*kib/2
		r.Idle.Settled.Anonymous = want.Empty + n*want.IdleNode*kib
		r.Start.Peak.MostAnonymous, r.Start.ReceivedMiB = want.StartEmpty+n*want.StartNode*kib, 1+n*want.ReceivedStart*kib
		r.Interruption.Peak.MostAnonymous = r.Idle.Settled.Anonymous + 200*want.InterruptedNode*kib
		r.WithPolicies.Settled.Anonymous = 31
		r.WithRecords.Settled.Anonymous = 31 + 1000*want.Record*kib
		return r
	}
	got := calibrate([]scaleResult{of(1000), of(5000), of(10_000)})
	near := func(name string, got, want float64) {
		if math.Abs(got-want) > 1e-6 {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	near("empty", got.Empty, want.Empty)
	near("idle node", got.IdleNode, want.IdleNode)
	near("interrupted node", got.InterruptedNode, want.InterruptedNode)
	near("record", got.Record, want.Record)
	near("start", got.StartEmpty, want.StartEmpty)
	near("start of a node", got.StartNode, want.StartNode)
	near("received at the start", got.ReceivedStart, want.ReceivedStart)
	near("received idle", got.ReceivedIdle, want.ReceivedIdle)

	e := got.expect(size{nodes: 2048, interrupted: 1024, records: 2048})
	near("idle", e.Idle, 30+12+10)
	near("busy", e.Busy, e.Idle+300)
	near("start peak", e.Start, 60+40+10)
	near("received", e.ReceivedStart+e.ReceivedIdle, 4+6)
	if got := e.limit(); got != 768 { // 1.5 times 352
		t.Errorf("a memory limit of %d MiB, want 768", got)
	}
}
