package groupwatch

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
	"github.com/lifeboat-dev/lifeboat/internal/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/quota"
)

const (
	// Interval is how often groups are asked about, and twice as often while an
	// instance of any is on its way.
	Interval = 30 * time.Second
	// roundTime is what one round may take.
	roundTime = time.Minute
	// hintPause is how long a hint waits for others, and hintSpace how far apart
	// the looks are that hints bring about.
	hintPause, hintSpace = time.Second, 3 * time.Second
)

// Options are what a Watcher can be told. Zero values are the defaults.
type Options struct {
	// API is what is asked.
	API API
	// Reader reads nodes, and should be a cache.
	Reader client.Reader
	// Nodes lists nodes; nil: the Reader does.
	Nodes nodeindex.Lister
	// Names returns groups to look at whether or not they have a node: those
	// that NodeGroups name. Nil: none.
	Names func(ctx context.Context) ([]string, error)
	// Interval is how often all groups are looked at.
	Interval time.Duration
	// Quota bounds the calls; nil: nothing does.
	Quota *quota.Quota
	// Registerer takes the metrics; nil: nobody reads them.
	Registerer prometheus.Registerer
	// Clock tells the time; nil: time.Now.
	Clock func() time.Time
}

// Watcher knows the groups.
type Watcher struct {
	o        Options
	meters   *meters
	throttle *intake.Throttle
	kick     chan struct{} // hints are due

	// looking is held by whoever asks AWS. What follows is used under it.
	looking sync.Mutex
	lessons lessons
	named   map[string]bool // groups that NodeGroups name, as of the last round
	missing map[string]bool // instances that were in no list the last time
	aside   error           // what could not be read of groups that could

	mu      sync.Mutex
	groups  map[string]*Group
	members map[string]Member // by instance
	hooks   map[string]hooksRead
	full    time.Time // when all groups were last read
	err     error     // of the last round
	hints   map[string]bool
	hinting bool // a timer runs that will kick
	hinted  time.Time
	changed []func(group string, instanceIDs []string)
	rounds  []func()
}

// New returns a Watcher, or an error where its metrics are registered already.
func New(o Options) (*Watcher, error) {
	if o.Interval <= 0 {
		o.Interval = Interval
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Nodes == nil {
		o.Nodes = nodeindex.ListWith(o.Reader)
	}
	w := &Watcher{
		o: o, throttle: intake.NewThrottle(o.Clock), kick: make(chan struct{}, 1), lessons: newLessons(),
		named: map[string]bool{}, missing: map[string]bool{},
		groups: map[string]*Group{}, members: map[string]Member{}, hooks: map[string]hooksRead{}, hints: map[string]bool{},
	}
	w.meters = newMeters(w)
	return w, w.meters.register(o.Registerer)
}

// Subscribe has changed called, from any goroutine, with a group of which
// something has changed, and those of its instances whose state has, or that came
// or went. It must not block.
func (w *Watcher) Subscribe(changed func(group string, instanceIDs []string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed = append(w.changed, changed)
}

// SubscribeLooks has looked called after each look at groups, whether or not
// something has changed. It must not block.
func (w *Watcher) SubscribeLooks(looked func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rounds = append(w.rounds, looked)
}

// Groups returns all groups, by name. They are shared: do not change them.
func (w *Watcher) Groups() []Group {
	w.mu.Lock()
	defer w.mu.Unlock()
	groups := make([]Group, 0, len(w.groups))
	for _, name := range slices.Sorted(maps.Keys(w.groups)) {
		groups = append(groups, *w.groups[name])
	}
	return groups
}

// Group returns a group, unless it is not there or was not looked at yet: Known
// tells which. It is shared: do not change it.
func (w *Watcher) Group(name string) (Group, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if g, ok := w.groups[name]; ok {
		return *g, true
	}
	return Group{}, false
}

// Member returns an instance of a group, and when it was asked about.
func (w *Watcher) Member(instanceID string) (m Member, ok bool, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m, ok = w.members[instanceID]; ok {
		at = w.groups[m.Group].At
	}
	return m, ok, at
}

// Known reports whether all groups have been read at least once, so that one that
// is not there is not there at AWS.
func (w *Watcher) Known() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.full.IsZero()
}

// Err returns why the last round was not answered in full, or nil. It names the
// permission that is missing.
func (w *Watcher) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Age is for how long not all groups could be read. It is zero where there is
// none.
func (w *Watcher) Age() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.groups) == 0 || w.full.IsZero() {
		return 0
	}
	return w.o.Clock().Sub(w.full)
}

// Hint has a group looked at soon, if it is one of the cluster's: something is
// said to have happened to it. Many hints make one look.
func (w *Watcher) Hint(group string) {
	if group != everything {
		w.hint(group, false)
	}
}

// everything is no group's name, and hints at all.
const everything = ""

// HintNew has all groups looked at soon: there is an instance of which it is not
// known in which group it is.
func (w *Watcher) HintNew() { w.hint(everything, false) }

// HintHooks is Hint where the hooks may be others than they were.
func (w *Watcher) HintHooks(group string) {
	if group != everything {
		w.hint(group, true)
	}
}

func (w *Watcher) hint(group string, hooks bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hints[group] = w.hints[group] || hooks
	if w.hinting {
		return
	}
	w.hinting = true
	time.AfterFunc(max(hintPause, hintSpace-w.o.Clock().Sub(w.hinted)), func() {
		select {
		case w.kick <- struct{}{}:
		default:
		}
	})
}

// takeHints returns what was hinted at.
func (w *Watcher) takeHints() map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	hints := w.hints
	w.hints, w.hinting, w.hinted = map[string]bool{}, false, w.o.Clock()
	return hints
}

// Start looks until ctx ends. It is a manager's Runnable, and runs on the leader
// alone. It survives whatever Auto Scaling and the API server do.
func (w *Watcher) Start(ctx context.Context) error {
	var pace poll.Pace
	for ctx.Err() == nil {
		reason := w.round(ctx)
		timer := time.NewTimer(w.pause(pace.Next(w.interval(), reason)))
		for waiting := true; waiting; {
			select {
			case <-ctx.Done():
				waiting = false
			case <-timer.C:
				waiting = false
			case <-w.kick:
				w.follow(ctx, w.takeHints())
			}
		}
		timer.Stop()
	}
	return nil
}

// interval is how long to wait until the next round.
func (w *Watcher) interval() time.Duration {
	if w.busy() {
		return w.o.Interval / 2
	}
	return w.o.Interval
}

// pause bounds the time until the next round while an instance is on its way: its
// hook waits, however slowly AWS answers.
func (w *Watcher) pause(next time.Duration) time.Duration {
	if w.busy() {
		return min(next, 2*w.o.Interval)
	}
	return next
}

func (w *Watcher) busy() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, g := range w.groups {
		if g.Busy() {
			return true
		}
	}
	return false
}
