package mutate

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The patch must equal the one from a comparison of whole nodes, between all states that marking
// knows.
func TestNodePatchMatchesDiff(t *testing.T) {
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
			patch, err := nodePatch(from, to)
			if err != nil {
				t.Fatal(err)
			}
			if same := equality.Semantic.DeepEqual(from, to); same != (patch == nil) {
				t.Errorf("from %s to %s: equal: %v, patch %v", was, is, same, patch)
			}
			if patch == nil {
				continue
			}
			want, err := client.MergeFromWithOptions(from, client.MergeFromWithOptimisticLock{}).Data(to)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(normalised(t, want), normalised(t, patch)); diff != "" {
				t.Errorf("from %s to %s (-whole nodes +marked part):\n%s", was, is, diff)
			}
		}
	}
}

// normalised is a normalised patch: removing a map, as a whole or by its only entry, leaves nothing.
func normalised(t *testing.T, patch []byte) map[string]any {
	t.Helper()
	var read map[string]any
	if err := json.Unmarshal(patch, &read); err != nil {
		t.Fatal(err)
	}
	metadata, _ := read["metadata"].(map[string]any)
	for _, key := range []string{"annotations", "labels"} {
		entries, _ := metadata[key].(map[string]any)
		for _, value := range entries {
			if value == nil && len(entries) == 1 {
				metadata[key] = nil
			}
		}
	}
	return read
}
