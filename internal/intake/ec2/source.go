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

	"github.com/lifeboat-dev/lifeboat/internal/corroborate"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Options configure a Source. Zero values are the defaults.
type Options struct {
	// SpotInterval is how often spot requests are polled; 15 s.
	SpotInterval time.Duration
	// StatusInterval is how often events and status checks are polled; 60 s.
	StatusInterval time.Duration
	// Threshold is how long a status check must fail; 2 min.
	Threshold time.Duration
	// Reader reads Interruptions. It should be a cache.
	Reader client.Reader
	// Metrics count what is recorded; nil: not exposed.
	Metrics *intake.Metrics
	// Clock returns the time; nil: time.Now.
	Clock func() time.Time
}

// Source polls EC2.
type Source struct {
	api      API
	nodes    intake.NodeIndex
	o        Options
	deduper  *poll.Deduper
	poller   *poll.Poller
	throttle *intake.Throttle

	mu        sync.Mutex
	firstSeen map[failure]time.Time // of failures without a start time from EC2
	polled    map[string]bool       // checks that were polled since the start
}

// failure is a status check that fails on an instance.
type failure struct{ check, instance string }

// New returns the source that polls api about the instances that nodes knows, and records
// with recorder.
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
	deduper := poll.NewDeduper(recorder, o.Reader, poll.Options{Source: Name, Nodes: nodes, Metrics: o.Metrics, Clock: o.Clock})
	return &Source{
		api: api, nodes: nodes, o: o, deduper: deduper, poller: poll.NewPoller(deduper),
		throttle: intake.NewThrottle(o.Clock), firstSeen: map[failure]time.Time{}, polled: map[string]bool{},
	}
}

// Name returns the name that notices, metrics and logs carry.
func (s *Source) Name() string { return Name }

// Run polls until ctx is done. It retries every failure of EC2 and the API server, and
// returns nil.
func (s *Source) Run(ctx context.Context) error {
	questions := []poll.Query{
		{Name: "spotRequests", Permission: permitSpotRequests, Interval: s.o.SpotInterval, Ask: s.askSpot},
		{Name: "scheduledEvents", Permission: permitStatus, Interval: s.o.StatusInterval, Ask: s.askEvents},
		{Name: "standing", Permission: permitStatus, Interval: s.o.StatusInterval, Late: true, Ask: s.askOpenNotices},
	}
	for _, name := range checks {
		questions = append(questions, poll.Query{
			Name: name, Permission: permitStatus, Interval: s.o.StatusInterval,
			Ask: func(ctx context.Context) ([]notice.Notice, error) { return s.askCheck(ctx, name) },
		})
	}
	s.poller.Run(ctx, questions)
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

// events returns the notices of all rows and logs what it cannot decode.
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
			log.FromContext(ctx).Info("cannot decode a scheduled event", "error", err.Error(), "alikeSince", held)
		}
	}
	return notices
}

// askCheck returns the instances that have failed a check for long enough.
func (s *Source) askCheck(ctx context.Context, name string) ([]notice.Notice, error) {
	rows, err := s.api.status(ctx, where(name+".status", statusImpaired))
	now := s.o.Clock()
	var notices []notice.Notice
	failing := map[failure]bool{}
	for i := range rows {
		instance := aws.ToString(rows[i].InstanceId)
		for _, c := range checksOf(&rows[i]) {
			if c.name != name || c.status != statusImpaired || !instanceFormat.MatchString(instance) {
				continue
			}
			f := failure{name, instance}
			failing[f] = true
			if c.since.IsZero() {
				var readErr error
				if c.seen, readErr = s.episodeStart(ctx, f, now); readErr != nil {
					err = errors.Join(err, readErr)
					continue
				}
			}
			if now.Sub(c.start()) >= s.o.Threshold {
				notices = append(notices, impaired(instance, c))
			}
		}
	}
	if err == nil {
		s.prune(name, failing)
	}
	ours, ourErr := s.ours(ctx, notices)
	return ours, errors.Join(err, ourErr)
}

// episodeStart returns when a failure was first seen whose start EC2 does not report. It is
// part of the notice's id, so that the next episode is a new notice. After a restart the
// record tells it, so that the same episode keeps its id; an episode that starts while no
// process polls is then taken for the recorded one.
func (s *Source) episodeStart(ctx context.Context, f failure, now time.Time) (time.Time, error) {
	s.mu.Lock()
	at, isKnown := s.firstSeen[f]
	restarted := !s.polled[f.check]
	s.mu.Unlock()
	if isKnown {
		return at, nil
	}
	n := impaired(f.instance, check{name: f.check})
	on, stands, err := poll.Recorded(ctx, s.o.Reader, &n)
	if err != nil {
		return time.Time{}, poll.OfCluster(err)
	}
	at = now
	if on != nil && !on.Withdrawn && (stands || restarted) {
		at = on.Time.Time
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.firstSeen[f] = at
	return at, nil
}

// prune drops the ended failures of a check.
func (s *Source) prune(name string, failing map[failure]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.polled[name] = true
	for f := range s.firstSeen {
		if f.check == name && !failing[f] {
			delete(s.firstSeen, f)
		}
	}
}

// askOpenNotices returns withdrawals of recorded notices that the last rounds have not seen.
// It calls EC2 only if there are any.
func (s *Source) askOpenNotices(ctx context.Context) ([]notice.Notice, error) {
	all, err := poll.OpenNotices(ctx, s.o.Reader, Name)
	if err != nil {
		return nil, poll.OfCluster(err)
	}
	since := s.o.Clock().Add(-2*s.o.StatusInterval - s.o.StatusInterval/2)
	unseen := slices.DeleteFunc(all, func(n notice.Notice) bool {
		return n.Kind == notice.KindSpotInterruption || s.deduper.ObservedSince(&n, since)
	})
	if unseen, err = s.ours(ctx, unseen); err != nil || len(unseen) == 0 {
		return nil, err
	}
	open := map[string][]notice.Notice{}
	var ids []string
	for _, n := range unseen {
		if open[n.InstanceID] == nil {
			ids = append(ids, n.InstanceID)
		}
		open[n.InstanceID] = append(open[n.InstanceID], n)
	}
	var back []notice.Notice
	for some := range slices.Chunk(ids, idsAtOnce) {
		rows, err := s.statusOf(ctx, some)
		for i := range rows {
			back = append(back, overtaken(&rows[i], open[aws.ToString(rows[i].InstanceId)])...)
		}
		if err != nil {
			return back, err
		}
	}
	return back, nil
}

// statusOf describes several instances in one call, or in smaller ones if EC2 no longer
// knows one of them: it then rejects the whole call.
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

// ours keeps the notices about nodes of this cluster. It reads a cache, so the rest of the
// account costs nothing.
func (s *Source) ours(ctx context.Context, notices []notice.Notice) ([]notice.Notice, error) {
	var ours []notice.Notice
	for _, n := range notices {
		node, err := s.nodes.NodeByInstance(ctx, n.InstanceID)
		conflict := (*corroborate.ConflictError)(nil)
		if err != nil && !errors.As(err, &conflict) {
			return ours, poll.OfCluster(err)
		}
		if node != nil || conflict != nil {
			ours = append(ours, n)
		}
	}
	return ours, nil
}
