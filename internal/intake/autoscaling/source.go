package autoscaling

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/internal/groupwatch"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
	"github.com/lifeboat-dev/lifeboat/internal/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Groups knows the groups of the cluster: a groupwatch.Watcher.
type Groups interface {
	// Groups returns them as they were last seen. They are shared.
	Groups() []groupwatch.Group
	// Known reports whether all were seen at least once, and Err why the last
	// look at them was not answered in full.
	Known() bool
	Err() error
	// SubscribeLooks has a function called after each look.
	SubscribeLooks(looked func())
}

// Options are what a Source can be told. Zero values are the defaults.
type Options struct {
	// Reader reads nodes, and what is on record. It should be a cache.
	Reader client.Reader
	// Nodes lists nodes; nil: the Reader does.
	Nodes nodeindex.Lister
	// Metrics are counted in; nil: nobody reads them.
	Metrics *intake.Metrics
	// Clock tells the time; nil: time.Now.
	Clock func() time.Time
}

// Source makes notices of what the groups' instances are about.
type Source struct {
	groups Groups
	o      Options
	rounds *poll.Rounds
	looked chan struct{}
	// service is used by the one question, and so by one goroutine.
	service service
}

// late is how long what the queue has brought stands although the group's list has
// the instance in service: the list may be behind.
const late = time.Minute

// New returns the source that reads groups, and records with recorder.
func New(groups Groups, recorder poll.Recorder, o Options) *Source {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Nodes == nil {
		o.Nodes = nodeindex.ListWith(o.Reader)
	}
	o.Metrics = o.Metrics.OrUnread()
	ledger := poll.NewLedger(recorder, o.Reader, poll.Options{Source: Name, Metrics: o.Metrics, Clock: o.Clock})
	s := &Source{groups: groups, o: o, rounds: poll.NewRounds(ledger), looked: make(chan struct{}, 1)}
	groups.SubscribeLooks(func() {
		select {
		case s.looked <- struct{}{}:
		default: // it is about to read them anyway
		}
	})
	return s
}

// Name returns the name that notices, metrics and logs carry.
func (s *Source) Name() string { return Name }

// Run reads the groups whenever they were looked at, until ctx is done. It
// survives whatever Auto Scaling and the API server do, and returns nil.
func (s *Source) Run(ctx context.Context) error {
	s.rounds.Run(ctx, []poll.Question{{
		Name: "groups", Permission: groupwatch.PermitGroups, Interval: groupwatch.Interval,
		Late: true, Wake: s.looked, Ask: s.ask,
	}})
	return nil
}

var errNotYet = errors.New("reading the Auto Scaling groups: none was read yet")

// ask returns what is the case of the cluster's nodes that are in groups.
func (s *Source) ask(ctx context.Context) ([]notice.Notice, error) {
	nodes, err := s.o.Nodes(ctx)
	if err != nil {
		return nil, poll.OfCluster(err)
	}
	standing, err := poll.Standing(ctx, s.o.Reader, Name)
	if err != nil {
		return nil, poll.OfCluster(err)
	}
	brought, err := poll.Standing(ctx, s.o.Reader, notice.SourceQueue)
	if err != nil {
		return nil, poll.OfCluster(err)
	}
	byInstance := s.lives(nodes)
	err = s.groups.Err()
	if err == nil && !s.groups.Known() {
		err = errNotYet
	}
	var notices []notice.Notice
	for _, g := range s.groups.Groups() {
		notices = append(notices, s.read(&g, byInstance, slices.Concat(standing, olderThan(brought, g.At.Add(-late))))...)
	}
	return notices, err
}

// life is a node that an instance is.
type life struct {
	age time.Duration
	uid string
}

// lives are the nodes of instances.
func (s *Source) lives(nodes []*corev1.Node) map[string]life {
	all := map[string]life{}
	for _, node := range nodes {
		if id := nodeindex.InstanceID(node); id != "" {
			all[id] = life{age: s.o.Clock().Sub(node.CreationTimestamp.Time), uid: string(node.UID)}
		}
	}
	s.service.forget(func(id string) bool { _, is := all[id]; return is })
	return all
}

// olderThan returns the notices that were received before a moment.
func olderThan(notices []notice.Notice, at time.Time) []notice.Notice {
	return slices.DeleteFunc(slices.Clone(notices), func(n notice.Notice) bool { return !n.ReceivedTime.Time.Before(at) })
}

// read makes notices of a group's instances that are nodes. That one serves is
// worth a word only where something else is on record.
func (s *Source) read(group *groupwatch.Group, nodes map[string]life, standing []notice.Notice) []notice.Notice {
	var notices []notice.Notice
	for i := range group.Members {
		m := member{group: group.Name, instance: group.Members[i].InstanceID, state: group.Members[i].State}
		node, isNode := nodes[m.instance]
		if !isNode {
			continue
		}
		m.served = s.service.note(m.instance, m.state, node.age) && group.Reuse
		switch fateOf(m.state) {
		case warms:
			m.turn = node.uid // the node is deleted as the instance returns: the next return is another's
		case serves:
			said, stands := last(standing, m)
			if !stands {
				continue
			}
			if said.Source == notice.SourceQueue {
				m.turn = said.ID // what the queue brings next has to be taken back as well
			}
		}
		// It waits since it was looked at, at the latest.
		if n, ok := m.read(group.At, patience(group.Hooks)); ok {
			notices = append(notices, n)
		}
	}
	return notices
}

// last returns the last of the notices that say that the group takes the instance
// away. A drill is none of the group's, and stands while the instance serves.
func last(standing []notice.Notice, m member) (said notice.Notice, stands bool) {
	for _, n := range standing {
		if n.InstanceID == m.instance && n.Kind == notice.KindAutoScalingTermination && !n.Drill &&
			(n.Subject == m.subject() || n.Source == notice.SourceQueue) {
			said, stands = n, true
		}
	}
	return said, stands
}
