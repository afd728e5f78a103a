package replacement

import (
	"cmp"
	"fmt"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Following is the input of Follow.
type Following struct {
	Now      time.Time
	Deadline *v1beta1.Deadline
	// Was is the stored status.
	Was Status
	// Claim is its NodeClaim, or nil.
	Claim *Claim
	// NodeReady is true if its node is Ready.
	NodeReady bool
}

// Follow returns the current status of an ordered replacement.
func Follow(f Following) *Status {
	s := f.Was.DeepCopy()
	c := f.Claim
	switch {
	case c == nil && s.UID == "" && s.Phase == v1beta1.ReplacementOrdered:
		return s // the status was stored, but the NodeClaim was not created
	case c == nil || c.Deleting || c.Replaces() == "":
		return f.vanished(s)
	}
	s.UID, s.Name, s.NodeName = c.UID, c.Name, c.NodeName
	if s.Phase != v1beta1.ReplacementReady {
		f.updateProgress(s)
	}
	return s
}

// updateProgress updates the status from the progress of the NodeClaim.
func (f Following) updateProgress(s *Status) {
	c := f.Claim
	switch {
	case c.Initialized && f.NodeReady:
		at := microTime(f.Now)
		s.Phase, s.Reason, s.ReadyTime = v1beta1.ReplacementReady, ReasonReady, &at
		s.Message = fmt.Sprintf("replacement %s is Ready", c.NodeName)
		if s.OrderTime != nil {
			s.Message += fmt.Sprintf(", %s after it was ordered", f.Now.Sub(s.OrderTime.Time).Round(time.Second))
		}
	case c.Launched:
		s.Phase, s.Reason, s.Message = v1beta1.ReplacementLaunched, ReasonLaunched, fmt.Sprintf("replacement %s has an instance, which is starting", c.Name)
	default:
		if s.Phase != v1beta1.ReplacementOrdered || s.Message == "" {
			s.Message = fmt.Sprintf("created NodeClaim %s", c.Name)
		}
		s.Phase, s.Reason = v1beta1.ReplacementOrdered, ReasonOrdered
	}
}

// vanished handles a NodeClaim that is gone or being deleted. Karpenter deletes
// one if it finds no capacity, or if its node does not register in time.
func (f Following) vanished(s *Status) *Status {
	if s.Phase == v1beta1.ReplacementRetrying || s.Phase == v1beta1.ReplacementFailed {
		return s
	}
	what := fmt.Sprintf("Karpenter deleted NodeClaim %s", s.Name)
	if s.Phase == v1beta1.ReplacementOrdered {
		what += ", probably because it found no capacity"
	}
	if s.Tries >= MostTries || tooLate(f.Deadline, f.Now) {
		s.Phase, s.Reason = v1beta1.ReplacementFailed, ReasonNoCapacity
		s.Message = fmt.Sprintf("%s, after %d tries; the pods are moved to any node with free capacity", what, s.Tries)
		return s
	}
	s.Phase, s.Reason = v1beta1.ReplacementRetrying, ReasonVanished
	s.Message = fmt.Sprintf("%s; Lifeboat orders it again", what)
	return s
}

// tooLate reports whether a hard deadline is so near that a replacement cannot
// help.
func tooLate(d *v1beta1.Deadline, now time.Time) bool {
	return notice.IsFirm(d) && !now.Before(d.Time.Add(-tryAgain))
}

// RetryAt is when to order a replacement again that Karpenter deleted.
func RetryAt(s *Status, d *v1beta1.Deadline) time.Time {
	if s.OrderTime == nil {
		return time.Time{}
	}
	switch {
	case notice.IsFirm(d) && s.Tries <= 1:
		return s.OrderTime.Add(tryAgainSoon)
	case notice.IsFirm(d):
		return s.OrderTime.Add(tryAgain)
	}
	return s.OrderTime.Add(tryAgainLater)
}

// Settled reports whether the status is final, so that nothing has to be read.
func Settled(s *Status) bool {
	return s != nil && (s.Phase == v1beta1.NoReplacement || s.Phase == v1beta1.ReplacementFailed)
}

// IsOrdered reports whether there is a NodeClaim to follow.
func IsOrdered(s *Status) bool {
	return s != nil && (s.Phase == v1beta1.ReplacementOrdered || s.Phase == v1beta1.ReplacementLaunched || s.Phase == v1beta1.ReplacementReady)
}

// Gate returns the drain gate of a replacement, and whether there is one. With
// a hard deadline the pods wait until their last call even without capacity,
// since they fit nowhere else. Otherwise they wait for a limited time and then
// move to any node with free capacity.
func Gate(s *Status, d *v1beta1.Deadline) (drain.Gate, bool) {
	if s == nil {
		return drain.Gate{}, false
	}
	g := drain.Gate{}
	switch s.Phase {
	case v1beta1.ReplacementQueued:
		g.Why = "their node's replacement is not ordered yet"
	case v1beta1.ReplacementOrdered:
		g.Why = fmt.Sprintf("replacement %s has no instance yet", s.Name)
		if s.Group != "" {
			g.Why = fmt.Sprintf("group %s has not launched their node's replacement yet", s.Group)
		}
	case v1beta1.ReplacementLaunched:
		g.Why = fmt.Sprintf("replacement %s is starting", cmp.Or(s.Name, s.InstanceID))
	case v1beta1.ReplacementRetrying:
		g.Why = fmt.Sprintf("replacement %s found no capacity; Lifeboat orders it again", s.Name)
	case v1beta1.ReplacementFailed:
		if !notice.IsFirm(d) {
			return drain.Gate{}, false
		}
		g.Why = "there is no capacity for a replacement"
	default:
		return drain.Gate{}, false
	}
	if !notice.IsFirm(d) && s.StartTime != nil {
		g.Until = s.StartTime.Add(patience)
	}
	return g, true
}
