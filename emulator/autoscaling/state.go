package autoscaling

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/events"
	"github.com/lifeboat-dev/lifeboat/emulator/replica"
	"github.com/lifeboat-dev/lifeboat/emulator/sqs"
	"github.com/lifeboat-dev/lifeboat/emulator/timer"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// Options is the account of a State, and the services that it uses.
type Options struct {
	// Scope is the account and region.
	Scope wire.Scope
	// EC2 holds the instances.
	EC2 *ec2.State
	// Emit receives the events for EventBridge.
	Emit func(events.Event)
	// Deliver takes the messages of hooks that have a queue as their target.
	Deliver func(queueARN, body string, from sqs.Sender) error
	// Timing is the speed of groups with a template, Consistency the delay of what Describe calls
	// show.
	Timing      Timing
	Consistency Consistency
}

// State is the account's Auto Scaling in one region. It is safe for concurrent use.
type State struct {
	scope   wire.Scope
	ec2     *ec2.State
	emit    func(events.Event)
	deliver func(queueARN, body string, from sqs.Sender) error

	mu          sync.Mutex
	clock       *timer.Clock // under mu
	timing      Timing
	consistency Consistency
	contention  int // calls to reject; negative: all
	groups      map[string]*group
	order       []string                       // group names, oldest first
	members     map[string]*member             // by instance id
	joined      []string                       // instance ids, in the order of joining
	count       int                            // of all members so far
	detached    map[string]bool                // instances whose metadata says Detached
	past        *replica.Versions[observation] // by instance id
	trace       []Change
	firings     []*HookExecution
	activities  []*Activity         // oldest first
	launches    map[string]Launched // of LaunchInstances, by client token
}

// Member is an instance of a group.
type Member struct {
	InstanceID, Group string
	Type, Zone, Image string
	Spot              bool
	// Template is the launched template, with its id, name and version; zero: the instance was
	// attached.
	Template ec2.TemplateRef
	State    LifecycleState
	// Target is the lasting state that the instance moves to.
	Target    LifecycleState
	Unhealthy bool
	Protected bool // from scale-in
	// ReplaceCause is why the group wants a replacement before it terminates the instance; empty:
	// it does not.
	ReplaceCause string
}

type member struct {
	Member
	unhealthyCause string         // why it is unhealthy
	transition     *transition    // nil: the instance is in a lasting state
	shown          LifecycleState // the last traced state
	seq            int            // in the order of joining
	joined         time.Time
	inServiceSince time.Time // start of InService
}

// New is an Auto Scaling without groups.
func New(o Options) *State {
	s := &State{
		scope: o.Scope, ec2: o.EC2, emit: o.Emit, deliver: o.Deliver,
		timing: o.Timing.withDefaults(), consistency: o.Consistency,
		groups: map[string]*group{}, members: map[string]*member{}, detached: map[string]bool{},
		past: replica.New[observation](o.Consistency.lag()), launches: map[string]Launched{},
	}
	s.clock = timer.NewClock(&s.mu)
	s.ec2.Subscribe(s.follow)
	return s
}

// Run executes timers until ctx is done.
func (s *State) Run(ctx context.Context) {
	<-ctx.Done()
	s.clock.Stop()
}

// CreateGroup creates a group without instances; with a template the group then launches its
// desired capacity. Errors: AlreadyExists; ValidationError for an invalid template, subnet, zone or
// hook.
func (s *State) CreateGroup(g Group) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.groups[g.Name] != nil {
		return alreadyExists(g.Name)
	}
	made := &group{
		Group: g, created: time.Now().UTC().Truncate(time.Millisecond), suspended: map[Process]time.Time{},
		arn: s.scope.ARN("autoscaling", fmt.Sprintf("autoScalingGroup:%s:autoScalingGroupName/%s", string(uuid.NewUUID()), g.Name)),
	}
	made.Tags = maps.Clone(g.Tags)
	if made.hasTemplate() {
		if err := s.checkGroup(made); err != nil {
			return err
		}
	}
	for _, h := range g.Hooks {
		if err := s.putHook(made, h); err != nil {
			return err
		}
	}
	s.groups[g.Name] = made
	s.order = append(s.order, g.Name)
	s.scheduleEvaluation(made)
	return nil
}

