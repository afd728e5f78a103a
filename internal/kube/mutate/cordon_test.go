package mutate

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

var otherTaint = corev1.Taint{Key: "dedicated", Value: "db", Effect: corev1.TaintEffectNoSchedule}

// nodes are nodes as they may be before Lifeboat marks them.
func nodes() map[string]*corev1.Node {
	return map[string]*corev1.Node{
		"plain":    {ObjectMeta: metav1.ObjectMeta{Name: "n"}},
		"cordoned": {Spec: corev1.NodeSpec{Unschedulable: true}},
		"tainted":  {Spec: corev1.NodeSpec{Taints: []corev1.Taint{otherTaint}}},
		"excluded from balancers by another tool": {ObjectMeta: metav1.ObjectMeta{
			Labels: map[string]string{v1beta1.LabelExcludeBalancers: "karpenter", "a": "b"}}},
		"annotated": {ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"a": "b"}}},
		"everything": {
			ObjectMeta: metav1.ObjectMeta{
				Labels:      map[string]string{v1beta1.LabelExcludeBalancers: "", "a": "b"},
				Annotations: map[string]string{"a": "b"},
			},
			Spec: corev1.NodeSpec{Unschedulable: true, Taints: []corev1.Taint{otherTaint}},
		},
	}
}

func TestRestoredNodeEqualsOriginal(t *testing.T) {
	marks := map[string][]Mark{
		"at risk": {MarkAtRisk}, "interrupted": {MarkInterrupted},
		"at risk, then interrupted": {MarkAtRisk, MarkInterrupted}, "interrupted, then at risk": {MarkInterrupted, MarkAtRisk},
		"interrupted twice": {MarkInterrupted, MarkInterrupted},
	}
	for was, node := range nodes() {
		for how, sequence := range marks {
			t.Run(was+" "+how, func(t *testing.T) {
				marked := node.DeepCopy()
				for _, mark := range sequence {
					marked = Marked(marked, mark, "SpotInterruption")
					if !IsMarked(marked, mark) {
						t.Fatalf("not marked %s: %+v", mark, marked)
					}
				}
				if diff := cmp.Diff(node, Restored(marked), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("the node differs from what it was (-was +is):\n%s", diff)
				}
			})
		}
	}
}

// The weaker mark leaves a node schedulable, so others may have cordoned it, or excluded it from
// load balancers, before it was interrupted.
func TestUserCordonOfAtRiskNodeIsKept(t *testing.T) {
	risky := Marked(nodes()["plain"], MarkAtRisk, "RebalanceRecommendation")
	risky.Spec.Unschedulable = true
	risky.Labels = map[string]string{v1beta1.LabelExcludeBalancers: "other"}
	lives := Restored(Marked(risky, MarkInterrupted, "ScheduledChange"))
	if diff := cmp.Diff(Restored(risky), lives, cmpopts.EquateEmpty()); diff != "" || !lives.Spec.Unschedulable {
		t.Errorf("what a person did is gone (-was +is):\n%s", diff)
	}
	interrupted := Marked(nodes()["plain"], MarkInterrupted, "ScheduledChange")
	interrupted.Labels, interrupted.Spec.Unschedulable = nil, false // others undo it, and it is done again
	if diff := cmp.Diff(nodes()["plain"], Restored(Marked(interrupted, MarkInterrupted, "ScheduledChange")), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("what Lifeboat did counts as done by others (-was +is):\n%s", diff)
	}
}

func TestMarkingReportsResult(t *testing.T) {
	interrupted := Marked(nodes()["tainted"], MarkInterrupted, "SpotInterruption")
	if diff := cmp.Diff([]corev1.Taint{otherTaint}, interrupted.Spec.Taints); diff != "" {
		t.Errorf("taints (-want +got):\n%s", diff)
	}
	if !interrupted.Spec.Unschedulable {
		t.Error("an interrupted node is schedulable")
	}
	if _, ok := interrupted.Labels[v1beta1.LabelExcludeBalancers]; !ok {
		t.Error("an interrupted node stays in load balancers")
	}
	risky := Marked(nodes()["plain"], MarkAtRisk, "RebalanceRecommendation")
	want := []corev1.Taint{{Key: v1beta1.TaintInterrupted, Value: "RebalanceRecommendation", Effect: corev1.TaintEffectPreferNoSchedule}}
	if diff := cmp.Diff(want, risky.Spec.Taints); diff != "" || risky.Spec.Unschedulable || len(risky.Labels) > 0 {
		t.Errorf("a node at risk is kept from working: %+v", risky)
	}
}

