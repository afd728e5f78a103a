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
