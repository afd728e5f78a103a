package status

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// AfterDeadline is how long an instance may outlive its hard deadline before it counts
// as one that lives.
const AfterDeadline = 10 * time.Minute

// phase computes the one-word summary.
func phase(s *v1alpha1.InterruptionStatus, stage v1alpha1.Phase, withdrawn, hasNode bool, now time.Time) v1alpha1.Phase {
	if stage != "" && s.CompletionTime == nil {
		return stage
	}
	switch s.Decision.Action {
	case v1alpha1.ActionIgnore:
		if withdrawn {
			return v1alpha1.PhaseCancelled
		}
		return v1alpha1.PhaseIgnored
	case v1alpha1.ActionNotify:
		return notifyPhase(s)
	}
	return drainPhase(s, hasNode, now)
}

// drainPhase is the phase of what is cordoned or drained.
func drainPhase(s *v1alpha1.InterruptionStatus, hasNode bool, now time.Time) v1alpha1.Phase {
	is := func(typ string) bool { return meta.IsStatusConditionTrue(s.Conditions, typ) }
	switch {
	case s.CompletionTime != nil && hasNode && outlived(s, now):
		return v1alpha1.PhaseCancelled
	case s.CompletionTime != nil:
		return v1alpha1.PhaseCompleted
	case is(v1alpha1.ConditionDrained):
		return v1alpha1.PhaseDrained
	case is(v1alpha1.ConditionCordoned) && s.Decision.Action == v1alpha1.ActionCordon:
		return v1alpha1.PhaseCordoned
	case is(v1alpha1.ConditionCordoned):
		return v1alpha1.PhaseDraining
	}
	return v1alpha1.PhaseScheduled
}

// notifyPhase is the phase of what is only reported.
func notifyPhase(s *v1alpha1.InterruptionStatus) v1alpha1.Phase {
	switch {
	case s.CompletionTime != nil:
		return v1alpha1.PhaseCompleted
	case meta.FindStatusCondition(s.Conditions, v1alpha1.ConditionCordoned) == nil:
		return v1alpha1.PhaseScheduled // it is not marked yet
	}
	return v1alpha1.PhaseNotified
}

// outlived reports whether the deadline, if there was one, is well past: the
// node that is still there lives.
func outlived(s *v1alpha1.InterruptionStatus, now time.Time) bool {
	return s.Deadline == nil || !now.Before(s.Deadline.Time.Add(AfterDeadline))
}
