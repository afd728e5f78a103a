package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// BenchmarkStorm interrupts all nodes of a cluster at the same moment, ten pods
// on each, and times how long it takes until every node is cordoned and every
// pod was asked to stop. The floor does the same with bare calls, as many at
// once as turned out to be fastest, before and after.
func BenchmarkStorm(b *testing.B) {
	r := newRig(b)
	for _, nodes := range []int{200, 1000} {
		b.Run(fmt.Sprintf("nodes-%d", nodes), func(b *testing.B) {
			r := r.of(b)
			best := r.bestAbreast(200)
			r.storm(200) // the API server has seen the floor's requests by now, and is to have seen ours
			var floor, ours gale
			for range b.N {
				before, storm, after := r.bare(nodes, best), r.storm(nodes), r.bare(nodes, best)
				b.Logf("asked after %.1f s; floors %.1f and %.1f s", (storm.asked - storm.cordoned).Seconds(), before.asked.Seconds(), after.asked.Seconds())
				floor.add(before)
				ours.add(storm)
				floor.add(after)
			}
			floor.scale(2 * b.N)
			ours.scale(b.N)
			reportGale(b, nodes, floor, ours)
			b.ReportMetric(float64(best), "floor-abreast")
		})
	}
}

// gale is how a storm went.
type gale struct {
	// recorded is when the last interruption was, cordoned when the last node was,
	// asked when the last pod was, after the interruption; for the floor, which
	// records nothing, each counts from the beginning of its calls.
	recorded, cordoned, asked time.Duration
	// early are pods that were asked to stop before the last node was cordoned,
	// hurried those that were not given their whole grace, or too late for it.
	early, hurried int
	// requests are those that the API server has answered, by kind.
	requests map[string]int
	cost
}

func (g *gale) add(o gale) {
	g.recorded += o.recorded
	g.cordoned += o.cordoned
	g.asked += o.asked
	g.early += o.early
	g.hurried += o.hurried
	g.cluster += o.cluster
	g.lifeboat += o.lifeboat
	g.here += o.here
	if g.requests == nil {
		g.requests = map[string]int{}
	}
	for kind, n := range o.requests {
		g.requests[kind] += n
	}
}

// scale makes a mean of a sum.
func (g *gale) scale(n int) {
	by := time.Duration(n)
	g.recorded, g.cordoned, g.asked = g.recorded/by, g.cordoned/by, g.asked/by
	g.cluster, g.lifeboat, g.here = g.cluster/by, g.lifeboat/by, g.here/by
}

func reportGale(b *testing.B, nodes int, floor, ours gale) {
	b.ReportMetric(floor.cordoned.Seconds(), "floor-cordoned-s")
	b.ReportMetric(floor.asked.Seconds(), "floor-asked-s")
	b.ReportMetric(ours.recorded.Seconds(), "recorded-s")
	b.ReportMetric(ours.cordoned.Seconds(), "cordoned-s")
	b.ReportMetric(ours.asked.Seconds(), "asked-s")
	b.ReportMetric(ours.cordoned.Seconds()/floor.cordoned.Seconds(), "cordoned-ratio")
	b.ReportMetric((ours.asked-ours.cordoned).Seconds()/floor.asked.Seconds(), "asked-ratio")
	b.ReportMetric(ours.asked.Seconds()/(floor.cordoned+floor.asked).Seconds(), "whole-ratio")
	b.ReportMetric(float64(ours.early), "early-pods")
	b.ReportMetric(float64(ours.hurried), "hurried-pods")
	b.ReportMetric(floor.cluster.Seconds(), "floor-cluster-cpu-s")
	b.ReportMetric(ours.cluster.Seconds(), "cluster-cpu-s")
	b.ReportMetric(ours.lifeboat.Seconds(), "lifeboat-cpu-s")
	for kind, n := range ours.requests {
		if each := float64(n) / float64(nodes*b.N); each >= 0.05 {
			b.ReportMetric(each, kind+"/node")
		}
	}
	b.ReportMetric(0, "ns/op")
}

// stormWorld makes nodes with ready pods, without anything that went before.
func (r *rig) stormWorld(nodes int) {
	r.Helper()
	r.clear()
	r.nodes(nodes)
	r.each(nodes, creators, func(ctx context.Context, i int) error { return r.runPods(ctx, i, podsPerNode) })
}

