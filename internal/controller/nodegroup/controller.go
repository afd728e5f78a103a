// Package nodegroup reconciles NodeGroups: it reads their Auto Scaling groups,
// applies changes as far as management allows, and reports status. Another
// controller answers the lifecycle hooks.
package nodegroup

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/groupcache"
	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
)

// Watch caches the groups; *groupcache.Watcher implements it.
type Watch interface {
	Group(name string) (groupcache.Group, bool)
	Member(instanceID string) (m groupcache.Member, ok bool, at time.Time)
	RequestRefreshHooks(group string)
}

// HookTracker knows the instances that hooks hold, and the results of launches.
type HookTracker interface {
	// Actions are the pending lifecycle actions, the oldest first.
	Actions(group string) []v1beta1.LifecycleAction
	// Boots is nil if no launch was observed.
	Boots(group string) *v1beta1.BootTimes
	// Failures returns the number of consecutive failed launches and the last
	// failures, newest first.
	Failures(group string) (inARow int32, last []v1beta1.GroupFailure)
	// Seeded reports whether it has loaded the stored status after a start.
	// Until then its results are incomplete.
	Seeded() bool
}

// AWS reads and changes groups; *nodegroup.API implements it.
type AWS interface {
	Observe(ctx context.Context, group string, now time.Time) (nodegroup.Observed, error)
	Apply(ctx context.Context, w nodegroup.Wanted, s nodegroup.Step) error
}

// Nodes finds nodes by instance; *nodeindex.Index implements it.
type Nodes interface {
	NodeByInstance(ctx context.Context, instanceID string) (*corev1.Node, error)
}

var (
	_ Watch = (*groupcache.Watcher)(nil)
	_ AWS   = (*nodegroup.API)(nil)
	_ Nodes = (*nodeindex.Index)(nil)
)

// Options configure the controller.
type Options struct {
	Client client.Client
	Nodes  Nodes
	Watch  Watch
	AWS    AWS
	// Tracker may be nil: then status has no actions, boots and failures.
	Tracker HookTracker
	Events  events.EventRecorder
	// Cluster is the cluster's name in AWS tags; created groups get its tag.
	// Empty: none.
	Cluster string
	// Clock returns the current time.
	Clock func() time.Time
	// Registerer takes the metrics.
	Registerer prometheus.Registerer
}

// Controller reconciles NodeGroups.
type Controller struct {
	Options
	mu    sync.Mutex
	known map[string]*memory // by object
}

// memory is what the controller keeps of an object between passes. It is a
// cache: losing it costs a few calls.
type memory struct {
	reading   reading
	counts    v1beta1.InstanceCounts
	oldest    time.Time // start of the oldest pending action
	held      int32
	group     string
	did       attempt
	wrote     time.Time
	lastEvent string // the last Event about a waiting deletion
}

// attempt describes the last applied steps.
type attempt struct {
	steps string
	at    time.Time
	times int
}

// New returns the controller, or an error if its metrics are already
// registered.
func New(o Options) (*Controller, error) {
	c := &Controller{Options: o, known: map[string]*memory{}}
	if err := o.Registerer.Register(c); err != nil {
		return nil, fmt.Errorf("registering the metrics of node groups: %w", err)
	}
	return c, nil
}

// Requeue intervals.
const (
	soon = time.Second
	// patience is the interval while another party must act first.
	patience = time.Minute
	// readEvery is the largest age of what was read from AWS directly; the
	// watch is younger.
	readEvery = 5 * time.Minute
)

// reconcile resolves the request and calls Reconcile. It drops the memory of
// deleted objects.
func (c *Controller) reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var g v1beta1.NodeGroup
	if err := c.Client.Get(ctx, req.NamespacedName, &g); err != nil {
		if apierrors.IsNotFound(err) {
			c.forget(req.Name)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("reading node group %s: %w", req.Name, err)
	}
	return c.Reconcile(ctx, &g)
}

// Reconcile reads the group of one NodeGroup, applies the next steps, and
// reports status.
func (c *Controller) Reconcile(ctx context.Context, g *v1beta1.NodeGroup) (reconcile.Result, error) {
	m := c.memory(g)
	if !g.DeletionTimestamp.IsZero() {
		return c.end(ctx, g, m)
	}
	if changed, err := c.settleFinalizer(ctx, g); changed || err != nil {
		return reconcile.Result{}, err
	}
	other, err := c.otherOwner(ctx, g)
	if err != nil {
		return reconcile.Result{}, err
	}
	w := nodegroup.Want(g, c.Cluster)
	if other != "" {
		return c.report(ctx, g, m, passState{wanted: w, otherOwner: other})
	}
	var labelErr error
	s := passState{wanted: w}
	s.observed, s.known, s.err = c.look(ctx, g, m)
	if s.known {
		s.history = c.history(g, w, s.observed)
		s.plan = nodegroup.Diff(w, s.observed, s.history)
		if s.err == nil { // after a failed read, sizes can be older than the spec
			s.done, s.failed = c.act(ctx, g, m, w, s.plan)
		}
		labelErr = c.label(ctx, g, s.observed)
	}
	result, err := c.report(ctx, g, m, s)
	if err := errors.Join(labelErr, err); err != nil {
		return reconcile.Result{}, err
	}
	return result, nil
}

