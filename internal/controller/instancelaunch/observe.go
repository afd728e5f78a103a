package instancelaunch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/groupcache"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/corroborate"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// world is the input of one pass.
type world struct {
	now    time.Time
	groups []groupcache.Group
	nodes  map[string]*corev1.Node // by instance
	// conflicts are the instances that several nodes state: nothing is done about them.
	conflicts  map[string]*corroborate.ConflictError
	nodeGroups []v1beta1.NodeGroup
	declared   map[string][]*v1beta1.NodeGroup // by group
}

// observe reads it from caches.
func (s *Sweep) observe(ctx context.Context) (*world, error) {
	w := &world{now: s.o.Clock(), groups: s.o.Groups.Groups(), nodes: map[string]*corev1.Node{}, declared: map[string][]*v1beta1.NodeGroup{}}
	nodes, err := s.o.Nodes(ctx)
	if err != nil {
		return nil, err
	}
	if err := w.setNodes(nodes); err != nil {
		return nil, err
	}
	var groups v1beta1.NodeGroupList
	if err := s.o.Client.List(ctx, &groups); err != nil {
		return nil, fmt.Errorf("listing NodeGroups: %w", err)
	}
	w.nodeGroups = groups.Items
	for i := range w.nodeGroups {
		name := nameOf(&w.nodeGroups[i])
		w.declared[name] = append(w.declared[name], &w.nodeGroups[i])
	}
	return w, nil
}

// setNodes finds the node of each instance.
func (w *world) setNodes(nodes []*corev1.Node) error {
	several := map[string][]*corev1.Node{}
	for _, n := range nodes {
		id := nodeindex.InstanceID(n)
		if id == "" {
			continue
		}
		if first, known := w.nodes[id]; known {
			several[id] = append(several[id], n)
			if len(several[id]) == 1 {
				several[id] = append(several[id], first)
			}
			continue
		}
		w.nodes[id] = n
	}
	w.conflicts = map[string]*corroborate.ConflictError{}
	for id, all := range several {
		current, err := corroborate.Current(id, all)
		if conflict := (*corroborate.ConflictError)(nil); errors.As(err, &conflict) {
			w.conflicts[id] = conflict
			continue
		} else if err != nil {
			return err
		}
		w.nodes[id] = current
	}
	return nil
}

// nameOf is the name of a NodeGroup's Auto Scaling group.
func nameOf(g *v1beta1.NodeGroup) string { return cmp.Or(g.Spec.AutoScalingGroup, g.Name) }

func nameOfNode(n *corev1.Node) string {
	if n == nil {
		return ""
	}
	return n.Name
}

// facts are the facts about one instance.
func (s *Sweep) facts(ctx context.Context, w *world, g *groupcache.Group, m groupcache.Member, e *entry) lifecycle.Facts {
	f := lifecycle.Facts{
		Now: w.now, InstanceID: m.InstanceID, State: m.State, At: m.At, Operator: g.Operator, Pool: g.Pool,
		HooksKnown: g.HooksKnown, Seen: g.At, Stale: w.now.Sub(g.At) > maxStateAge, Patience: patienceOf(w.declared[g.Name]),
	}
	f.Hooks = s.hooks(g, w.declared[g.Name])
	node := w.nodes[m.InstanceID]
	if leaves(m.At.Phase) && (node != nil || m.At.Held()) {
		f.Interrupted = s.isInterrupted(ctx, m.InstanceID)
	}
	if node != nil {
		f.Node = nodeFacts(node)
		if inPool(m.At.Phase) && f.Node.Tainted {
			f.Node.Pods = s.podsOf(ctx, w.now, e, node.Name)
		}
	}
	return f
}

// leaves reports whether an Interruption may handle an instance. inPool reports whether it must
// not have a node.
func leaves(p lifecycle.Phase) bool { return p == lifecycle.Leaving || inPool(p) }
func inPool(p lifecycle.Phase) bool {
	return p == lifecycle.Warming || p == lifecycle.Warm || p == lifecycle.LeavingPool
}

