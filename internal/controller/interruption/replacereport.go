package interruption

import (
	"slices"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// replacement notes how the replacement stands, and what that changes.
func (r *report) replacement(s *v1alpha1.ReplacementStatus) {
	was := r.drain().Replacement
	if s == nil {
		return
	}
	r.drain().Replacement = s.DeepCopy()
	if was != nil && was.Phase == s.Phase && was.Tries == s.Tries {
		return
	}
	switch s.Phase {
	case v1alpha1.ReplacementOrdered:
		r.happen(v1alpha1.ReasonReplacementOrdered, s.Message)
	case v1alpha1.ReplacementReady:
		r.happen(v1alpha1.ReasonReplacementReady, s.Message)
	case v1alpha1.ReplacementRetrying, v1alpha1.ReplacementFailed:
		r.happen(v1alpha1.ReasonReplacementFailed, s.Message)
	case v1alpha1.NoReplacement:
		if !isBesideThePoint(s) {
			r.happen(v1alpha1.ReasonNotReplaced, s.Message)
		}
	}
}

// isBesideThePoint reports whether none comes for a reason that nobody wonders
// about.
func isBesideThePoint(s *v1alpha1.ReplacementStatus) bool {
	return slices.Contains([]string{
		replacement.ReasonNoPods, replacement.ReasonInstanceGone, replacement.ReasonNoKarpenter, replacement.ReasonNoNodeClaim,
		replacement.ReasonGroupReplaces, replacement.ReasonNoGroup, replacement.ReasonSurvives,
	}, s.Reason)
}

// isNotNeeded reports whether none comes because there is room, or nothing to
// move.
func isNotNeeded(s *v1alpha1.ReplacementStatus) bool {
	return s.Phase == v1alpha1.NoReplacement &&
		(s.Reason == replacement.ReasonRoom || s.Reason == replacement.ReasonNoPods || s.Reason == replacement.ReasonGroupReplaces)
}

// replaced says in a condition how the replacement stands.
func (r *report) replaced() {
	s := r.drain().Replacement
	if s == nil {
		return
	}
	r.condition(v1alpha1.ConditionReplaced, s.Phase == v1alpha1.ReplacementReady || isNotNeeded(s), s.Reason, s.Message)
}
