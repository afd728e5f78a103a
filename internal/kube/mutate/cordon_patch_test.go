package mutate

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// The patch must lead from each state that marking knows to each other, and must keep the
// annotations that Lifeboat's cache of nodes does not have.
func TestNodePatchChangesOnlyOwnFields(t *testing.T) {
	states := map[string]*corev1.Node{}
	for was, node := range nodes() {
		node.Name, node.ResourceVersion = "n", "7"
		if len(node.Spec.Taints) > 0 {
			node.Spec.Taints[0].TimeAdded = &metav1.Time{Time: time.Unix(1_800_000_000, 0)}
		}
		for how, marked := range map[string]*corev1.Node{
			"": node, ", at risk": Marked(node, MarkAtRisk, "RebalanceRecommendation"), ", interrupted": Marked(node, MarkInterrupted, "SpotInterruption"),
			", at risk, then interrupted": Marked(Marked(node, MarkAtRisk, "RebalanceRecommendation"), MarkInterrupted, "SpotInterruption"),
		} {
			states[was+how] = marked
			states[was+how+", put back"] = Restored(marked)
		}
	}
	for was, from := range states {
		for is, to := range states {
			if from.Labels["a"] != to.Labels["a"] || from.Annotations["a"] != to.Annotations["a"] {
				continue // another node
			}
			if diff := cmp.Diff(withOthers(to), changed(t, from, to), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("from %s to %s (-want +got):\n%s", was, is, diff)
			}
		}
	}
}

// withOthers returns the node with what the API server has and Lifeboat's cache of nodes has not.
func withOthers(node *corev1.Node) *corev1.Node {
	n := node.DeepCopy()
	metav1.SetMetaDataAnnotation(&n.ObjectMeta, "node.alpha.kubernetes.io/ttl", "0")
	n.Spec.PodCIDRs = []string{"10.0.0.0/24"}
	return n
}

// changed returns the node as the API server stores it after changeNode.
func changed(t *testing.T, from, to *corev1.Node) *corev1.Node {
	t.Helper()
	c := fake.NewClientBuilder().WithObjects(withOthers(from)).Build()
	differs, err := changeNode(t.Context(), c, from, to)
	if err != nil {
		t.Fatal(err)
	}
	if same := equality.Semantic.DeepEqual(from, to); same == differs {
		t.Errorf("changeNode reports %t, want %t", differs, !same)
	}
	n := &corev1.Node{}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(from), n); err != nil {
		t.Fatal(err)
	}
	n.ResourceVersion = from.ResourceVersion
	return n
}
