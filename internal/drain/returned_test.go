package drain_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// hopping is a node with one pod of a workload that tolerates every taint. The scheduler places
// each successor on the same node.
type hopping struct {
	facts   drain.Facts
	evicted []drain.Verdict
}

func newHopping(owner string, tolerates corev1.Toleration, deadline *v1beta1.Deadline) *hopping {
	in := scenario{Pods: []podIn{{Name: "agent-0", Owner: owner}}}
	h := &hopping{facts: in.facts()}
	h.facts.Deadline, h.facts.Cordoned = deadline, noon
	h.facts.Pods[0].Spec.Tolerations = []corev1.Toleration{tolerates}
	return h
}

// play drains for some time. A pod that is asked to stop ends after a second, and its successor is
// there at once.
func (h *hopping) play(t *testing.T, lasts time.Duration) drain.Plan {
	t.Helper()
	var plan drain.Plan
	for end := noon.Add(lasts); h.facts.Now.Before(end); h.facts.Now = h.facts.Now.Add(time.Second) {
		plan = drain.NewPlan(h.facts)
		for _, v := range plan.Verdicts {
			if v.Step != drain.StepEvict && v.Step != drain.StepDelete {
				continue
			}
			h.evicted = append(h.evicted, v)
			next := v.Pod.DeepCopy()
			next.Name, next.CreationTimestamp = fmt.Sprintf("agent-%d", len(h.evicted)), metav1.NewTime(h.facts.Now.Add(time.Second).Truncate(time.Second))
			next.UID = types.UID(next.Name)
			h.facts.Pods = []*corev1.Pod{next}
		}
	}
	return plan
}

func TestPodThatComesBackIsAskedOnceMore(t *testing.T) {
	everything := corev1.Toleration{Operator: corev1.TolerationOpExists}
	cordon := corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	hard := &v1beta1.Deadline{Time: metav1.NewTime(noon.Add(2 * time.Minute)), Type: v1beta1.DeadlineHard}
	for name, h := range map[string]*hopping{
		"a Deployment that tolerates everything": newHopping("ReplicaSet/agent", everything, hard),
		"a StatefulSet that tolerates a cordon":  newHopping("StatefulSet/agent", cordon, hard),
	} {
		plan := h.play(t, 2*time.Minute)
		if len(h.evicted) != 2 {
			t.Fatalf("%s: %d evictions", name, len(h.evicted))
		}
		first, again := h.evicted[0], h.evicted[1]
		if !strings.Contains(first.Reason, "its successor may come back to this node") || first.Returned {
			t.Errorf("%s: first %q", name, first.Reason)
		}
		if !again.Returned || again.GraceSeconds != nil || !again.LastCall.Equal(noon.Add(80*time.Second)) {
			t.Errorf("%s: again with grace %v, returned %v: %s", name, again.GraceSeconds, again.Returned, again.Reason)
		}
		if last := plan.Verdicts[0]; last.Step != drain.StepStays || !strings.Contains(last.Reason, "after its last call") || !plan.Empty() {
			t.Errorf("%s: in the end %s: %s", name, last.Step, last.Reason)
		}
	}
}

// Without a firm deadline there is no last call: the drain does not wait for a pod that comes back.
func TestDrainEndsAlthoughAPodComesBack(t *testing.T) {
	everything := corev1.Toleration{Operator: corev1.TolerationOpExists}
	for name, deadline := range map[string]*v1beta1.Deadline{
		"no deadline":     nil,
		"a soft deadline": {Time: metav1.NewTime(noon.Add(time.Hour)), Type: v1beta1.DeadlineSoft},
	} {
		h := newHopping("ReplicaSet/agent", everything, deadline)
		if plan := h.play(t, 10*time.Minute); len(h.evicted) != 1 || !plan.Empty() || !strings.Contains(plan.Verdicts[0].Reason, "the drain does not wait for it") {
			t.Errorf("%s: %d evictions, then %s: %s", name, len(h.evicted), plan.Verdicts[0].Step, plan.Verdicts[0].Reason)
		}
	}
}

// Only a pod that the scheduler placed there because it tolerates the cordon has come back.
func TestOtherNewPodsAreEvicted(t *testing.T) {
	for name, change := range map[string]func(*corev1.Pod){
		"it tolerates no cordon": func(p *corev1.Pod) { p.Spec.Tolerations = nil },
		"it tolerates another taint": func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "gpu", Operator: corev1.TolerationOpExists}}
		},
		"it tolerates that pods are killed": func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}}
		},
		"nothing controls it": func(p *corev1.Pod) { p.OwnerReferences = nil },
		"it was there before": func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(noon) },
	} {
		h := newHopping("ReplicaSet/agent", corev1.Toleration{Operator: corev1.TolerationOpExists}, nil)
		pod := h.facts.Pods[0]
		pod.CreationTimestamp = metav1.NewTime(noon.Add(time.Second))
		change(pod)
		if v := drain.NewPlan(h.facts).Verdicts[0]; v.Step != drain.StepEvict || v.Returned {
			t.Errorf("%s: %s: %s", name, v.Step, v.Reason)
		}
	}
}
