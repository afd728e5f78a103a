package replacement

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// A node of an Auto Scaling group is replaced by taking its instance out of the
// group without lowering the desired capacity: the group, its warm pool first,
// launches another at once (Amazon EC2 Auto Scaling API Reference,
// DetachInstances). From then on nobody but Lifeboat terminates the instance.

const (
	// groupPatience is for how long it is waited until it is known of which group
	// an instance is.
	groupPatience = time.Minute
	// detachAgain is when a detachment that was not taken is asked for again.
	detachAgain = 5 * time.Second
	// detachSettles is how long after an instance was to be detached its group's
	// list is believed where it still has the instance: it may be behind.
	detachSettles = 15 * time.Second
	// mostApart bounds the instances that are told apart by name; the CRD has the
	// same.
	mostApart = 100
)

// GroupMember is an instance of an Auto Scaling group.
type GroupMember struct {
	InstanceID string
	At         lifecycle.Position
	// State as Auto Scaling writes it.
	State     string
	Protected bool
	// Node is that of the instance; nil: it has none, or it is not Ready to take
	// pods.
	Node *GroupNode
	// Claimed is set where another interruption counts on it.
	Claimed bool
}

// GroupNode is the node of a member.
type GroupNode struct {
	Name    string
	Created time.Time
	// Ready is whether pods can be moved to it: it is Ready, and carries no startup
	// taint.
	Ready bool
}

// ScalingGroup is what is known of the Auto Scaling group of a doomed node.
type ScalingGroup struct {
	// Time is when it was looked at.
	Time      time.Time
	Name      string
	Operator  string
	Suspended []string
	// Doomed is the doomed instance; nil: it is in the group no more.
	Doomed *GroupMember
	// Others are the other members.
	Others []GroupMember
}

// GroupFacts is all that a decision on such a replacement is made from.
type GroupFacts struct {
	Early
	// Notice is the one that rules.
	Notice v1alpha1.Notice
	// Drill is set where somebody sent it to try what happens.
	Drill bool
	// Cloud is whether instances can be detached, and terminated afterwards.
	Cloud bool
	// Group is nil where the instance is in none that is known.
	Group *ScalingGroup
}

// groupCheck looks at the facts and says how the replacement stands, or has no
// opinion.
type groupCheck func(GroupFacts) (*Status, bool)

// DecideGroup says whether the instance is to be detached, which is to be done once
// the phase is Ordered and that is written down.
func DecideGroup(f GroupFacts) *Status {
	for _, c := range []groupCheck{
		groupEarly,   // there is nothing to move, or nothing to wait with
		byItself,     // the group replaces it without being told
		survives,     // it would be of no use
		ungrouped,    // it is in no group
		undetachable, // something forbids it
	} {
		if s, ok := c(f); ok {
			return s
		}
	}
	return f.order()
}

func groupEarly(f GroupFacts) (*Status, bool) {
	switch {
	case f.Movable == 0:
		return f.none(ReasonNoPods, "no replacement is needed: no pod has to leave the node")
	case f.InstanceGone:
		return f.none(ReasonInstanceGone, "no replacement is brought up: the instance is gone, and there is nothing to wait with")
	}
	return nil, false
}

func byItself(f GroupFacts) (*Status, bool) {
	switch {
	case f.Notice.Kind == notice.KindAutoScalingTermination:
		return f.none(ReasonGroupReplaces, "no replacement is ordered: the group is taking the instance away itself, and launches another if it wants one")
	case f.Notice.Kind == notice.KindInstanceStateChange:
		return f.none(ReasonGroupReplaces, "no replacement is ordered: the instance is going already, and its group launches another")
	case f.Group != nil && f.Group.Doomed != nil && (f.Group.Doomed.At.Phase == lifecycle.Leaving || f.Group.Doomed.At.Phase == lifecycle.Gone):
		return f.none(ReasonGroupReplaces, fmt.Sprintf("no replacement is ordered: group %s is taking the instance away itself (%s), and launches another", f.Group.Name, f.Group.Doomed.State))
	}
	return nil, false
}

func survives(f GroupFacts) (*Status, bool) {
	switch {
	case f.Drill:
		return f.none(ReasonDrill, "no replacement is ordered in a drill: the instance would have to be taken out of its group, and terminated")
	case tooLate(f.Deadline, f.Now):
		return f.none(ReasonTooLate, "no replacement is ordered: the instance goes before any other could take its pods")
	case !Ends(f.Notice):
		return f.none(ReasonSurvives, fmt.Sprintf("no replacement is ordered: the instance lives through it (%s), and would have to leave its group for one", f.Notice.InstanceAction))
	}
	return nil, false
}

func ungrouped(f GroupFacts) (*Status, bool) {
	switch {
	case f.Group != nil && f.Group.Doomed != nil:
		return nil, false
	case f.Group != nil || f.Now.Sub(f.start()) >= groupPatience:
		return f.none(ReasonNoGroup, "no replacement is brought up: the instance is in no Auto Scaling group, and Karpenter did not launch it")
	}
	return f.as(v1alpha1.ReplacementQueued, ReasonUnreadable, "of which Auto Scaling group the instance is, is not known yet"), true
}

func undetachable(f GroupFacts) (*Status, bool) {
	not := func(reason, format string, args ...any) (*Status, bool) {
		return f.none(reason, "no replacement is brought up: "+fmt.Sprintf(format, args...))
	}
	g, doomed := f.Group, f.Group.Doomed
	switch {
	case !f.Cloud:
		return not(ReasonNoCloud, "this controller can neither detach instances nor terminate them; give it its AWS role (`lifeboat doctor`)")
	case g.Operator != "":
		return not(ReasonOperator, "group %s is owned by %s, which lets nobody else take instances out of it", g.Name, g.Operator)
	case slices.Contains(g.Suspended, "Launch"):
		return not(ReasonLaunchSuspended, "group %s launches nothing, since its process Launch is suspended; `aws autoscaling resume-processes --auto-scaling-group-name %s --scaling-processes Launch`", g.Name, g.Name)
	case doomed.At.Phase != lifecycle.Serving:
		return not(ReasonNotInService, "the instance is not in service in group %s (%s)", g.Name, cmp.Or(doomed.State, "no state"))
	case doomed.Protected:
		return not(ReasonProtected, "the instance is protected from scale-in in group %s, so that nobody is to take it out", g.Name)
	}
	return nil, false
}

// order is written down, and the instance detached then. What is on its way into
// service by now is not it.
func (f GroupFacts) order() *Status {
	s := f.as(v1alpha1.ReplacementOrdered, ReasonOrdered, fmt.Sprintf("the instance is taken out of group %s, which launches another", f.Group.Name))
	at := microTime(f.Now)
	s.Group, s.OrderTime, s.Tries, s.Apart = f.Group.Name, &at, s.Tries+1, nil
	for _, m := range f.Group.Others {
		if m.At.Phase == lifecycle.Joining || m.Node == nil && m.At.Phase == lifecycle.Serving {
			s.Apart = append(s.Apart, m.InstanceID)
		}
	}
	slices.Sort(s.Apart)
	s.Apart = s.Apart[:min(len(s.Apart), mostApart)]
	return s
}
