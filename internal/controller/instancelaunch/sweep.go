// Package instancelaunch is the controller that brings instances of Auto Scaling groups into service. It
// completes their launch hooks once their nodes are Ready, and removes the startup taint once
// they are in service. It also completes the hooks of instances that leave without ever having
// had a node, and deletes nodes of instances in a warm pool.
//
// Every pass evaluates all instances of all groups. A decision depends on the instance's current
// state and on what was tried in this phase, and not on events. An instance whose pods an
// Interruption moves is left to the Interruption.
package instancelaunch

import (
	"cmp"
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/internal/asg/groupcache"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

const (
	// minInterval is the shortest time between two passes, and maxInterval the longest.
	minInterval, maxInterval = 500 * time.Millisecond, 15 * time.Second
	// maxStateAge is the maximum age of a state for completing a hook, and maxDecisionAge the maximum
	// time from the decision to the call: a late call could complete the hook's next firing.
	maxStateAge, maxDecisionAge = time.Minute, 5 * time.Second
	// nodeRetry is when a change of a node is retried.
	nodeRetry = 3 * time.Second
	// podCountTTL is how long a count of a node's pods is reused.
	podCountTTL = 5 * time.Second
	// refreshInterval is the time between refreshes for an instance that only waits for its state, and
	// maxRefreshes the maximum number of them in a phase.
	refreshInterval, maxRefreshes = 3 * time.Second, 20
)

// DefaultPatience is how long a launch is extended by default.
const DefaultPatience = 30 * time.Minute

// DefaultHooks are the names of the hooks that are completed, in addition to those that
// NodeGroups name; * matches any text.
var DefaultHooks = []string{"lifeboat-*"}

// Groups knows the Auto Scaling groups; groupcache.Watcher is one.
type Groups interface {
	Groups() []groupcache.Group
	Member(instanceID string) (m groupcache.Member, ok bool, at time.Time)
	RequestRefresh(group string)
	RequestRefreshHooks(group string)
	RequestRefreshNew()
}

// Options are the dependencies and settings of the controller.
type Options struct {
	// Client reads nodes, NodeGroups and Interruptions, from a cache, and writes.
	Client client.Client
	// Nodes lists nodes; nil: the Client does.
	Nodes nodeindex.Lister
	// Pods reads pods from the API server without a cache.
	Pods client.Reader
	// Groups knows the Auto Scaling groups.
	Groups Groups
	// Lifecycle calls Auto Scaling.
	Lifecycle cloud.Lifecycle
	// Hooks are patterns for the names of hooks to complete; nil: DefaultHooks.
	Hooks []string
	// Events emits Events.
	Events events.EventRecorder
	// Changed is called with a group whose entries in the Book have changed; nil: not called.
	// It must not block.
	Changed func(group string)
	// Registerer registers the metrics; nil: they are not exposed.
	Registerer prometheus.Registerer
	// Clock returns the time; nil: time.Now.
	Clock func() time.Time
}

// Sweep is the controller.
type Sweep struct {
	*Book
	o      Options
	wake   chan struct{}
	known  map[string]bool // groups that were seen before
	meters *meters
}

// New returns the controller, or an error if its metrics are already registered.
func New(o Options) (*Sweep, error) {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Nodes == nil {
		o.Nodes = nodeindex.ListWith(o.Client)
	}
	if o.Hooks == nil {
		o.Hooks = DefaultHooks
	}
	if o.Changed == nil {
		o.Changed = func(string) {}
	}
	s := &Sweep{Book: newBook(), o: o, wake: make(chan struct{}, 1), known: map[string]bool{}, meters: newMeters()}
	return s, s.meters.register(o.Registerer)
}

// News requests a pass soon: pass it to groupwatch's Subscribe.
func (s *Sweep) News(string, []string) { s.Touch() }

// Touch requests a pass soon. It does not block.
func (s *Sweep) Touch() {
	select {
	case s.wake <- struct{}{}:
	default: // a pass is already requested
	}
}

// Start runs passes until ctx ends. It is a manager's Runnable and runs only on the leader.
func (s *Sweep) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		pause, err := s.pass(ctx)
		if err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "cannot handle the instances of Auto Scaling groups, retrying")
		}
		if !sleep.For(ctx, minInterval) || !sleep.OrWake(ctx, pause-minInterval, s.wake) {
			return nil
		}
	}
	return nil
}