// hooks are the hooks of a group, with Own set. If they cannot be read, the ones that a
// NodeGroup names are assumed.
func (s *Sweep) hooks(g *groupcache.Group, declared []*v1beta1.NodeGroup) []lifecycle.Hook {
	var named []string
	var wanted []lifecycle.Hook
	for _, d := range declared {
		for _, h := range declaredHooks(d) {
			named, wanted = append(named, h.Name), append(wanted, h)
		}
	}
	if !g.HooksKnown {
		return wanted
	}
	return lifecycle.Owned(g.Hooks, named, s.o.Hooks)
}

// declaredHooks are the hooks that a NodeGroup names, with their default timeouts.
func declaredHooks(g *v1beta1.NodeGroup) []lifecycle.Hook {
	launch := lifecycle.Hook{Name: v1beta1.LaunchHook, Own: true, Timeout: 10 * time.Minute}
	terminate := lifecycle.Hook{Name: v1beta1.TerminateHook, Own: true, Terminating: true, Timeout: 5 * time.Minute}
	for hook, spec := range map[*lifecycle.Hook]*v1beta1.LifecycleHook{&launch: g.Spec.Hooks.Launch, &terminate: g.Spec.Hooks.Terminate} {
		if spec == nil {
			continue
		}
		hook.Name = cmp.Or(spec.Name, hook.Name)
		hook.Timeout = cmp.Or(time.Duration(spec.TimeoutSeconds)*time.Second, hook.Timeout)
	}
	return []lifecycle.Hook{launch, terminate}
}

func patienceOf(declared []*v1beta1.NodeGroup) time.Duration {
	for _, g := range declared {
		if h := g.Spec.Hooks.Launch; h != nil && h.PatienceSeconds > 0 {
			return time.Duration(h.PatienceSeconds) * time.Second
		}
	}
	return DefaultPatience
}

// isInterrupted reports whether an instance has an unfinished Interruption. If that cannot be
// read, it is assumed.
func (s *Sweep) isInterrupted(ctx context.Context, id string) bool {
	var in v1beta1.Interruption
	if err := s.o.Client.Get(ctx, client.ObjectKey{Name: id}, &in); err != nil {
		return client.IgnoreNotFound(err) != nil
	}
	return !notice.Finished(&in)
}

func nodeFacts(n *corev1.Node) *lifecycle.Node {
	f := &lifecycle.Node{
		Created: n.CreationTimestamp.Time, Tainted: isTainted(n), Deleting: n.DeletionTimestamp != nil, Pods: -1,
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			f.Ready, f.Heartbeat, f.Turned = c.Status == corev1.ConditionTrue, c.LastHeartbeatTime.Time, c.LastTransitionTime.Time
		}
	}
	return f
}

// isTainted reports whether a node has the startup taint.
func isTainted(n *corev1.Node) bool { return slices.ContainsFunc(n.Spec.Taints, isStartup) }

func isStartup(t corev1.Taint) bool { return t.Key == v1beta1.TaintNotInService }

// podsOf counts the pods of a node that must move; -1 if unknown.
func (s *Sweep) podsOf(ctx context.Context, now time.Time, e *entry, node string) int {
	if !e.podsAt.IsZero() && now.Sub(e.podsAt) < podCountTTL {
		return e.pods
	}
	pods, err := s.moving(ctx, node)
	if err != nil {
		log.FromContext(ctx).Info("cannot count the pods of a node, retrying", "node", node, "error", err.Error())
		return -1
	}
	e.podsAt, e.pods = now, len(pods)
	return e.pods
}

// moving returns the pods of a node that must move.
func (s *Sweep) moving(ctx context.Context, node string) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := s.o.Pods.List(ctx, &pods, client.MatchingFields{"spec.nodeName": node}); err != nil {
		return nil, fmt.Errorf("listing the pods of node %s: %w", node, err)
	}
	return slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool {
		return drain.Stays(&p) || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	}), nil
}
