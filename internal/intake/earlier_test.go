package intake_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// readiness is oneNode, a day old, with the Ready condition of its kubelet.
func readiness(status corev1.ConditionStatus, turned, spoke time.Time) nodes {
	all := nodeOf(now.Add(-24 * time.Hour))
	all[instance].Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: status, LastTransitionTime: metav1.NewTime(turned), LastHeartbeatTime: metav1.NewTime(spoke),
	}}
	if cached, err := nodeindex.Slim()(all[instance]); err == nil {
		all[instance], _ = cached.(*corev1.Node)
	}
	return all
}

// An instance that was stopped and started keeps its node: a late stop notice is obsolete once
// its kubelet has reported since.
func TestStopBeforeBootIsStale(t *testing.T) {
	stop := now.Add(-5 * time.Minute)
	long, soon, later := stop.Add(-time.Hour), stop.Add(5*time.Second), stop.Add(time.Minute)
	drill := func(n *notice.Notice) { n.Drill, n.DrillID = true, "d-1" }
	for name, test := range map[string]struct {
		nodes   nodes
		state   string
		changes []func(*notice.Notice)
		stale   bool
	}{
		"it is Ready again since":                       {readiness(corev1.ConditionTrue, later, later), "stopped", nil, true},
		"it was never seen not Ready":                   {readiness(corev1.ConditionTrue, long, later), "stopped", nil, true},
		"it turned Ready, and has not reported since":   {readiness(corev1.ConditionTrue, later, time.Time{}), "stopped", nil, true},
		"its state is terminated":                       {readiness(corev1.ConditionTrue, later, later), "terminated", nil, true},
		"its kubelet reported at about the same time":   {readiness(corev1.ConditionTrue, long, soon), "stopped", nil, false},
		"it still counts as Ready":                      {readiness(corev1.ConditionTrue, long, stop.Add(-time.Second)), "stopped", nil, false},
		"it is not Ready":                               {readiness(corev1.ConditionFalse, later, later), "stopped", nil, false},
		"its readiness is unknown":                      {readiness(corev1.ConditionUnknown, later, long), "stopped", nil, false},
		"it has no conditions":                          {nodeOf(long), "stopped", nil, false},
		"it has no node":                                {nil, "stopped", nil, false},
		"it is stopping, and its kubelet still reports": {readiness(corev1.ConditionTrue, long, later), "stopping", nil, false},
		"it is a drill":                                 {readiness(corev1.ConditionTrue, later, later), "stopped", []func(*notice.Notice){drill}, false},
	} {
		t.Run(name, func(t *testing.T) {
			n := spot("late", append([]func(*notice.Notice){issued(stop), state(test.state)}, test.changes...)...)
			expectStale(t, n, test.nodes, test.stale)
		})
	}
}

// An instance that returned from its warm pool has a new node: queued events from before are
// about the old one. A poll shows the current state.
func TestTerminationBeforeNodeIsStale(t *testing.T) {
	ends := func(source string, at time.Time) notice.Notice {
		return spot("token", func(n *notice.Notice) {
			n.Kind, n.Source, n.InstanceAction, n.Deadline = notice.KindAutoScalingTermination, source, notice.ActionReturn, nil
			n.Time = metav1.NewTime(at)
			n.LifecycleHook = &v1beta1.LifecycleHookInvocation{Group: "workers", Name: "lifeboat-terminate", Token: "token"}
		})
	}
	registered := nodeOf(now.Add(-time.Minute))
	expectStale(t, ends(notice.SourceQueue, now.Add(-time.Hour)), registered, true)
	expectStale(t, ends(notice.SourceQueue, now.Add(-time.Minute)), registered, false)
	expectStale(t, ends(notice.SourceAutoScaling, now.Add(-time.Hour)), registered, false)
	expectStale(t, ends(notice.SourceIMDS, now.Add(-time.Hour)), registered, false)
}

// expectStale records a notice with and without an existing record.
func expectStale(t *testing.T, n notice.Notice, known nodes, stale bool) {
	t.Helper()
	for outcome, objects := range map[intake.Outcome][]client.Object{
		intake.Recorded: nil, intake.Joined: {recorded(spot("old").Notice)},
	} {
		want, wantIDs := outcome, []string{n.ID}
		if outcome == intake.Joined {
			wantIDs = []string{"old", n.ID}
		}
		switch {
		case stale && outcome == intake.Joined:
			want, wantIDs = intake.Stale, []string{"old"}
		case stale:
			want, wantIDs = intake.Stale, nil
		case known == nil && outcome == intake.Recorded:
			want, wantIDs = intake.Foreign, nil
		}
		permit := permitting(t, intake.DrillPermit{Instances: []string{instance}, Expires: now.Add(time.Minute)})
		c := cluster(interceptor.Funcs{}, append(objects, permit)...)
		got, err := intake.NewRecorder(c, known, options()).Record(t.Context(), n)
		if err != nil || got != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
		if diff := cmp.Diff(wantIDs, ids(t, c)); diff != "" {
			t.Errorf("notices on record (-want +got):\n%s", diff)
		}
	}
}
