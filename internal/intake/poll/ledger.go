package poll

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

const (
	// keep is how long the ledger remembers what is seen no more.
	keep = time.Hour
	// patience is how long a notice waits for its node to register.
	patience = 10 * time.Minute
	// storeTime is what making one notice durable may take.
	storeTime = 10 * time.Second
	// enough failures in a row say that the next one would fail as well.
	enough = 3
)

// Recorder makes a notice durable: intake.Recorder does.
type Recorder interface {
	Record(ctx context.Context, n notice.Notice) (intake.Outcome, error)
}

// Options are what a Ledger can be told.
type Options struct {
	// Source is the name of the source whose ledger it is.
	Source string
	// Metrics are counted in; nil: nobody reads them.
	Metrics *intake.Metrics
	// Clock tells the time; nil: time.Now.
	Clock func() time.Time
}

// Ledger remembers what a source has seen, and makes each notice durable once.
// It is safe for concurrent use.
type Ledger struct {
	recorder Recorder
	reader   client.Reader
	o        Options

	mu      sync.Mutex
	pending map[key]notice.Notice
	inHand  map[key]bool // of those pending, what a Settle is at work on
	settled map[key]sighting
}

// key is what a notice is about. What has no subject is news by itself.
type key struct{ instance, kind, subject string }

// sighting is what of a subject is on record, and when it was last seen so.
type sighting struct {
	id string
	at time.Time
}

// NewLedger returns an empty Ledger, which records with recorder and reads with
// reader what is on record.
func NewLedger(recorder Recorder, reader client.Reader, o Options) *Ledger {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	o.Metrics = o.Metrics.OrUnread()
	return &Ledger{
		recorder: recorder, reader: reader, o: o,
		pending: map[key]notice.Notice{}, inHand: map[key]bool{}, settled: map[key]sighting{},
	}
}

func keyOf(n *notice.Notice) key {
	return key{n.InstanceID, n.Kind, cmp.Or(n.Subject, "id "+n.ID)}
}

// See notes what is the case now. It reports whether that is news, which Settle
// has to make durable. A notice without a Time gets that of its first sight. A
// withdrawn notice is recorded only if there is something to take back.
func (l *Ledger) See(n notice.Notice) bool {
	now := l.o.Clock()
	n.Source = l.o.Source
	k := keyOf(&n)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.settled[k].id == n.ID {
		l.settled[k] = sighting{n.ID, now}
		delete(l.pending, k) // it is again what it was
		return false
	}
	if was, ok := l.pending[k]; ok && was.ID == n.ID {
		return false
	}
	n.ReceivedTime = metav1.NewMicroTime(now)
	if n.Time.IsZero() {
		n.Time = metav1.NewTime(now)
	}
	l.pending[k] = n
	return true
}

// Pending returns how many notices are not durable yet.
func (l *Ledger) Pending() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pending)
}

// SeenSince reports whether the notice was what is the case at some time since
// then.
func (l *Ledger) SeenSince(n *notice.Notice, since time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.settled[keyOf(n)]
	return s.id == n.ID && !s.at.Before(since)
}

// Settle makes durable what is not yet, the most urgent first, but for what
// another Settle is at work on. An error says that something is left, and why;
// the next Settle tries again.
func (l *Ledger) Settle(ctx context.Context) error {
	var errs []error
	failures := 0
	due := l.take()
	defer l.putBack(due)
	for _, n := range due {
		err := l.settle(ctx, n)
		if err == nil {
			failures = 0
			continue
		}
		errs = append(errs, err)
		if failures++; failures == enough || ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// take returns what is pending and in nobody's hand: hard deadlines first, the
// earlier before the later. It forgets what was not seen for long.
func (l *Ledger) take() []notice.Notice {
	now := l.o.Clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	for k, s := range l.settled {
		if now.Sub(s.at) > keep {
			delete(l.settled, k)
		}
	}
	due := make([]notice.Notice, 0, len(l.pending))
	for k, n := range l.pending { // in random order, so that none always comes behind one that fails
		if !l.inHand[k] {
			l.inHand[k] = true
			due = append(due, n)
		}
	}
	slices.SortStableFunc(due, func(a, b notice.Notice) int {
		if ra, rb := urgency(&a), urgency(&b); ra != rb || ra == 2 {
			return ra - rb
		}
		return a.Deadline.Time.Compare(b.Deadline.Time.Time)
	})
	return due
}

// putBack lets go of what take returned.
func (l *Ledger) putBack(taken []notice.Notice) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range taken {
		delete(l.inHand, keyOf(&taken[i]))
	}
}

func urgency(n *notice.Notice) int {
	switch {
	case n.Deadline == nil:
		return 2
	case notice.IsFirm(n.Deadline):
		return 0
	}
	return 1
}

// settle makes one notice durable, or finds that it is.
func (l *Ledger) settle(ctx context.Context, n notice.Notice) error {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	record, err := read(ctx, l.reader, n.InstanceID)
	if err != nil {
		return err
	}
	on := bySubject(record, &n)
	switch {
	case on != nil && on.ID == n.ID:
		l.finish(&n)
		return nil
	case n.Withdrawn && !isToTakeBack(record, &n):
		l.finish(&n)
		return nil
	case on != nil && n.Time.Before(&on.Time):
		n.Time = on.Time // what is seen now is the newest, whatever the clocks of others said
	}
	outcome, err := l.recorder.Record(ctx, n)
	if err != nil {
		return err
	}
	l.o.Metrics.Received(l.o.Source, string(outcome))
	if outcome.Final() || l.o.Clock().Sub(n.ReceivedTime.Time) > patience {
		l.finish(&n)
		return nil
	}
	log.FromContext(ctx).V(1).Info("notice waits for its node", "instance", n.InstanceID, "kind", n.Kind)
	return nil
}

func (l *Ledger) finish(n *notice.Notice) {
	k := keyOf(n)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.settled[k] = sighting{n.ID, l.o.Clock()}
	if l.pending[k].ID == n.ID { // else it has become something else meanwhile
		delete(l.pending, k)
	}
}

// read returns the record of an instance, or nil.
func read(ctx context.Context, reader client.Reader, instanceID string) (*v1alpha1.Interruption, error) {
	var record v1alpha1.Interruption
	err := reader.Get(ctx, client.ObjectKey{Name: instanceID}, &record)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading interruption %s: %w", instanceID, err)
	}
	if err != nil {
		return nil, nil //nolint:nilnil // nil is no record, which is no error
	}
	return &record, nil
}

// bySubject returns what is on record of the notice's subject, or nil.
func bySubject(record *v1alpha1.Interruption, n *notice.Notice) *v1alpha1.Notice {
	if record == nil {
		return nil
	}
	for i := range record.Spec.Notices {
		if on := &record.Spec.Notices[i]; isAbout(on, n) {
			return on
		}
	}
	return nil
}
