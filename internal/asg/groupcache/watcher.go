package groupcache

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/internal/asg/ratelimit"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
)

const (
	// Interval is how often groups are read; half of it while an instance is in
	// a transition.
	Interval = 30 * time.Second
	// roundTime is the timeout of one round.
	roundTime = time.Minute
	// refreshDelay is how long a refresh request waits for others; refreshSpacing is
	// the least time between refreshes.
	refreshDelay, refreshSpacing = time.Second, 3 * time.Second
)

// Options configure a Watcher. Zero values are the defaults.
type Options struct {
	// API is Auto Scaling.
	API API
	// Reader reads nodes, and should be a cache.
	Reader client.Reader
	// Nodes lists nodes; nil: the Reader does.
	Nodes nodeindex.Lister
	// Names returns groups to read even without a node: those that NodeGroups
	// name. Nil: none.
	Names func(ctx context.Context) ([]string, error)
	// Interval is how often all groups are read.
	Interval time.Duration
	// Quota limits the call rate; nil: no limit.
	Quota *ratelimit.Limiter
	// Registerer takes the metrics; nil: they are not registered.
	Registerer prometheus.Registerer
	// Clock returns the time; nil: time.Now.
	Clock func() time.Time
}

// Watcher polls and caches the groups.
type Watcher struct {
	o        Options
	meters   *meters
	throttle *intake.Throttle
	kick     chan struct{} // a refresh is due

	// looking serialises AWS calls and guards the next fields.
	looking    sync.Mutex
	membership membership
	named      map[string]bool // groups that NodeGroups name, as of the last round
	missing    map[string]bool // instances that the last read did not list
	partial    error           // errors of partly read groups

	mu           sync.Mutex
	groups       map[string]*Group
	members      map[string]Member // by instance
	hooks        map[string]hooksRead
	full         time.Time // when all groups were last read
	err          error     // of the last round
	requests     map[string]bool
	requestTimer bool // a timer that kicks is running
	refreshed    time.Time
	changed      []func(group string, instanceIDs []string)
	refreshSubs  []func()
}

// New returns a Watcher, or an error if its metrics are already registered.
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
		o: o, throttle: intake.NewThrottle(o.Clock), kick: make(chan struct{}, 1), membership: newMembership(),
		named: map[string]bool{}, missing: map[string]bool{},
		groups: map[string]*Group{}, members: map[string]Member{}, hooks: map[string]hooksRead{}, requests: map[string]bool{},
	}
	w.meters = newMeters(w)
	return w, w.meters.register(o.Registerer)
}

// Subscribe registers a callback for changes, called from any goroutine with
// the group and the instances that came, went or changed state. It must not
// block.
func (w *Watcher) Subscribe(changed func(group string, instanceIDs []string)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed = append(w.changed, changed)
}

// SubscribeRefreshes registers a callback that runs after each read, changed or
// not. It must not block.
func (w *Watcher) SubscribeRefreshes(looked func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refreshSubs = append(w.refreshSubs, looked)
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

// Group returns a group. It returns false if the group does not exist or was
// not read yet; Known tells which. The value is shared: do not change it.
func (w *Watcher) Group(name string) (Group, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if g, ok := w.groups[name]; ok {
		return *g, true
	}
	return Group{}, false
}

// Member returns an instance of a group, and when its group was read.
func (w *Watcher) Member(instanceID string) (m Member, ok bool, at time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m, ok = w.members[instanceID]; ok {
		at = w.groups[m.Group].At
	}
	return m, ok, at
}

// Known reports whether all groups were read at least once, so that a missing
// group does not exist in AWS.
func (w *Watcher) Known() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.full.IsZero()
}

// Err returns the error of the last round, or nil. It names the missing
// permission.
func (w *Watcher) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// Age is the time since all groups were last read. It is zero without groups.
func (w *Watcher) Age() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.groups) == 0 || w.full.IsZero() {
		return 0
	}
	return w.o.Clock().Sub(w.full)
}

// maxName is the length of a group's name (Amazon EC2 Auto Scaling API Reference,
// CreateAutoScalingGroup).
const maxName = 255

// RequestRefresh reads a group soon if it belongs to the cluster, because an
// event reported a change. Requests are coalesced.
func (w *Watcher) RequestRefresh(group string) {
	if group != everything && len(group) <= maxName {
		w.requestRefresh(group, false)
	}
}

// everything is not a valid group name; it requests all groups.
const everything = ""

// RequestRefreshNew reads all groups soon, because the group of an instance is
// unknown.
func (w *Watcher) RequestRefreshNew() { w.requestRefresh(everything, false) }

// RequestRefreshHooks is RequestRefresh including the lifecycle hooks.
func (w *Watcher) RequestRefreshHooks(group string) {
	if group != everything {
		w.requestRefresh(group, true)
	}
}

// maxRequests bounds the requests. A replica that is not the leader takes none, and messages name
// groups of other clusters too.
const maxRequests = 1000

func (w *Watcher) requestRefresh(group string, hooks bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !hooks && len(w.requests) >= maxRequests {
		group = everything
	}
	w.requests[group] = w.requests[group] || hooks
	if w.requestTimer {
		return
	}
	w.requestTimer = true
	time.AfterFunc(max(refreshDelay, refreshSpacing-w.o.Clock().Sub(w.refreshed)), func() {
		select {
		case w.kick <- struct{}{}:
		default:
		}
	})
}

// takeRequests returns and clears the pending refresh requests.
func (w *Watcher) takeRequests() map[string]bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	hints := w.requests
	w.requests, w.requestTimer, w.refreshed = map[string]bool{}, false, w.o.Clock()
	return hints
}

// Start polls until ctx ends. It is a manager Runnable that runs on the leader
// only. Errors of Auto Scaling or the API server never end it.
func (w *Watcher) Start(ctx context.Context) error {
	var pace poll.Backoff
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
				w.refresh(ctx, w.takeRequests())
			}
		}
		timer.Stop()
	}
	return nil
}

// interval is the time until the next round.
func (w *Watcher) interval() time.Duration {
	if w.busy() {
		return w.o.Interval / 2
	}
	return w.o.Interval
}

// pause bounds the backoff while an instance is in a transition, because a hook
// holds it.
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
