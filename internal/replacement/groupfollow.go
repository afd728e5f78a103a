package replacement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// IsDetached reports whether the instance was detached or may have been: from
// the order until it is known that the detachment failed.
func IsDetached(s *Status) bool {
	return s != nil && s.Group != "" && (s.DetachTime != nil || s.Phase == v1beta1.ReplacementOrdered)
}

// Detached stores the result of the detachment.
func Detached(s *Status, err error, now time.Time) {
	at := microTime(now)
	switch {
	case err == nil:
		s.DetachTime = &at
		s.Message = fmt.Sprintf("detached the instance from group %s, which launches another", s.Group)
	case cloud.IsDenied(err):
		s.Phase, s.Reason = v1beta1.NoReplacement, ReasonRefused
		s.Message = clip(fmt.Sprintf("no replacement is launched: AWS denied detaching the instance from group %s: %v", s.Group, err))
	default:
		s.Message = clip(fmt.Sprintf("cannot detach the instance from group %s, retrying: %v", s.Group, err))
	}
}

// ToDetach reports whether to detach the instance now, and when to check again.
func ToDetach(s *Status, g *ScalingGroup, now time.Time) (bool, time.Time) {
	if s == nil || s.Group == "" || s.Phase != v1beta1.ReplacementOrdered || s.DetachTime != nil {
		return false, time.Time{}
	}
	last := s.OrderTime.Time
	if again := last.Add(detachAgain); now.Before(again) {
		return false, again
	}
	return g != nil && g.Interrupted != nil && g.Interrupted.At.Phase == lifecycle.Serving, now.Add(detachAgain)
}

// IsKept reports whether the group's list still contains the instance long
// after its detachment was requested, without a stored result.
func IsKept(s *Status, g *ScalingGroup) bool {
	return s.DetachTime == nil && g != nil && g.Interrupted != nil && g.Interrupted.At.Phase != lifecycle.Aside &&
		s.OrderTime != nil && g.Time.After(s.OrderTime.Add(detachSettles))
}

// GroupFollowing is the input of FollowGroup.
type GroupFollowing struct {
	Now      time.Time
	Deadline *v1beta1.Deadline
	Was      Status
	// Group is nil if it could not be read.
	Group *ScalingGroup
}

// FollowGroup returns the current status. The replacement instance is stored
// before pods move to it, so that no two interruptions use the same instance.
func FollowGroup(f GroupFollowing) *Status {
	s := f.Was.DeepCopy()
	g := f.Group
	if g == nil || !g.Time.After(orderedAt(s)) {
		return s
	}
	if s.DetachTime == nil {
		return f.detaching(s)
	}
	if s.Phase == v1beta1.ReplacementReady {
		return s
	}
	if s.InstanceID == "" {
		return f.claim(s)
	}
	i := slices.IndexFunc(g.Others, func(m GroupMember) bool { return m.InstanceID == s.InstanceID })
	switch {
	case i < 0 || !g.Others[i].joins():
		s.PreexistingInstanceIDs = append(s.PreexistingInstanceIDs, s.InstanceID)[:min(len(s.PreexistingInstanceIDs)+1, maxApart)]
		slices.Sort(s.PreexistingInstanceIDs)
		lost := s.InstanceID
		s.Phase, s.Reason, s.InstanceID, s.NodeName = v1beta1.ReplacementOrdered, ReasonVanished, "", ""
		s.Message = fmt.Sprintf("instance %s did not reach InService; group %s launches another", lost, s.Group)
		return s
	case g.Others[i].Node != nil:
		s.NodeName = g.Others[i].Node.Name
	}
	if m := g.Others[i]; m.At.Phase == lifecycle.Serving && m.Node != nil && m.Node.Ready {
		at := microTime(f.Now)
		s.Phase, s.Reason, s.ReadyTime = v1beta1.ReplacementReady, ReasonReady, &at
		s.Message = fmt.Sprintf("replacement %s (%s) is InService and Ready, %s after it was ordered", m.Node.Name, m.InstanceID, f.Now.Sub(orderedAt(s)).Round(time.Second))
	}
	return s
}

// detaching finds out whether the instance was detached, if the result of the
// call was lost.
func (f GroupFollowing) detaching(s *Status) *Status {
	interrupted := f.Group.Interrupted
	switch {
	case interrupted == nil || interrupted.At.Phase == lifecycle.Aside:
		Detached(s, nil, f.Now)
	case interrupted.At.Phase == lifecycle.Leaving || interrupted.At.Phase == lifecycle.Gone:
		s.Phase, s.Reason = v1beta1.NoReplacement, ReasonGroupReplaces
		s.Message = fmt.Sprintf("no replacement is ordered: group %s terminates the instance itself (%s) and launches another", s.Group, interrupted.State)
	case tooLate(f.Deadline, f.Now):
		if IsKept(s, f.Group) {
			s.Phase, s.Reason = v1beta1.ReplacementFailed, ReasonTooLate
			s.Message = fmt.Sprintf("the instance could not be detached from group %s in time; the pods are moved to any node with free capacity", s.Group)
		}
	}
	return s
}

// claim chooses the instance that the group launched as the replacement: a new
// one that no other interruption uses, the furthest in its launch first, then
// by id.
func (f GroupFollowing) claim(s *Status) *Status {
	var found []GroupMember
	for _, m := range f.Group.Others {
		older := m.Node != nil && m.Node.Created.Before(orderedAt(s).Add(-time.Second))
		if m.joins() && !m.Claimed && !older && !slices.Contains(s.PreexistingInstanceIDs, m.InstanceID) {
			found = append(found, m)
		}
	}
	if len(found) == 0 {
		if s.StartTime != nil && !notice.IsFirm(f.Deadline) && f.Now.Sub(s.StartTime.Time) >= patience {
			s.Phase, s.Reason = v1beta1.ReplacementFailed, ReasonNoCapacity
			s.Message = fmt.Sprintf("group %s has launched nothing for %s (see its activity history); the pods are moved to any node with free capacity", s.Group, patience)
		}
		return s
	}
	m := slices.MinFunc(found, func(a, b GroupMember) int {
		return cmp.Or(cmp.Compare(b.progress(), a.progress()), strings.Compare(a.InstanceID, b.InstanceID))
	})
	s.Phase, s.Reason, s.InstanceID = v1beta1.ReplacementLaunched, ReasonLaunched, m.InstanceID
	s.Message = fmt.Sprintf("group %s launched instance %s", s.Group, m.InstanceID)
	return s
}

// joins reports whether a member is in service or launching.
func (m GroupMember) joins() bool {
	return m.At.Phase == lifecycle.Joining || m.At.Phase == lifecycle.Serving
}

// progress ranks how far a member's launch is: a higher one can take pods
// sooner.
func (m GroupMember) progress() int {
	switch {
	case m.Node != nil && m.Node.Ready && m.At.Phase == lifecycle.Serving:
		return 3
	case m.At.Phase == lifecycle.Serving:
		return 2
	case m.Node != nil:
		return 1
	}
	return 0
}

func orderedAt(s *Status) time.Time {
	if s.OrderTime == nil {
		return time.Time{}
	}
	return s.OrderTime.Time
}
