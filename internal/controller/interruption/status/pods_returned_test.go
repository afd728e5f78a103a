package status

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// A lost pod whose Node has registered again has the state of the plan. If it was evicted just now and
// the cache does not show that, it is leaving.
func TestStateOfPodOfReturnedNode(t *testing.T) {
	now := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		evicted time.Duration // before now; zero: never
		want    v1beta1.PodState
	}{
		"never evicted":                     {0, v1beta1.PodWaiting},
		"cache stale":                       {time.Second, v1beta1.PodLeaving},
		"evicted long ago, and still there": {time.Minute, v1beta1.PodWaiting},
	} {
		t.Run(name, func(t *testing.T) {
			left := v1beta1.PodStatus{Namespace: "shop", Name: "db-0", UID: "u", State: "Lost", Message: "its instance went before it had left"}
			left.LastCallTime = &metav1.Time{Time: now} // of a deadline that is gone
			if c.evicted > 0 {
				at := metav1.NewTime(now.Add(-c.evicted))
				left.EvictionTime = &at
			}
			in := &v1beta1.Interruption{Status: v1beta1.InterruptionStatus{Drain: &v1beta1.DrainStatus{
				PodCounts: v1beta1.PodCounts{Total: 1, Lost: 1}, Pods: []v1beta1.PodStatus{left},
			}}}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db-0", UID: "u"}}
			u := NewUpdate(in, now)
			u.pass = &Pass{Interruption: in, Node: &corev1.Node{}, NodeName: "a", Pods: Pods{Known: true, Plan: drain.Plan{
				Verdicts: []drain.Verdict{{Pod: pod, Step: drain.StepWaits, Reason: "waits for its budget"}},
			}}}
			u.listPods()
			got := u.Drain().Pods[0]
			if got.State != c.want || got.Message != "waits for its budget" || u.Drain().PodCounts.Lost != 0 {
				t.Errorf("got %s (%s), %d lost; want %s and none", got.State, got.Message, u.Drain().PodCounts.Lost, c.want)
			}
			if got.LastCallTime != nil {
				t.Errorf("last call at %s, without a deadline", got.LastCallTime)
			}
		})
	}
}

// A pod that came back to the cordoned node is the successor of one that is counted already. It counts in
// no number while it is there, and it is not counted as moved when it goes.
func TestReturnedPodIsCountedOnce(t *testing.T) {
	now := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	verdict := func(uid string, step drain.Step, returned bool) drain.Verdict {
		return drain.Verdict{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: uid, UID: types.UID(uid)}}, Step: step, Returned: returned}
	}
	in := &v1beta1.Interruption{}
	for _, pass := range []struct {
		name string
		plan []drain.Verdict
		want v1beta1.PodCounts
	}{
		{"before", []drain.Verdict{verdict("first", drain.StepLeaving, false), verdict("other", drain.StepWaits, false)}, v1beta1.PodCounts{Total: 2, Leaving: 1, Waiting: 1}},
		{"it is back", []drain.Verdict{verdict("again", drain.StepWaits, true), verdict("other", drain.StepWaits, false)}, v1beta1.PodCounts{Total: 2, Moved: 1, Waiting: 1}},
		{"it leaves again", []drain.Verdict{verdict("again", drain.StepLeaving, true), verdict("other", drain.StepLeaving, false)}, v1beta1.PodCounts{Total: 2, Moved: 1, Leaving: 1}},
		{"both are gone", nil, v1beta1.PodCounts{Total: 2, Moved: 2}},
	} {
		u := NewUpdate(in, now)
		u.pass = &Pass{Interruption: in, Node: &corev1.Node{}, NodeName: "a", Pods: Pods{Known: true, GoneAt: func(types.UID) time.Time { return now }, Plan: drain.Plan{Verdicts: pass.plan}}}
		u.settlePods()
		u.listPods()
		u.CountPods()
		if got := u.Drain().PodCounts; got != pass.want {
			t.Errorf("%s: counts %+v, want %+v", pass.name, got, pass.want)
		}
		in = &v1beta1.Interruption{Status: *u.Status().DeepCopy()}
	}
}
