package interruption

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/asg/membership"
	"github.com/lifeboat-dev/lifeboat/internal/corroborate"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// +kubebuilder:rbac:groups=lifeboat.dev,resources=nodegroups,verbs=list;watch

const (
	// detachedDrainTimeout is the deadline for the drain of an instance that was detached from its
	// group and that nothing else terminates: Lifeboat must terminate it.
	detachedDrainTimeout = time.Hour
	// stateTTL is how long a group's last known state keeps an unfinished record from
	// completing.
	stateTTL = 5 * time.Minute
	// leavingRequeue is when to check an instance again that its group terminates.
	leavingRequeue = time.Minute
)

// observeGroup looks up the instance's Auto Scaling group in the cache.
func (c *Controller) observeGroup(ctx context.Context, f *facts) (err error) {
	if c.Groups != nil {
		f.group, err = c.members().Of(ctx, f.in)
	}
	return err
}

func (c *Controller) members() membership.Reader {
	return membership.Reader{Client: c.Client, Groups: c.Groups, Hooks: c.Hooks}
}

// isLeaving reports whether the group recently terminated the instance, or started to, in any
// lifecycle state.
func (f *facts) isLeaving() bool {
	return f.group.At.Phase == lifecycle.Leaving && f.now.Sub(f.group.Seen.Time) < stateTTL
}

// isRetained reports whether the group keeps an instance whose hook was abandoned, until
// something else terminates it.
func (f *facts) isRetained() bool { return f.group.At.Phase == lifecycle.Retained }

// forceDrainDetached overrides the decision for an instance that was detached from its group: it
// is drained and terminated, even if policy or the notices change. Nothing else terminates it,
// and its group has already launched a replacement.
func forceDrainDetached(f *facts, d policy.Decision) policy.Decision {
	s, now := f.drain().Replacement, f.now
	if !replacement.IsDetached(s) || d.InstanceGone {
		return d
	}
	if record.Drains(d.Action) && !d.Withdrawn && !d.NotBefore.After(now) && !d.AwaitsApproval && d.Deadline != nil {
		return d
	}
	d.Message = fmt.Sprintf("%s: the instance was taken out of Auto Scaling group %s, which has another in its place; %s", v1beta1.ActionDrain, s.Group, d.Message)
	if !record.Drains(d.Action) || d.Withdrawn {
		d.Action, d.Strategy, d.Replacement = v1beta1.ActionDrain, v1beta1.StrategyEvict, v1beta1.ReplacementNone
	}
	d.DoNotDisrupt = cmp.Or(d.DoNotDisrupt, v1beta1.DoNotDisruptUntilLastCall)
	d.Withdrawn, d.AwaitsApproval, d.NotBefore, d.ProceedsAt, d.Until = false, false, time.Time{}, time.Time{}, time.Time{}
	if (d.Deadline == nil || d.Deadline.Type != v1beta1.DeadlineHard) && record.Hold(f.in, now) == nil {
		since := laterOf(s.OrderTime.Time, record.Released(f.in, now))
		d.Deadline = notice.At(since.Add(detachedDrainTimeout).Truncate(time.Second), v1beta1.DeadlineHard)
	}
	return d
}

// scalingGroup is the group of the interrupted instance, as input for a replacement; nil if
// unknown.
func (c *Controller) scalingGroup(ctx context.Context, f *facts) (*replacement.ScalingGroup, error) {
	if c.Groups == nil {
		return nil, nil
	}
	name := f.group.Seen.Group
	g, known := c.Groups.Group(name)
	if !known {
		return nil, nil
	}
	claimed, err := c.claimedInstances(ctx, f)
	if err != nil {
		return nil, err
	}
	s := &replacement.ScalingGroup{Time: g.At, Name: g.Name, Operator: g.Operator, Suspended: g.Suspended}
	for _, m := range g.Members {
		member := replacement.GroupMember{
			InstanceID: m.InstanceID, At: m.At, State: m.State, Protected: m.Protected, Claimed: claimed[m.InstanceID],
		}
		if m.InstanceID == f.in.Spec.InstanceID {
			s.Interrupted = &member
			continue
		}
		node, err := c.Nodes.NodeByInstance(ctx, m.InstanceID)
		if err := corroborate.IgnoreConflict(err); err != nil {
			return nil, err
		}
		if node != nil {
			member.Node = &replacement.GroupNode{Name: node.Name, Created: node.CreationTimestamp.Time, Ready: takesPods(node)}
		}
		s.Others = append(s.Others, member)
	}
	return s, nil
}

// takesPods reports whether pods can be moved to a new node: a startup taint would repel them.
func takesPods(node *corev1.Node) bool {
	return nodeindex.Ready(node) && !node.Spec.Unschedulable &&
		!slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == v1beta1.TaintNotInService })
}

// claimedInstances are the instances that other Interruptions use as replacements, finished or
// not, or whose nodes are interrupted themselves.
func (c *Controller) claimedInstances(ctx context.Context, f *facts) (map[string]bool, error) {
	var list v1beta1.InterruptionList
	if err := c.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing interruptions: %w", err)
	}
	claimed := map[string]bool{}
	for i := range list.Items {
		in := &list.Items[i]
		if in.Name == f.in.Name {
			continue
		}
		if s := record.Drain(&in.Status).Replacement; s != nil && s.InstanceID != "" {
			claimed[s.InstanceID] = true
		}
		if !notice.Finished(in) {
			claimed[in.Spec.InstanceID] = true
		}
	}
	for id := range c.capacity.ReservedByOthers(f.in.Spec.InstanceID, f.now) {
		claimed[id] = true
	}
	return claimed, nil
}

// ofGroup returns the Interruptions of instances that a group terminates, or that wait for its
// launches.
func (c *Controller) ofGroup(ctx context.Context, group string) requests {
	return c.unfinished(ctx, func(in *v1beta1.Interruption) bool { return c.members().Group(in) == group })
}
