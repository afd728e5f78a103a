package interruption

import (
	"context"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/capacity"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// replacer returns what replaces the node of a pass.
func (c *Controller) replacer(f *facts) *capacity.Replacer {
	r := &capacity.Replacer{
		Client: c.Client, Live: c.Live, Claims: c.Claims, Detacher: c.Detacher, Cloud: c.Cloud,
		Forward: c.Forward, Place: c.Place, Margin: c.Margin, Memory: &c.capacity,
		ScalingGroup: func(ctx context.Context) (*replacement.ScalingGroup, error) { return c.scalingGroup(ctx, f) },
	}
	if c.Groups != nil {
		r.Groups = c.Groups
	}
	return r
}

// forCapacity is what a replacement needs to know about the node.
func (f *facts) forCapacity(d policy.Decision) capacity.Input {
	return capacity.Input{
		Now: f.now, Interruption: f.in, Decision: d, Drain: f.drain(),
		Node: f.node, NodeName: f.nodeName, Pods: f.pods, PodsKnown: f.podsKnown, Group: f.group.Seen.Group,
	}
}

// orderReplacement orders the replacement that policy wants before pods are moved.
func orderReplacement(ctx context.Context, p *pass) (done bool, err error) {
	r := p.replacer(p.facts)
	if !r.Wants(p.decision) || !p.facts.podsKnown {
		return true, nil
	}
	p.facts.replacement, err = r.Order(ctx, p.facts.forCapacity(p.decision), p.facts.replacement, p)
	return err == nil, err
}

// setTerminationTimestamp tells Karpenter the deadline of a node that it deletes already.
func setTerminationTimestamp(ctx context.Context, p *pass) (bool, error) {
	if p.sparesInstance() {
		return true, nil
	}
	p.replacer(p.facts).SetTerminationTimestamp(ctx, p.facts.forCapacity(p.decision), p)
	return true, nil
}

// handOver hands the node over to Karpenter, which ends it, once its pods have left.
func handOver(ctx context.Context, p *pass) (bool, error) {
	if p.sparesInstance() || p.keepsInstance() {
		return true, nil
	}
	return true, p.replacer(p.facts).HandOver(ctx, p.facts.forCapacity(p.decision), p.plan, p.isDone(), p)
}

// Record adds a timeline entry.
func (p *pass) Record(reason, message string) { p.update.Record(reason, message) }

// SetReplacement notes the state of the replacement.
func (p *pass) SetReplacement(s *v1beta1.ReplacementStatus) { p.update.SetReplacement(s) }

// RequeueAt asks for a pass at a time; zero: none.
func (p *pass) RequeueAt(at time.Time) { p.outcome.requeueAt(at) }
