package drain

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func daemonSetStays(_ *planContext, c *podState) (Verdict, bool) {
	name, ok := daemonSetOf(c.pod)
	if !ok {
		return Verdict{}, false
	}
	return say(StepStays, fmt.Sprintf("stays: DaemonSet %s keeps one on every node", name))
}

func staticStays(_ *planContext, c *podState) (Verdict, bool) {
	if !isStatic(c.pod) {
		return Verdict{}, false
	}
	return say(StepStays, "stays: it is a static pod, which the kubelet runs from a file on the node")
}

func finishedStays(_ *planContext, c *podState) (Verdict, bool) {
	if !isFinished(c.pod) {
		return Verdict{}, false
	}
	return say(StepStays, fmt.Sprintf("stays: it has finished (%s)", c.pod.Status.Phase))
}

// Stays reports whether a drain leaves a pod on the node: a DaemonSet or the kubelet would
// recreate it, or it has finished.
func Stays(pod *corev1.Pod) bool { return stays(pod) }

// OfDaemonSet reports whether a DaemonSet controls the pod.
func OfDaemonSet(pod *corev1.Pod) bool {
	_, ok := daemonSetOf(pod)
	return ok
}

// stays reports whether a drain leaves the pod on the node.
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

// isStatic reports whether the kubelet runs the pod from a file. The API has only its mirror
// pod, and deleting that stops nothing.
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
