// Package nodegroup is the loop over NodeGroups: it looks at their Auto Scaling
// groups, has them put right as far as they allow it, and says how they stand.
// Answering their hooks is another loop's.
package nodegroup

import (
	"context"
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

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/groupwatch"
	"github.com/lifeboat-dev/lifeboat/internal/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/nodeindex"
)

// Watch knows the groups; *groupwatch.Watcher does.
type Watch interface {
	Group(name string) (groupwatch.Group, bool)
	Member(instanceID string) (m groupwatch.Member, ok bool, at time.Time)
	HintHooks(group string)
}

// Book knows what hooks hold, and how launches went.
type Book interface {
	// Actions are what hooks hold, the oldest first.
	Actions(group string) []v1alpha1.LifecycleAction
	// Boots is nil where none was seen.
	Boots(group string) *v1alpha1.BootTimes
	// Failures are the last ones, newest first, and how many launches failed
	// since the last that did not.
	Failures(group string) (inARow int32, last []v1alpha1.GroupFailure)
	// Seeded reports whether it has read, after a start, what status says; until
	// then its answers are worth nothing.
	Seeded() bool
}

// AWS reads and changes groups; *nodegroup.API does.
type AWS interface {
	Observe(ctx context.Context, group string, now time.Time) (nodegroup.Observed, error)
	Apply(ctx context.Context, w nodegroup.Wanted, s nodegroup.Step) error
}

// Nodes finds nodes by their instances; *nodeindex.Index does.
type Nodes interface {
	NodeByInstance(ctx context.Context, instanceID string) (*corev1.Node, error)
}

var (
	_ Watch = (*groupwatch.Watcher)(nil)
	_ AWS   = (*nodegroup.API)(nil)
	_ Nodes = (*nodeindex.Index)(nil)
)

// Options are what the loop needs.
type Options struct {
	Client client.Client
	Nodes  Nodes
	Watch  Watch
	AWS    AWS
	// Book may be nil: then nothing is said about actions, boots and failures.
	Book   Book
	Events events.EventRecorder
	// Cluster is what the cluster is called at AWS; groups that are created get
	// its tag. Empty: none.
	Cluster string
	// Clock tells the time.
	Clock func() time.Time
	// Registerer takes the metrics.
	Registerer prometheus.Registerer
}

// Controller looks after NodeGroups.
type Controller struct {
	Options
	mu    sync.Mutex
	known map[string]*memory // by object
}

// memory is what the loop keeps of an object between passes. All of it comes
// back by looking: losing it costs a few calls.
type memory struct {
	sight  sight
	counts v1alpha1.InstanceCounts
	oldest time.Time // since when the oldest pending action is
	held   int32
	group  string
	did    attempt
	wrote  time.Time
	said   string // the last Event about a deletion that waits
}

// attempt is the last steps that were done.
type attempt struct {
	steps string
	at    time.Time
	times int
}

// New returns the loop, or an error where its metrics are registered already.
func New(o Options) (*Controller, error) {
	c := &Controller{Options: o, known: map[string]*memory{}}
	if err := o.Registerer.Register(c); err != nil {
		return nil, fmt.Errorf("registering the metrics of node groups: %w", err)
	}
	return c, nil
}

// When to look again.
const (
	soon = time.Second
	// patience is for what somebody else has to change first.
	patience = time.Minute
	// lookEvery is how old what was read of AWS may be; what the watch tells is
	// younger.
	lookEvery = 5 * time.Minute
)

// reconcile is Reconcile by name; what is deleted is forgotten.
func (c *Controller) reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var g v1alpha1.NodeGroup
	if err := c.Client.Get(ctx, req.NamespacedName, &g); err != nil {
		if apierrors.IsNotFound(err) {
			c.forget(req.Name)
			return reconcile.Result{}, nil
		}
		return reconcile.Result{}, fmt.Errorf("reading node group %s: %w", req.Name, err)
	}
	return c.Reconcile(ctx, &g)
}

