package nodegroup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// passState is the result of one pass.
type passState struct {
	wanted   nodegroup.Wanted
	observed nodegroup.Observed
	// known is false if nothing could be read; err says why, or why the known
	// data are old.
	known   bool
	err     error
	history nodegroup.History
	plan    nodegroup.Plan
	// done is true if a step was applied; failed is the error of the step that
	// was not.
	done   bool
	failed error
	// otherOwner is an older NodeGroup of the same group, which takes
	// precedence.
	otherOwner string
	// ending says what the deletion waits for; empty: no deletion.
	ending string
}

// Limits of lists in status (api/v1beta1).
const (
	mostActions  = 50
	mostFailures = 10
	mostFindings = 20
	longText     = 1024
	shortText    = 512
)

// writeEvery limits status writes in which only heartbeats changed.
const writeEvery = time.Minute

// report writes status if it has changed.
func (c *Controller) report(ctx context.Context, g *v1beta1.NodeGroup, m *memory, s passState) (reconcile.Result, error) {
	before := g.DeepCopy()
	g.Status.ObservedGeneration = g.Generation
	g.Status.Group = s.wanted.Group
	if s.known {
		c.state(&g.Status, s)
		c.count(m, g.Status)
	}
	conditions(g, s, c.Clock())
	again := c.again(s)
	switch {
	case equality.Semantic.DeepEqual(before.Status, g.Status):
		return again, nil
	case equality.Semantic.DeepEqual(quiet(before.Status), quiet(g.Status)):
		if left := writeEvery - c.Clock().Sub(m.wrote); left > 0 {
			return reconcile.Result{RequeueAfter: min(left, again.RequeueAfter)}, nil
		}
	}
	base := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	err := c.Client.Status().Patch(ctx, g, base)
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: soon}, nil
	case client.IgnoreNotFound(err) != nil:
		return reconcile.Result{}, fmt.Errorf("reporting on node group %s: %w", g.Name, err)
	}
	m.wrote = c.Clock()
	return again, nil
}

// again is the requeue interval.
func (c *Controller) again(s passState) reconcile.Result {
	switch {
	case s.done && s.failed == nil:
		return reconcile.Result{RequeueAfter: soon}
	case errors.As(s.failed, &notVisibleError{}), cloud.IsBusy(s.failed), cloud.IsBusy(s.err), len(s.plan.Held) > 0, s.ending != "":
		return reconcile.Result{RequeueAfter: patience / 4}
	case s.failed != nil, s.err != nil, !s.observed.Exists:
		return reconcile.Result{RequeueAfter: patience}
	}
	return reconcile.Result{RequeueAfter: readEvery}
}

// quiet is status without the fields that change on every heartbeat.
func quiet(s v1beta1.NodeGroupStatus) v1beta1.NodeGroupStatus {
	s = *s.DeepCopy()
	for i := range s.Actions {
		s.Actions[i].LastHeartbeat, s.Actions[i].Expires, s.Actions[i].Message = nil, nil, ""
	}
	return s
}

// state fills status from the observed group.
func (c *Controller) state(status *v1beta1.NodeGroupStatus, s passState) {
	o := s.observed
	status.ARN, status.Operator = o.ARN, o.Operator
	status.Min, status.Max, status.Desired = o.Min, o.Max, o.Desired
	status.Instances = o.Count()
	status.Unhooked = s.history.Unhooked
	status.Suspended = nil
	for _, p := range o.Suspended {
		status.Suspended = append(status.Suspended, p.Process)
	}
	slices.Sort(status.Suspended)
	status.PendingActions = int32(len(o.Held())) //nolint:gosec // G115: the members of one group
	if c.hasTracker() {
		c.track(status, o)
	}
	status.Findings = nil
	for _, f := range s.plan.Findings[:min(len(s.plan.Findings), mostFindings)] {
		status.Findings = append(status.Findings, v1beta1.GroupFinding{
			Severity: string(f.Severity), ID: f.ID, Message: notice.Cut(f.Problem, longText), Fix: notice.Cut(f.Fix, longText),
		})
	}
	status.Deletion = notice.Cut(nodegroup.Deletion(s.wanted, o), shortText)
}

// track copies pending actions and launch results into status.
func (c *Controller) track(status *v1beta1.NodeGroupStatus, o nodegroup.Observed) {
	status.Actions = nil
	for _, a := range c.Tracker.Actions(o.Name) {
		// The tracker can have read the group earlier than this pass.
		held := slices.ContainsFunc(o.Held(), func(i nodegroup.Instance) bool { return i.ID == a.InstanceID })
		if held && len(status.Actions) < mostActions {
			a.Message = notice.Cut(a.Message, shortText)
			status.Actions = append(status.Actions, a)
		}
	}
	status.Boots = c.Tracker.Boots(o.Name)
	inARow, last := c.Tracker.Failures(o.Name)
	status.ConsecutiveFailures, status.Failures = inARow, nil
	for _, f := range last[:min(len(last), mostFailures)] {
		f.Message = notice.Cut(f.Message, shortText)
		status.Failures = append(status.Failures, f)
	}
}

// sentences joins sentences without full stops.
func sentences(parts ...string) string {
	parts = slices.DeleteFunc(parts, func(p string) bool { return p == "" })
	return strings.Join(parts, ". ")
}
