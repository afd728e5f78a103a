// Package elb emulates the target groups of Elastic Load Balancing v2. Targets are
// registered, become healthy, drain for the group's deregistration delay, and are gone.
package elb

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// The states of a target, and the reasons for some of them (ELBv2 API Reference, TargetHealth).
const (
	Initial  = "initial"
	Healthy  = "healthy"
	Draining = "draining"
	Unused   = "unused"

	reasonInitial       = "Elb.InitialHealthChecking"
	reasonDraining      = "Target.DeregistrationInProgress"
	reasonNotRegistered = "Target.NotRegistered"
	reasonStopped       = "Target.InvalidState"
)

// The target types.
const (
	TypeInstance = "instance"
	TypeIP       = "ip"
)

const (
	// DefaultDelay is AWS's default deregistration delay (ELBv2 API Reference, TargetGroupAttribute).
	DefaultDelay = 300 * time.Second
	// initialTime is how long a target stays in state initial.
	initialTime = time.Second
)

// State is the account's target groups. It is safe for concurrent use.
type State struct {
	scope   wire.Scope
	running func(instanceID string) (exists, running bool)

	mu     sync.Mutex
	groups map[string]*group // by ARN
}

// group is a target group.
type group struct {
	ARN, Name, Protocol, VPC, Type string
	Port                           int
	Delay                          time.Duration
	Tags                           map[string]string

	targets map[Target]*registration
}

// Target is an instance or an address, with a port.
type Target struct {
	ID   string `query:"Id"`
	Port int
}

// registration is when a target was registered, and deregistered unless zero.
type registration struct{ since, left time.Time }

// Health is the state of a target.
type Health struct {
	Target
	State, Reason string
}

// New is a state without target groups. Running says whether an instance exists, and runs.
func New(scope wire.Scope, running func(instanceID string) (exists, running bool)) *State {
	return &State{scope: scope, running: running, groups: map[string]*group{}}
}

