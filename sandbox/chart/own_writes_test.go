//go:build e2e

package chart_test

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
)

// markedNodes is how many random nodes the controller marks and restores.
const markedNodes = 40

// TestMarkingKeepsOthersFields marks and restores random nodes as the controller does: with its token,
// and from what its cache keeps of a node. All fields of others must survive, also those
// that others write while the node is marked.
func TestMarkingKeepsOthersFields(t *testing.T) {
	seed := number(t, "LIFEBOAT_WRITES_SEED", rand.Uint64())
	t.Logf("to repeat: LIFEBOAT_WRITES_SEED=%d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	c := &cast{authors: &authors{t: t, admin: admin(t), nodeA: newNode(t, "node-a")}}
	t.Cleanup(c.remove)
	controller := clientOf(t, as(t, chart.ControllerAccount, nil))
	mark := func(node *corev1.Node) {
		c.asController(node, func(n *corev1.Node) (bool, error) {
			return mutate.Apply(t.Context(), controller, n, pick(rnd, mutate.MarkAtRisk, mutate.MarkInterrupted), "SpotInterruption")
		})
	}
	for range markedNodes {
		node := c.foreignNode(rnd)
		c.store(node)
		want := c.foreignFields(node)
		mark(node)
		if !mutate.HasMark(c.read(node)) {
			t.Errorf("node %s has no mark", node.Name)
		}
		if rnd.IntN(2) == 0 {
			mark(node)
		}
		c.wantForeign(node, want, "marked")
		if rnd.IntN(2) == 0 {
			c.othersWrite(node)
			want = c.foreignFields(node)
			mark(node)
			c.wantForeign(node, want, "marked again")
		}
		c.asController(node, func(n *corev1.Node) (bool, error) { return mutate.Restore(t.Context(), controller, n) })
		c.wantForeign(node, want, "restored")
		restored := c.read(node)
		if mutate.HasMark(restored) || restored.Spec.Unschedulable != node.Spec.Unschedulable {
			t.Errorf("node %s is still marked: %+v", node.Name, restored.Spec)
		}
		_, was := node.Labels[v1beta1.LabelExcludeBalancers]
		if _, is := restored.Labels[v1beta1.LabelExcludeBalancers]; is != was {
			t.Errorf("node %s is excluded from load balancers: %t, was %t", node.Name, is, was)
		}
	}
}

// asController passes a node to f as the controller has it, again after a conflict.
func (c *cast) asController(node *corev1.Node, f func(*corev1.Node) (bool, error)) {
	c.t.Helper()
	for {
		slim, err := nodeindex.Slim()(c.read(node))
		if err != nil {
			c.t.Fatal(err)
		}
		if _, err := f(slim.(*corev1.Node)); err == nil {
			return
		} else if !apierrors.IsConflict(err) {
			c.t.Fatal(err)
		}
	}
}

func (c *cast) read(node *corev1.Node) *corev1.Node {
	c.t.Helper()
	n := &corev1.Node{}
	if err := c.admin.Get(c.t.Context(), client.ObjectKeyFromObject(node), n); err != nil {
		c.t.Fatal(err)
	}
	return n
}

// foreignNode is a random node without anything of Lifeboat.
func (c *cast) foreignNode(rnd *rand.Rand) *corev1.Node {
	n := c.randomNode(rnd)
	n = mutate.Restored(n)
	maps.DeleteFunc(n.Annotations, func(key, _ string) bool { return strings.HasPrefix(key, "lifeboat.dev/") })
	metav1.SetMetaDataAnnotation(&n.ObjectMeta, "node.alpha.kubernetes.io/ttl", "0") // else Kubernetes writes it
	n.Spec.PodCIDR, n.Spec.PodCIDRs = "10.9.0.0/24", []string{"10.9.0.0/24"}
	n.Status.Capacity = corev1.ResourceList{corev1.ResourcePods: resource.MustParse("110")}
	return n
}

// othersWrite changes a marked node as an autoscaler or a person does.
func (c *cast) othersWrite(node *corev1.Node) {
	c.t.Helper()
	before := c.read(node)
	after := before.DeepCopy()
	metav1.SetMetaDataAnnotation(&after.ObjectMeta, "example.com/late", "x")
	metav1.SetMetaDataLabel(&after.ObjectMeta, "example.com/late", "x")
	delete(after.Annotations, "example.com/a")
	after.Spec.Taints = append(after.Spec.Taints, corev1.Taint{Key: "example.com/late", Effect: corev1.TaintEffectNoExecute})
	if err := c.admin.Patch(c.t.Context(), after, client.MergeFrom(before)); err != nil {
		c.t.Fatal(err)
	}
}

// foreignFields returns a node without the fields that Lifeboat may change, and without the taints
// that Kubernetes keeps equal to its conditions and its cordon.
func (c *cast) foreignFields(node *corev1.Node) *corev1.Node {
	c.t.Helper()
	n := c.read(node)
	n.ResourceVersion, n.Generation, n.ManagedFields = "", 0, nil
	delete(n.Annotations, v1beta1.AnnotationOriginalState)
	delete(n.Labels, v1beta1.LabelExcludeBalancers)
	n.Spec = withoutOwn(n.Spec)
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(t corev1.Taint) bool { return strings.HasPrefix(t.Key, "node.kubernetes.io/") })
	return n
}

func (c *cast) wantForeign(node, want *corev1.Node, when string) {
	c.t.Helper()
	if diff := cmp.Diff(want, c.foreignFields(node), cmpopts.EquateEmpty()); diff != "" {
		c.t.Errorf("fields of others changed when node %s was %s (-want +got):\n%s", node.Name, when, diff)
	}
}
