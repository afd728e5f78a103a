package status

import (
	"slices"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// SetReplacement notes the state of the replacement.
func (u *Update) SetReplacement(s *v1beta1.ReplacementStatus) {
	was := u.Drain().Replacement
	if s == nil {
		return
	}
	u.Drain().Replacement = s.DeepCopy()
	if was != nil && was.Phase == s.Phase && was.Tries == s.Tries {
		return
	}
	switch s.Phase {
	case v1beta1.ReplacementOrdered:
		u.Record(v1beta1.ReasonReplacementOrdered, s.Message)
	case v1beta1.ReplacementReady:
		u.Record(v1beta1.ReasonReplacementReady, s.Message)
	case v1beta1.ReplacementRetrying, v1beta1.ReplacementFailed:
		u.Record(v1beta1.ReasonReplacementFailed, s.Message)
	case v1beta1.NoReplacement:
		if !isExpected(s) {
			u.Record(v1beta1.ReasonNotReplaced, s.Message)
		}
	}
}

// isExpected reports whether there is no replacement for a reason that needs no
// timeline entry.
func isExpected(s *v1beta1.ReplacementStatus) bool {
	return slices.Contains([]string{
		replacement.ReasonNoPods, replacement.ReasonInstanceGone, replacement.ReasonNoKarpenter, replacement.ReasonNoNodeClaim,
		replacement.ReasonGroupReplaces, replacement.ReasonNoGroup, replacement.ReasonSurvives,
	}, s.Reason)
}

// isNotNeeded reports whether there is no replacement because the pods have room, or
// there are none to move.
func isNotNeeded(s *v1beta1.ReplacementStatus) bool {
	return s.Phase == v1beta1.NoReplacement &&
		(s.Reason == replacement.ReasonRoom || s.Reason == replacement.ReasonNoPods || s.Reason == replacement.ReasonGroupReplaces)
}

// setReplaced sets the condition Replaced.
func (u *Update) setReplaced() {
	s := u.Drain().Replacement
	if s == nil {
		return
	}
	u.setCondition(v1beta1.ConditionReplaced, s.Phase == v1beta1.ReplacementReady || isNotNeeded(s), s.Reason, s.Message)
}
