package interruption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/membership"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/capacity"
	"github.com/lifeboat-dev/lifeboat/internal/corroborate"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// facts are what a pass observed, read once.
type facts struct {
	now time.Time
	in  *v1beta1.Interruption
	// was is the status as it is written.
	was v1beta1.InterruptionStatus
	// conflict is set where several nodes state the instance: nothing is done.
	conflict *corroborate.ConflictError
	// gone is why notices that the instance is gone do not count; nil: they do, or there
	// is none.
	gone *corroborate.Verdict
	// node is nil where the instance has none, and missingSince is since when.
	node         *corev1.Node
	missingSince time.Time
	nodeName     string
	pods         []*corev1.Pod
	// podsKnown is false until the watch of the node's pods has caught up.
	podsKnown bool
	// podsLive is set where the watch of the pods has not caught up for long, and they were read past it.
	podsLive bool
	// incomplete is why something that a plan needs could not be read. A pass goes on without it:
	// the Eviction API knows the budgets.
	incomplete error
	budgets    []*drain.Budget
	// surges is set where some pods are surged, for which their owners have to be known.
	surges, ownersKnown bool
	ownersSince         time.Time // since when this process reads the owners, while they are not known
	owners              drain.Owners
	storm               string // why the default strategy evicts pods now; empty: it surges them
	gates               []drain.Gate
	replacement         capacity.State
	capacityAt          time.Time // when the replacement that pods wait for is expected to be Ready; zero: none
	group               membership.Membership
	policies            []v1beta1.InterruptionPolicy // those of the cache: there may be hundreds, and a pass only reads them
	pauses              []v1beta1.Pause
	// pause is the one that stops the action; nil: none does.
	pause      *v1beta1.Pause
	staleNodes bool // the cache lacks the node of a new Interruption
	// barrierWait is how long the drain waits for other nodes to be cordoned before it
	// looks again; zero: it does not wait.
	barrierWait time.Duration
}

// begun reports whether the action has begun for this subject: then it continues after its window
// closed. The drain of a node that was only cordoned has not begun.
func (f *facts) begun(d policy.Decision) bool {
	if record.Drains(d.Action) {
		return !d.Begun.IsZero()
	}
	return d.Continues && record.Cordoned(&f.was)
}

// servesAnother reports whether the node was marked, cordoned or drained for another subject, or for a
// date that the cloud has moved.
func (f *facts) servesAnother(d policy.Decision) bool { return record.HasWork(&f.was) && !d.Continues }

func (f *facts) forDrain(d policy.Decision, o *Options) drain.Facts {
	return drain.Facts{
		Now: f.now, Deadline: d.Deadline, InstanceGone: d.InstanceGone, DoNotDisrupt: d.DoNotDisrupt,
		Margin: o.Margin, SurgeDisabled: o.SurgeDisabled, Pods: f.pods, Budgets: f.budgets, Refused: f.refused(),
		Strategy: d.Strategy, Storm: f.storm, Workloads: d.Workloads, Owners: f.owners, Gates: f.gates, CapacityAt: f.capacityAt, Cordoned: record.Begun(&f.was),
	}
}

// refused are the pods whose last eviction failed, with the reason.
func (f *facts) refused() map[types.UID]string {
	refused := map[types.UID]string{}
	for _, left := range record.Pending(f.drain()) {
		if left.State == v1beta1.PodRefused {
			refused[left.UID] = left.Message
		}
	}
	return refused
}

// observe reads what a decision needs.
func (c *Controller) observe(ctx context.Context, in *v1beta1.Interruption, now time.Time) (*facts, error) {
	f := &facts{now: now, in: in, was: *in.Status.DeepCopy(), nodeName: in.Spec.NodeName}
	node, err := c.Nodes.NodeByInstance(ctx, in.Spec.InstanceID)
	if errors.As(err, &f.conflict) {
		return f, nil
	} else if err != nil {
		return nil, err
	}
	f.missingSince = c.missing.observe(in.Name, node != nil, now)
	if node != nil {
		f.node, f.nodeName = node, node.Name
	} else if f.staleNodes, err = c.lacksNode(ctx, in, now); f.staleNodes || err != nil {
		return f, err
	}
	var policies v1beta1.InterruptionPolicyList
	var pauses v1beta1.PauseList
	if err := errors.Join(c.Client.List(ctx, &policies, client.UnsafeDisableDeepCopy), c.Client.List(ctx, &pauses)); err != nil {
		return nil, fmt.Errorf("listing policies and pauses: %w", err)
	}
	f.policies, f.pauses = policies.Items, pauses.Items
	f.gone = c.unconfirmed(ctx, f)
	if err := c.observeGroup(ctx, f); err != nil {
		return nil, err
	}
	return f, nil
}

