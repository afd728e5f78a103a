package imds

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
	"github.com/lifeboat-dev/lifeboat/internal/metadata"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Metadata reads what stands at a path, and reports false where there is
// nothing: metadata.Client does. Its errors are *metadata.Trouble.
type Metadata interface {
	Get(ctx context.Context, path string) (text string, found bool, err error)
}

// Options are what a Source can be told. Zero values are the defaults.
type Options struct {
	// Interval is how often metadata is read; 2 s.
	Interval time.Duration
	// Reader reads the record of the node's instance. It must not be a cache.
	Reader client.Reader
	// Expect returns the id of the instance that this node is, or an error
	// where that cannot be told yet. Nothing is recorded before metadata says
	// the same.
	Expect func(ctx context.Context) (string, error)
	// Metrics are counted in; nil: nobody reads them.
	Metrics *intake.Metrics
	// Clock tells the time; nil: time.Now.
	Clock func() time.Time
}

// Source reads the metadata of one instance, the one that it runs on.
type Source struct {
	metadata Metadata
	ledger   *poll.Ledger
	o        Options
	throttle *intake.Throttle
	wake     chan struct{} // there is something to settle

	mu       sync.Mutex
	instance string // what metadata says that it is; "": not read yet
	expected string // what the node says; "": not read yet
	known    map[string]event
	read     error // of the last look at metadata; nil: it answered
	stored   error // of the last try to record; nil: nothing is left
	wrong    error // metadata is that of another instance
}

// event is a scheduled event that is ahead, and how often in a row metadata did
// not speak of it.
type event struct {
	notice notice.Notice
	missed int
}

var (
	errNotRead   = errors.New("instance metadata was not read yet")
	errNotStored = errors.New("the API server was not reached yet")
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
	s.ledger = poll.NewLedger(own{recorder, s}, o.Reader, poll.Options{Source: Name, Metrics: o.Metrics, Clock: o.Clock})
	return s
}

// own lets nothing through but what is about this node's own instance, also
// where the metadata of another was read for a while.
type own struct {
	recorder poll.Recorder
	source   *Source
}

// Record records n.
func (o own) Record(ctx context.Context, n notice.Notice) (intake.Outcome, error) {
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

// Run reads and records until ctx is done. It survives whatever the metadata
// service and the API server do, and returns nil. Reading and recording do not
// wait for each other: what was seen while the API server was away is recorded
// when it is back.
func (s *Source) Run(ctx context.Context) error {
	s.o.Metrics.Up(Name, false)
	s.poke()
	var group sync.WaitGroup
	group.Go(func() { s.watch(ctx) })
	group.Go(func() { s.settle(ctx) })
	group.Wait()
	return nil
}

// Ready returns nil while metadata answers and all that it said is on record;
// else why not.
func (s *Source) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.read, s.wrong, s.stored)
}

// settle records what was seen, whenever there is something.
func (s *Source) settle(ctx context.Context) {
	pause := backoff{first: 250 * time.Millisecond, longest: 15 * time.Second}
	for {
		var again <-chan time.Time
		err := s.store(ctx)
		switch {
		case err == nil:
			pause.reset()
		case ctx.Err() == nil:
			s.sayUnstored(ctx, err)
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

// store records what is not on record yet, once it is sure whose it is.
func (s *Source) store(ctx context.Context) error {
	if err := s.verify(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	known := s.instance != ""
	s.mu.Unlock()
	if !known {
		return nil // metadata is what is amiss
	}
	return s.ledger.Settle(ctx)
}

// verify compares what the node says that it is with what metadata says, and
// learns, once, what is on record.
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
		standing, err := poll.StandingOf(ctx, s.o.Reader, Name, expected)
		if err != nil {
			return err
		}
		s.learn(expected, standing)
	}
	return s.compare(expected)
}

// compare remembers whether metadata is this node's own. What is not is read
// anew: it may be put right.
func (s *Source) compare(expected string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.instance {
	case "":
	case expected:
		s.wrong = nil
	default:
		s.wrong = &metadata.Trouble{Reason: metadata.WrongInstance, Err: fmt.Errorf(
			"instance metadata is that of %s, and this node is %s: nothing is recorded", s.instance, expected)}
		s.instance = ""
		return s.wrong
	}
	return nil
}

func (s *Source) learn(expected string, standing []notice.Notice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expected = expected
	for _, n := range standing {
		if _, ok := s.known[n.Subject]; !ok && n.Kind == notice.KindScheduledChange {
			s.known[n.Subject] = event{notice: n}
		}
	}
}

// sayUnstored logs once a minute why nothing can be recorded.
func (s *Source) sayUnstored(ctx context.Context, err error) {
	var trouble *metadata.Trouble
	names := []any{"left", s.ledger.Pending(), "error", err.Error()}
	if errors.As(err, &trouble) {
		s.o.Metrics.Failed(Name, "verify", string(trouble.Reason))
		names = append(names, "advice", metadata.Advice(trouble.Reason, ""))
	}
	s.say(ctx, "store "+err.Error(), "could not record, goes on trying", names...)
}

func (s *Source) say(ctx context.Context, key, message string, names ...any) {
	if held, ok := s.throttle.Allow(key); ok {
		log.FromContext(ctx).Info(message, append(names, "alikeSince", held)...)
	}
}

// poke has settle look again.
func (s *Source) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
