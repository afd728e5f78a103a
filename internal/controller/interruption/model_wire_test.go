package interruption

import (
	"context"
	"maps"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/lifeboat-dev/lifeboat/internal/controller/lifecyclehook"
	"github.com/lifeboat-dev/lifeboat/internal/controller/nodecleanup"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/kube/budgetcache"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/model"

	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/status"
)

const (
	modelMargin = 10 * time.Second
	modelTTL    = time.Hour
)

// noKarpenter is a cluster without Karpenter: policies want replacements, which must change
// nothing.
type noKarpenter struct{}

func (noKarpenter) Installed() (bool, bool)      { return false, true }
func (noKarpenter) Claims() []*replacement.Claim { return nil }

// wire creates the controller and delivers to it the changes that Register subscribes to.
func (l *controllerProcess) wire(c *model.Client) {
	o := Options{
		Client: c, Live: l.Live(), Nodes: l.nodes, Pods: l, Budgets: budgetcache.ListWith(c), Owners: l, Cloud: l, Claims: noKarpenter{}, Metrics: l.run.metrics, Events: recorderOfEvents{l.run},
		Clock: l.run.c.Now, Margin: modelMargin, TTL: modelTTL, FlushInterval: status.FlushInterval,
	}
	if l.run.group != nil {
		o.Claims, o.Groups, o.Detacher, o.Hooks = nil, l, l, []string{"lifeboat-*"}
		l.Cache("NodeGroup", func(model.Change) {})
		l.refreshGroup()
	}
	if l.run.people {
		o.HookRunner = modelHooks{l}
	}
	if l.run.plant != nil {
		l.run.plant(l.run, &o)
	}
	l.reads = o.Client
	l.loop = New(o)
	if l.run.group != nil {
		l.hooks = lifecyclehook.New(lifecyclehook.Options{
			Client: c, Nodes: l.nodes, Members: l.loop.members(), Hooks: l, Events: o.Events, Clock: o.Clock,
		})
	}
	if err := c.IndexField(l.Context, nil, byNode, nodesOf); err != nil {
		panic(err)
	}
	l.orphans = nodecleanup.New(nodecleanup.Options{Client: c, Pods: l.Live(), Forget: l.Forget})
	l.Cache("Interruption", l.enqueueRecord)
	l.Cache("Node", l.nodeChanged)
	l.Cache("ReplicaSet", l.ownerChanged)
	l.Cache("Deployment", l.ownerChanged)
	l.Cache("PodDisruptionBudget", func(c model.Change) {
		if c = parsed(c); passes(budgetPredicate, c) {
			l.enqueue(l.loop.ofBudget(l.Context, either(c)))
		}
	})
	l.Cache("Pause", func(model.Change) {})
	l.Cache("InterruptionPolicy", func(c model.Change) {
		if passes(generationPredicate, c) {
			l.enqueue(l.loop.all(l.Context, either(c)))
		}
	})
}

// Owners simulates the watch of the pods' owners.
func (l *controllerProcess) Owners(context.Context, string, []*corev1.Pod) (drain.Owners, bool, error) {
	var owners drain.Owners
	for _, o := range l.Cached("ReplicaSet") {
		if set, ok := o.(*appsv1.ReplicaSet); ok {
			owners.ReplicaSets = append(owners.ReplicaSets, set)
		}
	}
	for _, o := range l.Cached("Deployment") {
		if d, ok := o.(*appsv1.Deployment); ok {
			owners.Deployments = append(owners.Deployments, d)
		}
	}
	return owners, true, nil
}

func (l *controllerProcess) ownerChanged(model.Change) {
	for _, node := range slices.Sorted(maps.Keys(l.watches)) {
		l.podsChanged(node)
	}
}

func (l *controllerProcess) recordChanged(c model.Change) {
	if c.New == nil {
		l.loop.barrier.forget(c.Key.Name)
	} else {
		l.loop.barrier.observe(c.Old, c.New, l.run.c.Now())
	}
	l.add("record "+c.Key.Name, l.run.c.Now())
	if c.New != nil && l.hooks != nil {
		l.add("hooks "+c.Key.Name, l.run.c.Now())
	}
	if passes(slotPredicate, c) {
		l.enqueue(l.loop.queued(l.Context, either(c)))
	}
}

func (l *controllerProcess) nodeIsOther(c model.Change) {
	if passes(nodePredicate, c) {
		l.enqueue(l.loop.ofNode(l.Context, either(c)))
	}
}

func (l *controllerProcess) podsChanged(node string) { l.enqueue(l.loop.ofNodeName(l.Context, node)) }

func (l *controllerProcess) enqueue(found requests) {
	for _, name := range slices.Sorted(maps.Keys(found)) {
		l.add("record "+name, l.run.c.Now())
	}
}

// passes evaluates a predicate as an informer would.
func passes(p predicate.Predicate, c model.Change) bool {
	switch {
	case c.Old == nil:
		return p.Create(event.CreateEvent{Object: c.New})
	case c.New == nil:
		return p.Delete(event.DeleteEvent{Object: c.Old})
	}
	return p.Update(event.UpdateEvent{ObjectOld: c.Old, ObjectNew: c.New})
}

// parsed is a change of a PodDisruptionBudget as the cache delivers it.
func parsed(c model.Change) model.Change {
	parse := func(o client.Object) client.Object {
		object, _ := budgetcache.Parse(o)
		parsed, _ := object.(client.Object)
		return parsed
	}
	if c.Old != nil {
		c.Old = parse(c.Old)
	}
	if c.New != nil {
		c.New = parse(c.New)
	}
	return c
}

func either(c model.Change) client.Object {
	if c.New != nil {
		return c.New
	}
	return c.Old
}
