package action

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

// What is put together by hand says what a comparison of the whole nodes says, from
// each state that marking knows to each other.
func TestTheNodePatchIsWhatAComparisonFinds(t *testing.T) {
	states := map[string]*corev1.Node{}
	for was, node := range nodes() {
		node.Name, node.ResourceVersion = "n", "7"
		if len(node.Spec.Taints) > 0 {
			node.Spec.Taints[0].TimeAdded = &metav1.Time{Time: time.Unix(1_800_000_000, 0)}
		}
		for how, marked := range map[string]*corev1.Node{
			"": node, ", at risk": Marked(node, MarkAtRisk, "RebalanceRecommendation"), ", doomed": Marked(node, MarkInterrupted, "SpotInterruption"),
			", at risk, then doomed": Marked(Marked(node, MarkAtRisk, "RebalanceRecommendation"), MarkInterrupted, "SpotInterruption"),
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
			patch := differing(from, to)
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
			got, err := json.Marshal(patch)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(plain(t, want), plain(t, got)); diff != "" {
				t.Errorf("from %s to %s (-compared +by hand):\n%s", was, is, diff)
			}
		}
	}
}

// plain is a patch without the form: of a map that is to go, whole or by its only entry,
// nothing is left either way.
func plain(t *testing.T, patch []byte) map[string]any {
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
