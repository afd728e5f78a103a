package drain

import corev1 "k8s.io/api/core/v1"

// helper is a kind of pod that serves volumes to other pods of its node. A DaemonSet controls none
// of them, so a drain would evict them with the others.
type helper struct {
	name, namespace string
	label, value    string // an empty value matches any
}

// helpers returns the known helpers. Pods with an empty namespace match in any.
func helpers() []helper {
	return []helper{
		// awslabs/mountpoint-s3-csi-driver, pkg/podmounter/mppod and its chart's value mountpointPod.namespace
		{name: "Mountpoint for Amazon S3", namespace: "mount-s3"},
		{name: "Mountpoint for Amazon S3", label: "s3.csi.aws.com/mountpoint-version"},
		// juicedata/juicefs-csi-driver, pkg/common (PodTypeKey, PodTypeValue)
		{name: "JuiceFS", label: "app.kubernetes.io/name", value: "juicefs-mount"},
		// longhorn/longhorn-manager, types (GetInstanceManagerLabels)
		{name: "Longhorn", label: "longhorn.io/component", value: "instance-manager"},
	}
}

// helperOf names what the pod serves to others, or is empty.
func helperOf(pod *corev1.Pod) string {
	for _, h := range helpers() {
		value, labelled := pod.Labels[h.label]
		if (h.namespace == "" || h.namespace == pod.Namespace) && (h.label == "" || labelled && (h.value == "" || h.value == value)) {
			return h.name
		}
	}
	return ""
}