// Reconcile looks at one NodeGroup's group, does what is next, and says how it
// stands.
func (c *Controller) Reconcile(ctx context.Context, g *v1alpha1.NodeGroup) (reconcile.Result, error) {
	m := c.memory(g)
	if !g.DeletionTimestamp.IsZero() {
		return c.end(ctx, g, m)
	}
	if changed, err := c.settleFinalizer(ctx, g); changed || err != nil {
		return reconcile.Result{}, err
	}
	other, err := c.elder(ctx, g)
	if err != nil {
		return reconcile.Result{}, err
	}
	w := nodegroup.Want(g, c.Cluster)
	if other != "" {
		return c.report(ctx, g, m, standing{wanted: w, elder: other})
	}
	s := standing{wanted: w}
	s.observed, s.known, s.err = c.look(ctx, g, m)
	if s.known {
		s.history = c.history(g, w, s.observed)
		s.plan = nodegroup.Diff(w, s.observed, s.history)
		s.done, s.failed = c.act(ctx, g, m, w, s.plan)
		if err := c.label(ctx, g, s.observed); err != nil {
			return reconcile.Result{}, err
		}
	}
	return c.report(ctx, g, m, s)
}

// act does the steps of a plan, in order, until one fails. What was done in vain
// before is done again ever more seldom: somebody else changes it back.
func (c *Controller) act(ctx context.Context, g *v1alpha1.NodeGroup, m *memory, w nodegroup.Wanted, p nodegroup.Plan) (done bool, err error) {
	if len(p.Steps) == 0 {
		m.did = attempt{}
		return false, nil
	}
	now, text := c.Clock(), fmt.Sprint(p.Steps)
	if m.did.steps == text && now.Sub(m.did.at) < pause(m.did.times) {
		return false, inVainError{step: p.Steps[0], times: m.did.times}
	}
	times := 1
	if m.did.steps == text {
		times = m.did.times + 1
	}
	for _, step := range p.Steps {
		if err := c.AWS.Apply(ctx, w, step); err != nil {
			m.sight.stale = true
			return done, err
		}
		done = true
		log.FromContext(ctx).Info("changed the node group", "group", w.Group, "step", step.String(), "because", step.Reason)
		c.Events.Eventf(g, nil, corev1.EventTypeNormal, reasonOf(step.Verb), "Change", "%s: %s%s", step, step.Reason, settings(step))
	}
	m.did = attempt{steps: text, at: now, times: times}
	m.sight.stale = true
	c.Watch.HintHooks(w.Group)
	return done, nil
}

// inVainError says that a step was done and cannot be seen.
type inVainError struct {
	step  nodegroup.Step
	times int
}

// Error says what may be the matter.
func (e inVainError) Error() string {
	if e.times < manyTimes {
		return fmt.Sprintf("%s was done, and AWS does not tell of it yet", e.step)
	}
	return fmt.Sprintf("%s was done again and again, and does not stay: see whether somebody else changes it back, such as Terraform or kOps, and have only one of the two do it", e.step)
}

// manyTimes is when AWS's being late does not explain it any more.
const manyTimes = 5

// pause is how long to wait until what was done so many times is done once more.
// The first times are AWS's, which tells late what was changed.
func pause(times int) time.Duration {
	return min(time.Second<<min(times, 10), lookEvery)
}

// settings lists what a step changes.
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

// reasonOf names a step in an Event.
func reasonOf(v nodegroup.Verb) string {
	var b strings.Builder
	for _, word := range strings.Fields(string(v)) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

// elder is another NodeGroup that stands for the same group and was there
// before; two would undo each other's work.
func (c *Controller) elder(ctx context.Context, g *v1alpha1.NodeGroup) (string, error) {
	var all v1alpha1.NodeGroupList
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

// history is what is known of the group's past.
func (c *Controller) history(g *v1alpha1.NodeGroup, w nodegroup.Wanted, o nodegroup.Observed) nodegroup.History {
	h := nodegroup.History{
		Unhooked: nodegroup.Unhooked(g.Status.Unhooked, o), Boots: g.Status.Boots, Failures: g.Status.ConsecutiveFailures,
	}
	last := g.Status.Failures
	if c.booked() {
		h.Boots = c.Book.Boots(w.Group)
		h.Failures, last = c.Book.Failures(w.Group)
	}
	if len(last) > 0 {
		h.LastFailure = last[0].Message
	}
	return h
}

func (c *Controller) booked() bool { return c.Book != nil && c.Book.Seeded() }

// memory returns what is remembered of an object.
func (c *Controller) memory(g *v1alpha1.NodeGroup) *memory {
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
