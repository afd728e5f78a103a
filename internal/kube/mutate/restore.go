package mutate

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// Restore restores a node to its state before it was marked, and reports whether that changed
// anything.
func Restore(ctx context.Context, c client.Client, node *corev1.Node) (bool, error) {
	changed, err := changeNode(ctx, c, node, Restored(node))
	if apierrors.IsNotFound(err) {
		return false, nil // it is gone, so there is nothing to restore
	} else if err != nil {
		return false, fmt.Errorf("restoring node %s: %w", node.Name, err)
	}
	return changed, nil
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
	delete(n.Annotations, v1beta1.AnnotationOriginalState)
	if !was.Unschedulable && (was.Cordoned || slices.ContainsFunc(node.Spec.Taints, isOlderTaint)) {
		n.Spec.Unschedulable = false
	}
	if was.InBalancers && n.Labels[v1beta1.LabelExcludeBalancers] == balancerLabelValue {
		delete(n.Labels, v1beta1.LabelExcludeBalancers)
	}
	return n
}

// isOlderTaint reports whether an older version cordoned the node: it set this taint too.
func isOlderTaint(t corev1.Taint) bool {
	return isOurs(t) && t.Effect == corev1.TaintEffectNoSchedule
}

// HasMark reports whether anything of a mark is on the node: a person may have removed
// a part of it.
func HasMark(node *corev1.Node) bool {
	_, saved := node.Annotations[v1beta1.AnnotationOriginalState]
	return saved || slices.ContainsFunc(node.Spec.Taints, isOurs)
}

func isAtRiskTaint(t corev1.Taint) bool {
	return isOurs(t) && t.Effect == corev1.TaintEffectPreferNoSchedule
}
