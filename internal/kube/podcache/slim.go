package podcache

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// annotations are those that planning reads (package drain), each with the length of the
// longest value that is kept. All others are dropped: a person who may create a pod may
// write 256 KiB of them.
var annotations = map[string]int{
	v1beta1.AnnotationSurgeOrigin:                    8 << 10,
	v1beta1.AnnotationDoNotDisrupt:                   256,
	v1beta1.AnnotationKarpenterDoNotDisrupt:          256,
	"cluster-autoscaler.kubernetes.io/safe-to-evict": 256,
	corev1.MirrorPodAnnotationKey:                    256,
	"scheduling.k8s.io/group-name":                   256,
}

// slim copies what planning reads, which is about a tenth of a pod. It keeps only the
// containers with host ports, the volumes with claims, the tolerations of a cordon, two
// conditions, and a few annotations.
//
// It builds a new pod: trimming the old one would keep the memory that the pod was decoded
// into.
func slim(full *corev1.Pod) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: full.ObjectMeta}
	pod.ManagedFields, pod.Annotations = nil, known(full.Annotations)
	from := &full.Spec
	pod.Spec = corev1.PodSpec{
		NodeName: from.NodeName, HostNetwork: from.HostNetwork, Volumes: claimed(from.Volumes),
		TerminationGracePeriodSeconds: from.TerminationGracePeriodSeconds, PriorityClassName: from.PriorityClassName, Priority: from.Priority,
		Tolerations:   slices.DeleteFunc(slices.Clone(from.Tolerations), func(t corev1.Toleration) bool { return !drain.PassesCordon(&t) }),
		RestartPolicy: from.RestartPolicy, Containers: onHostPorts(from.Containers), InitContainers: onHostPorts(from.InitContainers),
	}
	pod.Status = corev1.PodStatus{Phase: full.Status.Phase, StartTime: full.Status.StartTime}
	for _, c := range full.Status.Conditions {
		if c.Type == corev1.PodReady || c.Type == corev1.DisruptionTarget {
			pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: c.Type, Status: c.Status, LastTransitionTime: c.LastTransitionTime})
		}
	}
	return pod
}

// known returns the annotations that planning reads, as copies that share no memory with
// the others.
func known(all map[string]string) map[string]string {
	var kept map[string]string
	for key, longest := range annotations {
		value, ok := all[key]
		if !ok || len(value) > longest {
			continue
		}
		if kept == nil {
			kept = map[string]string{}
		}
		kept[key] = strings.Clone(value)
	}
	return kept
}

// claimed returns the volumes that have or create a PersistentVolumeClaim.
func claimed(volumes []corev1.Volume) []corev1.Volume {
	var kept []corev1.Volume
	for i := range volumes {
		if volumes[i].PersistentVolumeClaim != nil || volumes[i].Ephemeral != nil {
			kept = append(kept, volumes[i])
		}
	}
	return kept
}

// onHostPorts returns the containers with host ports.
func onHostPorts(containers []corev1.Container) []corev1.Container {
	var kept []corev1.Container
	for i := range containers {
		if slices.ContainsFunc(containers[i].Ports, func(p corev1.ContainerPort) bool { return p.HostPort != 0 }) {
			kept = append(kept, corev1.Container{Name: containers[i].Name, Ports: containers[i].Ports})
		}
	}
	return kept
}
