package interruption

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// groupAgain is when to look again at a group that brings up a replacement, should
// nothing be heard of it.
const groupAgain = 5 * time.Second

// scaling brings up replacements by the node's Auto Scaling group.
type scaling struct{ *Controller }

// early: a group is looked at without asking anybody, so that all is for consider.
func (s scaling) early(_ context.Context, f *facts, d policy.Decision) (*v1alpha1.ReplacementStatus, bool) {
	now := replacement.DecideGroup(s.groupFacts(f, d, nil))
	return now, now.Phase == v1alpha1.NoReplacement
}

func (s scaling) groupFacts(f *facts, d policy.Decision, g *replacement.ScalingGroup) replacement.GroupFacts {
	return replacement.GroupFacts{
		QuickFacts: replacement.QuickFacts{
			Now: f.now, Deadline: d.Deadline, Was: f.drain().Replacement, InstanceGone: d.InstanceGone || f.node == nil,
			Movable: len(replacement.Movable(f.pods)),
		},
		Notice: d.Notice, Drill: isDrill(f.in), Cloud: s.Lifecycle != nil && s.Cloud != nil, Group: g,
	}
}

func (s scaling) follow(ctx context.Context, f *facts, d policy.Decision) replacing {
	was := f.drain().Replacement
	g, err := s.scalingGroup(ctx, f)
	if err != nil {
		log.FromContext(ctx).Error(err, "looking at the group that brings up the replacement")
		return replacing{status: was, wake: f.now.Add(replaceAgain)}
	}
	wants := s.wantsReplacement(d)
	if !wants && g != nil && replacement.IsKept(was, g) {
		now := was.DeepCopy()
		now.Phase, now.Reason, now.Message = v1alpha1.NoReplacement, replacement.ReasonKept, "the instance was not taken out of its group; it is not needed any more"
		return replacing{status: now, unsure: true, wake: f.now.Add(lookAgain)} // until then no pod is moved
	}
	now := replacement.FollowGroup(replacement.GroupFollowing{Now: f.now, Deadline: d.Deadline, Was: *was, Group: g})
	if now.InstanceID != "" && now.InstanceID != was.InstanceID && !s.yard.claim(f.in.Spec.InstanceID, now.InstanceID, f.now) {
		return replacing{status: was, wake: f.now.Add(lookAgain)} // another has claimed it a moment ago
	}
	r := replacing{status: now, unsure: !wants && now.Phase == v1alpha1.ReplacementOrdered && now.DetachTime == nil}
	s.again(f, &r, g, wants)
	return r
}

// again has the instance taken out of its group once more, if that is due, and says
// when to look again.
func (s scaling) again(f *facts, r *replacing, g *replacement.ScalingGroup, wants bool) {
	switch detach, at := replacement.ToDetach(r.status, g, f.now); {
	case detach && wants && s.yard.detaches(f.in.Spec.InstanceID, f.now):
		r.order, r.written = s.detach, true
	case !at.IsZero():
		r.wake = at
	}
	if r.status.Phase == v1alpha1.ReplacementOrdered || r.status.Phase == v1alpha1.ReplacementLaunched {
		s.Groups.RequestRefresh(r.status.Group)
		r.wake = laterOf(r.wake, f.now.Add(groupAgain))
	}
}

func (s scaling) consider(ctx context.Context, f *facts, d policy.Decision) replacing {
	g, err := s.scalingGroup(ctx, f)
	facts := s.groupFacts(f, d, g)
	if err != nil {
		return replacing{status: facts.ReadFailed(err, true), wake: f.now.Add(replaceAgain)}
	}
	r := replacing{status: replacement.DecideGroup(facts), wake: f.now.Add(replaceAgain)}
	if r.status.Phase == v1alpha1.ReplacementOrdered {
		s.yard.detaches(f.in.Spec.InstanceID, f.now)
		r.order = s.detach
	}
	return r
}

// detach takes the instance out of its group, unless it could run on in none: where EC2
// does not end it by itself at a time that nobody can move, and Lifeboat may not. That this
// is to be done is written down already: it can be done again, and is once.
func (s scaling) detach(ctx context.Context, p *pass) error {
	status, instanceID := p.report.drain().Replacement, p.facts.in.Spec.InstanceID
	var err error
	if d := p.decision.Notice.Deadline; d == nil || d.Type != v1alpha1.DeadlineHard {
		err = s.Cloud.MayTerminate(ctx, instanceID)
	}
	if !cloud.IsDenied(err) { // who could not be asked has not said no
		err = s.Lifecycle.Detach(ctx, status.Group, instanceID)
	}
	if err != nil {
		log.FromContext(ctx).Error(err, "taking the instance out of its group")
	}
	replacement.Detached(status, err, p.facts.now)
	switch {
	case err == nil:
		p.report.happen(v1alpha1.ReasonDetached, status.Message)
	case status.Phase == v1alpha1.NoReplacement:
		p.report.happen(v1alpha1.ReasonNotReplaced, status.Message)
	}
	s.Groups.RequestRefresh(status.Group)
	p.outcome.sooner(p.facts.now.Add(groupAgain))
	return p.writeDown(ctx)
}

// release: what a group has launched is a node like any other.
func (scaling) release(context.Context, *pass) error { return nil }

// isOfGroup reports whether it is the node's group that replaces it.
func (c *Controller) isOfGroup(f *facts) bool {
	if was := f.drain().Replacement; was != nil && (was.Group != "" || was.Name != "") {
		return was.Group != ""
	}
	if c.Groups == nil || c.Claims == nil {
		return c.Groups != nil
	}
	return f.group.seen.Group != "" && !replacement.IsKarpenters(f.node)
}
