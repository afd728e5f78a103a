package imds

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/internal/cloud/metadata"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Metadata reads the content of a path, and returns false if there is none;
// metadata.Client implements it. Its errors are *metadata.ReadError.
type Metadata interface {
	Get(ctx context.Context, path string) (text string, found bool, err error)
}

// Options configure a Source. Zero values are the defaults.
type Options struct {
	// Interval is how often metadata is read; 2 s.
	Interval time.Duration
	// Reader reads the record of the node's instance. It must not be a cache.
	Reader client.Reader
	// Expect returns the instance id of this node, or an error if it is not
	// known yet. Nothing is recorded until metadata returns the same id.
	Expect func(ctx context.Context) (string, error)
	// Metrics count what is recorded; nil: not exposed.
	Metrics *intake.Metrics
	// Clock returns the time; nil: time.Now.
	Clock func() time.Time
}

// Source reads the metadata of the instance that it runs on.
type Source struct {
	metadata Metadata
	deduper  *poll.Deduper
	o        Options
	throttle *intake.Throttle
	wake     chan struct{} // there is something to flush

	mu       sync.Mutex
	instance string // the id in metadata; "": not read yet
	expected string // the id in the Node; "": not read yet
	known    map[string]event
	read     error // of the last read of metadata; nil: success
	stored   error // of the last flush; nil: nothing is pending
	wrong    error // metadata belongs to another instance
}

// event is an upcoming scheduled event, and how many consecutive reads of
// metadata did not list it.
type event struct {
	notice notice.Notice
	missed int
}

var (
	errNotRead   = errors.New("instance metadata has not been read yet")
	errNotStored = errors.New("the API server has not been reached yet")
)

// New returns the source that reads metadata and records with recorder.
func New(metadata Metadata, recorder poll.Recorder, o Options) *Source {
	if o.Interval <= 0 {
		o.Interval = 2 * time.Second
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	o.Metrics = o.Metrics.OrUnread()
	s := &Source{
		metadata: metadata, o: o, throttle: intake.NewThrottle(o.Clock), wake: make(chan struct{}, 1),
		known: map[string]event{}, read: errNotRead, stored: errNotStored,
	}
	s.deduper = poll.NewDeduper(ownRecorder{recorder, s}, o.Reader, poll.Options{Source: Name, Metrics: o.Metrics, Clock: o.Clock})
	return s
}

// ownRecorder records only notices about this node's own instance, even if
// metadata of another instance was read for a while.
type ownRecorder struct {
	recorder poll.Recorder
	source   *Source
}

// Record records n.
func (o ownRecorder) Record(ctx context.Context, n notice.Notice) (intake.Outcome, error) {
	o.source.mu.Lock()
	expected := o.source.expected
	o.source.mu.Unlock()
	if n.InstanceID != expected {
		return intake.Foreign, nil
	}
	return o.recorder.Record(ctx, n)
}

// Name returns the name that notices, metrics and logs carry.
func (s *Source) Name() string { return Name }

// Run reads and records until ctx is done, and returns nil. It retries all
// failures of the metadata service and the API server. Reading and recording
// are independent: what was read while the API server was unreachable is
// recorded later.
func (s *Source) Run(ctx context.Context) error {
	s.o.Metrics.Up(Name, false)
	s.poke()
	var group sync.WaitGroup
	group.Go(func() { s.watch(ctx) })
	group.Go(func() { s.flush(ctx) })
	group.Wait()
	return nil
}

// Ready returns nil while metadata can be read and everything is recorded; else
// the causes, with reason and advice.
func (s *Source) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.read, metadata.Explain(s.wrong, s.expected), s.stored)
}

// flush records pending notices until ctx is done.
func (s *Source) flush(ctx context.Context) {
	pause := backoff{first: 250 * time.Millisecond, longest: 15 * time.Second}
	for {
		var again <-chan time.Time
		err := s.store(ctx)
		switch {
		case err == nil:
			pause.reset()
		case ctx.Err() == nil:
			s.logUnstored(ctx, err)
			again = time.After(pause.next())
		}
		s.mu.Lock()
		s.stored = err
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		case <-again:
		}
	}
}

// store records pending notices after the instance id is verified.
func (s *Source) store(ctx context.Context) error {
	if err := s.verify(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	known := s.instance != ""
	s.mu.Unlock()
	if !known {
		return nil // the metadata error is reported elsewhere
	}
	return s.deduper.Flush(ctx)
}

// verify compares the instance id of the Node with that of metadata, and loads,
// once, the recorded notices.
func (s *Source) verify(ctx context.Context) error {
	s.mu.Lock()
	expected := s.expected
	s.mu.Unlock()
	if expected == "" {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		var err error
		if expected, err = s.o.Expect(ctx); err != nil {
			return err
		}
		open, err := poll.OpenNoticesOf(ctx, s.o.Reader, Name, expected)
		if err != nil {
			return err
		}
		s.learn(expected, open)
	}
	return s.compare(expected)
}

// compare stores whether metadata belongs to this node. A wrong id is read
// again, because the cause may be temporary.
func (s *Source) compare(expected string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.instance {
	case "":
	case expected:
		s.wrong = nil
	default:
		s.wrong = &metadata.ReadError{Reason: metadata.WrongInstance, Err: fmt.Errorf(
			"instance metadata belongs to %s, but this node is %s: Lifeboat records nothing", s.instance, expected)}
		s.instance = ""
		return s.wrong
	}
	return nil
}

func (s *Source) learn(expected string, open []notice.Notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expected = expected
	for _, n := range open {
		if _, ok := s.known[n.Subject]; !ok && n.Kind == notice.KindScheduledChange {
			s.known[n.Subject] = event{notice: n}
		}
	}
}

// logUnstored logs at most once a minute why nothing can be recorded.
func (s *Source) logUnstored(ctx context.Context, err error) {
	var trouble *metadata.ReadError
	names := []any{"left", s.deduper.Pending(), "error", err.Error()}
	if errors.As(err, &trouble) {
		s.o.Metrics.Failed(Name, "verify", string(trouble.Reason))
		names = append(names, "advice", metadata.Advice(trouble.Reason, ""))
	}
	s.logThrottled(ctx, "store "+err.Error(), "cannot record notices, retrying", names...)
}

func (s *Source) logThrottled(ctx context.Context, key, message string, names ...any) {
	if held, ok := s.throttle.Allow(key); ok {
		log.FromContext(ctx).Info(message, append(names, "alikeSince", held)...)
	}
}

// poke wakes flush.
func (s *Source) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
