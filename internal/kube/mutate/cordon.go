package mutate

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// Mark is how a node is protected from new work.
type Mark string

const (
	// MarkAtRisk asks the scheduler to prefer other nodes.
	MarkAtRisk Mark = "AtRisk"
	// MarkInterrupted cordons the node and takes it out of external load balancers. It sets no
	// taint of its own: DaemonSets run on a cordoned node, and their pods do not tolerate other
	// taints (kubernetes pkg/controller/daemon/util, AddOrUpdateDaemonPodTolerations).
	// Karpenter strips its own taint from nodes that it is not itself disrupting.
	MarkInterrupted Mark = "Interrupted"
)

// balancerLabelValue identifies Lifeboat's label; only its presence has an effect (Kubernetes
// docs, "Well-Known Labels").
const balancerLabelValue = "lifeboat"

// formerState is the state of a node before Lifeboat marked it. It is written in the same patch
// as the mark, so that neither exists without the other.
type formerState struct {
	// Unschedulable was the value of spec.unschedulable.
	Unschedulable bool `json:"unschedulable,omitempty"`
	// InBalancers is set if the label that excludes the node was absent.
	InBalancers bool `json:"inBalancers,omitempty"`
	// Cordoned tells the two marks apart: it is set with MarkInterrupted.
	Cordoned bool `json:"cordoned,omitempty"`
}

// Apply marks a node and reports whether that changed anything. A conflict with another writer
// is an error; the caller reads the node again and retries.
func Apply(ctx context.Context, c client.Client, node *corev1.Node, mark Mark, reason string) (bool, error) {
	changed, err := changeNode(ctx, c, node, Marked(node, mark, reason))
	if err != nil {
		return false, fmt.Errorf("marking node %s: %w", node.Name, err)
	}
	return changed, nil
}

// Marked returns the node with the mark. It never replaces MarkInterrupted by the weaker mark.
func Marked(node *corev1.Node, mark Mark, reason string) *corev1.Node {
	n := node.DeepCopy()
	if IsMarked(node, mark) {
		return n
	}
	was, known := readBefore(n)
	if !known || !was.Cordoned && slices.ContainsFunc(n.Spec.Taints, isAtRiskTaint) { // only others change these fields under the weaker mark
		_, excluded := n.Labels[v1beta1.LabelExcludeBalancers]
		was = formerState{Unschedulable: n.Spec.Unschedulable, InBalancers: !excluded}
	}
	was.Cordoned = mark == MarkInterrupted
	text, _ := json.Marshal(was) // a struct of booleans always marshals
	metav1.SetMetaDataAnnotation(&n.ObjectMeta, v1beta1.AnnotationOriginalState, string(text))
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, isOurs)
	if mark == MarkAtRisk {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: v1beta1.TaintInterrupted, Value: taintValue(reason), Effect: corev1.TaintEffectPreferNoSchedule})
		return n
	}
	n.Spec.Unschedulable = true
	if _, excluded := n.Labels[v1beta1.LabelExcludeBalancers]; was.InBalancers && !excluded {
		metav1.SetMetaDataLabel(&n.ObjectMeta, v1beta1.LabelExcludeBalancers, balancerLabelValue)
	}
	return n
}

// taintValue returns a kind as the value of a taint, which the API server checks as that of a label. A
// record of an older schema may have any kind, and the cordon must not be refused because of it.
func taintValue(kind string) string {
	safe := strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r) || strings.ContainsRune("-_.", r)) {
			return r
		}
		return '-'
	}, kind)
	return strings.Trim(safe[:min(len(safe), validation.LabelValueMaxLength)], "-_.")
}

// IsMarked reports whether the node carries the mark, or a stronger one. A mark of an older
// version, whose taint keeps pods of DaemonSets off, is only the weaker one: it is replaced.
func IsMarked(node *corev1.Node, mark Mark) bool {
	was, _ := readBefore(node)
	tainted := slices.ContainsFunc(node.Spec.Taints, isOurs)
	if !was.Cordoned {
		return tainted && mark == MarkAtRisk
	}
	_, excluded := node.Labels[v1beta1.LabelExcludeBalancers]
	return node.Spec.Unschedulable && excluded && !tainted
}

func isOurs(t corev1.Taint) bool { return t.Key == v1beta1.TaintInterrupted }

// readBefore reads the former state. If the annotation cannot be parsed, the node counts as one
// that was schedulable and in load balancers, as nearly all nodes are.
func readBefore(n *corev1.Node) (formerState, bool) {
	text, ok := n.Annotations[v1beta1.AnnotationOriginalState]
	if !ok {
		return formerState{}, false
	}
	var was formerState
	if err := json.Unmarshal([]byte(text), &was); err != nil {
		return formerState{InBalancers: true, Cordoned: !slices.ContainsFunc(n.Spec.Taints, isAtRiskTaint)}, true
	}
	return was, true
}

// changeNode patches a node, and reports whether it differed. The answer is only metadata: a node is large.
func changeNode(ctx context.Context, c client.Client, from, to *corev1.Node) (bool, error) {
	patch := ownFields(to)
	if equality.Semantic.DeepEqual(ownFields(from), patch) {
		return false, nil
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return false, err
	}
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: from.Name}}
	answer.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	err = c.Patch(ctx, answer, client.RawPatch(types.MergePatchType, text), client.FieldValidation(metav1.FieldValidationIgnore))
	return err == nil, err
}

// ownFields is the merge patch (RFC 7386) with Lifeboat's fields. The cache lacks annotations of others, which a patch from
// a comparison would remove. The resource version protects others' taints, as the whole list is replaced.
func ownFields(node *corev1.Node) map[string]any {
	entry := func(m map[string]string, key string) map[string]any {
		if value, ok := m[key]; ok {
			return map[string]any{key: value}
		}
		return map[string]any{key: nil} // removes it
	}
	outOfService, annotations := v1beta1.AnnotationOutOfService, entry(node.Annotations, v1beta1.AnnotationOriginalState)
	annotations[outOfService] = entry(node.Annotations, outOfService)[outOfService]
	return map[string]any{
		"metadata": map[string]any{
			"resourceVersion": node.ResourceVersion,
			"annotations":     annotations,
			"labels":          entry(node.Labels, v1beta1.LabelExcludeBalancers),
		},
		"spec": map[string]any{"unschedulable": node.Spec.Unschedulable, "taints": node.Spec.Taints},
	}
}
