//go:build e2e

package bench

import (
	"testing"
	"time"
)

// TestBenchmarksWork runs every benchmark of the API server once on a small scale. It measures
// nothing.
func TestBenchmarksWork(t *testing.T) {
	r := newRig(t)
	const nodes, messages = 20, 200
	r.rebuild(nodes, 0, 0, 1)
	if r.createInterruptions(nodes) <= 0 || r.createSmall(nodes) <= 0 {
		t.Error("the intake floors measured no time")
	}
	r.takeIn(newLoad("noise", messages, messages/20, nodes, noisy), 0)
	if took := r.spotBehindNoise(0, 20); took <= 0 {
		t.Errorf("a spot warning behind noise took %s", took)
	}
	r.smokeLatency(t)
	r.smokeStorm(t)
	r.smokeScale(t)
}

func (r *rig) smokeLatency(t *testing.T) {
	t.Helper()
	r.rebuild(4, podsPerNode, 4, stormReplicas)
	r.start()
	for name, times := range r.latencies(2) {
		if len(times) != 2 || quantile(times, 0.5) <= 0 {
			t.Errorf("latencies of %s: %v", name, times)
		}
	}
	r.stop()
	r.rebuild(3, podsPerNode, 2, stormReplicas)
	if m := r.measureMemory(2, time.Second); m.Idle.Anonymous <= 0 || m.Interrupted.Resident < m.Interrupted.Anonymous {
		t.Errorf("memory %+v", m)
	}
}

func (r *rig) smokeStorm(t *testing.T) {
	t.Helper()
	const nodes = 8
	r.world.nodes = nodes
	if best := r.fastestInFlight(); best == 0 {
		t.Error("fastestInFlight returned 0")
	}
	report := stormReport{Case: "smoke", Nodes: nodes, Pods: r.world.pods(), Floors: []floorResult{r.measureFloor(50)}}
	report.Storm = r.storm(stormCase{name: "smoke", nodes: nodes, agents: 50})
	t.Log("\n" + report.table())
	storm := report.Storm
	if storm.Evicted < storm.FirstEvicted || storm.Cordoned <= 0 || storm.Recorded <= 0 || !storm.Complete {
		t.Errorf("a storm: %+v", storm)
	}
	for kind, least := range map[string]int{"patch nodes": nodes, eviction: nodes * podsPerNode} {
		if got := storm.EvictedRequests[kind]; got < least {
			t.Errorf("the audit log has %d requests %q until all pods were evicted, want at least %d", got, kind, least)
		}
	}
	if storm.Memory.Anonymous <= 0 || report.Floors[0].EvictedCPU.APIServer <= 0 {
		t.Errorf("memory %+v, floors %+v", storm.Memory, report.Floors)
	}
}

func (r *rig) smokeScale(t *testing.T) {
	t.Helper()
	c := scaleCase{name: "smoke", nodes: 12, podsOnNode: 2, interrupted: 3, policies: 2, records: 5, replicas: []int{2}, idle: time.Second}
	got := r.scale(c)
	if !got.Complete || got.FirstEviction <= 0 || got.Ready <= 0 {
		t.Errorf("scale: %+v", got)
	}
	for name, s := range map[string]stage{"start": got.Start, "idle": got.Idle, "interruption": got.Interruption, "policies": got.WithPolicies, "records": got.WithRecords} {
		if s.Settled.Anonymous <= 0 || s.Heap <= 0 || s.Goroutines <= 0 {
			t.Errorf("stage %s: %+v", name, s)
		}
	}
	if got.Start.Requests["list nodes"] == 0 && got.Start.Requests["watch nodes"] == 0 {
		t.Errorf("no request for nodes at the start: %v", got.Start.Requests)
	}
	if n := got.Interruption.Requests["create interruptions"]; n != c.interrupted {
		t.Errorf("%d Interruptions were created, want %d", n, c.interrupted)
	}
	if len(got.Failovers) != 1 || got.Failovers[0].Evicted <= 0 {
		t.Errorf("failovers %+v, want one", got.Failovers)
	}
}
