package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/sandbox/karpenter"
)

// creators is the number of concurrent writes that create a world. On two cores more are not
// faster.
const creators = 64

// world is a cluster as Karpenter leaves it: nodes with NodeClaims, and pods with owners and
// PodDisruptionBudgets.
type world struct {
	nodes, podsPerNode int
	// running is the number of nodes, from the first, whose pods run. Pods of other nodes are bound
	// but never start, which saves a write for each.
	running int
	// replicas is the number of pods of each Deployment.
	replicas int
	nodeUIDs []types.UID

	pool   types.UID   // of the NodePool; it survives the world
	owners []types.UID // of the ReplicaSets, by app; they survive the world
	spaces int         // namespaces that exist
	starts int         // of lifeboatd; each gets a new queue
}

func (w *world) pods() int { return w.nodes * w.podsPerNode }
func (w *world) apps() int { return (w.pods() + w.replicas - 1) / w.replicas }

// app is the Deployment of the k-th pod of a node. The pods of a node belong to different
// Deployments, as the scheduler spreads them.
func (w *world) app(on, k int) int { return (on*w.podsPerNode + k) % w.apps() }

// rebuild replaces the world with a new one of running pods on ready nodes.
func (r *rig) rebuild(nodes, podsPerNode, running, replicas int) {
	r.Helper()
	r.prepare(nodes, podsPerNode, running, replicas)
	r.each(nodes, creators, r.createNode)
	r.each(nodes, creators, r.createPods)
}

// rebuildLarge does the same, except that it writes the nodes whose pods do not run into etcd.
func (r *rig) rebuildLarge(nodes, podsPerNode, running, replicas int) {
	r.Helper()
	r.prepare(nodes, podsPerNode, running, replicas)
	r.each(running, creators, r.createNode)
	r.each(running, creators, r.createPods)
	r.populate(running)
}

// prepare replaces the world with one that has no nodes yet.
func (r *rig) prepare(nodes, podsPerNode, running, replicas int) {
	r.Helper()
	r.clear()
	w := r.world
	w.nodes, w.podsPerNode, w.running, w.replicas = nodes, podsPerNode, running, replicas
	w.nodeUIDs = make([]types.UID, nodes+1) // one more for warmUp
	r.karpenter()
	r.createApps()
}

// clear deletes the world, except the apps and the NodePool.
func (r *rig) clear() {
	r.Helper()
	r.each(r.world.spaces, 4, func(ctx context.Context, i int) error {
		return r.admin.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(namespace(i)), client.GracePeriodSeconds(0))
	})
	r.must(r.admin.DeleteAllOf(r.Context(), &corev1.Node{}))
	if r.world.pool != "" {
		r.must(r.admin.DeleteAllOf(r.Context(), object(karpenterAPI, "NodeClaim")))
	}
	r.deleteInterruptions()
}

func (r *rig) deleteInterruptions() {
	r.Helper()
	r.must(r.admin.DeleteAllOf(r.Context(), &v1beta1.Interruption{}))
}

func object(apiVersion, kind string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	return u
}

// karpenter installs Karpenter's CRDs and a NodePool that is not ready, once. Without
// Karpenter nothing else could launch a replacement, and Lifeboat does not wait for one.
func (r *rig) karpenter() {
	r.Helper()
	if r.world.pool != "" {
		return
	}
	files, err := karpenterCRDs(r.Context())
	r.must(err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		r.must(err)
		crd := &unstructured.Unstructured{}
		r.must(yaml.Unmarshal(text, &crd.Object))
		r.must(r.admin.Create(r.Context(), crd))
	}
	class, pool, err := karpenter.Defaults(0)
	r.must(err)
	r.until("the API server to serve NodePools", time.Minute, func() (bool, error) {
		err := errors.Join(
			client.IgnoreAlreadyExists(r.admin.Create(r.Context(), class.DeepCopy())), client.IgnoreAlreadyExists(r.admin.Create(r.Context(), pool.DeepCopy())),
		)
		return err == nil, err
	})
	unready := func(u *unstructured.Unstructured, types ...string) {
		r.must(r.admin.Get(r.Context(), client.ObjectKeyFromObject(u), u))
		u.Object["status"] = map[string]any{"conditions": conditions("False", types...)}
		r.must(r.admin.Status().Update(r.Context(), u))
	}
	unready(class, "SubnetsReady", "Ready")
	unready(pool, "NodeClassReady", "ValidationSucceeded", "Ready")
	r.world.pool = pool.GetUID()
	r.until("the API server to serve NodeClaims", time.Minute, func() (bool, error) {
		err := r.admin.DeleteAllOf(r.Context(), object(karpenterAPI, "NodeClaim"))
		return err == nil, err
	})
}

