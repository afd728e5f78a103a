package fis

import (
	"cmp"
	"context"
	"crypto/rand"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/events"
	"github.com/lifeboat-dev/lifeboat/emulator/timer"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// Options says what a State works on.
type Options struct {
	// Scope is the account and region.
	Scope wire.Scope
	// EC2 holds the instances.
	EC2 *ec2.State
	// Emit receives FIS's events for EventBridge, in order; nil: they are discarded.
	Emit func(events.Event)
	// Allowed reports whether a role may do something to an instance with these tags; nil: every
	// role may do everything.
	Allowed func(roleARN, action, instanceARN string, tags map[string]string) bool
	// StepFor is the duration of the states pending and initiating of an experiment; default 100
	// ms.
	StepFor time.Duration
}

// State is the account's Fault Injection Service in one region. It is safe for
// concurrent use.
type State struct {
	scope   wire.Scope
	ec2     *ec2.State
	emit    func(events.Event)
	allowed func(roleARN, action, instanceARN string, tags map[string]string) bool
	step    time.Duration

	mu              sync.Mutex
	clock           *timer.Clock // under mu
	templates       map[string]*Template
	templateTokens  map[string]made
	experiments     map[string]*experiment
	experimentOrder []string
	tokens          map[string]string // client token to experiment
}

// made holds the request and the result of a client token.
type made struct{ input, output Template }

// New is a state without templates and experiments.
func New(o Options) *State {
	if o.Emit == nil {
		o.Emit = func(events.Event) {}
	}
	if o.Allowed == nil {
		o.Allowed = func(string, string, string, map[string]string) bool { return true }
	}
	s := &State{
		scope: o.Scope, ec2: o.EC2, emit: o.Emit, allowed: o.Allowed, step: cmp.Or(o.StepFor, 100*time.Millisecond),
		templates:      map[string]*Template{},
		templateTokens: map[string]made{},
		experiments:    map[string]*experiment{},
		tokens:         map[string]string{},
	}
	s.clock = timer.NewClock(&s.mu)
	return s
}

// Run waits until ctx is done and then stops all experiments; the state stays readable.
func (s *State) Run(ctx context.Context) {
	<-ctx.Done()
	s.clock.Stop()
}

// newID is a prefix and 15 letters or digits, as in EXTA1B2C3D4E5F6G7H.
func newID(prefix string) string { return prefix + rand.Text()[:15] }

// CreateTemplate checks and stores a template and returns it with its id. A call that repeats a
// client token returns the template of the first one. Errors: ValidationException,
// ServiceQuotaExceededException, ConflictException.
func (s *State) CreateTemplate(t Template, token string) (Template, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	asked := t
	if done, ok := s.templateTokens[token]; ok && token != "" {
		if !reflect.DeepEqual(done.input, asked) {
			return Template{}, tokenReused()
		}
		return done.output.clone(), nil
	}
	if err := t.check(); err != nil {
		return Template{}, err
	}
	t.ID = newID("EXT")
	t.ARN = s.scope.ARN("fis", "experiment-template/"+t.ID)
	t.Created = wire.Time{Time: time.Now()}
	t.Updated = t.Created
	t.Tags = maps.Clone(t.Tags)
	if t.Tags == nil {
		t.Tags = map[string]string{}
	}
	s.templates[t.ID] = &t
	if token != "" {
		s.templateTokens[token] = made{asked, t.clone()}
	}
	return t.clone(), nil
}

// clone copies the mutable part: the tags.
func (t Template) clone() Template {
	t.Tags = maps.Clone(t.Tags)
	return t
}

// Template returns one template. The error is ResourceNotFoundException.
func (s *State) Template(id string) (Template, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.templates[id]
	if t == nil {
		return Template{}, notFound("Experiment template %s does not exist.", id)
	}
	return t.clone(), nil
}

// DeleteTemplate removes a template and returns it. Its experiments continue. The error is
// ResourceNotFoundException.
func (s *State) DeleteTemplate(id string) (Template, error) {
	t, err := s.Template(id)
	if err != nil {
		return Template{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.templates, id)
	return t, nil
}

// Templates lists all templates, oldest first.
func (s *State) Templates() []Template {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Template, 0, len(s.templates))
	for _, t := range s.templates {
		out = append(out, t.clone())
	}
	slices.SortFunc(out, func(a, b Template) int {
		return cmp.Or(a.Created.Compare(b.Created.Time), cmp.Compare(a.ID, b.ID))
	})
	return out
}

// Tags returns the tags of a template or experiment. The error is
// ResourceNotFoundException.
func (s *State) Tags(arn string) (map[string]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	tags, err := s.tagged(arn)
	return maps.Clone(tags), err
}

// SetTags adds tags to a template or experiment and removes the named ones. The error
// is ResourceNotFoundException.
func (s *State) SetTags(arn string, add map[string]string, remove []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	tags, err := s.tagged(arn)
	if err != nil {
		return err
	}
	for _, k := range remove {
		delete(tags, k)
	}
	maps.Copy(tags, add)
	return nil
}

// tagged needs the lock.
func (s *State) tagged(arn string) (map[string]string, error) {
	for _, t := range s.templates {
		if t.ARN == arn {
			return t.Tags, nil
		}
	}
	for _, e := range s.experiments {
		if e.ARN == arn {
			return e.Tags, nil
		}
	}
	return nil, notFound("The resource %s does not exist.", arn)
}