var groupName = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9-]{0,30}[A-Za-z0-9])?$`)

// Create creates a target group of type instance or ip, or returns the ARN of an equal one. Errors:
// DuplicateTargetGroupName, ValidationError.
func (s *State) Create(name, targetType string, port int) (string, error) {
	g, err := s.create(&group{Name: name, Type: targetType, Port: port})
	if err != nil {
		return "", err
	}
	return g.ARN, nil
}

func (s *State) create(g *group) (group, error) {
	g.Type, g.Protocol = cmp.Or(g.Type, TypeInstance), cmp.Or(g.Protocol, "TCP")
	switch {
	case !groupName.MatchString(g.Name):
		return group{}, invalid("Target group name '%s' must have 1 to 32 letters, digits and hyphens, and no hyphen at its ends", g.Name)
	case g.Type != TypeInstance && g.Type != TypeIP:
		return group{}, invalid("this emulator has targets of type instance and ip, not '%s'", g.Type)
	case g.Port < 1 || g.Port > 65535:
		return group{}, invalid("Port '%d' is not between 1 and 65535", g.Port)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.groups {
		if other.Name != g.Name {
			continue
		}
		if other.Type != g.Type || other.Port != g.Port || other.Protocol != g.Protocol || other.VPC != g.VPC {
			return group{}, duplicate(g.Name)
		}
		return *other, nil
	}
	g.Delay, g.targets = DefaultDelay, map[Target]*registration{}
	g.ARN = s.scope.ARN("elasticloadbalancing", fmt.Sprintf("targetgroup/%s/%.16s", g.Name, strings.ReplaceAll(string(uuid.NewUUID()), "-", "")))
	s.groups[g.ARN] = g
	return *g, nil
}

// find returns a group. The caller holds the lock. Errors: TargetGroupNotFound.
func (s *State) find(arn string) (*group, error) {
	if g := s.groups[arn]; g != nil {
		return g, nil
	}
	return nil, notFound(arn)
}

// delete deletes a group. It succeeds if there is none (ELBv2 API Reference, DeleteTargetGroup).
func (s *State) delete(arn string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.groups, arn)
}

// list returns the groups with these ARNs or names, or all. Errors: TargetGroupNotFound.
func (s *State) list(arns, names []string) ([]group, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []group
	for _, arn := range slices.Sorted(maps.Keys(s.groups)) {
		if g := s.groups[arn]; len(arns)+len(names) == 0 || slices.Contains(arns, arn) || slices.Contains(names, g.Name) {
			out = append(out, *g)
		}
	}
	if len(out) < len(arns)+len(names) {
		return nil, notFound(strings.Join(slices.Concat(arns, names), ", "))
	}
	return out, nil
}

// SetDelay sets the deregistration delay of a group. Errors: TargetGroupNotFound, ValidationError.
func (s *State) SetDelay(arn string, delay time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.find(arn)
	if err != nil {
		return err
	}
	if delay < 0 || delay > time.Hour {
		return invalid("'deregistration_delay.timeout_seconds' must be between 0 and 3600 seconds")
	}
	g.Delay = delay
	return nil
}

// Register registers targets. A target that is registered stays as it is, and one that drains is
// registered again. Errors: TargetGroupNotFound, InvalidTarget.
func (s *State) Register(arn string, targets ...Target) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.find(arn)
	if err != nil {
		return err
	}
	for _, t := range targets {
		if g.Type != TypeInstance {
			continue
		}
		if exists, running := s.running(t.ID); !exists || !running {
			return invalidTarget(t.ID, "is not valid or is not in the running state")
		}
	}
	for _, t := range targets {
		t.Port = cmp.Or(t.Port, g.Port)
		if r := g.targets[t]; r == nil || !r.left.IsZero() {
			g.targets[t] = &registration{since: time.Now()}
		}
	}
	return nil
}

// Deregister deregisters targets, which then drain. Without a port, it is the group's. Errors:
// TargetGroupNotFound, InvalidTarget.
func (s *State) Deregister(arn string, targets ...Target) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.find(arn)
	if err != nil {
		return err
	}
	for i := range targets {
		targets[i].Port = cmp.Or(targets[i].Port, g.Port)
		if g.targets[targets[i]] == nil {
			return invalidTarget(targets[i].ID, "is not registered with the target group")
		}
	}
	for _, t := range targets {
		if r := g.targets[t]; r.left.IsZero() {
			r.left = time.Now()
		}
	}
	return nil
}

// Health returns the states of the given targets, or of all that are registered or drain. Errors:
// TargetGroupNotFound.
func (s *State) Health(arn string, targets ...Target) ([]Health, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g, err := s.find(arn)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	maps.DeleteFunc(g.targets, func(_ Target, r *registration) bool { return !r.left.IsZero() && !now.Before(r.left.Add(g.Delay)) })
	if len(targets) == 0 {
		targets = slices.SortedFunc(maps.Keys(g.targets), func(a, b Target) int {
			return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Port, b.Port))
		})
	}
	var out []Health
	for _, t := range targets {
		t.Port = cmp.Or(t.Port, g.Port)
		out = append(out, s.health(g, t, now))
	}
	return out, nil
}

// health is the state of one target. The caller holds the lock.
func (s *State) health(g *group, t Target, now time.Time) Health {
	r := g.targets[t]
	switch {
	case r == nil:
		return Health{t, Unused, reasonNotRegistered}
	case !r.left.IsZero():
		return Health{t, Draining, reasonDraining}
	case g.Type == TypeInstance && !s.isRunning(t.ID):
		return Health{t, Unused, reasonStopped}
	case now.Before(r.since.Add(initialTime)):
		return Health{t, Initial, reasonInitial}
	}
	return Health{t, Healthy, ""}
}

func (s *State) isRunning(id string) bool {
	_, running := s.running(id)
	return running
}
