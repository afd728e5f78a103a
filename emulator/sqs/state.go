package sqs

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/policy"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// coolDown is how long after a deletion the queue's name stays reserved, and how long after a purge
// the next is rejected.
const coolDown = 60 * time.Second

// maxTags is how many tags a queue may have.
const maxTags = 50

var nameFormat = regexp.MustCompile(`^[A-Za-z0-9_-]{1,80}$`)

// State is the queues of one account and region. Its methods are safe for
// concurrent use; their errors are *wire.Error unless they say otherwise.
type State struct {
	scope       wire.Scope
	maxInFlight int // of each queue; tests lower it

	mu       sync.Mutex
	delivery Delivery
	queues   map[string]*queue
	deleted  map[string]time.Time
	moves    []*MoveTask // the newest first
	// acknowledged receive each message that a client deletes.
	acknowledged []func(queue, body string)
}

// New makes a state without queues.
func New(scope wire.Scope) *State {
	return &State{
		scope:       scope,
		maxInFlight: maxInFlight,
		queues:      map[string]*queue{},
		deleted:     map[string]time.Time{},
	}
}

// find returns the queue of that name. The lock must be held.
func (s *State) find(name string) (*queue, error) {
	if q := s.queues[name]; q != nil {
		return q, nil
	}
	return nil, noSuchQueue()
}

// Exists is an error for an unknown queue.
func (s *State) Exists(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.find(name)
	return err
}

// byARN returns the queue that an ARN names, or nil. The lock must be held.
func (s *State) byARN(arn string) *queue {
	name, ok := strings.CutPrefix(arn, s.scope.ARN("sqs", ""))
	if !ok {
		return nil
	}
	return s.queues[name]
}

// Create creates a queue. For an existing queue it does nothing, if the given attributes have those
// values already.
func (s *State) Create(name string, attributes, tags map[string]string) error {
	if strings.HasSuffix(name, ".fifo") || attributes["FifoQueue"] == "true" {
		return unsupported("FIFO queues")
	}
	if !nameFormat.MatchString(name) {
		return badParameter("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	wanted := defaults()
	if err := s.apply(&wanted, s.scope.ARN("sqs", name), attributes); err != nil {
		return err
	}
	if q := s.queues[name]; q != nil {
		return q.settings.differs(wanted, slices.Sorted(maps.Keys(attributes)))
	}
	if at, ok := s.deleted[name]; ok && now.Sub(at) < coolDown {
		return prefixed("QueueDeletedRecently",
			"You must wait 60 seconds after deleting a queue before you can create another with the same name.")
	}
	delete(s.deleted, name)
	s.queues[name] = newQueue(name, s.scope.ARN("sqs", name), wanted, tags, now)
	return nil
}

// Delete removes a queue with its messages. Waiting polls end with QueueDoesNotExist.
func (s *State) Delete(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(name)
	if err != nil {
		return err
	}
	delete(s.queues, name)
	s.deleted[name] = time.Now()
	q.wake()
	return nil
}

// List returns the queue names that begin with start, sorted, after the name after; at most limit.
// More reports whether there are others.
func (s *State) List(start, after string, limit int) (names []string, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.queues)) {
		if !strings.HasPrefix(name, start) || name <= after {
			continue
		}
		if len(names) == limit {
			return names, true
		}
		names = append(names, name)
	}
	return names, false
}

// DeadLetterSources names the queues that have this one as their dead-letter queue, paged like
// List.
func (s *State) DeadLetterSources(name, after string, limit int) (names []string, more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(name)
	if err != nil {
		return nil, false, err
	}
	for _, source := range slices.Sorted(maps.Keys(s.queues)) {
		if !s.queues[source].settings.redrive.to(q.arn) || source <= after {
			continue
		}
		if len(names) == limit {
			return names, true, nil
		}
		names = append(names, source)
	}
	return names, false, nil
}

// Attributes returns all attributes of a queue, counts included.
func (s *State) Attributes(name string) (map[string]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(name)
	if err != nil {
		return nil, err
	}
	q.advance(time.Now())
	return q.attributes(), nil
}

// SetAttributes changes some of a queue's attributes, all or none.
func (s *State) SetAttributes(name string, attributes map[string]string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(name)
	if err != nil {
		return err
	}
	wanted := q.settings
	if err := s.apply(&wanted, q.arn, attributes); err != nil {
		return err
	}
	q.configure(wanted, time.Now())
	return nil
}

// Tags returns a copy of a queue's tags.
func (s *State) Tags(name string) (map[string]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(name)
	if err != nil {
		return nil, err
	}
	return maps.Clone(q.tags), nil
}

// Tag adds tags, then removes those of the given keys.
func (s *State) Tag(name string, add map[string]string, remove []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(name)
	if err != nil {
		return err
	}
	tags := maps.Clone(q.tags)
	maps.Copy(tags, add)
	for _, key := range remove {
		delete(tags, key)
	}
	if len(tags) > maxTags {
		return badParameter("Too many tags added for queue %s.", name)
	}
	q.tags = tags
	return nil
}

// Purge removes all messages of a queue, in flight or not.
func (s *State) Purge(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, err := s.find(name)
	if err != nil {
		return err
	}
	now := time.Now()
	if !q.purged.IsZero() && now.Sub(q.purged) < coolDown {
		return purgeInProgress(name)
	}
	q.purged = now
	q.clear()
	return nil
}

// denies reports whether a queue's policy denies an action to a role of its own account that a
// service has assumed. It needs the lock.
func (s *State) denies(q *queue, action, roleARN string) bool {
	return q.settings.policy.Decide(policy.Request{
		ARN:      roleARN,
		RoleARN:  roleARN,
		Account:  s.scope.Account,
		Action:   action,
		Resource: q.arn,
		Keys: map[string][]string{
			"aws:PrincipalArn":          {roleARN},
			"aws:PrincipalAccount":      {s.scope.Account},
			"aws:PrincipalIsAWSService": {"false"},
			"aws:SecureTransport":       {"true"}, // as with AWS itself
		},
	}) == policy.Denied
}
