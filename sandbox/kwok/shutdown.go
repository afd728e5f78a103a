package kwok

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ShutsDown reports whether the kubelet of a node that shuts down has asked a pod to stop, and the
// grace period.
func ShutsDown(pod *corev1.Pod) (grace time.Duration, ok bool) {
	if _, ok := pod.Annotations[ShutdownAnnotation]; !ok {
		return 0, false
	}
	seconds, _ := strconv.Atoi(pod.Annotations[ShutdownGraceSecondsAnnotation]) // absent: none
	return time.Duration(seconds) * time.Second, true
}
