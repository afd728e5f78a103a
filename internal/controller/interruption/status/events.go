package status

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// emit emits one Kubernetes Event for a timeline entry, about the object that it
// concerns most: a pod, the node, or else the Interruption. It names a second object as
// related instead of emitting a second Event: Events are most requests for a notice.
func (w *Writer) emit(u *Update, e event) {
	typ := corev1.EventTypeNormal
	switch e.Reason {
	case v1alpha1.ReasonPodLost, v1alpha1.ReasonProtectionOverridden, v1alpha1.ReasonNoticeReceived, v1alpha1.ReasonHookFailed, v1alpha1.ReasonNotifyFailed,
		v1alpha1.ReasonReplacementFailed, v1alpha1.ReasonLifecycleHookNotManaged:
		typ = corev1.EventTypeWarning
	}
	var about, related runtime.Object = u.after, nil
	switch {
	case e.pod != nil:
		about, related = e.pod, u.after
	case u.node != nil && isAboutNode(e.Reason):
		about, related = u.node, u.after
	case u.node != nil:
		related = u.node
	}
	w.Events.Eventf(about, related, typ, e.Reason, e.Reason, "%s", e.Message)
}

// isAboutNode reports whether an Event belongs to the node.
func isAboutNode(reason string) bool {
	return slices.Contains([]string{
		v1alpha1.ReasonNoticeReceived, v1alpha1.ReasonMarkedAtRisk, v1alpha1.ReasonCordoned, v1alpha1.ReasonDrained,
		v1alpha1.ReasonNodeRestored, v1alpha1.ReasonPostponed, v1alpha1.ReasonTerminated, v1alpha1.ReasonPodLost,
		v1alpha1.ReasonNodeClaimDeleted, v1alpha1.ReasonDetached, v1alpha1.ReasonLifecycleHookPending, v1alpha1.ReasonLifecycleActionSent, v1alpha1.ReasonLifecycleHookNotManaged,
		v1alpha1.ReasonLifecycleHookCompleted,
	}, reason)
}