// pass evaluates all instances, carries out the decisions, and returns when to run again.
func (s *Sweep) pass(ctx context.Context) (time.Duration, error) {
	w, err := s.observe(ctx)
	if err != nil {
		return maxInterval, err
	}
	if !s.Seeded() {
		s.seed(w.nodeGroups)
	}
	s.refreshNew(w)
	todo, wake, news := s.decideAll(ctx, w)
	done := s.carryOut(ctx, w, todo)
	for group := range news {
		s.o.Changed(group)
	}
	pause := maxInterval
	if !wake.IsZero() {
		pause = min(pause, max(0, wake.Sub(s.o.Clock())))
	}
	if done > 0 {
		pause = min(pause, time.Second) // the changes may lead to more
	}
	return pause, nil
}

// decideAll decides about all instances. It returns the actions, when to decide again (zero:
// never), and the groups whose entries in the Book have changed.
func (s *Sweep) decideAll(ctx context.Context, w *world) (todo []task, wake time.Time, news map[string]bool) {
	news = map[string]bool{}
	there := map[string]bool{}
	for i := range w.groups {
		g := &w.groups[i]
		for _, m := range g.Members {
			there[m.InstanceID] = true
			t, differs := s.decide(ctx, w, g, m)
			if differs {
				news[g.Name] = true
			}
			if t.entry == nil {
				continue
			}
			if at := t.decision.Wake; !at.IsZero() && (wake.IsZero() || at.Before(wake)) {
				wake = at
			}
			todo = append(todo, t)
		}
		s.known[g.Name] = true
	}
	for _, l := range s.forget(there, s.known, w.now) {
		if s.recordLaunch(ctx, w, l) {
			news[l.group] = true
		}
	}
	return todo, wake, news
}

// decide decides about one instance. A task without an entry needs no action, now or later.
func (s *Sweep) decide(ctx context.Context, w *world, g *groupcache.Group, m groupcache.Member) (task, bool) {
	node := w.nodes[m.InstanceID]
	e, out := s.see(m, g.At, w.now, s.known[g.Name], nameOfNode(node))
	differs := s.recordLaunch(ctx, w, out)
	if conflict := w.conflicts[m.InstanceID]; conflict != nil {
		return task{}, s.decided(e, lifecycle.Decision{Reason: conflict.Error()}) || differs
	}
	if m.At.Phase == lifecycle.Serving && (node == nil || !isTainted(node)) {
		return task{}, s.decided(e, lifecycle.Decision{}) || differs
	}
	f := s.facts(ctx, w, g, m, e)
	d := lifecycle.Decide(f, e.memory)
	d.Wake = s.refreshSoon(w.now, e, g.Name, d)
	differs = s.decided(e, d) || differs
	return task{group: g.Name, member: m, entry: e, node: node, decision: d, at: w.now}, differs
}

// refreshSoon requests a refresh of a group if the decision waits only for its state. It returns when
// to decide again.
func (s *Sweep) refreshSoon(now time.Time, e *entry, group string, d lifecycle.Decision) time.Time {
	if d.Ask.IsZero() || e.refreshes >= maxRefreshes {
		return d.Wake
	}
	next := d.Ask
	if !now.Before(d.Ask) {
		e.refreshes++
		s.o.Groups.RequestRefresh(group)
		next = now.Add(refreshInterval)
	}
	if d.Wake.IsZero() || next.Before(d.Wake) {
		return next
	}
	return d.Wake
}

// refreshNew requests a refresh of all groups if there is a new node whose instance is in no
// known group.
func (s *Sweep) refreshNew(w *world) {
	news := false
	for id, node := range w.nodes {
		if _, known, _ := s.o.Groups.Member(id); known || w.now.Sub(node.CreationTimestamp.Time) > maxRefreshes*refreshInterval || !groupcache.MayBeInGroup(node) {
			continue
		}
		news = true
	}
	if news {
		s.o.Groups.RequestRefreshNew()
	}
}

// recordLaunch counts a launch that ended, and emits a warning after many failures. It reports whether
// the Book has changed.
func (s *Sweep) recordLaunch(ctx context.Context, w *world, l launchResult) bool {
	if l.result == lifecycle.Undecided {
		return l.group != ""
	}
	s.meters.launches.WithLabelValues(string(l.result)).Inc()
	failed := s.count(l)
	if l.result == lifecycle.LaunchFailed {
		log.FromContext(ctx).Info("a launch failed", "group", l.group, "instance", l.id, "phase", l.was.Phase,
			"after", l.at.Sub(l.was.Began).String(), "last", l.was.Reason, "inARow", failed)
	}
	if failed > 0 {
		s.emitForGroup(w, l.group, "LaunchesFail", "%d launches in a row have failed, the last that of %s: %s. "+
			"Auto Scaling keeps launching, more and more slowly: look at the instance's console output, "+
			"and keep the next one with `aws autoscaling enter-standby` or a longer patience",
			failed, l.id, cmp.Or(l.was.Reason, "no reason is known"))
	}
	return true
}
