package interruption

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/action"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// facts are all that a pass knows of the world, read once.
type facts struct {
	now time.Time
	in  *v1alpha1.Interruption
	// was is the status as it was read: what is known to be durable.
	was v1alpha1.InterruptionStatus
	// node is nil where the instance has none.
	node     *corev1.Node
	nodeName string
	pods     []*corev1.Pod
	// podsKnown is false until the watch of the node's pods has caught up.
	podsKnown bool
	budgets   []*policyv1.PodDisruptionBudget
	// surges is set where some pods are to be surged, which takes to know what
	// controls them.
	surges, ownersKnown bool
	// ownersSince is since when this process has asked for it, while it is not known.
	ownersSince time.Time
	owners      drain.Owners
	gates       []drain.Gate
	replacing   replacing
	group       grouped
	policies    []v1alpha1.InterruptionPolicy
	// barrierWait is how long the drain waits for other nodes to be cordoned before
	// it looks again; zero: it does not wait.
	barrierWait time.Duration
}

func (f *facts) forPolicy() policy.Facts { return record.Facts(f.in, f.node, f.policies, f.now) }

// begun reports whether what was decided has begun: what has, goes on after its
// window has closed. A node that was only cordoned has not begun to be drained.
func (f *facts) begun(d policy.Decision) bool {
	if record.Drains(d.Action) {
		return !record.Begun(&f.was).IsZero()
	}
	return record.Cordoned(&f.was)
}

// stands reports whether another notice than the one that rules is yet to come
// true, on a node that lives, or says that its instance is sick.
func (f *facts) stands(d policy.Decision) bool {
	if f.node == nil || d.InstanceGone {
		return false
	}
	return slices.ContainsFunc(notice.Unanswered(record.Trusted(f.in, f.node), f.was.Answered), func(n v1alpha1.Notice) bool {
		return n.ID != d.Notice.ID && !n.Withdrawn &&
			(n.Kind == notice.KindInstanceStatus || n.Deadline != nil && n.Deadline.Time.After(f.now))
	})
}

// later reports whether what was decided does not begin yet.
func (f *facts) later(d policy.Decision) bool {
	return d.NotBefore.After(f.now) && !f.begun(d)
}

// rebooted reports whether the node has come back from a reboot since it was
// first looked at.
func (f *facts) rebooted() bool {
	return f.drain().BootID != "" && nodeindex.Ready(f.node) && f.node.Status.NodeInfo.BootID != f.drain().BootID
}

func (f *facts) forDrain(d policy.Decision, margin time.Duration) drain.Facts {
	return drain.Facts{
		Now: f.now, Deadline: d.Deadline, InstanceGone: d.InstanceGone, DoNotDisrupt: d.DoNotDisrupt,
		Margin: margin, Pods: f.pods, Budgets: f.budgets, Refused: f.refused(),
		Strategy: d.Strategy, Workloads: d.Workloads, Owners: f.owners, Gates: f.gates,
	}
}

// refused tells which evictions the API server refused when last asked.
func (f *facts) refused() map[types.UID]string {
	refused := map[types.UID]string{}
	for _, left := range f.drain().PendingPods {
		if left.Verdict == verdictRefused {
			refused[left.UID] = left.Reason
		}
	}
	return refused
}

// observe reads everything that a decision needs.
func (c *Controller) observe(ctx context.Context, in *v1alpha1.Interruption, now time.Time) (*facts, error) {
	node, err := c.Nodes.NodeByInstance(ctx, in.Spec.InstanceID)
	if err != nil {
		return nil, err
	}
	f := &facts{now: now, in: in, was: *in.Status.DeepCopy(), nodeName: in.Spec.NodeName}
	if node != nil {
		f.node, f.nodeName = node, node.Name
	}
	var policies v1alpha1.InterruptionPolicyList
	if err := c.Client.List(ctx, &policies); err != nil {
		return nil, fmt.Errorf("listing policies: %w", err)
	}
	f.policies = policies.Items
	if err := c.observeGroup(ctx, f); err != nil {
		return nil, err
	}
	return f, nil
}

// observePods reads what a plan needs besides. Pods are watched only while
// they are to be moved: a change that is due in two weeks costs nothing yet.
func (c *Controller) observePods(ctx context.Context, f *facts, d policy.Decision) error {
	if !f.drainsNow(d) {
		if f.node != nil { // else another instance may have a node of that name by now
			c.forget(f.nodeName)
		}
		return nil
	}
	f.replacing.status = f.drain().Replacement
	var err error
	if f.barrierWait, err = c.waitAtBarrier(ctx, f, d); err != nil || f.barrierWait > 0 {
		return err // cordoning the other nodes comes first, and every request delays it
	}
	return c.observeBoundPods(ctx, f, d)
}

// drainsNow reports whether the pods of the node are to be moved now.
func (f *facts) drainsNow(d policy.Decision) bool {
	return record.Drains(d.Action) && !f.later(d) && !f.postponed(d) && (!d.AwaitsApproval || f.begun(d))
}

