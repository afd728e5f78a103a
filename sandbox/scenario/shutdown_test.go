package scenario

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/sandbox/kwok"
)

// A pod that its kubelet stops, because the node shuts down, is judged like a deleted pod: by
// whether it had its grace period.
func TestPodStoppedByKubelet(t *testing.T) {
	start := time.Date(2026, 5, 11, 8, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name string
		ends time.Duration // zero: its machine loses power after 10 s
		code int32
		want Verdict
	}{
		{"its work is done", 31 * time.Second, 0, Whole},
		{"it is killed", 20 * time.Second, 137, Cut},
		{"it is taken off too early", 5 * time.Second, 0, Cut},
		{"its machine loses power before", 0, 0, Cut},
	} {
		t.Run(c.name, func(t *testing.T) {
			grace := int64(45)
			pod := &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Name: "web-0", UID: "u", Annotations: map[string]string{kwok.StopSecondsAnnotation: "30"}},
				Spec:       corev1.PodSpec{TerminationGracePeriodSeconds: &grace},
				Status:     corev1.PodStatus{Phase: corev1.PodRunning},
			}
			p := newPodTrack(pod)
			p.observe(start, pod, false)
			pod.Annotations[kwok.ShutdownAnnotation], pod.Annotations[kwok.ShutdownGraceSecondsAnnotation] = "2026-05-11T08:00:00Z", "45"
			p.observe(start, pod, false)
			if got := p.verdict(); got != Leaving || p.grace != 45*time.Second {
				t.Errorf("asked, it is %s with %s", got, p.grace)
			}
			if c.ends == 0 {
				p.powerLost = start.Add(10 * time.Second)
			} else {
				pod.Status.Phase = corev1.PodFailed
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: c.code}}}}
				p.observe(start.Add(c.ends), pod, false)
			}
			if got := p.verdict(); got != c.want || p.stays {
				t.Errorf("%s, stays %t; want %s", got, p.stays, c.want)
			}
		})
	}
}
