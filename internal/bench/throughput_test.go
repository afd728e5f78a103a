package bench

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// manyNodes is the size of a large cluster, and mostNodes of the largest here.
const manyNodes, mostNodes = 5000, 15000

// BenchmarkIntake takes in a load on a replica that does not lead: every
// message that concerns a node ends up in an Interruption.
func BenchmarkIntake(b *testing.B) {
	r := newRig(b)
	r.nodes(mostNodes)
	for _, load := range loads() {
		b.Run(load.name, func(b *testing.B) {
			r := r.of(b)
			var floor, ours tally
			for round := range b.N {
				floor.add(r.floor(load.records))
				r.startIntake()
				began := r.begin()
				r.fill(load.messages, func(i int) string { return load.body(round, i, load.nodes) })
				r.emptied(load.strangers)
				ours.add(r.since(began, load.messages))
				r.recorded(load.records)
				r.stop()
				r.forget()
				floor.add(r.floor(load.records))
			}
			report(b, floor, ours)
		})
	}
}

// BenchmarkController takes in a load and acts on it: the clock stops when the
// queue is empty and every node with a spot warning is tainted.
func BenchmarkController(b *testing.B) {
	r := newRig(b)
	for _, load := range loads() {
		b.Run(load.name, func(b *testing.B) {
			r := r.of(b)
			var floor, ours tally
			for round := range b.N {
				r.nodes(load.nodes)
				floor.add(r.floor(load.records))
				r.start()
				tainted := r.watchTaints()
				writes := r.writes()
				began := r.begin()
				r.fill(load.messages, func(i int) string { return load.body(round, i, load.nodes) })
				r.emptied(load.strangers)
				for range load.doomed {
					<-tainted
				}
				ours.add(r.since(began, load.messages))
				b.ReportMetric(float64(r.writes()-writes)/float64(load.messages), "writes/message")
				r.stop()
				r.forget()
				floor.add(r.floor(load.records))
			}
			report(b, floor, ours)
		})
	}
}

// BenchmarkSpotBehindNoise times one spot warning that was sent after ten
// thousand messages of no concern, until its node is tainted.
func BenchmarkSpotBehindNoise(b *testing.B) {
	const before = 10000
	r := newRig(b)
	r.nodes(100)
	tainted := r.watchTaints()
	var took time.Duration
	for round := range b.N {
		r.start()
		began := time.Now()
		r.fill(before, func(i int) string { return noise(round, i) })
		r.fill(1, func(int) string { return spot("the-one", instance(round)) })
		<-tainted
		took += time.Since(began)
		r.stop()
	}
	b.ReportMetric(took.Seconds()/float64(b.N), "s/warning")
	b.ReportMetric(0, "ns/op")
}

// load is a number of messages of a mix.
type load struct {
	name     string
	messages int
	body     func(round, i, nodes int) string
	// nodes are those that the messages are about, in turn.
	nodes int
	// records is in how many Interruptions they end up, and doomed how many
	// nodes have a hard deadline.
	records, doomed int
	// strangers is how many messages stay, since they may come to concern a node.
	strangers int
}

func loads() []load {
	var all []load
	for _, n := range []int{1000, 5000, 15000} {
		all = append(all, of(fmt.Sprintf("mixed-%d", n), n, n, max(n, manyNodes), mixed))
	}
	return append(all,
		of("joined-15000", 15000, 15000, manyNodes, mixed), // three about each node
		of("noise95-15000", 15000, 750, manyNodes, noisy))
}

func of(name string, messages, relevant, nodes int, body func(round, i, nodes int) string) load {
	doomed := map[int]bool{}
	for i := range relevant {
		if i%3 != 2 {
			doomed[i%nodes] = true
		}
	}
	strangers := 0
	for i := range messages {
		if relevant < messages && i%20 != 0 && waits(i) {
			strangers++
		}
	}
	return load{name: name, messages: messages, body: body, nodes: nodes, records: min(relevant, nodes), doomed: len(doomed), strangers: strangers}
}

// of is the rig in a part of a benchmark.
func (r *rig) of(b *testing.B) *rig {
	part := *r
	part.TB = b
	return &part
}

// recorded sees that there are as many Interruptions as there should be.
func (r *rig) recorded(want int) {
	r.Helper()
	var list v1alpha1.InterruptionList
	r.must(r.admin.List(r.Context(), &list))
	if len(list.Items) != want {
		r.Fatalf("%d Interruptions, want %d", len(list.Items), want)
	}
}

func report(b *testing.B, floor, ours tally) {
	b.ReportMetric(floor.rate(), "floor/s")
	b.ReportMetric(ours.rate(), "messages/s")
	b.ReportMetric(ours.rate()/floor.rate(), "ratio")
	b.ReportMetric(floor.each(floor.cluster+floor.here), "floor-cpu-us")
	b.ReportMetric(ours.each(ours.cluster), "cluster-cpu-us")
	b.ReportMetric(ours.each(ours.lifeboat), "lifeboat-cpu-us")
	b.ReportMetric(ours.each(ours.here), "emulator-cpu-us")
	b.ReportMetric(0, "ns/op")
}

// watchTaints tells the name of each node when it gets the taint of a doomed
// one.
func (r *rig) watchTaints() <-chan string {
	r.Helper()
	w, err := r.admin.Watch(r.Context(), &corev1.NodeList{})
	r.must(err)
	r.Cleanup(w.Stop)
	tainted := make(chan string, 2*mostNodes)
	go func() {
		seen := map[string]bool{}
		for e := range w.ResultChan() {
			n, ok := e.Object.(*corev1.Node)
			switch {
			case !ok:
			case e.Type == watch.Deleted || !isTainted(n):
				delete(seen, n.Name)
			case !seen[n.Name]:
				seen[n.Name] = true
				tainted <- n.Name
			}
		}
	}()
	return tainted
}

func isTainted(n *corev1.Node) bool {
	for _, t := range n.Spec.Taints {
		if t.Key == v1alpha1.TaintInterrupted && t.Effect == corev1.TaintEffectNoSchedule {
			return true
		}
	}
	return false
}
