package health

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/events"
	"github.com/lifeboat-dev/lifeboat/emulator/timer"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// Options says whose Health this is.
type Options struct {
	// Scope is the account and region.
	Scope wire.Scope
	// EC2 holds the instances.
	EC2 *ec2.State
	// Emit receives the events for EventBridge.
	Emit func(events.Event)
}

// State is the account's Health in one region. It is safe for concurrent use.
type State struct {
	scope wire.Scope
	ec2   *ec2.State
	emit  func(events.Event)

	mu      sync.Mutex
	clock   *timer.Clock // under mu
	records []*record    // oldest first
}

// record is an event with its internal state.
type record struct {
	Event
	revision int
	updated  time.Time
	// plan holds the scheduled event of each instance, if this event is about maintenance.
	plan map[string]string
}

// New is a Health without events.
func New(o Options) *State {
	s := &State{scope: o.Scope, ec2: o.EC2, emit: o.Emit}
	s.clock = timer.NewClock(&s.mu)
	s.ec2.Subscribe(s.follow)
	return s
}

// Run starts and ends events at their times until ctx is done.
func (s *State) Run(ctx context.Context) {
	<-ctx.Done()
	s.clock.Stop()
}

// Open sends a new event and returns its ARN. It is upcoming until its start and then open. It is
// closed at its end if that is known and later than the start. Each change sends the event again.
func (s *State) Open(e Event) (arn string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open(e, nil)
}

// open needs the lock.
func (s *State) open(e Event, plan map[string]string) string {
	e = e.clone()
	e.Service, e.Category = cmp.Or(e.Service, "EC2"), cmp.Or(e.Category, ScheduledChange)
	e.Region = cmp.Or(e.Region, s.scope.Region)
	if e.ARN == "" {
		e.ARN = fmt.Sprintf("arn:%s:health:%s::event/%s/%s/%s_%s", s.scope.Partition(), e.Region, e.Service, e.Code, e.Code, string(uuid.NewUUID()))
	}
	e.Status = Open
	if e.Start.After(time.Now()) {
		e.Status = Upcoming
	}
	for i := range e.Entities {
		usual := Impaired
		if e.Category == ScheduledChange {
			usual = Pending
		}
		e.Entities[i].Status = cmp.Or(e.Entities[i].Status, usual)
	}
	r := &record{Event: e, plan: plan}
	s.records = append(s.records, r)
	s.update(r)
	s.await(r)
	return e.ARN
}

// update sends a changed event. It needs the lock.
func (s *State) update(r *record) {
	r.revision++
	r.updated = time.Now().UTC()
	s.send(r)
}

// await schedules the start and end of an event. It needs the lock.
func (s *State) await(r *record) {
	start, end := r.Start, r.End
	moved := func() bool { return !r.Start.Equal(start) || !r.End.Equal(end) }
	if wait := time.Until(start); wait > 0 {
		s.clock.After(wait, func() {
			if !moved() {
				s.begin(r)
			}
		})
	}
	if wait := time.Until(end); wait > 0 && end.After(start) && r.plan == nil {
		s.clock.After(wait, func() {
			if !moved() {
				s.close(r)
			}
		})
	}
}

// begin needs the lock.
func (s *State) begin(r *record) {
	if r.Status == Upcoming {
		r.Status = Open
		s.update(r)
	}
}

// close needs the lock.
func (s *State) close(r *record) {
	if r.Status == Closed {
		return
	}
	r.Status = Closed
	r.set(Resolved)
	s.update(r)
}

// Close ends an event and sends it: closed, with all its entities resolved. Pending maintenance is
// cancelled at EC2 too. The error is an unknown ARN.
func (s *State) Close(arn string) error {
	return s.with(arn, func(r *record) error {
		s.close(r)
		for id, event := range r.plan {
			// Terminated instances have nothing to cancel.
			_ = s.ec2.EndMaintenance(id, event, false)
		}
		return nil
	})
}

// Reschedule moves an event, at EC2 too, and sends it. Errors: an unknown ARN, or a terminated
// instance.
func (s *State) Reschedule(arn string, start, end time.Time) error {
	return s.with(arn, func(r *record) error {
		for id, event := range r.plan {
			if err := s.move(id, event, start, end); err != nil {
				return fmt.Errorf("rescheduling %s: %w", arn, err)
			}
		}
		s.reschedule(r, start, end)
		return nil
	})
}

// reschedule needs the lock.
func (s *State) reschedule(r *record, start, end time.Time) {
	r.Start, r.End = start, end
	r.Status = Open
	if start.After(time.Now()) {
		r.Status = Upcoming
	}
	s.update(r)
	s.await(r)
}

// Resolve marks one of an event's entities as no longer affected; the last one closes the event.
// Errors: an unknown ARN or entity.
func (s *State) Resolve(arn, entityID string) error {
	return s.with(arn, func(r *record) error {
		i := slices.IndexFunc(r.Entities, func(x Entity) bool { return x.ID == entityID })
		if i < 0 {
			return fmt.Errorf("resolving %s: %s does not affect it", entityID, arn)
		}
		r.Entities[i].Status = Resolved
		if r.over() {
			s.close(r)
			return nil
		}
		s.update(r)
		return nil
	})
}

// Repeat sends an event again without a change, as AWS sometimes does. The error is an unknown ARN.
func (s *State) Repeat(arn string) error {
	return s.with(arn, func(r *record) error {
		s.send(r)
		return nil
	})
}

// Events lists all events, oldest first.
func (s *State) Events() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Event, 0, len(s.records))
	for _, r := range s.records {
		out = append(out, r.Event.clone())
	}
	return out
}

func (s *State) with(arn string, do func(*record) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.records, func(r *record) bool { return r.ARN == arn })
	if i < 0 {
		return fmt.Errorf("finding event %q: there is no such event", arn)
	}
	return do(s.records[i])
}
