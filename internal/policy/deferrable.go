package policy

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Deferrable reports whether the action can wait: nothing takes the instance away at a time that
// people cannot move. The deadline of a person's request ends nothing. A decision that only
// undoes, or does nothing, has nothing to defer.
func (d *Decision) Deferrable() bool {
	switch {
	case d.Withdrawn, d.InstanceGone, d.Action == v1beta1.ActionIgnore, isTermination(d.Notice):
		return false
	case isRequested(d.Notice):
		return true
	}
	return !notice.IsFirm(d.Deadline)
}

// NodePool returns the Karpenter NodePool of a node, or "".
func NodePool(node *corev1.Node) string { return node.Labels[labelNodePool] }
