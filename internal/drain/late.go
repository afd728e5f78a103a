package drain

import (
	"fmt"
	"time"
)

// instanceGone deletes pods of an instance that no longer runs with a grace of 0, which is safe
// only here. A StatefulSet then starts the successor at once.
func instanceGone(s *planContext, c *podState) (Verdict, bool) {
	if !s.facts.InstanceGone {
		return Verdict{}, false
	}
	if isLeaving(c.pod) && graceGiven(c.pod) == 0 {
		return say(StepLeaving, "leaving: its instance is gone and it was deleted with grace 0; "+finalizers(c.pod))
	}
	var none int64
	return Verdict{
		Step:         StepDelete,
		Reason:       "deleted with grace 0: its instance is gone, so nothing of it runs and no kubelet can confirm that it stopped",
		GraceSeconds: &none,
	}, true
}

// leavingTooLate shortens the grace of a pod that was asked to stop before, so that it is killed
// before the instance ends. It does so as late as possible. The API server counts the shorter
// grace from the first request, and if that has already expired it leaves one second
// (k8s.io/apiserver pkg/registry/rest, BeforeDelete). Asking earlier would cost the pod time.
func leavingTooLate(s *planContext, c *podState) (Verdict, bool) {
	at := s.cutAt(c)
	if at.IsZero() || s.now.Before(at) {
		return Verdict{}, false
	}
	grace := int64(shortestGrace / time.Second)
	return Verdict{
		Step: StepDelete,
		Reason: fmt.Sprintf("deleted again with grace %d s: its grace of %s ends at %s, and the deadline %s",
			grace, seconds(graceGiven(c.pod)), clock(c.pod.DeletionTimestamp.Time), s.whenDeadline()),
		GraceSeconds: &grace,
	}, true
}

// cutAt is when the grace of a leaving pod is shortened; zero if it ends before the deadline,
// cannot be shortened, or the deadline is only an estimate.
func (s *planContext) cutAt(c *podState) time.Time {
	if s.deadline.IsZero() || s.estimated || !isLeaving(c.pod) || !c.pod.DeletionTimestamp.After(s.deadline) || graceGiven(c.pod) <= shortestGrace {
		return time.Time{}
	}
	return s.latest.Add(-shortestGrace)
}
