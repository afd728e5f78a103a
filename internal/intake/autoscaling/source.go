package autoscaling

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// hooksFor is how long it stands what hooks a group has.
const hooksFor = 10 * time.Minute

// Options are what a Source can be told. Zero values are the defaults.
type Options struct {
	// Interval is how often groups are asked about; 30 s.
	Interval time.Duration
	// Reader reads nodes, and what is on record. It should be a cache.
	Reader client.Reader
	// Metrics are counted in; nil: nobody reads them.
	Metrics *intake.Metrics
	// Clock tells the time; nil: time.Now.
	Clock func() time.Time
}

// Source asks Auto Scaling. What it remembers is used by one question, and so
// by one goroutine.
type Source struct {
	api    API
	o      Options
	rounds *poll.Rounds
	groups groups
	waits  map[string]hookWait // by group
}

// hookWait is how long a group waits for its terminate hooks, and when that
// was read.
type hookWait struct {
	wait time.Duration
	at   time.Time
}

// New returns the source that asks api about the groups of the cluster's
// nodes, and records with recorder.
func New(api API, recorder poll.Recorder, o Options) *Source {
	if o.Interval <= 0 {
		o.Interval = 30 * time.Second
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	o.Metrics = o.Metrics.OrUnread()
	ledger := poll.NewLedger(recorder, o.Reader, poll.Options{Source: Name, Metrics: o.Metrics, Clock: o.Clock})
	return &Source{api: api, o: o, rounds: poll.NewRounds(ledger), groups: newGroups(), waits: map[string]hookWait{}}
}

// Name returns the name that notices, metrics and logs carry.
func (s *Source) Name() string { return Name }

// Run asks until ctx is done. It survives whatever Auto Scaling and the API
// server do, and returns nil.
func (s *Source) Run(ctx context.Context) error {
	s.rounds.Run(ctx, []poll.Question{
		{Name: "groups", Permission: permitGroups, Interval: s.o.Interval, Ask: s.ask},
	})
	return nil
}

// ask returns what is the case of the cluster's nodes that are in groups.
func (s *Source) ask(ctx context.Context) ([]notice.Notice, error) {
	var nodes corev1.NodeList
	if err := s.o.Reader.List(ctx, &nodes, client.UnsafeDisableDeepCopy); err != nil {
		return nil, poll.OfCluster(fmt.Errorf("listing nodes: %w", err))
	}
	standing, err := poll.Standing(ctx, s.o.Reader, Name)
	if err != nil {
		return nil, poll.OfCluster(err)
	}
	ids := candidates(nodes.Items)
	// Groups that are known come first: their lists tell of their new instances.
	s.groups.forget(ids, s.o.Clock())
	known := s.groups.names()
	notices, err := s.look(ctx, known, ids, standing)
	if err != nil {
		return notices, err
	}
	err = s.groups.learn(ctx, s.api, ids, s.o.Clock())
	learned := slices.DeleteFunc(s.groups.names(), func(name string) bool { return contains(known, name) })
	more, lookErr := s.look(ctx, learned, ids, standing)
	return append(notices, more...), errors.Join(lookErr, err)
}

// look reads groups.
func (s *Source) look(ctx context.Context, names, ids []string, standing []notice.Notice) ([]notice.Notice, error) {
	var notices []notice.Notice
	for some := range slices.Chunk(names, groupsAtOnce) {
		rows, err := s.api.groups(ctx, some)
		for i := range rows {
			notices = append(notices, s.read(ctx, &rows[i], ids, standing)...)
		}
		if err != nil {
			return notices, err
		}
	}
	return notices, nil
}

// read makes notices of a group's instances that are nodes. That one serves is
// worth a word only where something else is on record.
func (s *Source) read(ctx context.Context, group *types.AutoScalingGroup, ids []string, standing []notice.Notice) []notice.Notice {
	found := map[string]string{}
	var notices []notice.Notice
	for i := range group.Instances {
		m := member{
			group:    aws.ToString(group.AutoScalingGroupName),
			instance: aws.ToString(group.Instances[i].InstanceId),
			state:    string(group.Instances[i].LifecycleState),
		}
		if !contains(ids, m.instance) {
			continue
		}
		found[m.instance] = m.group
		var wait time.Duration
		switch fateOf(m.state) {
		case waits:
			wait = s.wait(ctx, m.group)
		case serves:
			if !stands(standing, m) {
				continue
			}
		}
		if n, ok := m.read(s.o.Clock(), wait); ok {
			notices = append(notices, n)
		}
	}
	s.groups.know(found, ids)
	return notices
}

// wait returns how long a group waits for its hooks, or zero where that is not
// known. It is asked only where an instance waits.
func (s *Source) wait(ctx context.Context, group string) time.Duration {
	known, ok := s.waits[group]
	if ok && s.o.Clock().Sub(known.at) < hooksFor {
		return known.wait
	}
	hooks, err := s.api.hooks(ctx, group)
	if err != nil {
		s.rounds.Failed(ctx, "hooks", permitHooks, err)
		return known.wait
	}
	s.waits[group] = hookWait{wait: patience(hooks), at: s.o.Clock()}
	return s.waits[group].wait
}

func stands(standing []notice.Notice, m member) bool {
	return slices.ContainsFunc(standing, func(n notice.Notice) bool {
		return n.InstanceID == m.instance && n.Kind == notice.KindAutoScalingTermination && n.Subject == m.subject()
	})
}