// bestAbreast finds how many evictions at once are the fastest, on a quarter of
// a small world for each number.
func (r *rig) bestAbreast(nodes int) int {
	r.Helper()
	tries := []int{50, 100, 200, 400}
	r.stormWorld(nodes)
	part := nodes * podsPerNode / len(tries)
	best, shortest := 0, time.Duration(0)
	for k, abreast := range tries {
		began := time.Now()
		r.each(part, abreast, func(ctx context.Context, i int) error { return r.evict(ctx, k*part+i) })
		if took := time.Since(began); best == 0 || took < shortest {
			best, shortest = abreast, took
		}
	}
	return best
}

// bare is the floor: a patch for each node, then an eviction for each pod.
func (r *rig) bare(nodes, abreast int) gale {
	r.Helper()
	r.stormWorld(nodes)
	seen := r.watchStorm(nodes) // it costs the API server the same in both
	defer seen.stop()
	r.settle()
	began := r.begin()
	r.each(nodes, abreast, func(ctx context.Context, i int) error {
		return r.peer.Patch(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i)}}, cordon())
	})
	g := gale{cordoned: time.Since(began.at)}
	second := time.Now()
	r.each(nodes*podsPerNode, abreast, r.evict)
	g.asked = time.Since(second)
	g.cost = r.since(began, nodes).cost
	return g
}

// cordon is a patch of the same effect as lifeboatd's.
func cordon() client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"lifeboat.dev/before":"{\"inBalancers\":true}"},`+
		`"labels":{"`+v1alpha1.LabelExcludeBalancers+`":"floor"}},"spec":{"unschedulable":true,"taints":[{"key":"lifeboat.dev/interrupted","value":"SpotInterruption","effect":"NoSchedule"}]}}`))
}

// evict asks the i-th pod of a storm to stop.
func (r *rig) evict(ctx context.Context, i int) error {
	p := pod(i/podsPerNode, i%podsPerNode)
	return r.peer.SubResource("eviction").Create(ctx, p, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}})
}

// warm sends a notice of one more node, without pods, and waits until it is
// cordoned: lifeboatd is ready to hear notices a moment before its loops run.
func (r *rig) warm(i int) {
	r.Helper()
	r.must(r.admin.Create(r.Context(), node(i)))
	r.fill(1, func(int) string { return spot(fmt.Sprint("warm-", r.rounds), instance(i)) })
	r.until("the first node to be cordoned", time.Minute, func() (bool, error) {
		var n corev1.Node
		err := r.admin.Get(r.Context(), client.ObjectKey{Name: nodeName(i)}, &n)
		return n.Spec.Unschedulable, err
	})
	r.must(r.admin.Delete(r.Context(), node(i)))
}

// settle waits until the API server and lifeboatd have had next to nothing to do for a
// second and a half: what it takes to make a world, or to start, is no part of a storm.
func (r *rig) settle() {
	r.Helper()
	const window, little, windows = 500 * time.Millisecond, 50 * time.Millisecond, 3
	was, at, quiet := r.cost(), time.Now(), 0
	r.until("the API server and lifeboatd to have nothing to do", time.Minute, func() (bool, error) {
		if time.Since(at) < window {
			return quiet == windows, nil
		}
		now := r.cost()
		spent := now.cluster + now.lifeboat - was.cluster - was.lifeboat
		was, at, quiet = now, time.Now(), quiet+1
		if spent > little {
			quiet = 0
		}
		return quiet == windows, fmt.Errorf("in the last %s they took %s of processor time", window, spent)
	})
}

// storm interrupts all nodes at the same moment.
func (r *rig) storm(nodes int) gale {
	r.Helper()
	r.stormWorld(nodes)
	r.start()
	r.warm(nodes)
	seen := r.watchStorm(nodes)
	defer seen.stop()
	requests := r.requests()
	r.settle()
	began := r.begin()
	deadline := began.at.Add(2 * time.Minute)
	r.fill(nodes, func(i int) string { return spot(fmt.Sprintf("storm-%d-%d", r.rounds, i), instance(i)) })
	r.until("all pods to be asked to stop", 10*time.Minute, func() (bool, error) {
		c, a := seen.counts()
		return c == nodes && a == nodes*podsPerNode, fmt.Errorf("%d nodes are cordoned, %d pods were asked to stop", c, a)
	})
	g := gale{cost: r.since(began, nodes).cost, requests: r.requests()}
	for kind, n := range requests {
		g.requests[kind] -= n
	}
	last := seen.lastCordon()
	g.recorded, g.cordoned, g.asked = seen.lastRecord().at.Sub(began.at), last.at.Sub(began.at), seen.lastAsked().Sub(began.at)
	g.early, g.hurried = seen.before(last.revision), seen.hurried(deadline)
	r.stop()
	return g
}
