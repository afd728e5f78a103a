package drain

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// graceOf returns how long the pod may take to stop, as the API server reads
// it: a negative period counts as one second (kubernetes
// pkg/registry/core/pod, CheckGracefulDelete).
func graceOf(pod *corev1.Pod) time.Duration {
	seconds := pod.Spec.TerminationGracePeriodSeconds
	switch {
	case seconds == nil:
		return defaultGrace
	case *seconds < 0:
		return time.Second
	}
	return time.Duration(min(*seconds, int64(longestGrace/time.Second))) * time.Second
}

// isCritical reports whether the cluster leans on the pod: its priority is
// that of the two system classes, or above (Kubernetes documentation,
// "Guaranteed Scheduling For Critical Add-On Pods").
func isCritical(pod *corev1.Pod) bool {
	const systemCritical = 2_000_000_000
	return pod.Spec.PriorityClassName == "system-cluster-critical" ||
		pod.Spec.PriorityClassName == "system-node-critical" ||
		(pod.Spec.Priority != nil && *pod.Spec.Priority >= systemCritical)
}

// Stays reports whether a drain leaves a pod alone: a DaemonSet or the kubelet
// would only put it back, or nothing of it runs any more.
func Stays(pod *corev1.Pod) bool { return stays(pod) }

// OfDaemonSet reports whether a DaemonSet keeps the pod on every node.
func OfDaemonSet(pod *corev1.Pod) bool {
	_, ok := daemonSetOf(pod)
	return ok
}

// stays reports whether a drain leaves the pod alone.
func stays(pod *corev1.Pod) bool {
	_, daemon := daemonSetOf(pod)
	return daemon || isStatic(pod) || isFinished(pod)
}

func daemonSetOf(pod *corev1.Pod) (string, bool) {
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil && owner.Kind == "DaemonSet" {
		return owner.Name, true
	}
	return "", false
}

// isStatic reports whether the kubelet runs the pod from a file: what the API
// shows is its mirror, and deleting that stops nothing.
func isStatic(pod *corev1.Pod) bool {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return true
	}
	owner := metav1.GetControllerOfNoCopy(pod)
	return owner != nil && owner.Kind == "Node"
}

func isFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func isLeaving(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil }

// IsReady reports whether a pod counts as Ready.
func IsReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// graceGiven returns the grace that a leaving pod was given.
func graceGiven(pod *corev1.Pod) time.Duration {
	if g := pod.DeletionGracePeriodSeconds; g != nil && *g > 0 {
		return time.Duration(min(*g, int64(longestGrace/time.Second))) * time.Second
	}
	return 0
}

// stuckAt is when a leaving pod that is still there counts as stuck.
func stuckAt(leaving *corev1.Pod) time.Time { return leaving.DeletionTimestamp.Add(stuckAfter) }