func TestInterruptedNodeKeepsItsMarkAfterAHint(t *testing.T) {
	interrupted := Marked(nodes()["plain"], MarkInterrupted, "SpotInterruption")
	if diff := cmp.Diff(interrupted, Marked(interrupted, MarkAtRisk, "RebalanceRecommendation")); diff != "" {
		t.Errorf("an interrupted node changed (-was +is):\n%s", diff)
	}
}

func TestUncordonedNodeIsCordonedAgain(t *testing.T) {
	interrupted := Marked(nodes()["plain"], MarkInterrupted, "SpotInterruption")
	interrupted.Spec.Unschedulable = false
	if IsMarked(interrupted, MarkInterrupted) {
		t.Error("a schedulable node counts as interrupted")
	}
	if again := Marked(interrupted, MarkInterrupted, "SpotInterruption"); !again.Spec.Unschedulable || !IsMarked(again, MarkInterrupted) {
		t.Errorf("not cordoned again: %+v", again.Spec)
	}
}

// The DaemonSet controller deletes pods that do not tolerate a node's NoSchedule or NoExecute taints. The
// API server and the node lifecycle controller set that of a cordon, which they all tolerate.
func TestMarksSetNoTaintThatKeepsDaemonSetsOff(t *testing.T) {
	for was, node := range nodes() {
		for _, mark := range []Mark{MarkAtRisk, MarkInterrupted} {
			for _, taint := range Marked(node, mark, "SpotInterruption").Spec.Taints {
				if taint != otherTaint && taint.Effect != corev1.TaintEffectPreferNoSchedule {
					t.Errorf("%s, %s: taint %s", was, mark, taint.ToString())
				}
			}
		}
	}
}

// older is a node as an older version marked it.
func older(node *corev1.Node) *corev1.Node {
	n := Marked(node, MarkInterrupted, "SpotInterruption")
	was, _ := readBefore(n)
	was.Cordoned = false
	text, _ := json.Marshal(was)
	n.Annotations[v1beta1.AnnotationOriginalState] = string(text)
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: v1beta1.TaintInterrupted, Value: "SpotInterruption", Effect: corev1.TaintEffectNoSchedule})
	return n
}

func TestMarkOfAnOlderVersionIsReplacedAndRestored(t *testing.T) {
	for was, node := range nodes() {
		marked := older(node)
		if diff := cmp.Diff(node, Restored(marked), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: restored (-was +is):\n%s", was, diff)
		}
		if IsMarked(marked, MarkInterrupted) || !HasMark(marked) {
			t.Errorf("%s: the taint that keeps DaemonSets off stays", was)
		}
		if diff := cmp.Diff(marked, Marked(marked, MarkAtRisk, "RebalanceRecommendation")); diff != "" {
			t.Errorf("%s: weakened (-was +is):\n%s", was, diff)
		}
		again := Marked(marked, MarkInterrupted, "SpotInterruption")
		if diff := cmp.Diff(Marked(node, MarkInterrupted, "SpotInterruption"), again, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: replaced (-want +got):\n%s", was, diff)
		}
	}
}

func TestRestoringAnUnmarkedNodeChangesNothing(t *testing.T) {
	for was, node := range nodes() {
		if diff := cmp.Diff(node, Restored(node), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s (-was +is):\n%s", was, diff)
		}
	}
}

func TestNodeWithAnInvalidAnnotationIsRestored(t *testing.T) {
	interrupted := Marked(nodes()["plain"], MarkInterrupted, "SpotInterruption")
	interrupted.Annotations[v1beta1.AnnotationOriginalState] = "{"
	got := Restored(interrupted)
	if got.Spec.Unschedulable || len(got.Spec.Taints) > 0 || len(got.Labels) > 0 || len(got.Annotations) > 0 {
		t.Errorf("the node is still marked: %+v", got)
	}
}

// The API server checks the value of a taint as that of a label.
func TestTaintHasValidValueForEveryKind(t *testing.T) {
	for _, kind := range []string{"SpotInterruption", "a kind/with: signs", "", "-", strings.Repeat("k", 100), "Ä"} {
		for _, taint := range Marked(&corev1.Node{}, MarkAtRisk, kind).Spec.Taints {
			if errs := validation.IsValidLabelValue(taint.Value); len(errs) > 0 {
				t.Errorf("kind %q makes the taint value %q: %v", kind, taint.Value, errs)
			}
		}
	}
}
