package autoscaling

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/internal/asg/groupcache"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Groups caches the groups of the cluster: a groupcache.Watcher.
type Groups interface {
	// Groups returns the groups as last read. They are shared.
	Groups() []groupcache.Group
	// Known reports whether all were read at least once; Err is the error of
	// the last round.
	Known() bool
	Err() error
	// SubscribeRefreshes registers a callback that runs after each read.
	SubscribeRefreshes(looked func())
}

// Options configure a Source. Zero values are the defaults.
type Options struct {
	// Reader reads nodes and Interruptions. It should be a cache.
	Reader client.Reader
	// Nodes lists nodes; nil: the Reader does.
	Nodes nodeindex.Lister
	// Metrics count what is recorded; nil: not exposed.
	Metrics *intake.Metrics
	// Clock returns the time; nil: time.Now.
	Clock func() time.Time
}

// Source creates notices from the lifecycle states of the groups' instances.
type Source struct {
	groups Groups
	o      Options
	poller *poll.Poller
	looked chan struct{}
	// history is used by one query, and therefore by one goroutine.
	history serviceHistory
}

// listDelay is how old a notice of the queue must be before the group's list
// can withdraw it: the list may be stale.
const listDelay = time.Minute

// New returns the source that reads groups, and records with recorder.
func New(groups Groups, recorder poll.Recorder, o Options) *Source {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Nodes == nil {
		o.Nodes = nodeindex.ListWith(o.Reader)
	}
	o.Metrics = o.Metrics.OrUnread()
	deduper := poll.NewDeduper(recorder, o.Reader, poll.Options{Source: Name, Metrics: o.Metrics, Clock: o.Clock})
	s := &Source{groups: groups, o: o, poller: poll.NewPoller(deduper), looked: make(chan struct{}, 1)}
	groups.SubscribeRefreshes(func() {
		select {
		case s.looked <- struct{}{}:
		default: // a read is already pending
		}
	})
	return s
}

// Name returns the name that notices, metrics and logs carry.
func (s *Source) Name() string { return Name }

// Run reads the groups after each refresh until ctx is done, and returns nil.
// It retries all failures of Auto Scaling and the API server.
func (s *Source) Run(ctx context.Context) error {
	s.poller.Run(ctx, []poll.Query{{
		Name: "groups", Permission: groupcache.PermitGroups, Interval: groupcache.Interval,
		Late: true, Wake: s.looked, Ask: s.ask,
	}})
	return nil
}

var errNotYet = errors.New("the Auto Scaling groups have not been read yet")

// ask returns the current notices for the cluster's nodes in groups.
func (s *Source) ask(ctx context.Context) ([]notice.Notice, error) {
	nodes, err := s.o.Nodes(ctx)
	if err != nil {
		return nil, poll.OfCluster(err)
	}
	open, err := poll.OpenNotices(ctx, s.o.Reader, Name)
	if err != nil {
		return nil, poll.OfCluster(err)
	}
	brought, err := poll.OpenNotices(ctx, s.o.Reader, notice.SourceQueue)
	if err != nil {
		return nil, poll.OfCluster(err)
	}
	byInstance := s.nodesByInstance(nodes)
	err = s.groups.Err()
	if err == nil && !s.groups.Known() {
		err = errNotYet
	}
	var notices []notice.Notice
	for _, g := range s.groups.Groups() {
		notices = append(notices, s.read(&g, byInstance, slices.Concat(open, olderThan(brought, g.At.Add(-listDelay))))...)
	}
	return notices, err
}

// nodeInfo describes the node of an instance.
type nodeInfo struct {
	age time.Duration
	uid string
}

// nodesByInstance returns the nodes by instance id.
func (s *Source) nodesByInstance(nodes []*corev1.Node) map[string]nodeInfo {
	all := map[string]nodeInfo{}
	for _, node := range nodes {
		if id := nodeindex.InstanceID(node); id != "" {
			all[id] = nodeInfo{age: s.o.Clock().Sub(node.CreationTimestamp.Time), uid: string(node.UID)}
		}
	}
	s.history.forget(func(id string) bool { _, is := all[id]; return is })
	return all
}

// olderThan returns the notices that were received before a moment.
func olderThan(notices []notice.Notice, at time.Time) []notice.Notice {
	return slices.DeleteFunc(slices.Clone(notices), func(n notice.Notice) bool { return !n.ReceivedTime.Time.Before(at) })
}

// read converts the instances of a group that are nodes. An instance in service
// is a notice only if it withdraws a recorded one.
func (s *Source) read(group *groupcache.Group, nodes map[string]nodeInfo, open []notice.Notice) []notice.Notice {
	var notices []notice.Notice
	for i := range group.Members {
		m := member{group: group.Name, instance: group.Members[i].InstanceID, state: group.Members[i].State}
		node, isNode := nodes[m.instance]
		if !isNode {
			continue
		}
		m.served = s.history.note(m.instance, m.state, node.age) && group.Reuse
		switch meaningOf(m.state) {
		case enteringPool:
			m.episode = node.uid // the Node is deleted when the instance returns, so each return has another UID
		case inService:
			latest, isOpen := lastOpen(open, m)
			if !isOpen {
				continue
			}
			if latest.Source == notice.SourceQueue {
				m.episode = latest.ID // a later notice of the queue needs its own withdrawal
			}
		}
		// The wait started at the latest when the group was read.
		if n, ok := m.read(group.At, patience(group.Hooks)); ok {
			notices = append(notices, n)
		}
	}
	return notices
}

// lastOpen returns the last open notice about the termination of the instance
// by its group. It skips drills: they do not come from the group, and stay open
// while the instance is in service.
func lastOpen(open []notice.Notice, m member) (latest notice.Notice, isOpen bool) {
	for _, n := range open {
		if n.InstanceID == m.instance && n.Kind == notice.KindAutoScalingTermination && !n.Drill &&
			(n.Subject == m.subject() || n.Source == notice.SourceQueue) {
			latest, isOpen = n, true
		}
	}
	return latest, isOpen
}
