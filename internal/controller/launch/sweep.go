// Package launch is the loop that sees instances of Auto Scaling groups into
// service. It answers their launch hooks once their nodes are Ready, takes the
// startup taint off once they are in service, answers for those that leave without
// ever having had a node, and removes nodes of instances that are in a warm pool.
//
// Every pass looks at all instances of all groups: what is decided of one hangs on
// where it stands now, and on what was tried in this phase of its life, and not on
// events. An instance whose pods an Interruption moves is that one's.
package launch

import (
	"cmp"
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/groupwatch"
	"github.com/lifeboat-dev/lifeboat/internal/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

const (
	// apart is the least time between two passes, and atLeast the most.
	apart, atLeast = 500 * time.Millisecond, 15 * time.Second
	// fresh is how old what is known of an instance may be for its hook to be
	// answered by it, and hesitation how long an answer may take from its decision
	// until it is sent: an answer that comes late could reach the hook's next firing.
	fresh, hesitation = time.Minute, 5 * time.Second
	// nodeRetry is how soon something is done to a node again.
	nodeRetry = 3 * time.Second
	// podsFor is how long it stands how many pods a node has.
	podsFor = 5 * time.Second
	// hurry is how far apart it is asked where an instance stands for which that is
	// all that is missing, and hurries how often in a phase.
	hurry, hurries = 3 * time.Second, 20
)

// DefaultPatience is for how long a launch is extended where no NodeGroup says.
const DefaultPatience = 30 * time.Minute

// DefaultHooks are the names of the hooks that are answered, beside those that
// NodeGroups name; * stands for any text.
var DefaultHooks = []string{"lifeboat-*"}

// Groups knows the groups: a groupwatch.Watcher.
type Groups interface {
	Groups() []groupwatch.Group
	Member(instanceID string) (m groupwatch.Member, ok bool, at time.Time)
	Hint(group string)
	HintHooks(group string)
	HintNew()
}

// Options are what the loop needs.
type Options struct {
	// Client reads nodes, NodeGroups and Interruptions, from a cache, and writes.
	Client client.Client
	// Nodes lists nodes; nil: the Client does.
	Nodes nodeindex.Lister
	// Pods reads pods from the API server itself.
	Pods client.Reader
	// Groups knows the groups.
	Groups Groups
	// Lifecycle answers.
	Lifecycle cloud.Lifecycle
	// Hooks are patterns for the names of hooks to answer; nil: DefaultHooks.
	Hooks []string
	// Events tells people.
	Events events.EventRecorder
	// Changed is called with a group of which the Book has news; nil: nobody
	// wants to know. It must not block.
	Changed func(group string)
	// Registerer takes the metrics; nil: nobody reads them.
	Registerer prometheus.Registerer
	// Clock tells the time; nil: time.Now.
	Clock func() time.Time
}

// Sweep is the loop.
type Sweep struct {
	*Book
	o      Options
	wake   chan struct{}
	known  map[string]bool // groups that were seen before
	meters *meters
}

// New returns the loop, or an error where its metrics are registered already.
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

// News has the loop look again soon: give it to groupwatch's Subscribe.
func (s *Sweep) News(string, []string) { s.Touch() }

// Touch has the loop look again soon. It does not block.
func (s *Sweep) Touch() {
	select {
	case s.wake <- struct{}{}:
	default: // it is about to look anyway
	}
}

// Start looks until ctx ends. It is a manager's Runnable, and runs on the leader
// alone.
func (s *Sweep) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		pause, err := s.pass(ctx)
		if err != nil && ctx.Err() == nil {
			log.FromContext(ctx).Error(err, "could not see to the instances of Auto Scaling groups, goes on trying")
		}
		if !sleep.For(ctx, apart) || !sleep.OrWake(ctx, pause-apart, s.wake) {
			return nil
		}
	}
	return nil
}

// pass looks at everything once, does what is to be done, and returns when to look
// again.
func (s *Sweep) pass(ctx context.Context) (time.Duration, error) {
	w, err := s.observe(ctx)
	if err != nil {
		return atLeast, err
	}
	if !s.Seeded() {
		s.seed(w.nodeGroups)
	}
	s.hastenNew(w)
	todo, wake, news := s.lookAtAll(ctx, w)
	done := s.carryOut(ctx, w, todo)
	for group := range news {
		s.o.Changed(group)
	}
	pause := atLeast
	if !wake.IsZero() {
		pause = min(pause, max(0, wake.Sub(s.o.Clock())))
	}
	if done > 0 {
		pause = min(pause, time.Second) // what was done may lead to more
	}
	return pause, nil
}

// lookAtAll decides about all instances. It returns what there is to do, when to
// look again, zero being never, and of which groups the Book has news.
func (s *Sweep) lookAtAll(ctx context.Context, w *world) (todo []task, wake time.Time, news map[string]bool) {
	news = map[string]bool{}
	there := map[string]bool{}
	for i := range w.groups {
		g := &w.groups[i]
		for _, m := range g.Members {
			there[m.InstanceID] = true
			t, differs := s.look(ctx, w, g, m)
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
		if s.came(ctx, w, l) {
			news[l.group] = true
		}
	}
	return todo, wake, news
}

// look decides about one instance. A task without an entry is nothing to do, now
// or later.
func (s *Sweep) look(ctx context.Context, w *world, g *groupwatch.Group, m groupwatch.Member) (task, bool) {
	node := w.nodes[m.InstanceID]
	e, out := s.see(m, g.At, w.now, s.known[g.Name], nameOfNode(node))
	differs := s.came(ctx, w, out)
	if m.At.Phase == lifecycle.Serving && (node == nil || !isTainted(node)) {
		return task{}, s.decided(e, lifecycle.Decision{}) || differs
	}
	f := s.facts(ctx, w, g, m, e)
	d := lifecycle.Decide(f, e.memory)
	d.Wake = s.hasten(w.now, e, g.Name, d)
	differs = s.decided(e, d) || differs
	return task{group: g.Name, member: m, entry: e, node: node, decision: d, at: w.now}, differs
}

// hasten has a group looked at soon where a decision waits for no more than that.
// It returns when to decide again.
func (s *Sweep) hasten(now time.Time, e *entry, group string, d lifecycle.Decision) time.Time {
	if d.Ask.IsZero() || e.hurried >= hurries {
		return d.Wake
	}
	next := d.Ask
	if !now.Before(d.Ask) {
		e.hurried++
		s.o.Groups.Hint(group)
		next = now.Add(hurry)
	}
	if d.Wake.IsZero() || next.Before(d.Wake) {
		return next
	}
	return d.Wake
}

// hastenNew has all groups looked at soon where there is a young node of whose
// instance nobody knows yet in which group it is.
func (s *Sweep) hastenNew(w *world) {
	news := false
	for id, node := range w.nodes {
		if _, known, _ := s.o.Groups.Member(id); known || w.now.Sub(node.CreationTimestamp.Time) > hurries*hurry || !groupwatch.MayBeInGroup(node) {
			continue
		}
		news = true
	}
	if news {
		s.o.Groups.HintNew()
	}
}

// came counts a launch that came out, and says where many failed. It reports
// whether there is anything new.
func (s *Sweep) came(ctx context.Context, w *world, l launched) bool {
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
		s.tellGroup(w, l.group, "LaunchesFail", "%d launches in a row have failed, the last that of %s: %s. "+
			"Auto Scaling goes on launching, and launches ever more slowly: look at the instance's console output, "+
			"and keep the next one with `aws autoscaling enter-standby` or a longer patience",
			failed, l.id, cmp.Or(l.was.Reason, "nothing was said of it"))
	}
	return true
}
