package podcache

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kept is a pod with everything that slim keeps.
func kept() *corev1.Pod {
	grace, priority := int64(60), int32(1000)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "a", UID: "uid", ResourceVersion: "7", Labels: map[string]string{"app": "web"},
			Annotations:       map[string]string{"lifeboat.dev/surge-origin": strings.Repeat("x", 2*maxAnnotation), "karpenter.sh/do-not-disrupt": "true"},
			OwnerReferences:   []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-1"}},
			DeletionTimestamp: &metav1.Time{Time: time.Unix(2, 0)}, DeletionGracePeriodSeconds: &grace,
		},
		Spec: corev1.PodSpec{
			NodeName: "node", HostNetwork: true, TerminationGracePeriodSeconds: &grace, PriorityClassName: "high", Priority: &priority,
			RestartPolicy: corev1.RestartPolicyAlways,
			Volumes: []corev1.Volume{
				{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
				{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}},
			},
			Containers:     []corev1.Container{{Name: "proxy", Ports: []corev1.ContainerPort{{HostPort: 80}}}},
			InitContainers: []corev1.Container{{Name: "sidecar", Ports: []corev1.ContainerPort{{HostPort: 81}}}},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, StartTime: &metav1.Time{Time: time.Unix(1, 0)},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Unix(1, 0)}},
		},
	}
}

func TestSlimKeepsWhatIsRead(t *testing.T) {
	full := kept()
	full.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	full.Annotations[corev1.LastAppliedConfigAnnotation] = strings.Repeat("x", maxAnnotation+1)
	full.Spec.Volumes = append(full.Spec.Volumes, corev1.Volume{Name: "kube-api-access"})
	full.Spec.Containers[0].Image = "big"
	full.Spec.Containers = append(full.Spec.Containers, corev1.Container{Name: "web", Ports: []corev1.ContainerPort{{ContainerPort: 80}}})
	full.Spec.InitContainers = append(full.Spec.InitContainers, corev1.Container{Name: "setup"})
	full.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
	full.Status.Conditions = append(full.Status.Conditions, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue})
	full.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", ImageID: "big"}}
	if diff := cmp.Diff(kept(), slim(full)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSlimmingAgainChangesNothing(t *testing.T) {
	if diff := cmp.Diff(kept(), slim(slim(kept()))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(&corev1.Pod{}, slim(&corev1.Pod{})); diff != "" {
		t.Errorf("of an empty pod (-want +got):\n%s", diff)
	}
}
