//go:build e2e

package bench

import "testing"

// TestBenchmarksWork runs the parts of the benchmarks once, on a small scale: it
// measures nothing.
func TestBenchmarksWork(t *testing.T) {
	const nodes, messages = 30, 200
	r := newRig(t)
	r.nodes(nodes)
	if floor := r.floor(nodes); floor.rate() <= 0 {
		t.Errorf("floor %+v", floor)
	}

	r.startIntake()
	r.fill(messages, func(i int) string { return noisy(0, i, nodes) })
	r.emptied(of("noise", messages, messages/20, nodes, noisy).strangers)
	r.recorded(messages / 20)
	r.stop()
	r.forget()

	r.must(r.createPods(t.Context(), 0, podsPerNode))
	before := r.writes()
	r.start()
	seen := r.watchWorld()
	r.receiveAndPatch(r.newQueue("floor"), 1, seen)
	r.sendTo(r.queueURL, spot("the-one", instance(0)))
	<-seen.taints
	<-seen.evictions
	r.settled(0)
	if r.memory().resident == 0 || r.writes() <= before {
		t.Error("neither memory nor writes can be read")
	}
	r.stop()

	const struck = 10
	if best := r.bestAbreast(struck); best == 0 {
		t.Error("nothing was the fastest")
	}
	if floor := r.bare(struck, abreast); floor.cordoned <= 0 || floor.asked <= 0 {
		t.Errorf("the floor of a storm: %+v", floor)
	}
	g := r.storm(struck)
	if g.recorded <= 0 || g.cordoned <= 0 || g.asked < g.cordoned {
		t.Errorf("a storm: %+v", g)
	}
	for kind, least := range map[string]int{"POST-interruptions": struck, "PATCH-nodes": struck, "POST-pods-eviction": struck * podsPerNode} {
		if g.requests[kind] < least {
			t.Errorf("%d %s in a storm, at least %d were made", g.requests[kind], kind, least)
		}
	}
}