// createApps creates the missing Deployments, and resets all PodDisruptionBudgets.
func (r *rig) createApps() {
	r.Helper()
	w := r.world
	spaces := (w.apps() + appsPerNamespace - 1) / appsPerNamespace
	for ; w.spaces < spaces; w.spaces++ {
		name := namespace(w.spaces)
		r.must(r.admin.Create(r.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
		r.must(r.admin.Create(r.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "default"}}))
	}
	exist := len(w.owners)
	w.owners = append(w.owners, make([]types.UID, max(0, w.apps()-exist))...)
	r.each(len(w.owners)-exist, creators, func(ctx context.Context, i int) error {
		app := exist + i
		d := deployment(app, int32(w.replicas))
		if err := r.admin.Create(ctx, d); err != nil {
			return err
		}
		set := replicaSet(app, d)
		err := r.admin.Create(ctx, set)
		w.owners[app] = set.UID
		return errors.Join(err, r.admin.Create(ctx, budget(app)))
	})
	r.each(len(w.owners), creators, func(ctx context.Context, app int) error {
		var b policyv1.PodDisruptionBudget
		if err := r.admin.Get(ctx, client.ObjectKey{Namespace: namespaceOf(app), Name: appName(app)}, &b); err != nil {
			return err
		}
		b.Status = budgetStatus(int32(w.replicas))
		return r.admin.Status().Update(ctx, &b)
	})
}

// createNode creates the i-th node with its NodeClaim.
func (r *rig) createNode(ctx context.Context, i int) error {
	claim := nodeClaim(i, r.world.pool)
	if err := r.admin.Create(ctx, claim); err != nil {
		return err
	}
	claim.Object["status"] = nodeClaimStatus(i)
	if err := r.admin.Status().Update(ctx, claim); err != nil {
		return err
	}
	n := node(i, claim.GetUID())
	err := r.admin.Create(ctx, n)
	r.world.nodeUIDs[i] = n.UID
	return err
}

// createPods creates the pods of a node, and marks them as running if the world requires it. They
// never end: no kubelet runs.
func (r *rig) createPods(ctx context.Context, on int) error {
	for i := range r.world.podsPerNode {
		app := r.world.app(on, i)
		p := pod(on, i, app, r.world.owners[app])
		if err := r.admin.Create(ctx, p); err != nil {
			return err
		}
		if on >= r.world.running {
			continue
		}
		p.Status = running(p, on)
		if err := r.admin.Status().Update(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// removePods deletes all pods, as kubelets do when the containers have ended.
func (r *rig) removePods() {
	r.Helper()
	r.each(r.world.pods(), creators, func(ctx context.Context, i int) error {
		return client.IgnoreNotFound(r.admin.Delete(ctx, r.podRef(i), client.GracePeriodSeconds(0)))
	})
}

// podRef names the i-th pod of the world.
func (r *rig) podRef(i int) *corev1.Pod {
	on, k := i/r.world.podsPerNode, i%r.world.podsPerNode
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespaceOf(r.world.app(on, k)), Name: podName(on, k)}}
}

// untilIdle waits until API server, etcd and lifeboatd have used nearly no processor time for 1.5
// seconds. Measurements exclude the work of a start or of creating a world.
func (r *rig) untilIdle() {
	r.Helper()
	const window, little, windows = 500 * time.Millisecond, 0.05, 3
	was, at, quiet := r.cpu(), time.Now(), 0
	r.until("the API server and lifeboatd to be idle", 2*time.Minute, func() (bool, error) {
		if time.Since(at) < window {
			return quiet == windows, nil
		}
		now := r.cpu()
		spent := now.minus(was)
		was, at, quiet = now, time.Now(), quiet+1
		used := spent.APIServer + spent.Lifeboatd + spent.Etcd
		if used > little {
			quiet = 0
		}
		return quiet == windows, fmt.Errorf("processor time in the last %s: %.2f s", window, used)
	})
}