// observeBoundPods reads the pods of the node and what they wait for.
func (c *Controller) observeBoundPods(ctx context.Context, f *facts, d policy.Decision) (err error) {
	if f.nodeName == "" {
		f.podsKnown = true
	} else if f.pods, f.podsKnown, err = c.Pods.Pods(ctx, f.nodeName); err != nil {
		return err
	}
	if f.node == nil {
		f.pods = f.listed(f.pods)
	}
	if f.budgets, err = c.budgets(ctx, f.pods); err != nil {
		return err
	}
	if err := c.observeOwners(ctx, f, d); err != nil {
		return err
	}
	f.replacing = c.followed(ctx, f, d)
	f.gates = c.gates(f, d)
	return nil
}

// listed returns the pods that are known to be of this instance. Where its node
// has gone, another may bear the name by now: on EC2 they are DNS names, which
// come again.
func (f *facts) listed(pods []*corev1.Pod) []*corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod *corev1.Pod) bool {
		return !slices.ContainsFunc(f.drain().PendingPods, func(left v1alpha1.PendingPod) bool { return left.UID == pod.UID })
	})
}

// observeOwners reads what controls the pods, where some are to be surged.
func (c *Controller) observeOwners(ctx context.Context, f *facts, d policy.Decision) error {
	f.surges = c.Owners != nil && (record.Surges(&d) ||
		slices.ContainsFunc(f.pods, func(pod *corev1.Pod) bool { return pod.Labels[v1alpha1.LabelSurged] != "" }))
	if !f.surges || !f.podsKnown {
		return nil
	}
	var err error
	f.owners, f.ownersKnown, err = c.Owners.Owners(ctx, f.nodeName, f.pods)
	f.ownersSince = c.reading.since(f.nodeName, f.ownersKnown, f.now)
	return err
}

// reading remembers since when this process has asked what controls the pods of
// nodes. Who has forgotten waits a few seconds more.
type reading struct {
	mu    sync.Mutex
	begun map[string]time.Time // by node
}

// since returns since when it has been asked about a node of which that is not
// known; zero: it is.
func (r *reading) since(node string, known bool, now time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known {
		delete(r.begun, node)
		return time.Time{}
	}
	if r.begun == nil {
		r.begun = map[string]time.Time{}
	}
	if _, asked := r.begun[node]; !asked {
		r.begun[node] = now
	}
	return r.begun[node]
}

func (r *reading) forget(node string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.begun, node)
}

// forget ends the watches of a node's pods and of what controls them.
func (c *Controller) forget(node string) {
	c.Pods.Forget(node)
	if c.Owners != nil {
		c.Owners.Forget(node)
		c.reading.forget(node)
	}
}

// budgets returns the PodDisruptionBudgets of the namespaces of the pods.
func (c *Controller) budgets(ctx context.Context, pods []*corev1.Pod) ([]*policyv1.PodDisruptionBudget, error) {
	seen := map[string]bool{}
	var budgets []*policyv1.PodDisruptionBudget
	for _, pod := range pods {
		if seen[pod.Namespace] {
			continue
		}
		seen[pod.Namespace] = true
		var list policyv1.PodDisruptionBudgetList
		if err := c.Client.List(ctx, &list, client.InNamespace(pod.Namespace)); err != nil {
			return nil, fmt.Errorf("listing PodDisruptionBudgets of namespace %s: %w", pod.Namespace, err)
		}
		for i := range list.Items {
			budgets = append(budgets, &list.Items[i])
		}
	}
	return budgets, nil
}

// waitAtBarrier returns how long the drain waits for other interrupted nodes to be
// cordoned. A drain that has begun does not wait for nodes that are interrupted later.
func (c *Controller) waitAtBarrier(ctx context.Context, f *facts, d policy.Decision) (time.Duration, error) {
	if f.draining() {
		return 0, nil
	}
	return c.barrier.wait(f.in.Name, d.Notice.ReceivedTime.Time, f.now, func(instanceID string) (bool, error) {
		node, err := c.Nodes.NodeByInstance(ctx, instanceID)
		return node == nil || action.IsMarked(node, action.MarkDoomed), err
	})
}

// drain returns the drain as it is written, for reading.
func (f *facts) drain() *v1alpha1.DrainStatus { return record.Drain(&f.was) }

// onlyMarked reports whether the node is cordoned and the status does not say so: the
// process stopped between the two writes.
func (f *facts) onlyMarked() bool {
	return f.node != nil && action.IsMarked(f.node, action.MarkDoomed) && record.Begun(&f.was).IsZero() && !record.Cordoned(&f.was)
}

// mayDrain reports whether the node is, or may yet turn out to be, one to
// drain now.
func mayDrain(in *v1alpha1.Interruption) bool {
	d := in.Status.Decision
	return d == nil || (record.Drains(d.Action) && !slices.Contains([]v1alpha1.Phase{
		v1alpha1.PhaseScheduled, v1alpha1.PhaseAwaitingApproval, v1alpha1.PhaseQueued,
	}, in.Status.Phase))
}
