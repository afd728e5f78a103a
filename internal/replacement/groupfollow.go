package replacement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// IsDetached reports whether the instance was taken out of its group, or may have
// been: from when that was ordered until it is known that it was not.
func IsDetached(s *Status) bool {
	return s != nil && s.Group != "" && (s.DetachTime != nil || s.Phase == v1alpha1.ReplacementOrdered)
}

// Detached notes what came of taking the instance out of its group.
func Detached(s *Status, err error, now time.Time) {
	at := microTime(now)
	switch {
	case err == nil:
		s.DetachTime = &at
		s.Message = fmt.Sprintf("the instance was taken out of group %s, which launches another", s.Group)
	case cloud.IsDenied(err):
		s.Phase, s.Reason = v1alpha1.NoReplacement, ReasonRefused
		s.Message = clip(fmt.Sprintf("no replacement is brought up: taking the instance out of group %s was refused: %v", s.Group, err))
	default:
		s.Message = clip(fmt.Sprintf("taking the instance out of group %s: %v; it is tried again", s.Group, err))
	}
}

// ToDetach reports whether the instance has to be taken out of its group now, given
// that it was ordered, and when to look again.
func ToDetach(s *Status, g *ScalingGroup, now time.Time) (bool, time.Time) {
	if s == nil || s.Group == "" || s.Phase != v1alpha1.ReplacementOrdered || s.DetachTime != nil {
		return false, time.Time{}
	}
	last := s.OrderTime.Time
	if again := last.Add(detachAgain); now.Before(again) {
		return false, again
	}
	return g != nil && g.Doomed != nil && g.Doomed.At.Phase == lifecycle.Serving, now.Add(detachAgain)
}

// IsKept reports whether the group's list shows that an instance which was to be
// taken out is in it still, and nobody knows better.
func IsKept(s *Status, g *ScalingGroup) bool {
	return s.DetachTime == nil && g != nil && g.Doomed != nil && g.Doomed.At.Phase != lifecycle.Aside &&
		s.OrderTime != nil && g.Time.After(s.OrderTime.Add(detachSettles))
}

// GroupFollowing is what is known of a replacement that a group brings up.
type GroupFollowing struct {
	Now      time.Time
	Deadline *v1alpha1.Deadline
	Was      Status
	// Group is nil where it could not be looked at.
	Group *ScalingGroup
}

// FollowGroup says how it stands now. The instance that is counted on is written
// down before pods are moved to it, so that no two interruptions count on one.
func FollowGroup(f GroupFollowing) *Status {
	s := f.Was.DeepCopy()
	g := f.Group
	if g == nil || !g.Time.After(orderedAt(s)) {
		return s
	}
	if s.DetachTime == nil {
		return f.detaching(s)
	}
	if s.Phase == v1alpha1.ReplacementReady {
		return s
	}
	if s.InstanceID == "" {
		return f.claim(s)
	}
	i := slices.IndexFunc(g.Others, func(m GroupMember) bool { return m.InstanceID == s.InstanceID })
	switch {
	case i < 0 || !g.Others[i].joins():
		s.Apart = append(s.Apart, s.InstanceID)[:min(len(s.Apart)+1, mostApart)]
		slices.Sort(s.Apart)
		lost := s.InstanceID
		s.Phase, s.Reason, s.InstanceID, s.NodeName = v1alpha1.ReplacementOrdered, ReasonVanished, "", ""
		s.Message = fmt.Sprintf("instance %s did not come into service; group %s launches another", lost, s.Group)
		return s
	case g.Others[i].Node != nil:
		s.NodeName = g.Others[i].Node.Name
	}
	if m := g.Others[i]; m.At.Phase == lifecycle.Serving && m.Node != nil && m.Node.Ready {
		at := microTime(f.Now)
		s.Phase, s.Reason, s.ReadyTime = v1alpha1.ReplacementReady, ReasonReady, &at
		s.Message = fmt.Sprintf("replacement %s (%s) is in service and Ready, %s after it was ordered", m.Node.Name, m.InstanceID, f.Now.Sub(orderedAt(s)).Round(time.Second))
	}
	return s
}

// detaching finds out whether the instance is out of its group, where nobody was
// told.
func (f GroupFollowing) detaching(s *Status) *Status {
	doomed := f.Group.Doomed
	switch {
	case doomed == nil || doomed.At.Phase == lifecycle.Aside:
		Detached(s, nil, f.Now)
	case doomed.At.Phase == lifecycle.Leaving || doomed.At.Phase == lifecycle.Gone:
		s.Phase, s.Reason = v1alpha1.NoReplacement, ReasonGroupReplaces
		s.Message = fmt.Sprintf("no replacement is ordered: group %s is taking the instance away itself (%s), and launches another", s.Group, doomed.State)
	case tooLate(f.Deadline, f.Now):
		if IsKept(s, f.Group) {
			s.Phase, s.Reason = v1alpha1.ReplacementFailed, ReasonTooLate
			s.Message = fmt.Sprintf("the instance could not be taken out of group %s in time; the pods go wherever there is room", s.Group)
		}
	}
	return s
}

// claim finds the instance that the group launched for it: one that has come since,
// the first in name of those that nobody counts on.
func (f GroupFollowing) claim(s *Status) *Status {
	var found []GroupMember
	for _, m := range f.Group.Others {
		older := m.Node != nil && m.Node.Created.Before(orderedAt(s).Add(-time.Second))
		if m.joins() && !m.Claimed && !older && !slices.Contains(s.Apart, m.InstanceID) {
			found = append(found, m)
		}
	}
	if len(found) == 0 {
		if s.StartTime != nil && !notice.IsFirm(f.Deadline) && f.Now.Sub(s.StartTime.Time) >= patience {
			s.Phase, s.Reason = v1alpha1.ReplacementFailed, ReasonNoCapacity
			s.Message = fmt.Sprintf("group %s has launched nothing for %s; its activities say why; the pods go wherever there is room", s.Group, patience)
		}
		return s
	}
	m := slices.MinFunc(found, func(a, b GroupMember) int {
		return cmp.Or(cmp.Compare(b.come(), a.come()), strings.Compare(a.InstanceID, b.InstanceID))
	})
	s.Phase, s.Reason, s.InstanceID = v1alpha1.ReplacementLaunched, ReasonLaunched, m.InstanceID
	s.Message = fmt.Sprintf("group %s brings up instance %s", s.Group, m.InstanceID)
	return s
}

// joins reports whether a member is in service or on its way there.
func (m GroupMember) joins() bool {
	return m.At.Phase == lifecycle.Joining || m.At.Phase == lifecycle.Serving
}

// come is how far a member has come: the further, the sooner pods can be moved.
func (m GroupMember) come() int {
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