// Attach adds an EC2 instance to a group in a lifecycle state, without notifying hooks. A member
// that is attached again changes its state, and its transition is cancelled. Errors: an unknown
// group or instance.
func (s *State) Attach(groupName, instanceID string, state LifecycleState) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.groups[groupName]
	if g == nil {
		return groupNotFound(groupName)
	}
	in, ok := s.ec2.Instance(instanceID)
	if !ok {
		return validation("Invalid Instance ID: %s", instanceID)
	}
	m := s.join(g, in, steady(state, g.pool()))
	s.enter(m, state, "attached")
	return nil
}

// join adds an instance as a member, or replaces its membership. It needs the lock.
func (s *State) join(g *group, in ec2.Instance, target LifecycleState) *member {
	now := time.Now()
	was := s.members[in.ID]
	m := &member{joined: now, inServiceSince: now, Member: Member{
		InstanceID: in.ID, Group: g.Name, Type: in.Type, Zone: in.Zone, Image: in.ImageID, Spot: in.Spot(), Target: target,
	}}
	if was != nil {
		m.shown, m.seq = was.shown, was.seq
	} else {
		s.count++
		m.seq = s.count
		s.joined = append(s.joined, in.ID)
	}
	s.members[in.ID] = m
	delete(s.detached, in.ID)
	return m
}

// Detach takes an instance out of its group. EC2 continues to run it.
func (s *State) Detach(instanceID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(instanceID)
}

// remove needs the lock.
func (s *State) remove(instanceID string) {
	m := s.members[instanceID]
	if m == nil {
		return
	}
	if m.transition != nil {
		m.transition.endExecutions()
	}
	delete(s.members, instanceID)
	s.joined = slices.DeleteFunc(s.joined, func(id string) bool { return id == instanceID })
	s.recordObservation(m, true)
	if g := s.groups[m.Group]; g != nil {
		s.scheduleEvaluation(g)
		s.removeDeleted(g)
	}
}

// Member returns an instance of any group, and whether it is a member.
func (s *State) Member(instanceID string) (Member, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m := s.members[instanceID]; m != nil {
		return m.Member, true
	}
	return Member{}, false
}

// Members lists the instances of all groups, in the order in which they joined.
func (s *State) Members() []Member {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Member, 0, len(s.joined))
	for _, id := range s.joined {
		out = append(out, s.members[id].Member)
	}
	return out
}

// of lists the members of a group, in the order of joining. It needs the lock.
func (s *State) of(g *group) []*member {
	var out []*member
	for _, id := range s.joined {
		if m := s.members[id]; m.Group == g.Name {
			out = append(out, m)
		}
	}
	return out
}

// TargetState is the target lifecycle state that instance metadata shows; empty: the instance is in
// no group, or metadata does not show it yet.
func (s *State) TargetState(instanceID string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.members[instanceID]
	switch {
	case m == nil && s.detached[instanceID]:
		return string(Detached)
	case m == nil || time.Since(m.joined) < s.consistency.TargetAfter:
		return ""
	default:
		return string(m.Target)
	}
}

// GroupARN is the ARN of a group; empty if there is none of that name.
func (s *State) GroupARN(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.groups[name]; g != nil {
		return g.arn
	}
	return ""
}

// Sizes are the current sizes of a group, by its name; false: it does not exist.
func (s *State) Sizes(name string) (least, desired, most int, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.groups[name]
	if g == nil {
		return 0, 0, 0, false
	}
	return g.Min, g.Desired, g.Max, true
}

// checkGroup rejects an impossible group. It needs the lock.
func (s *State) checkGroup(g *group) error {
	if g.Desired == 0 {
		g.Desired = g.Min
	}
	g.HealthCheckType = cmp.Or(g.HealthCheckType, "EC2")
	if err := checkSizes(g.Min, g.Max, g.Desired); err != nil {
		return err
	}
	if err := s.checkTemplates(g); err != nil {
		return err
	}
	if g.WarmPool != nil {
		if err := s.checkPool(g); err != nil {
			return err
		}
	}
	_, err := s.subnets(g)
	return err
}
