package capacity

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/record"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// requeueGroup is when to look again at a group that starts a replacement, in case its
// change is missed.
const requeueGroup = 5 * time.Second

// scaling starts replacements with the Auto Scaling group of the node.
type scaling struct{ *Replacer }

// early: what is known about a group is in memory, so that consider decides the rest.
func (s scaling) early(_ context.Context, in Input) (*v1beta1.ReplacementStatus, bool) {
	now := replacement.DecideGroup(s.groupFacts(in, nil))
	return now, now.Phase == v1beta1.NoReplacement
}

func (s scaling) groupFacts(in Input, g *replacement.ScalingGroup) replacement.GroupFacts {
	return replacement.GroupFacts{
		QuickFacts: replacement.QuickFacts{
			Now: in.Now, Deadline: in.Decision.Deadline, Was: in.Drain.Replacement, InstanceGone: in.Decision.InstanceGone || in.Node == nil,
			Movable: len(replacement.Movable(in.Pods)),
		},
		Notice: in.Decision.Notice, Drill: record.IsDrill(in.Interruption), Cloud: s.Detacher != nil && s.Cloud != nil, Group: g,
	}
}

func (s scaling) follow(ctx context.Context, in Input) State {
	was := in.Drain.Replacement
	g, err := s.scalingGroup(ctx)
	if err != nil {
		log.FromContext(ctx).Error(err, "looking at the group that brings up the replacement")
		return State{Status: was, wake: in.Now.Add(requeueReplacement)}
	}
	wants := s.Wants(in.Decision)
	if !wants && g != nil && replacement.IsKept(was, g) {
		now := was.DeepCopy()
		now.Phase, now.Reason, now.Message = v1beta1.NoReplacement, replacement.ReasonKept, "the instance was not taken out of its group; it is not needed any more"
		return State{Status: now, unsure: true, wake: in.Now.Add(requeueCache)} // until then no pod is moved
	}
	now := replacement.FollowGroup(replacement.GroupFollowing{Now: in.Now, Deadline: in.Decision.Deadline, Was: *was, Group: g})
	if now.InstanceID != "" && now.InstanceID != was.InstanceID && !s.Memory.reserveInstance(in.instanceID(), now.InstanceID, in.Now) {
		return State{Status: was, wake: in.Now.Add(requeueCache)} // it is reserved for another
	}
	r := State{Status: now, unsure: !wants && now.Phase == v1beta1.ReplacementOrdered && now.DetachTime == nil}
	s.retryDetach(in, &r, g, wants)
	return r
}

// retryDetach takes the instance out of its group once more, if that is due, and sets
// when to look again.
func (s scaling) retryDetach(in Input, r *State, g *replacement.ScalingGroup, wants bool) {
	switch detach, at := replacement.ToDetach(r.Status, g, in.Now); {
	case detach && wants && s.Memory.startDetach(in.instanceID(), in.Now):
		r.order, r.written = s.detach, true
	case !at.IsZero():
		r.wake = at
	}
	if r.Status.Phase == v1beta1.ReplacementOrdered || r.Status.Phase == v1beta1.ReplacementLaunched {
		s.refresh(r.Status.Group)
		r.wake = laterOf(r.wake, in.Now.Add(requeueGroup))
	}
}

func (s scaling) consider(ctx context.Context, in Input) State {
	g, err := s.scalingGroup(ctx)
	facts := s.groupFacts(in, g)
	if err != nil {
		return State{Status: facts.ReadFailed(err, true), wake: in.Now.Add(requeueReplacement)}
	}
	r := State{Status: replacement.DecideGroup(facts), wake: in.Now.Add(requeueReplacement)}
	if r.Status.Phase == v1beta1.ReplacementOrdered {
		s.Memory.startDetach(in.instanceID(), in.Now)
		r.order, r.ends = s.detach, true // Lifeboat terminates an instance that it detached
	}
	return r
}

// detach takes the instance out of its group. It does not do that where the instance would
// run on without a group: EC2 does not end it at a fixed time, and Lifeboat may not. The
// intent is written already, and the call is idempotent.
func (s scaling) detach(ctx context.Context, in Input, p Progress) error {
	status, instanceID := p.Drain().Replacement, in.instanceID()
	if !p.Corroborated(ctx, nil) {
		return nil
	}
	var err error
	if d := in.Decision.Notice.Deadline; d == nil || d.Type != v1beta1.DeadlineHard {
		err = s.Cloud.MayTerminate(ctx, instanceID)
	}
	if !cloud.IsDenied(err) { // an error is not a denial
		err = s.Detacher.Detach(ctx, status.Group, instanceID)
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "taking the instance out of its group")
	}
	replacement.Detached(status, err, in.Now)
	switch {
	case err == nil:
		p.Record(v1beta1.ReasonDetached, status.Message)
	case status.Phase == v1beta1.NoReplacement:
		p.Record(v1beta1.ReasonNotReplaced, status.Message)
	}
	s.refresh(status.Group)
	p.RequeueAt(in.Now.Add(requeueGroup))
	return p.Checkpoint(ctx)
}

// refresh has the group read soon. A controller that was restarted without the source autoscaling
// knows no groups.
func (s scaling) refresh(group string) {
	if s.Groups != nil {
		s.Groups.RequestRefresh(group)
	}
}

// release does nothing: what a group launched is a node like any other.
func (scaling) release(context.Context, Input, Progress) error { return nil }

// isOfGroup reports whether the Auto Scaling group of the node replaces it.
func (r *Replacer) isOfGroup(in Input) bool {
	if was := in.Drain.Replacement; was != nil && (was.Group != "" || was.Name != "") {
		return was.Group != ""
	}
	if r.Groups == nil || r.Claims == nil {
		return r.Groups != nil
	}
	return in.Group != "" && !replacement.IsKarpenters(in.Node)
}

func (s scaling) scalingGroup(ctx context.Context) (*replacement.ScalingGroup, error) {
	if s.ScalingGroup == nil {
		return nil, nil
	}
	return s.ScalingGroup(ctx)
}
