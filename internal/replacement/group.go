package replacement

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Lifeboat replaces a node of an Auto Scaling group by detaching its instance
// without lowering the desired capacity: the group, its warm pool first,
// launches another at once (Amazon EC2 Auto Scaling API Reference,
// DetachInstances). After that only Lifeboat terminates the detached instance.

const (
	// groupPatience is how long to wait until the instance's group is known.
	groupPatience = time.Minute
	// detachAgain is the retry interval of a failed detachment.
	detachAgain = 5 * time.Second
	// detachSettles is how long after a detachment the group's list may still
	// be stale and contain the instance.
	detachSettles = 15 * time.Second
	// maxApart bounds the instances in status.apart, as the CRD does.
	maxApart = 100
)

// GroupMember is an instance of an Auto Scaling group.
type GroupMember struct {
	InstanceID string
	At         lifecycle.Position
	// State is the lifecycle state as Auto Scaling reports it.
	State     string
	Protected bool
	// Node is the instance's node; nil if it has none.
	Node *GroupNode
	// Claimed is true if another interruption uses it as its replacement.
	Claimed bool
}

// GroupNode is the node of a member.
type GroupNode struct {
	Name    string
	Created time.Time
	// Ready is true if the node can take pods: it is Ready and has no startup
	// taint.
	Ready bool
}

// ScalingGroup is the state of the interrupted node's Auto Scaling group.
type ScalingGroup struct {
	// Time is when the group was read.
	Time      time.Time
	Name      string
	Operator  string
	Suspended []string
	// Interrupted is the interrupted instance; nil: it is no longer in the
	// group.
	Interrupted *GroupMember
	// Others are the other members.
	Others []GroupMember
}

// GroupFacts is the input of DecideGroup.
type GroupFacts struct {
	QuickFacts
	// Notice is the governing notice.
	Notice v1beta1.Notice
	// Drill is true for an interruption that a person injected as a test.
	Drill bool
	// Cloud is true if the controller can detach and terminate instances.
	Cloud bool
	// Group is nil if the instance is in no known group.
	Group *ScalingGroup
}

// groupCheck returns a status, or false if it has no decision.
type groupCheck func(GroupFacts) (*Status, bool)

// DecideGroup decides whether to detach the instance. The caller detaches it
// after a status with phase Ordered is stored.
func DecideGroup(f GroupFacts) *Status {
	for _, c := range []groupCheck{
		groupEarly,    // no pod to move, or the instance is gone
		groupReplaces, // the group replaces it without a detachment
		survives,      // a replacement would not help
		ungrouped,     // it is in no group
		undetachable,  // something forbids it
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
		return f.none(ReasonInstanceGone, "no replacement is launched: the instance is already gone")
	}
	return nil, false
}

func groupReplaces(f GroupFacts) (*Status, bool) {
	switch {
	case f.Notice.Kind == notice.KindAutoScalingTermination:
		return f.none(ReasonGroupReplaces, "no replacement is ordered: the group terminates the instance itself and launches another if it needs one")
	case f.Notice.Kind == notice.KindInstanceStateChange:
		return f.none(ReasonGroupReplaces, "no replacement is ordered: the instance is already shutting down, and its group launches another")
	case f.Group != nil && f.Group.Interrupted != nil && (f.Group.Interrupted.At.Phase == lifecycle.Leaving || f.Group.Interrupted.At.Phase == lifecycle.Gone):
		return f.none(ReasonGroupReplaces, fmt.Sprintf("no replacement is ordered: group %s terminates the instance itself (%s) and launches another", f.Group.Name, f.Group.Interrupted.State))
	}
	return nil, false
}

