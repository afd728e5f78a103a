package ec2

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Options are what a Source can be told. Zero values are the defaults.
type Options struct {
	// SpotInterval is how often spot requests are asked about; 15 s.
	SpotInterval time.Duration
	// StatusInterval is how often events and status checks are; 60 s.
	StatusInterval time.Duration
	// Threshold is for how long a status check has to fail; 2 min.
	Threshold time.Duration
	// Reader reads what is on record. It may be a cache.
	Reader client.Reader
	// Metrics are counted in; nil: nobody reads them.
	Metrics *intake.Metrics
	// Clock tells the time; nil: time.Now.
	Clock func() time.Time
}

// Source asks EC2.
type Source struct {
	api      API
	nodes    intake.NodeIndex
	o        Options
	ledger   *poll.Ledger
	rounds   *poll.Rounds
	throttle *intake.Throttle

	mu   sync.Mutex
	sick map[string]time.Time // when a check was first seen to fail that does not say since when
}

// New returns the source that asks api about the instances that nodes knows,
// and records with recorder.
func New(api API, nodes intake.NodeIndex, recorder poll.Recorder, o Options) *Source {
	if o.SpotInterval <= 0 {
		o.SpotInterval = 15 * time.Second
	}
	if o.StatusInterval <= 0 {
		o.StatusInterval = time.Minute
	}
	if o.Threshold <= 0 {
		o.Threshold = 2 * time.Minute
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	o.Metrics = o.Metrics.OrUnread()
	ledger := poll.NewLedger(recorder, o.Reader, poll.Options{Source: Name, Metrics: o.Metrics, Clock: o.Clock})
	return &Source{
		api: api, nodes: nodes, o: o, ledger: ledger, rounds: poll.NewRounds(ledger),
		throttle: intake.NewThrottle(o.Clock), sick: map[string]time.Time{},
	}
}

// Name returns the name that notices, metrics and logs carry.
func (s *Source) Name() string { return Name }

// Run asks until ctx is done. It survives whatever EC2 and the API server do,
// and returns nil.
func (s *Source) Run(ctx context.Context) error {
	questions := []poll.Question{
		{Name: "spotRequests", Permission: permitSpotRequests, Interval: s.o.SpotInterval, Ask: s.askSpot},
		{Name: "scheduledEvents", Permission: permitStatus, Interval: s.o.StatusInterval, Ask: s.askEvents},
		{Name: "standing", Permission: permitStatus, Interval: s.o.StatusInterval, Late: true, Ask: s.askStanding},
	}
	for _, name := range checks {
		questions = append(questions, poll.Question{
			Name: name, Permission: permitStatus, Interval: s.o.StatusInterval,
			Ask: func(ctx context.Context) ([]notice.Notice, error) { return s.askCheck(ctx, name) },
		})
	}
	s.rounds.Run(ctx, questions)
	return nil
}

func (s *Source) askSpot(ctx context.Context) ([]notice.Notice, error) {
	rows, err := s.api.spotRequests(ctx)
	var notices []notice.Notice
	for i := range rows {
		if n, ok := readSpotRequest(&rows[i], s.o.Clock()); ok {
			notices = append(notices, n)
		}
	}
	ours, ourErr := s.ours(ctx, notices)
	return ours, errors.Join(err, ourErr)
}

func (s *Source) askEvents(ctx context.Context) ([]notice.Notice, error) {
	rows, err := s.api.status(ctx, where("event.code", poll.ScheduledCodes()...))
	ours, ourErr := s.ours(ctx, s.events(ctx, rows))
	return ours, errors.Join(err, ourErr)
}

// events reads the events of all rows, and says of what it cannot read.
func (s *Source) events(ctx context.Context, rows []types.InstanceStatus) []notice.Notice {
	var notices []notice.Notice
	for i := range rows {
		read, err := readEvents(&rows[i])
		notices = append(notices, read...)
		if err == nil {
			continue
		}
		s.o.Metrics.Unreadable(Name, "events")
		if held, ok := s.throttle.Allow("events"); ok {
			log.FromContext(ctx).Info("could not understand a scheduled event", "error", err.Error(), "alikeSince", held)
		}
	}
	return notices
}

// askCheck returns the instances that have failed a check for long enough.
func (s *Source) askCheck(ctx context.Context, name string) ([]notice.Notice, error) {
	rows, err := s.api.status(ctx, where(name+".status", statusImpaired))
	now := s.o.Clock()
	var notices []notice.Notice
	seen := map[string]bool{}
	for i := range rows {
		instance := aws.ToString(rows[i].InstanceId)
		for _, c := range checksOf(&rows[i]) {
			if c.name != name || c.status != statusImpaired || !instanceFormat.MatchString(instance) {
				continue
			}
			seen[name+" "+instance] = true
			if now.Sub(s.since(name+" "+instance, c.since, now)) >= s.o.Threshold {
				notices = append(notices, impaired(instance, c))
			}
		}
	}
	if err == nil {
		s.recovered(name, seen)
	}
	ours, ourErr := s.ours(ctx, notices)
	return ours, errors.Join(err, ourErr)
}

// since returns since when a check fails: as EC2 says, else as was first seen.
func (s *Source) since(key string, said, now time.Time) time.Time {
	if !said.IsZero() {
		return said
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sick[key].IsZero() {
		s.sick[key] = now
	}
	return s.sick[key]
}

// recovered forgets which instances failed a check and do not any more.
func (s *Source) recovered(name string, seen map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.sick {
		if len(key) > len(name) && key[:len(name)+1] == name+" " && !seen[key] {
			delete(s.sick, key)
		}
	}
}

// askStanding looks after what is on record and was not seen in the last
// rounds: it may be over. It costs no call where there is no such thing.
func (s *Source) askStanding(ctx context.Context) ([]notice.Notice, error) {
	all, err := poll.Standing(ctx, s.o.Reader, Name)
	if err != nil {
		return nil, poll.OfCluster(err)
	}
	since := s.o.Clock().Add(-2*s.o.StatusInterval - s.o.StatusInterval/2)
	unseen := slices.DeleteFunc(all, func(n notice.Notice) bool {
		return n.Kind == notice.KindSpotInterruption || s.ledger.SeenSince(&n, since)
	})
	if unseen, err = s.ours(ctx, unseen); err != nil || len(unseen) == 0 {
		return nil, err
	}
	standing := map[string][]notice.Notice{}
	var ids []string
	for _, n := range unseen {
		if standing[n.InstanceID] == nil {
			ids = append(ids, n.InstanceID)
		}
		standing[n.InstanceID] = append(standing[n.InstanceID], n)
	}
	var back []notice.Notice
	for some := range slices.Chunk(ids, idsAtOnce) {
		rows, err := s.statusOf(ctx, some)
		for i := range rows {
			back = append(back, overtaken(&rows[i], standing[aws.ToString(rows[i].InstanceId)])...)
		}
		if err != nil {
			return back, err
		}
	}
	return back, nil
}

// statusOf asks about several instances at once, and about each where EC2 has
// forgotten one of them.
func (s *Source) statusOf(ctx context.Context, ids []string) ([]types.InstanceStatus, error) {
	rows, err := s.api.statusOf(ctx, ids)
	if !isUnknown(err) {
		return rows, err
	}
	if len(ids) == 1 {
		return nil, nil
	}
	half := len(ids) / 2
	first, err := s.statusOf(ctx, ids[:half])
	if err != nil {
		return first, err
	}
	second, err := s.statusOf(ctx, ids[half:])
	return append(first, second...), err
}

func isUnknown(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && api.ErrorCode() == "InvalidInstanceID.NotFound"
}

// ours keeps the notices about nodes of this cluster. It asks a cache, so that
// the rest of the account costs nothing.
func (s *Source) ours(ctx context.Context, notices []notice.Notice) ([]notice.Notice, error) {
	var ours []notice.Notice
	for _, n := range notices {
		node, err := s.nodes.NodeByInstance(ctx, n.InstanceID)
		if err != nil {
			return ours, poll.OfCluster(err)
		}
		if node != nil {
			ours = append(ours, n)
		}
	}
	return ours, nil
}
