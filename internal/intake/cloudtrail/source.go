package cloudtrail

import (
	"cmp"
	"context"
	"errors"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/internal/corroborate"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/intake/apicall"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

const (
	// usualInterval is the default interval. An event is in the history about five minutes
	// after the call (AWS CloudTrail User Guide, "CloudTrail event history").
	usualInterval = 5 * time.Minute
	// period is how far back each round looks: the poll keeps no state, and an event can be a
	// quarter of an hour late.
	period = time.Hour
)

// Options configure a Source. Zero values are the defaults.
type Options struct {
	// Interval is how often the event history is read; 5 min.
	Interval time.Duration
	// Reader reads Interruptions. It should be a cache.
	Reader client.Reader
	// Nodes finds the node of an instance.
	Nodes intake.NodeIndex
	// Metrics count what is recorded; nil: not exposed.
	Metrics *intake.Metrics
	// Clock returns the time; nil: time.Now.
	Clock func() time.Time
}

// Source polls CloudTrail's event history.
type Source struct {
	api       API
	instances Instances
	o         Options
	poller    *poll.Poller
}

// New returns the source that polls api, lists the instances of groups with instances, and records
// with recorder.
func New(api API, instances Instances, recorder poll.Recorder, o Options) *Source {
	o.Interval = cmp.Or(o.Interval, usualInterval)
	if o.Clock == nil {
		o.Clock = time.Now
	}
	o.Metrics = o.Metrics.OrUnread()
	deduper := poll.NewDeduper(recorder, o.Reader, poll.Options{Source: Name, Metrics: o.Metrics, Clock: o.Clock})
	return &Source{api: api, instances: instances, o: o, poller: poll.NewPoller(deduper)}
}

// Name returns the name that notices, metrics and logs carry.
func (s *Source) Name() string { return Name }

// Run polls until ctx is done, and returns nil. It retries all failures of AWS and the API server.
func (s *Source) Run(ctx context.Context) error {
	s.poller.Run(ctx, []poll.Query{{Name: "lookupEvents", Permission: Permission, Interval: s.o.Interval, Ask: s.ask}})
	return nil
}

// ask returns the refused calls about nodes of this cluster.
func (s *Source) ask(ctx context.Context) ([]notice.Notice, error) {
	return s.api.Refused(ctx, s.o.Clock().Add(-period), func(r apicall.Refusal) (bool, error) {
		node, err := s.o.Nodes.NodeByInstance(ctx, r.Instance)
		if conflict := (*corroborate.ConflictError)(nil); errors.As(err, &conflict) {
			return true, nil
		}
		if err != nil {
			return false, poll.OfCluster(err)
		}
		return node != nil, nil
	}, s.instances)
}
