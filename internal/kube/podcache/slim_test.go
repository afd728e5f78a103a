package podcache

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// kept is a pod with everything that slim keeps.
func kept() *corev1.Pod {
	grace, priority := int64(60), int32(1000)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: "a", UID: "uid", ResourceVersion: "7", Labels: map[string]string{"app": "web"},
			Annotations:       map[string]string{"lifeboat.dev/surge-origin": strings.Repeat("x", 600), "karpenter.sh/do-not-disrupt": "true"},
			OwnerReferences:   []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-1"}},
			DeletionTimestamp: &metav1.Time{Time: time.Unix(2, 0)}, DeletionGracePeriodSeconds: &grace,
		},
		Spec: corev1.PodSpec{
			NodeName: "node", HostNetwork: true, TerminationGracePeriodSeconds: &grace, PriorityClassName: "high", Priority: &priority,
			RestartPolicy: corev1.RestartPolicyAlways, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
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
	full.Annotations[corev1.LastAppliedConfigAnnotation] = "{}"
	full.Annotations[v1beta1.AnnotationDoNotDisrupt] = strings.Repeat("1h", 200)
	full.Spec.Volumes = append(full.Spec.Volumes, corev1.Volume{Name: "kube-api-access"})
	full.Spec.Containers[0].Image = "big"
	full.Spec.Containers = append(full.Spec.Containers, corev1.Container{Name: "web", Ports: []corev1.ContainerPort{{ContainerPort: 80}}})
	full.Spec.InitContainers = append(full.Spec.InitContainers, corev1.Container{Name: "setup"})
	full.Spec.Tolerations = append(full.Spec.Tolerations, corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpExists})
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

// largest is a pod with as many annotations as the API server takes: 256 KiB of short ones.
func largest(i int) *corev1.Pod {
	pod := kept()
	pod.Name = fmt.Sprint("pod-", i)
	pod.Annotations = map[string]string{v1beta1.AnnotationDoNotDisrupt: "true"}
	for size := 0; size < 255<<10; size += 240 {
		pod.Annotations[fmt.Sprintf("tenant.example/%d-%d", i, size)] = strings.Repeat("x", 220)
	}
	return pod
}

// heapOf returns how many bytes the result of fill keeps.
func heapOf(fill func() any) uint64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	held := fill()
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(held)
	return max(after.HeapAlloc, before.HeapAlloc) - before.HeapAlloc
}

func TestAnnotationsOfTenantsFillNoMemory(t *testing.T) {
	const pods, most = 1000, 8 << 20
	got := heapOf(func() any {
		var cache []*corev1.Pod
		for i := range pods {
			cache = append(cache, slim(largest(i)))
		}
		return cache
	})
	t.Logf("%d pods with 256 KiB of annotations each keep %d KiB", pods, got>>10)
	if got > most {
		t.Errorf("%d pods with 256 KiB of annotations each keep %d MiB, more than %d", pods, got>>20, most>>20)
	}
}
