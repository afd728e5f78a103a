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

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// standing is what one pass found out.
type standing struct {
	wanted   nodegroup.Wanted
	observed nodegroup.Observed
	// known is false where nothing could be read at all; err says why, or why
	// what is known is old.
	known   bool
	err     error
	history nodegroup.History
	plan    nodegroup.Plan
	// done is true where a step was done, failed what came of the one that was
	// not.
	done   bool
	failed error
	// elder is another NodeGroup of the same group, which rules.
	elder string
	// ending says what the deletion waits for; empty: it is not deleted.
	ending string
}

// Sizes of lists in status (api/v1alpha1).
const (
	mostActions  = 50
	mostFailures = 10
	mostFindings = 20
	longText     = 1024
	shortText    = 512
)

// heartbeats are written at most so often, where they are all that is new.
const writeEvery = time.Minute

// report writes status if something of it has changed.
func (c *Controller) report(ctx context.Context, g *v1alpha1.NodeGroup, m *memory, s standing) (reconcile.Result, error) {
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

// again is when to look next, if nothing happens before.
func (c *Controller) again(s standing) reconcile.Result {
	switch {
	case s.done && s.failed == nil:
		return reconcile.Result{RequeueAfter: soon}
	case errors.As(s.failed, &inVainError{}), cloud.IsBusy(s.failed), cloud.IsBusy(s.err), len(s.plan.Held) > 0, s.ending != "":
		return reconcile.Result{RequeueAfter: patience / 4}
	case s.failed != nil, s.err != nil, !s.observed.Exists:
		return reconcile.Result{RequeueAfter: patience}
	}
	return reconcile.Result{RequeueAfter: lookEvery}
}

// quiet is status without what changes all the time and says nothing new.
func quiet(s v1alpha1.NodeGroupStatus) v1alpha1.NodeGroupStatus {
	s = *s.DeepCopy()
	for i := range s.Actions {
		s.Actions[i].LastHeartbeat, s.Actions[i].Expires, s.Actions[i].Message = nil, nil, ""
	}
	return s
}

// state is how the group stands.
func (c *Controller) state(status *v1alpha1.NodeGroupStatus, s standing) {
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
	status.PendingActions = int32(len(o.Held()))
	if c.booked() {
		c.book(status, o)
	}
	status.Findings = nil
	for _, f := range s.plan.Findings[:min(len(s.plan.Findings), mostFindings)] {
		status.Findings = append(status.Findings, v1alpha1.GroupFinding{
			Severity: string(f.Severity), ID: f.ID, Message: notice.Cut(f.Problem, longText), Mend: notice.Cut(f.Fix, longText),
		})
	}
	status.Deletion = notice.Cut(nodegroup.Deletion(s.wanted, o), shortText)
}

// book writes down what hooks hold and how launches went.
func (c *Controller) book(status *v1alpha1.NodeGroupStatus, o nodegroup.Observed) {
	actions := c.Book.Actions(o.Name)
	status.Actions = nil
	for _, a := range actions[:min(len(actions), mostActions)] {
		a.Message = notice.Cut(a.Message, shortText)
		status.Actions = append(status.Actions, a)
	}
	status.Boots = c.Book.Boots(o.Name)
	inARow, last := c.Book.Failures(o.Name)
	status.ConsecutiveFailures, status.Failures = inARow, nil
	for _, f := range last[:min(len(last), mostFailures)] {
		f.Message = notice.Cut(f.Message, shortText)
		status.Failures = append(status.Failures, f)
	}
}

// sentences joins sentences that have no full stops.
func sentences(parts ...string) string {
	parts = slices.DeleteFunc(parts, func(p string) bool { return p == "" })
	return strings.Join(parts, ". ")
}
