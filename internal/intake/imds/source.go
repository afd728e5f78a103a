package imds

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/metadata"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Metadata reads the content of a path, and returns false if there is none;
// metadata.Client implements it. Its errors are *metadata.ReadError.
type Metadata interface {
	Get(ctx context.Context, path string) (text string, found bool, err error)
}

// Identity is the Node that the agent runs on.
type Identity struct{ Node, UID, InstanceID string }

// Options configure a Source. Zero values are the defaults.
type Options struct {
	// Interval is how often metadata is read; 2 s.
	Interval time.Duration
	// Kube reads and writes the NodeNotice of the node. It must not be a cache.
	Kube client.Client
	// Identify returns the agent's node, or an error if it is not known yet.
	// Nothing is written until metadata returns the same instance id.
	Identify func(ctx context.Context) (Identity, error)
	// Metrics count what is written; nil: not exposed.
	Metrics *intake.Metrics
	// Clock returns the time; nil: time.Now.
	Clock func() time.Time
}

// Source reads the metadata of the instance that it runs on.
type Source struct {
	metadata Metadata
	o        Options
	throttle *intake.Throttle
	wake     chan struct{} // there is something to write

	// Only flush uses these.
	own    *v1beta1.NodeNotice // as in the API server; nil: none
	policy policyCheck

	mu       sync.Mutex
	instance string   // the id in metadata; "": not read yet
	self     Identity // zero: not read yet
	notices  []notice.Notice
	known    map[string]event
	read     error // of the last read of metadata; nil: success
	stored   error // of the last flush; nil: everything is written
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

// New returns the source that reads metadata.
func New(metadata Metadata, o Options) *Source {
	if o.Interval <= 0 {
		o.Interval = 2 * time.Second
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	o.Metrics = o.Metrics.OrUnread()
	return &Source{
		metadata: metadata, o: o, throttle: intake.NewThrottle(o.Clock), wake: make(chan struct{}, 1),
		known: map[string]event{}, read: errNotRead, stored: errNotStored,
	}
}

// Run reads and writes until ctx is done, and returns nil. It retries all
// failures of the metadata service and the API server. Reading and writing
// are independent: what was read while the API server was unreachable is
// written later.
func (s *Source) Run(ctx context.Context) error {
	s.o.Metrics.Up(Name, false)
	s.poke()
	var group sync.WaitGroup
	group.Go(func() { s.watch(ctx) })
	group.Go(func() { s.flush(ctx) })
	group.Wait()
	return nil
}

// Ready returns nil while metadata can be read, everything is written, and the
// admission policy that ties the agent to its node is in force; else the
// causes, with reason and advice.
func (s *Source) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.read, metadata.Explain(s.wrong, s.self.InstanceID), s.stored)
}

// flush writes what changes until ctx is done.
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

// store writes the NodeNotice if it changes, after the admission policy is in
// force and the instance id is verified.
func (s *Source) store(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	unforced := s.policy.inForce(ctx, s.o.Kube, s.o.Clock())
	if unforced != nil && !unforced.overdue {
		return unforced
	}
	self, err := s.verify(ctx)
	if err == nil && self != (Identity{}) { // else metadata was not read yet, and that is reported elsewhere
		err = s.write(ctx, self)
	}
	if err == nil && unforced != nil {
		return unforced // what there is was written, but the agent is not Ready
	}
	return err
}

// verify compares the instance id of the Node with that of metadata, and loads
// the NodeNotice at the start. It returns zero while metadata was not read yet.
func (s *Source) verify(ctx context.Context) (Identity, error) {
	s.mu.Lock()
	self := s.self
	s.mu.Unlock()
	if self == (Identity{}) || !s.isWritten() { // a write needs the Node of now
		now, err := s.o.Identify(ctx)
		if err != nil {
			return Identity{}, err
		}
		if now != self {
			if err := s.load(ctx, now); err != nil {
				return Identity{}, err
			}
		}
		self = now
	}
	return s.compare(self)
}

// compare stores whether metadata belongs to this node. A wrong id is read
// again, because the cause may be temporary.
func (s *Source) compare(self Identity) (Identity, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.instance {
	case "":
		return Identity{}, nil
	case self.InstanceID:
		s.wrong = nil
		return self, nil
	}
	s.wrong = &metadata.ReadError{Reason: metadata.WrongInstance, Err: fmt.Errorf(
		"instance metadata belongs to %s, but this node is %s: Lifeboat records nothing", s.instance, self.InstanceID)}
	s.instance = ""
	return Identity{}, s.wrong
}

// logUnstored logs at most once a minute why nothing can be written.
func (s *Source) logUnstored(ctx context.Context, err error) {
	var trouble *metadata.ReadError
	names := []any{"error", err.Error()}
	if errors.As(err, &trouble) {
		s.o.Metrics.Failed(Name, "verify", string(trouble.Reason))
		names = append(names, "advice", metadata.Advice(trouble.Reason, ""))
	}
	s.logThrottled(ctx, "store "+err.Error(), "cannot write the node's notices, retrying", names...)
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
