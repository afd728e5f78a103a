package events

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/lifeboat-dev/lifeboat/emulator/events/pattern"
	"github.com/lifeboat-dev/lifeboat/emulator/sqs"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// defaultBus is the default bus of every account, which receives the events of AWS services.
const defaultBus = "default"

// remembered is how many events and how many deliveries are kept for later inspection.
const remembered = 1000

// Deliver sends a message to a queue, on behalf of a rule, if the queue's policy allows it.
type Deliver func(queueARN, body string, from sqs.Sender) error

// State is the account's EventBridge in one region. It is safe for concurrent use.
type State struct {
	scope   wire.Scope
	deliver Deliver
	filled  chan struct{} // holds one token while deliveries may wait

	mu         sync.Mutex
	buses      map[string]*bus
	archive    []Event
	waiting    []delivery
	deliveries []Delivery
	random     *rand.Rand
	duplicates float64
}

type bus struct {
	name        string
	description string
	created     time.Time
	rules       map[string]*rule
	tags        map[string]string
}

// New makes a state with the default bus and no rules. Deliveries wait until Run.
func New(scope wire.Scope, deliver Deliver) *State {
	s := &State{
		scope: scope, deliver: deliver,
		filled: make(chan struct{}, 1), buses: map[string]*bus{},
	}
	s.buses[defaultBus] = newBus(defaultBus, "")
	return s
}

func newBus(name, description string) *bus {
	return &bus{
		name: name, description: description, created: time.Now().Truncate(time.Second),
		rules: map[string]*rule{}, tags: map[string]string{},
	}
}

// Emit puts an event of an AWS service on the default bus. It returns immediately; the deliveries
// follow in the order of the events.
func (s *State) Emit(e Event) {
	e.Time = s.scope.Clock.At(e.Time)
	s.publish(defaultBus, e)
}

// publish stamps an event, finds the matching rules, queues their deliveries and returns the
// event's id. As on AWS, an event for an unknown bus is lost.
func (s *State) publish(busName string, e Event) string {
	e = s.stamp(e)
	body, err := e.MarshalJSON()
	if err != nil {
		return e.ID
	}
	decoded, err := pattern.Decode(body)
	if err != nil {
		return e.ID
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.buses[busName]
	if b == nil {
		return e.ID
	}
	s.archive = keep(s.archive, e)
	for _, r := range b.sorted() {
		if !r.enabled || !r.pattern.Matches(decoded) {
			continue
		}
		r.stats.MatchedEvents++
		for _, t := range r.targets {
			s.waiting = append(s.waiting, delivery{rule: r, target: t, event: body, id: e.ID, due: time.Now().Add(s.delay())})
		}
	}
	select {
	case s.filled <- struct{}{}:
	default:
	}
	return e.ID
}

func (s *State) stamp(e Event) Event {
	if e.ID == "" {
		e.ID = string(uuid.NewUUID())
	}
	if e.Account == "" {
		e.Account = s.scope.Account
	}
	if e.Region == "" {
		e.Region = s.scope.Region
	}
	if e.Time.IsZero() {
		e.Time = s.scope.Clock.Now()
	}
	precision := time.Second
	if e.Milliseconds {
		precision = time.Millisecond
	}
	e.Time = e.Time.UTC().Truncate(precision)
	return e
}

// Archive is the last 1,000 events of all buses, oldest first.
func (s *State) Archive() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.archive)
}

// Run delivers events until ctx is done.
func (s *State) Run(ctx context.Context) {
	for ctx.Err() == nil {
		d, ok, due := s.next(time.Now())
		if ok {
			s.perform(d)
			continue
		}
		timer := time.NewTimer(time.Until(due))
		if due.IsZero() {
			timer.Stop()
		}
		select {
		case <-ctx.Done():
		case <-s.filled:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// next returns a delivery that is due. Without one, it returns when the next will be; zero: none waits.
func (s *State) next(now time.Time) (d delivery, ok bool, due time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, count := 0, 0 // the one that is drawn from those that are due
	for i := range s.waiting {
		if then := s.waiting[i].due; then.After(now) {
			if due.IsZero() || then.Before(due) {
				due = then
			}
			continue
		}
		if count++; s.random == nil {
			at = i
			break
		}
		if s.random.IntN(count) == 0 {
			at = i
		}
	}
	if count == 0 {
		return delivery{}, false, due
	}
	d = s.waiting[at]
	if s.random != nil && s.random.Float64() < s.duplicates {
		s.waiting[at].due = now.Add(s.delay()) // it stays, and is delivered once more
		return d, true, due
	}
	s.waiting = slices.Delete(s.waiting, at, at+1)
	return d, true, due
}

// longestDelay is how long a delivery takes at most. EventBridge gives no limit, and retries for 24 hours
// (EventBridge User Guide, "How EventBridge retries delivering events"). Tests of seconds need a short one.
const longestDelay = time.Second

// delay is how long a delivery takes. It needs the lock.
func (s *State) delay() time.Duration {
	if s.random == nil {
		return 0
	}
	return time.Duration(s.random.Int64N(int64(longestDelay)))
}

// SetDelivery makes the state deliver events late, in any order, and a share of them more than once. It
// loses none (EventBridge User Guide, "Event delivery": at least once, no order). With a nil random it
// delivers each once and at once, in the order of arrival: the default.
func (s *State) SetDelivery(random *rand.Rand, duplicates float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.random, s.duplicates = random, duplicates
}

// CreateBus makes a custom bus and returns its ARN. The error is
// ResourceAlreadyExistsException.
func (s *State) CreateBus(name, description string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.buses[name] != nil {
		return "", busExists(name)
	}
	s.buses[name] = newBus(name, description)
	return s.busARN(name), nil
}

// DeleteBus removes a custom bus, which must be without rules. A bus that does not
// exist is no error.
func (s *State) DeleteBus(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == defaultBus {
		return cannotDeleteDefault()
	}
	if b := s.buses[name]; b != nil && len(b.rules) > 0 {
		return busHasRules()
	}
	delete(s.buses, name)
	return nil
}

// Bus describes a bus.
type Bus struct {
	Name, ARN, Description string
	Created                time.Time
}

// Buses lists the buses whose names begin with prefix, sorted by name.
func (s *State) Buses(prefix string) []Bus {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Bus
	for name, b := range s.buses {
		if strings.HasPrefix(name, prefix) {
			out = append(out, Bus{name, s.busARN(name), b.description, b.created})
		}
	}
	slices.SortFunc(out, func(a, b Bus) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// bus finds a bus by name or ARN; empty means the default one. It needs the lock.
func (s *State) bus(name string) (*bus, error) {
	name = busName(name)
	b := s.buses[name]
	if b == nil {
		return nil, busNotFound(name)
	}
	return b, nil
}

// busName is the name in what may be a name, an ARN or nothing.
func busName(name string) string {
	if _, after, ok := strings.Cut(name, ":event-bus/"); ok {
		name = after
	}
	if name == "" {
		return defaultBus
	}
	return name
}

func (s *State) busARN(name string) string {
	return s.scope.ARN("events", "event-bus/"+name)
}

func (b *bus) sorted() []*rule {
	out := make([]*rule, 0, len(b.rules))
	for _, r := range b.rules {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *rule) int { return strings.Compare(a.name, b.name) })
	return out
}

// keep appends to a list of bounded length.
func keep[T any](list []T, item T) []T {
	if len(list) >= remembered {
		list = slices.Delete(list, 0, len(list)-remembered+1)
	}
	return append(list, item)
}
