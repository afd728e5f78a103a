package drain_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// estimated makes the deadline of a world an estimate. It reports false if the world has none.
func (w *world) estimated() bool {
	if w.hard().IsZero() {
		return false
	}
	w.facts.Deadline.Type = v1beta1.DeadlineEstimated
	return true
}

// The test simulates each world until a minute after the estimated end of its instance, which
// keeps running. Every pod that is asked to stop must get its own grace, or at least the time
// until the estimate. The grace of a leaving pod must never change.
func TestEstimatedDeadlineKeepsGrace(t *testing.T) {
	t.Parallel()
	asked, deleted := 0, 0
	eachWorld(t, func(t *testing.T, w *world) {
		if !w.estimated() {
			return
		}
		for end := w.hard().Add(time.Minute); !w.now.After(end) && !t.Failed(); w.tick() {
			plan := drain.NewPlan(w.facts)
			for _, v := range plan.Verdicts {
				if v.Step != drain.StepEvict && v.Step != drain.StepDelete {
					continue
				}
				asked++
				if v.Step == drain.StepDelete {
					deleted++
				}
				w.checkWholeGrace(t, v)
			}
			w.act(t, plan)
			w.checkLastCalls(t, plan)
			if plan.Empty() {
				break
			}
		}
	})
	if asked < worlds || deleted < worlds/10 {
		t.Errorf("only %d pods were asked to stop, %d of them by deletion", asked, deleted)
	}
}

// checkWholeGrace checks that a request gives a pod its own grace, or at least the time until
// the estimated end.
func (w *world) checkWholeGrace(t *testing.T, v drain.Verdict) {
	t.Helper()
	if v.Pod.DeletionTimestamp != nil {
		t.Errorf("%s: %s is leaving with %d s, and is asked again: %s", hour(w.now), v.Pod.Name, *v.Pod.DeletionGracePeriodSeconds, v.Reason)
		return
	}
	if least := min(ownGrace(v.Pod), w.hard().Sub(w.now)); given(v) < least {
		t.Errorf("%s: %s gets %s, and could have had %s: %s", hour(w.now), v.Pod.Name, given(v), least, v.Reason)
	}
	if w.now.Before(w.hard()) && given(v) < ownGrace(v.Pod) {
		t.Errorf("%s: %s gets %s of its %s before the estimate has passed: %s", hour(w.now), v.Pod.Name, given(v), ownGrace(v.Pod), v.Reason)
	}
}

// given returns the grace that a request gives a pod.
func given(v drain.Verdict) time.Duration {
	if v.GraceSeconds != nil {
		return time.Duration(*v.GraceSeconds) * time.Second
	}
	return ownGrace(v.Pod)
}

// A pod with 54 s of grace left keeps them after the estimated end has passed. Only a hard
// deadline shortens them.
func TestLeavingPodsKeepGrace(t *testing.T) {
	for _, c := range []struct {
		name     string
		deadline time.Duration
		typ      v1beta1.DeadlineType
		want     drain.Step
	}{
		{"the estimate is two minutes away", 2 * time.Minute, v1beta1.DeadlineEstimated, drain.StepLeaving},
		{"the estimate is seconds away", 3 * time.Second, v1beta1.DeadlineEstimated, drain.StepLeaving},
		{"the estimate is now", 0, v1beta1.DeadlineEstimated, drain.StepLeaving},
		{"the estimate has passed", -time.Minute, v1beta1.DeadlineEstimated, drain.StepLeaving},
		{"a hard deadline is two minutes away", 2 * time.Minute, v1beta1.DeadlineHard, drain.StepLeaving},
		{"a hard deadline is seconds away", 3 * time.Second, v1beta1.DeadlineHard, drain.StepDelete},
		{"a hard deadline has passed", -time.Minute, v1beta1.DeadlineHard, drain.StepDelete},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := scenario{Deadline: &deadlineIn{Type: c.typ}}
			in.Deadline.In.Duration = c.deadline
			f := in.facts()
			pod := podIn{Name: "web-0", Leaving: &leavingIn{Grace: 60}}
			pod.Leaving.Asked.Duration = 6 * time.Second
			f.Pods = []*corev1.Pod{pod.pod()}
			v := drain.NewPlan(f).Verdicts[0]
			if v.Step != c.want || (v.GraceSeconds != nil) != (c.want == drain.StepDelete) {
				t.Errorf("%s with grace %v: %s", v.Step, v.GraceSeconds, v.Reason)
			}
		})
	}
}
