package autoscaling

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/lifeboat-dev/lifeboat/internal/awsemu/alarm"
	"github.com/lifeboat-dev/lifeboat/internal/awsemu/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/awsemu/events"
	"github.com/lifeboat-dev/lifeboat/internal/awsemu/sqs"
	"github.com/lifeboat-dev/lifeboat/internal/awsemu/wire"
)

// Options says whose groups these are, and what Auto Scaling works with.
type Options struct {
	// Scope is the account and region.
	Scope wire.Scope
	// EC2 has the instances.
	EC2 *ec2.State
	// Emit receives the events for EventBridge.
	Emit func(events.Event)
	// Deliver takes the messages of hooks that have a queue as their target.
	Deliver func(queueARN, body string, from sqs.Sender) error
}

// State is the account's Auto Scaling in one region. It is safe for concurrent use.
type State struct {
	scope   wire.Scope
	ec2     *ec2.State
	emit    func(events.Event)
	deliver func(queueARN, body string, from sqs.Sender) error

	mu      sync.Mutex
	clock   *alarm.Clock // under mu
	groups  map[string]*group
	order   []string           // group names, oldest first
	members map[string]*member // by instance id
	joined  []string           // instance ids, in the order of joining
}

// Group is an Auto Scaling group. Its sizes are only shown: nothing scales by itself.
type Group struct {
	Name              string
	Min, Max, Desired int
	Tags              map[string]string
	LaunchTemplate    string // its name; empty: none
	CapacityRebalance bool
	// WarmPool is nil when the group has none.
	WarmPool *WarmPool
	// DeregistrationDelay is how long instances stay in Terminating, while load
	// balancers let go of them, before hooks are told.
	DeregistrationDelay time.Duration
}

// WarmPool is the warm pool of a group.
type WarmPool struct {
	MinSize int
	// MaxPrepared is MaxGroupPreparedCapacity; nil: the group's maximum.
	MaxPrepared *int
	// State is what warm instances do: WarmedStopped, the default, WarmedRunning or
	// WarmedHibernated.
	State LifecycleState
	// ReuseOnScaleIn returns instances to the pool; it is only shown.
	ReuseOnScaleIn bool
}

type group struct {
	Group
	arn     string
	created time.Time
	hooks   []Hook // sorted by name
}

// pool is the lasting state of the group's warm instances.
func (g *group) pool() LifecycleState {
	if g.WarmPool == nil || g.WarmPool.State == "" {
		return WarmedStopped
	}
	return g.WarmPool.State
}

// Member is an instance of a group.
type Member struct {
	InstanceID, Group string
	Type, Zone, Image string
	State             LifecycleState
	// Target is the lasting state that it is on its way to.
	Target    LifecycleState
	Unhealthy bool
	Protected bool // from scale-in
}

type member struct {
	Member
	trip *trip // nil: it stays where it is
}

// New is an Auto Scaling without groups.
func New(o Options) *State {
	s := &State{
		scope: o.Scope, ec2: o.EC2, emit: o.Emit, deliver: o.Deliver,
		groups: map[string]*group{}, members: map[string]*member{},
	}
	s.clock = alarm.NewClock(&s.mu)
	s.ec2.Subscribe(s.follow)
	return s
}

// Run lets time-outs happen until ctx is done.
func (s *State) Run(ctx context.Context) {
	<-ctx.Done()
	s.clock.Stop()
}

// CreateGroup makes a group, without instances. The error is AlreadyExists.
func (s *State) CreateGroup(g Group) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.groups[g.Name] != nil {
		return alreadyExists(g.Name)
	}
	g.Tags = maps.Clone(g.Tags)
	s.groups[g.Name] = &group{
		Group: g, created: time.Now().UTC().Truncate(time.Millisecond),
		arn: s.scope.ARN("autoscaling", fmt.Sprintf("autoScalingGroup:%s:autoScalingGroupName/%s", uuid.NewString(), g.Name)),
	}
	s.order = append(s.order, g.Name)
	return nil
}

// Attach puts an instance that EC2 has into a group in a lifecycle state, as if it had
// been there for long: no hook is told. An instance that is a member already changes
// its state, and its journey, if it is on one, is forgotten. Errors: an unknown group
// or instance.
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
	if s.members[instanceID] == nil {
		s.joined = append(s.joined, instanceID)
	}
	s.members[instanceID] = &member{Member: Member{
		InstanceID: instanceID, Group: groupName, Type: in.Type, Zone: in.Zone, Image: in.ImageID,
		State: state, Target: steady(state, g.pool()),
	}}
	return nil
}

// Detach takes an instance out of its group. EC2 goes on running it.
func (s *State) Detach(instanceID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(instanceID)
}

// remove needs the lock.
func (s *State) remove(instanceID string) {
	delete(s.members, instanceID)
	s.joined = slices.DeleteFunc(s.joined, func(id string) bool { return id == instanceID })
}

// Member returns an instance of any group, and whether it is one.
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

// TargetState is what instance metadata tells an instance of where it is going; empty:
// it is in no group.
func (s *State) TargetState(instanceID string) string {
	m, _ := s.Member(instanceID)
	return string(m.Target)
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
