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

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

const (
	// keep is how long the Deduper remembers a notice that is no longer
	// observed.
	keep = time.Hour
	// patience is how long a notice waits for its node to register.
	patience = 10 * time.Minute
	// storeTime is the timeout of recording one notice.
	storeTime = 10 * time.Second
	// maxFailures in a row end a Flush: the next notice would probably fail
	// too.
	maxFailures = 3
)

// Recorder makes a notice durable; intake.Recorder implements it.
type Recorder interface {
	Record(ctx context.Context, n notice.Notice) (intake.Outcome, error)
}

// Options configure a Deduper.
type Options struct {
	// Source is the name of the source that uses the Deduper.
	Source string
	// Nodes finds the node of an instance. With it, a planned change whose
	// record was completed before the node registered again is recorded again.
	// Each observation of a planned change then reads the record and the node,
	// so both must come from a cache. Nil: such a change is not recorded again
	// before a restart.
	Nodes intake.NodeIndex
	// Metrics count what is recorded; nil: not exposed.
	Metrics *intake.Metrics
	// Clock returns the time; nil: time.Now.
	Clock func() time.Time
}

// Deduper remembers what a source has observed, and makes each notice durable
// once. It is safe for concurrent use.
type Deduper struct {
	recorder Recorder
	reader   client.Reader
	o        Options

	mu      sync.Mutex
	pending map[key]notice.Notice
	inHand  map[key]bool // those of pending that a Flush is recording
	settled map[key]observation
}

// key identifies the subject of a notice. A notice without a subject has its id
// as the key.
type key struct{ instance, kind, subject string }

// observation is the notice of a subject that was made durable, when that was,
// and when it was last observed.
type observation struct {
	id         string
	settled    time.Time
	lastSeenAt time.Time
}

// NewDeduper returns an empty Deduper that writes with recorder and reads with
// reader.
func NewDeduper(recorder Recorder, reader client.Reader, o Options) *Deduper {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	o.Metrics = o.Metrics.OrUnread()
	return &Deduper{
		recorder: recorder, reader: reader, o: o,
		pending: map[key]notice.Notice{}, inHand: map[key]bool{}, settled: map[key]observation{},
	}
}

func keyOf(n *notice.Notice) key {
	return key{n.InstanceID, n.Kind, cmp.Or(n.Subject, "id "+n.ID)}
}

// Observe takes a notice that a poll has returned, and reports whether it is
// new; Flush then records it. A notice without a Time gets the time of its
// first observation. A withdrawn notice is recorded only if it withdraws
// something.
func (l *Deduper) Observe(n notice.Notice) bool {
	now := l.o.Clock()
	n.Source = l.o.Source
	k := keyOf(&n)
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.settled[k]
	isKnown := known.id == n.ID
	if isKnown {
		known.lastSeenAt = now
		l.settled[k] = known
	}
	if isKnown && (l.o.Nodes == nil || !isPlanned(&n, now)) {
		delete(l.pending, k) // it changed back before it was recorded
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
	return !isKnown
}

// Pending returns how many notices are not durable yet.
func (l *Deduper) Pending() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.pending)
}

// ObservedSince reports whether the notice was observed at or after a time.
func (l *Deduper) ObservedSince(n *notice.Notice, since time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.settled[keyOf(n)]
	return s.id == n.ID && !s.lastSeenAt.Before(since)
}

// Flush records what is pending, the most urgent first, except what another
// Flush is recording. After an error, the next Flush retries the rest.
func (l *Deduper) Flush(ctx context.Context) error {
	var errs []error
	failures := 0
	due := l.take()
	defer l.requeue(due)
	for _, n := range due {
		err := l.flush(ctx, n)
		if err == nil {
			failures = 0
			continue
		}
		errs = append(errs, err)
		if failures++; failures == maxFailures || ctx.Err() != nil {
			break
		}
	}
	return errors.Join(errs...)
}

// take returns what is pending and not being recorded: hard deadlines first,
// the earlier before the later. It also drops what was not observed for long.
func (l *Deduper) take() []notice.Notice {
	now := l.o.Clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	for k, s := range l.settled {
		if now.Sub(s.lastSeenAt) > keep {
			delete(l.settled, k)
		}
	}
	due := make([]notice.Notice, 0, len(l.pending))
	for k, n := range l.pending { // random order: a failing notice must not always delay the same others
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

// requeue releases what take returned.
func (l *Deduper) requeue(taken []notice.Notice) {
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

// flush makes one notice durable, unless it already is.
func (l *Deduper) flush(ctx context.Context, n notice.Notice) error {
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	record, err := read(ctx, l.reader, n.InstanceID)
	if err != nil {
		return err
	}
	on, toRecord := bySubject(record, &n), n
	switch {
	case l.isDone(on, &n):
		forgotten, err := l.isForgotten(ctx, record, &toRecord)
		if err != nil {
			return err
		}
		if !forgotten {
			l.finish(&n)
			return nil
		}
	case n.Withdrawn && !mustWithdraw(record, &n):
		l.finish(&n)
		return nil
	}
	if on != nil && toRecord.Time.Before(&on.Time) {
		toRecord.Time = on.Time // the current observation is the newest, whatever other clocks say
	}
	outcome, err := l.recorder.Record(ctx, toRecord)
	if err != nil {
		return err
	}
	l.o.Metrics.Received(l.o.Source, string(outcome))
	if outcome.Final() || l.o.Clock().Sub(n.ReceivedTime.Time) > patience {
		l.finish(&n)
		return nil
	}
	log.FromContext(ctx).V(1).Info("notice waits for its node to register", "instance", n.InstanceID, "kind", n.Kind)
	return nil
}

// isDone reports whether n was made durable before: it is on record, or this
// process has recorded it. In the second case a person may have deleted the
// record to cancel it.
func (l *Deduper) isDone(on *v1beta1.Notice, n *notice.Notice) bool {
	if on != nil {
		return isSameNews(on, n)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.settled[keyOf(n)].id == n.ID
}

func (l *Deduper) finish(n *notice.Notice) {
	k, now := keyOf(n), l.o.Clock()
	l.mu.Lock()
	defer l.mu.Unlock()
	settled := now
	if was := l.settled[k]; was.id == n.ID {
		settled = was.settled
	}
	l.settled[k] = observation{id: n.ID, settled: settled, lastSeenAt: now}
	if l.pending[k].ID == n.ID { // else it has changed since
		delete(l.pending, k)
	}
}

// read returns the record of an instance, or nil.
func read(ctx context.Context, reader client.Reader, instanceID string) (*v1beta1.Interruption, error) {
	var record v1beta1.Interruption
	err := reader.Get(ctx, client.ObjectKey{Name: instanceID}, &record)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading Interruption %s: %w", instanceID, err)
	}
	if err != nil {
		return nil, nil //nolint:nilnil // a missing record is not an error
	}
	return &record, nil
}

// bySubject returns the recorded notice with the subject of n, or nil.
func bySubject(record *v1beta1.Interruption, n *notice.Notice) *v1beta1.Notice {
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
