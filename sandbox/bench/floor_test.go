package bench

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// floorResult is one run of the floor: one patch for each node, and apart from it one eviction
// for each pod. It receives, records and lists nothing.
type floorResult struct {
	Cordoned    float64 `json:"cordonedSeconds"`
	CordonedCPU cpu     `json:"cordonedCPU"`
	Evicted     float64 `json:"evictedSeconds"`
	EvictedCPU  cpu     `json:"evictedCPU"`
}

// measureFloor runs the floor on a new world.
func (r *rig) measureFloor(inFlight int) floorResult {
	r.Helper()
	r.rebuild(r.world.nodes, r.world.podsPerNode, r.world.nodes, r.world.replicas)
	seen := r.observe() // costs the API server the same as in a storm
	defer seen.stop()
	r.untilIdle()
	var result floorResult
	result.Cordoned, result.CordonedCPU = r.timed(func() { r.each(r.world.nodes, inFlight, r.cordon) })
	r.untilIdle()
	result.Evicted, result.EvictedCPU = r.timed(func() { r.each(r.world.pods(), inFlight, r.evict) })
	return result
}

// timed returns the seconds and the processor time that something took.
func (r *rig) timed(do func()) (seconds float64, used cpu) {
	r.Helper()
	before, began := r.cpu(), time.Now()
	do()
	seconds = time.Since(began).Seconds()
	return seconds, r.cpu().minus(before)
}

// cordon patches the i-th node with the effect of lifeboatd's own patch. The API server gives
// each new node the taint of a node that is not ready, and no controller runs that removes it.
func (r *rig) cordon(ctx context.Context, i int) error {
	patch := `{"metadata":{"annotations":{"lifeboat.dev/original-state":"{\"inBalancers\":true,\"cordoned\":true}"},"labels":{"` + v1beta1.LabelExcludeBalancers + `":"floor"}},` +
		`"spec":{"unschedulable":true,"taints":[{"key":"` + corev1.TaintNodeNotReady + `","effect":"NoSchedule"}]}}`
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i)}}
	return r.floor[i%len(r.floor)].Patch(ctx, node, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// evict evicts the i-th pod of the world.
func (r *rig) evict(ctx context.Context, i int) error {
	p := r.podRef(i)
	return r.floor[i%len(r.floor)].SubResource("eviction").Create(ctx, p, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name}})
}

// fastestInFlight finds how many evictions in flight are fastest. It warms the API server up
// with a whole world first, and tries each number twice, in both orders; the better try counts.
func (r *rig) fastestInFlight() int {
	r.Helper()
	r.measureFloor(100)
	r.rebuild(r.world.nodes, r.world.podsPerNode, r.world.nodes, r.world.replicas)
	r.untilIdle()
	tries := []int{50, 100, 200, 400, 400, 200, 100, 50}
	part := r.world.pods() / len(tries)
	best, shortest := 0, 0.0
	for k, inFlight := range tries {
		took, _ := r.timed(func() {
			r.each(part, inFlight, func(ctx context.Context, i int) error { return r.evict(ctx, k*part+i) })
		})
		if best == 0 || took < shortest {
			best, shortest = inFlight, took
		}
	}
	return best
}
