package record_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// heldByBudget is a drain that a person requested an hour ago, and that a budget holds.
func heldByBudget() *v1beta1.Interruption {
	in := interruption(v1beta1.PhaseDraining, v1beta1.ActionDrain, nil)
	in.Name, in.Spec.NodeName, in.Status.Kind = "i-0a1b2c3d4e5f60718", "a", notice.KindRequested
	in.Status.Drain = &v1beta1.DrainStatus{
		StartTime: micro(time.Hour), PodCounts: v1beta1.PodCounts{Total: 3, Moved: 2, Waiting: 1},
		Pods: []v1beta1.PodStatus{{Namespace: "shop", Name: "db-0", State: "Waiting", Message: "waits: PodDisruptionBudget db-pdb allows 0 disruptions"}},
	}
	in.Status.Timeline = []v1beta1.TimelineEntry{
		{Time: *micro(40 * time.Minute), Reason: v1beta1.ReasonPodTerminated}, {Time: *micro(time.Minute), Reason: v1beta1.ReasonNoticeReceived},
	}
	return &in
}

func TestBlockedDrainNeedsPerson(t *testing.T) {
	needs := record.Needs(heldByBudget(), "lifeboat", clock)
	if len(needs) != 1 || !strings.Contains(needs[0].Why, "PodDisruptionBudget db-pdb allows 0") || !needs[0].Since.Equal(clock.Add(-40*time.Minute)) || needs[0].Command != "lifeboat plan a" {
		t.Errorf("needs %+v", needs)
	}
	at := metav1.NewTime
	for name, change := range map[string]func(*v1beta1.Interruption){
		"a pod left a moment ago": func(in *v1beta1.Interruption) { in.Status.Timeline[0].Time = *micro(time.Minute) },
		"a pod is leaving":        func(in *v1beta1.Interruption) { in.Status.Drain.PodCounts.Leaving = 1 },
		"nothing waits":           func(in *v1beta1.Interruption) { in.Status.Drain.PodCounts.Waiting = 0 },
		"a hard deadline ends the wait": func(in *v1beta1.Interruption) {
			in.Status.Deadline = notice.At(clock.Add(time.Minute), v1beta1.DeadlineHard)
		},
		"a planned change ends it": func(in *v1beta1.Interruption) {
			in.Status.Deadline = &v1beta1.Deadline{Time: at(clock.Add(24 * time.Hour)), Type: v1beta1.DeadlineSoft}
		},
		"nothing was begun":  func(in *v1beta1.Interruption) { in.Status.Drain.StartTime = nil },
		"it is acknowledged": func(in *v1beta1.Interruption) { acknowledge(in, 30*time.Minute) },
	} {
		in := heldByBudget()
		change(in)
		if needs := record.Needs(in, "lifeboat", clock); len(needs) != 0 {
			t.Errorf("%s: needs %+v", name, needs)
		}
	}
	for name, change := range map[string]func(*v1beta1.Interruption){
		"a planned date that has passed ends nothing": func(in *v1beta1.Interruption) {
			in.Status.Deadline = &v1beta1.Deadline{Time: at(clock.Add(-time.Hour)), Type: v1beta1.DeadlineSoft}
		},
		"it was acknowledged before that":    func(in *v1beta1.Interruption) { acknowledge(in, 45*time.Minute) },
		"an acknowledgement from the future": func(in *v1beta1.Interruption) { acknowledge(in, -time.Hour) },
		"an acknowledgement that is no time": func(in *v1beta1.Interruption) {
			in.Annotations = map[string]string{v1beta1.AnnotationAcknowledged: "yes"}
		},
		"a hold is a need of its own instead": func(in *v1beta1.Interruption) {
			in.Spec.Hold = &v1beta1.UserAction{By: "ada", Time: *micro(time.Minute)}
		},
	} {
		in := heldByBudget()
		change(in)
		if needs := record.Needs(in, "lifeboat", clock); len(needs) != 1 {
			t.Errorf("%s: needs %+v", name, needs)
		}
	}
}

func acknowledge(in *v1beta1.Interruption, ago time.Duration) {
	in.Annotations = map[string]string{v1beta1.AnnotationAcknowledged: clock.Add(-ago).Format(time.RFC3339)}
}

// What is acknowledged is any need, and a need that begins later is listed.
func TestAcknowledgementCoversEarlierNeeds(t *testing.T) {
	in := interruption(v1beta1.PhaseAwaitingApproval, v1beta1.ActionDrain, nil)
	in.Status.Conditions = []metav1.Condition{
		{Type: v1beta1.ConditionApproved, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(clock.Add(-time.Hour))},
		{Type: v1beta1.ConditionWiringDegraded, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(clock.Add(-10 * time.Minute)), Message: "SpotInterruption was not delivered"},
	}
	acknowledge(&in, 30*time.Minute)
	needs := record.Needs(&in, "lifeboat", clock)
	if len(needs) != 1 || !strings.Contains(needs[0].Why, "was not delivered") {
		t.Errorf("needs %+v", needs)
	}
}

// A person who has corrected the wiring has nothing more to do about the notice that was lost.
func TestRepairedWiringNeedsNoPerson(t *testing.T) {
	in := interruption(v1beta1.PhaseCompleted, v1beta1.ActionDrain, nil)
	in.Status.Conditions = []metav1.Condition{{
		Type: v1beta1.ConditionWiringDegraded, Status: metav1.ConditionTrue, Reason: v1beta1.ReasonMissingFromQueue,
		LastTransitionTime: metav1.NewTime(clock.Add(-time.Hour)), Message: "SpotInterruption was not delivered",
	}}
	if needs := record.Needs(&in, "lifeboat", clock); len(needs) != 1 {
		t.Errorf("before: needs %+v", needs)
	}
	in.Status.Conditions[0].Status, in.Status.Conditions[0].Reason = metav1.ConditionFalse, v1beta1.ReasonWiringRepaired
	if needs := record.Needs(&in, "lifeboat", clock); len(needs) != 0 {
		t.Errorf("after: needs %+v", needs)
	}
}