func survives(f GroupFacts) (*Status, bool) {
	switch {
	case f.Drill:
		return f.none(ReasonDrill, "no replacement is ordered in a drill: Lifeboat would have to detach the instance from its group and terminate it")
	case f.Notice.Kind == notice.KindRequested:
		return f.none(ReasonSurvives, "no replacement is ordered: the person asked for a drain only, and a replacement would require to detach it from its group and to terminate it")
	case tooLate(f.Deadline, f.Now):
		return f.none(ReasonTooLate, "no replacement is ordered: the instance ends before another could take its pods")
	case !Ends(f.Notice):
		return f.none(ReasonSurvives, fmt.Sprintf("no replacement is ordered: the instance survives the event (%s), and a replacement would require to detach it from its group", f.Notice.InstanceAction))
	}
	return nil, false
}

func ungrouped(f GroupFacts) (*Status, bool) {
	switch {
	case f.Group != nil && f.Group.Interrupted != nil:
		return nil, false
	case f.Group != nil || f.Now.Sub(f.start()) >= groupPatience:
		return f.none(ReasonNoGroup, "no replacement is launched: the instance is in no Auto Scaling group, and Karpenter did not launch it")
	}
	return f.as(v1beta1.ReplacementQueued, ReasonUnreadable, "the Auto Scaling group of the instance is not known yet"), true
}

func undetachable(f GroupFacts) (*Status, bool) {
	not := func(reason, format string, args ...any) (*Status, bool) {
		return f.none(reason, "no replacement is launched: "+fmt.Sprintf(format, args...))
	}
	g, interrupted := f.Group, f.Group.Interrupted
	switch {
	case !f.Cloud:
		return not(ReasonNoCloud, "this controller may not detach or terminate instances; give it its AWS role (see `lifeboat doctor`)")
	case g.Operator != "":
		return not(ReasonOperator, "group %s is managed by %s, which does not allow others to detach instances", g.Name, g.Operator)
	case slices.Contains(g.Suspended, "Launch"):
		return not(ReasonLaunchSuspended, "the process Launch of group %s is suspended, so it launches nothing; run `aws autoscaling resume-processes --auto-scaling-group-name %s --scaling-processes Launch`", g.Name, g.Name)
	case interrupted.At.Phase != lifecycle.Serving:
		return not(ReasonNotInService, "the instance is not in service in group %s (%s)", g.Name, cmp.Or(interrupted.State, "no state"))
	case interrupted.Protected:
		return not(ReasonProtected, "the instance is protected from scale-in in group %s, so Lifeboat does not detach it", g.Name)
	}
	return nil, false
}

// Unconfirmed returns the status while EC2 does not confirm that the instance ends: it is not
// detached. After a while the pods wait for no replacement.
func (e QuickFacts) Unconfirmed() *Status {
	if e.Now.Sub(e.start()) >= e.queuePatience() {
		s, _ := e.none(ReasonNotConfirmed, fmt.Sprintf("no replacement is launched: EC2 did not confirm the notice within %s", e.queuePatience()))
		return s
	}
	return e.as(v1beta1.ReplacementQueued, ReasonNotConfirmed, "the replacement is ordered when EC2 confirms the notice")
}

// order returns the status to store before the instance is detached. Instances
// that are already on their way into service are not the replacement.
func (f GroupFacts) order() *Status {
	s := f.as(v1beta1.ReplacementOrdered, ReasonOrdered, fmt.Sprintf("detaching the instance from group %s, which launches another", f.Group.Name))
	at := microTime(f.Now)
	s.Group, s.OrderTime, s.Tries, s.PreexistingInstanceIDs = f.Group.Name, &at, s.Tries+1, nil
	for _, m := range f.Group.Others {
		if m.At.Phase == lifecycle.Joining || m.Node == nil && m.At.Phase == lifecycle.Serving {
			s.PreexistingInstanceIDs = append(s.PreexistingInstanceIDs, m.InstanceID)
		}
	}
	slices.Sort(s.PreexistingInstanceIDs)
	s.PreexistingInstanceIDs = s.PreexistingInstanceIDs[:min(len(s.PreexistingInstanceIDs), maxApart)]
	return s
}