// observePods reads what a plan needs. Pods are watched only during a drain: a change that
// is due in two weeks costs nothing yet. An error ends no pass, because pods have last calls.
func (c *Controller) observePods(ctx context.Context, f *facts, d policy.Decision) {
	if !f.drainsNow(d) {
		if f.node != nil { // else another instance may have a node of that name now
			c.forget(f.nodeName)
		}
		return
	}
	f.incomplete = nil
	f.replacement.Status = f.drain().Replacement
	var isNew bool
	if f.barrierWait, isNew = c.waitAtBarrier(ctx, f, d); isNew {
		return // cordoning the other nodes comes first, and every request delays it
	}
	f.incomplete = c.observeBoundPods(ctx, f, d)
}

// drainsNow reports whether pods are moved now.
func (f *facts) drainsNow(d policy.Decision) bool {
	return record.Drains(d.Action) && !f.waitsForWindow(d) && (!d.AwaitsApproval || f.begun(d))
}

// observeBoundPods reads the pods of the node and what they wait for.
func (c *Controller) observeBoundPods(ctx context.Context, f *facts, d policy.Decision) error {
	errs := []error{c.readPods(ctx, f, d)}
	if f.node == nil {
		f.pods = f.listed(f.pods)
	}
	var err error
	f.budgets, err = c.budgets(ctx, f.pods)
	errs = append(errs, err)
	if f.barrierWait == 0 {
		errs = append(errs, c.observeOwners(ctx, f, d))
		replacer := c.replacer(f)
		f.replacement = replacer.Follow(ctx, f.forCapacity(d))
		f.capacityAt = replacer.ExpectedAt(f.replacement, d, f.begunAt())
	}
	f.gates = c.gates(f, d)
	return errors.Join(errs...)
}

// readPods reads the pods of the node from their watch, or past it if the watch does not catch up.
func (c *Controller) readPods(ctx context.Context, f *facts, d policy.Decision) (err error) {
	if f.nodeName == "" {
		f.podsKnown = true
		return nil
	}
	f.pods, f.podsKnown, err = c.Pods.Pods(ctx, f.nodeName)
	since := c.podReads.since(f.nodeName, f.podsKnown, f.now)
	if f.podsKnown || c.Live == nil || !notice.IsFirm(d.Deadline) || f.now.Sub(since) < podListRequeue {
		return err
	}
	pods, failed := capacity.PodsOn(ctx, c.Live, f.nodeName)
	if failed != nil {
		return errors.Join(err, failed)
	}
	f.pods, f.podsKnown, f.podsLive = pods, true, true
	return err
}

// budgets returns the PodDisruptionBudgets of the namespaces of the pods, as far as it can read them.
func (c *Controller) budgets(ctx context.Context, pods []*corev1.Pod) (budgets []*drain.Budget, err error) {
	seen := map[string]bool{}
	for _, pod := range pods {
		if seen[pod.Namespace] {
			continue
		}
		seen[pod.Namespace] = true
		of, failed := c.Budgets(ctx, pod.Namespace)
		if failed != nil {
			err = errors.Join(err, failed)
		}
		budgets = append(budgets, of...)
	}
	return budgets, err
}

// draining reports whether a pod was evicted before. A drain that began does not wait for
// nodes that are interrupted later.
func (f *facts) draining() bool {
	return f.drain().PodCounts.Moved > 0 || slices.ContainsFunc(record.Pending(f.drain()), func(left v1beta1.PodStatus) bool {
		return left.EvictionTime != nil
	})
}

// waitAtBarrier returns how long the drain waits for other interrupted nodes to be
// cordoned, and whether it just began to. That of a node that is gone does not.
func (c *Controller) waitAtBarrier(ctx context.Context, f *facts, d policy.Decision) (wait time.Duration, isNew bool) {
	if f.node == nil || f.draining() {
		return 0, false
	}
	return c.barrier.wait(f.in.Name, f.barrierSince(d), f.now, func(instanceID string) bool {
		node, err := c.Nodes.NodeByInstance(ctx, instanceID)
		return corroborate.IgnoreConflict(err) == nil && (node == nil || mutate.IsMarked(node, mutate.MarkInterrupted))
	})
}

// barrierSince is when the drain began to wait at the barrier, also if this process was restarted since.
// A planned change is received long before.
func (f *facts) barrierSince(d policy.Decision) time.Time {
	switch begun := record.Begun(&f.was); {
	case !begun.IsZero():
		return begun
	case notice.IsFirm(d.Notice.Deadline):
		return d.Notice.ReceivedTime.Time
	}
	return f.now
}

// drain is the drain as it is written, for reading.
func (f *facts) drain() *v1beta1.DrainStatus { return record.Drain(&f.was) }

// mayDrain reports whether the node is drained now, or may be once policy has decided.
func mayDrain(in *v1beta1.Interruption) bool {
	d := in.Status.Decision
	return d == nil || !record.IsSeen(in) || (record.Drains(d.Action) && !slices.Contains([]v1beta1.Phase{
		v1beta1.PhaseScheduled, v1beta1.PhaseAwaitingApproval, v1beta1.PhaseQueued,
	}, in.Status.Phase))
}
