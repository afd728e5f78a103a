package action

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// Mark is how a node is kept from getting new work.
type Mark string

const (
	// MarkAtRisk asks the scheduler to prefer other nodes.
	MarkAtRisk Mark = "AtRisk"
	// MarkDoomed keeps new pods off the node and takes it out of external load
	// balancers. Karpenter's own taint is not used: Karpenter strips it from
	// nodes that it is not itself disrupting.
	MarkDoomed Mark = "Doomed"
)

// balancerLabelValue is ours to recognise; the label counts by its presence
// (Kubernetes docs, "Well-Known Labels").
const balancerLabelValue = "lifeboat"

// before is what a node was before Lifeboat marked it. It is written in the
// same patch as the mark, so that there is never one without the other.
type before struct {
	// Unschedulable is spec.unschedulable as it was.
	Unschedulable bool `json:"unschedulable,omitempty"`
	// InBalancers tells that the label which excludes it was absent.
	InBalancers bool `json:"inBalancers,omitempty"`
}

// Apply marks a node and reports whether that changed anything. A conflict
// with another writer is an error; the caller looks again and retries.
func Apply(ctx context.Context, c client.Client, node *corev1.Node, mark Mark, reason string) (bool, error) {
	changed, err := changeNode(ctx, c, node, Marked(node, mark, reason))
	if err != nil {
		return false, fmt.Errorf("marking node %s: %w", node.Name, err)
	}
	return changed, nil
}

// PutBack makes a node what it was before it was marked, and reports whether
// that changed anything.
func PutBack(ctx context.Context, c client.Client, node *corev1.Node) (bool, error) {
	changed, err := changeNode(ctx, c, node, Restored(node))
	if apierrors.IsNotFound(err) {
		return false, nil // it has gone, so there is nothing to put back
	} else if err != nil {
		return false, fmt.Errorf("putting node %s back: %w", node.Name, err)
	}
	return changed, nil
}

// Marked returns the node as it is once marked. A doomed node stays doomed.
func Marked(node *corev1.Node, mark Mark, reason string) *corev1.Node {
	n := node.DeepCopy()
	if IsMarked(node, mark) {
		return n
	}
	was, known := readBefore(n)
	if !known || slices.ContainsFunc(n.Spec.Taints, isHint) { // under the weaker mark, only others have changed it
		_, excluded := n.Labels[v1alpha1.LabelExcludeBalancers]
		was = before{Unschedulable: n.Spec.Unschedulable, InBalancers: !excluded}
		writeBefore(n, was)
	}
	effect := corev1.TaintEffectPreferNoSchedule
	if mark == MarkDoomed {
		effect = corev1.TaintEffectNoSchedule
		n.Spec.Unschedulable = true
		if was.InBalancers {
			setLabel(n, v1alpha1.LabelExcludeBalancers, balancerLabelValue)
		}
	}
	n.Spec.Taints = append(slices.DeleteFunc(n.Spec.Taints, isOurs), corev1.Taint{
		Key: v1alpha1.TaintInterrupted, Value: reason, Effect: effect,
	})
	return n
}

// IsMarked reports whether the node carries the mark, or a stronger one.
func IsMarked(node *corev1.Node, mark Mark) bool {
	i := slices.IndexFunc(node.Spec.Taints, isOurs)
	if i < 0 {
		return false
	}
	if node.Spec.Taints[i].Effect == corev1.TaintEffectPreferNoSchedule {
		return mark == MarkAtRisk
	}
	_, excluded := node.Labels[v1alpha1.LabelExcludeBalancers]
	return node.Spec.Unschedulable && excluded
}

// Restored returns the node as it was before it was marked.
func Restored(node *corev1.Node) *corev1.Node {
	n := node.DeepCopy()
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, isOurs)
	if len(n.Spec.Taints) == 0 {
		n.Spec.Taints = nil
	}
	was, known := readBefore(n)
	if !known {
		return n
	}
	delete(n.Annotations, v1alpha1.AnnotationBefore)
	if !was.Unschedulable && slices.ContainsFunc(node.Spec.Taints, isDoom) {
		n.Spec.Unschedulable = false
	}
	if was.InBalancers && n.Labels[v1alpha1.LabelExcludeBalancers] == balancerLabelValue {
		delete(n.Labels, v1alpha1.LabelExcludeBalancers)
	}
	return n
}

func isOurs(t corev1.Taint) bool { return t.Key == v1alpha1.TaintInterrupted }

func isDoom(t corev1.Taint) bool {
	return isOurs(t) && t.Effect == corev1.TaintEffectNoSchedule
}

func isHint(t corev1.Taint) bool {
	return isOurs(t) && t.Effect == corev1.TaintEffectPreferNoSchedule
}

// readBefore reads what the node was. An annotation that somebody has mangled
// counts as a node that was schedulable and balanced: the state of nearly all.
func readBefore(n *corev1.Node) (before, bool) {
	text, ok := n.Annotations[v1alpha1.AnnotationBefore]
	if !ok {
		return before{}, false
	}
	var was before
	if err := json.Unmarshal([]byte(text), &was); err != nil {
		return before{InBalancers: true}, true
	}
	return was, true
}

func writeBefore(n *corev1.Node, was before) {
	text, err := json.Marshal(was)
	if err != nil {
		return // a struct of two booleans always marshals
	}
	if n.Annotations == nil {
		n.Annotations = map[string]string{}
	}
	n.Annotations[v1alpha1.AnnotationBefore] = string(text)
}

func setLabel(n *corev1.Node, key, value string) {
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	if _, ok := n.Labels[key]; !ok {
		n.Labels[key] = value
	}
}

// HasMark reports whether anything of a mark is on the node: a person may have removed
// a part of it.
func HasMark(node *corev1.Node) bool {
	_, saved := node.Annotations[v1alpha1.AnnotationBefore]
	return saved || slices.ContainsFunc(node.Spec.Taints, isOurs)
}
