package interruption

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/action"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// mostUnrecorded is how long the record of a node that was cordoned ahead may still be to
// come. A message whose record the API server does not take is handed back after 25 s and
// comes again within ten, here or to a replica that cannot cordon; until it has been back
// here the node stays cordoned, and from then on anew.
const mostUnrecorded = 90 * time.Second

// Ahead cordons the node of a record that is about to be made, where that is what its first
// pass would do without waiting for anything, and reports whether it has. It is a short cut:
// where it fails, or another process leads, that pass cordons the node. Nothing else is done
// to a node before it has a record, and one that never has is put back.
func (c *Controller) Ahead(ctx context.Context, in *v1alpha1.Interruption, node *corev1.Node) bool {
	if !c.Leads() {
		return false
	}
	if action.IsMarked(node, action.MarkDoomed) {
		c.muster.comesAgain(in.Name, c.Clock())
		return false
	}
	facts, err := c.observeOn(ctx, in, node, c.Clock())
	if err != nil {
		return false // the pass says so
	}
	d, ok := policy.Decide(facts.forPolicy())
	if !ok || !cordonsAtOnce(&d) {
		return false
	}
	c.muster.foretold(in.Name, facts.now, record.Drains(d.Action))
	if err := c.stamp(ctx, in.Name, node, &d, action.MarkDoomed); err != nil {
		log.FromContext(ctx).V(1).Info("did not cordon the node before its record is made; the record's first pass does", "node", node.Name, "reason", err.Error())
		return false
	}
	return true
}

// cordonsAtOnce reports whether the first thing to do is to cordon the node: under a hard
// deadline no budget is waited for.
func cordonsAtOnce(d *policy.Decision) bool {
	switch d.Action {
	case v1alpha1.ActionCordon, v1alpha1.ActionDrain, v1alpha1.ActionTerminate:
		return isHard(d) && !d.Withdrawn && !d.AwaitsApproval && d.NotBefore.IsZero()
	}
	return false
}

// onlyMarked reports whether the node is cordoned and the record does not say so: it was
// before there was one, or before that could be written down.
func (f *facts) onlyMarked() bool {
	return f.node != nil && action.IsMarked(f.node, action.MarkDoomed) && record.Begun(&f.was).IsZero() && !record.Cordoned(&f.was)
}

// Unrecorded returns for how long the record of an instance may still be to come, because its
// node was cordoned ahead; zero: none is on its way from here.
func (c *Controller) Unrecorded(instanceID string) time.Duration {
	return c.muster.unrecorded(instanceID, c.Clock())
}