// act applies the steps of a plan in order, until one fails. Steps without a
// visible effect are repeated with backoff: another tool may revert them.
func (c *Controller) act(ctx context.Context, g *v1beta1.NodeGroup, m *memory, w nodegroup.Wanted, p nodegroup.Plan) (done bool, err error) {
	if len(p.Steps) == 0 {
		m.did = attempt{}
		return false, nil
	}
	now, text := c.Clock(), fmt.Sprint(p.Steps)
	if m.did.steps == text && now.Sub(m.did.at) < pause(m.did.times) {
		return false, notVisibleError{step: p.Steps[0], times: m.did.times}
	}
	times := 1
	if m.did.steps == text {
		times = m.did.times + 1
	}
	for _, step := range p.Steps {
		if err := c.AWS.Apply(ctx, w, step); err != nil {
			m.reading.stale = true
			return done, err
		}
		done = true
		log.FromContext(ctx).Info("changed node group", "group", w.Group, "step", step.String(), "because", step.Reason)
		c.Events.Eventf(g, nil, corev1.EventTypeNormal, reasonOf(step.Verb), "Change", "%s: %s%s", step, step.Reason, settings(step))
	}
	m.did = attempt{steps: text, at: now, times: times}
	m.reading.stale = true
	c.Watch.RequestRefreshHooks(w.Group)
	return done, nil
}

// notVisibleError reports an applied step whose effect is not visible.
type notVisibleError struct {
	step  nodegroup.Step
	times int
}

// Error explains the likely cause.
func (e notVisibleError) Error() string {
	if e.times < manyTimes {
		return fmt.Sprintf("applied %s; AWS does not show the change yet", e.step)
	}
	return fmt.Sprintf("applied %s repeatedly, but the change does not persist: check whether another tool, such as Terraform or kOps, reverts it, and let only one of the two manage it", e.step)
}

// manyTimes is the number of attempts after which AWS's delay is not the likely
// cause.
const manyTimes = 5

// pause is the wait before the next attempt. The first waits are short because
// AWS's reads lag behind its writes.
func pause(times int) time.Duration {
	return min(time.Second<<min(times, 10), readEvery)
}

// settings lists the changes of a step.
func settings(s nodegroup.Step) string {
	var parts []string
	for _, c := range s.Changes {
		parts = append(parts, c.Name+" "+c.WillBe)
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

// reasonOf is the Event reason for a step.
func reasonOf(v nodegroup.Verb) string {
	var b strings.Builder
	for _, word := range strings.Fields(string(v)) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// otherOwner returns an older NodeGroup for the same group: two would revert
// each other's changes.
func (c *Controller) otherOwner(ctx context.Context, g *v1beta1.NodeGroup) (string, error) {
	var all v1beta1.NodeGroupList
	if err := c.Client.List(ctx, &all); err != nil {
		return "", fmt.Errorf("listing node groups: %w", err)
	}
	for i := range all.Items {
		o := &all.Items[i]
		if o.Name == g.Name || nodegroup.Name(o) != nodegroup.Name(g) {
			continue
		}
		if o.CreationTimestamp.Before(&g.CreationTimestamp) || o.CreationTimestamp.Equal(&g.CreationTimestamp) && o.Name < g.Name {
			return o.Name, nil
		}
	}
	return "", nil
}

// history is the known history of the group.
func (c *Controller) history(g *v1beta1.NodeGroup, w nodegroup.Wanted, o nodegroup.Observed) nodegroup.History {
	h := nodegroup.History{
		Unhooked: nodegroup.Unhooked(g.Status.Unhooked, o), Boots: g.Status.Boots, Failures: g.Status.ConsecutiveFailures,
	}
	last := g.Status.Failures
	if c.hasTracker() {
		h.Boots = c.Tracker.Boots(w.Group)
		h.Failures, last = c.Tracker.Failures(w.Group)
	}
	if len(last) > 0 {
		h.LastFailure = last[0].Message
	}
	return h
}

func (c *Controller) hasTracker() bool { return c.Tracker != nil && c.Tracker.Seeded() }

// memory returns the memory of an object.
func (c *Controller) memory(g *v1beta1.NodeGroup) *memory {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, ok := c.known[g.Name]
	if !ok {
		m = &memory{}
		c.known[g.Name] = m
	}
	return m
}

func (c *Controller) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, name)
}
