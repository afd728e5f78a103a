package kwok

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// ShutsDown reports whether the kubelet of a node that shuts down has asked a pod to
// stop: when, and within which time.
func ShutsDown(pod *corev1.Pod) (at time.Time, grace time.Duration, ok bool) {
	at, err := time.Parse(time.RFC3339, pod.Annotations[ShutdownAnnotation])
	if err != nil {
		return time.Time{}, 0, false
	}
	seconds, _ := strconv.Atoi(pod.Annotations[ShutdownGraceSecondsAnnotation]) // absent: none
	return at, time.Duration(seconds) * time.Second, true
}
