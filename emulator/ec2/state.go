package ec2

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/events"
	"github.com/lifeboat-dev/lifeboat/emulator/replica"
	"github.com/lifeboat-dev/lifeboat/emulator/timer"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// Options is the account of a State and the timing of its machines.
type Options struct {
	// Scope is the account and region.
	Scope wire.Scope
	// Emit receives EC2's events for EventBridge, sequentially and in order; nil: they are
	// discarded.
	Emit func(events.Event)
	// Timing is the speed of the machines.
	Timing Timing
	// ClusterName is the cluster in the network's tags, which eksctl and Karpenter look for;
	// default DefaultClusterName.
	ClusterName string
	// ProfileRole returns the ARN of the role in an instance profile; empty: it has none. Nil: none
	// has.
	ProfileRole func(name string) string
}

// Timing is the duration of the steps in an instance's life cycle. A duration of zero takes the
// default.
type Timing struct {
	PendingFor    time.Duration // pending to running; default 300 ms
	StoppingFor   time.Duration // stopping to stopped; default 2 s
	ShutdownFor   time.Duration // shutting-down to terminated; default 2 s
	TerminatedFor time.Duration // how long terminated instances stay listed; default 1 h
	// ShutdownLimit is how long an operating system may take to shut down until EC2 cuts the power
	// (EC2 User Guide: "a few minutes"). The machine simulator reports the end of the shutdown with
	// [State.Halted]. The default, zero, is for machines without an operating system: EC2 asks none
	// to shut down.
	ShutdownLimit time.Duration
	// PowerOffAfter is how long a machine keeps its power after the start of stopping or
	// shutting-down, at most until the end of that state. The default, zero, is an immediate power
	// cut.
	PowerOffAfter time.Duration
}

func (t Timing) withDefaults() Timing {
	return Timing{
		PendingFor:    cmp.Or(t.PendingFor, 300*time.Millisecond),
		StoppingFor:   cmp.Or(t.StoppingFor, 2*time.Second),
		ShutdownFor:   cmp.Or(t.ShutdownFor, 2*time.Second),
		TerminatedFor: cmp.Or(t.TerminatedFor, time.Hour),
		ShutdownLimit: t.ShutdownLimit,
		PowerOffAfter: t.PowerOffAfter,
	}
}

// State is the account's EC2 in one region. It is safe for concurrent use.
type State struct {
	scope  wire.Scope
	timing Timing
	outbox *outbox
	// profileRole is Options.ProfileRole.
	profileRole func(name string) string

	mu           sync.Mutex
	clock        *timer.Clock // under mu
	instances    map[string]*instance
	order        []string // instance ids, oldest first
	living       int      // instances that are not terminated
	requests     map[string]*SpotRequest
	requestOrder []string
	tokens       map[string]launch // by client token
	hosts        map[string]int    // used addresses, by zone
	tagged       map[string]tagged // tagged resources other than instances and requests, by id
	templates    map[string]*Template
	fleets       []*Fleet             // oldest first
	fleetTokens  map[string]*Fleet    // by client token
	prices       map[pool][]SpotPrice // changes, oldest first
	limits       map[Offering]int
	born         time.Time
	replicas     *replica.Versions[Instance]
	// requestReplicas has the spot requests.
	requestReplicas *replica.Versions[SpotRequest]
}

// instance is an Instance with internal state.
type instance struct {
	Instance
	// generation counts starts, stops and terminations; a timer of an earlier generation has no
	// effect.
	generation int
	// reclaim is the active interruption; nil: none.
	reclaim *reclaim
	// halted continues a stop or a termination after the operating system has halted, or after the
	// limit; nil: it was not asked to shut down.
	halted func()
}

// New is an EC2 without instances. It delivers no events and changes before Run.
func New(o Options) *State {
	if o.Emit == nil {
		o.Emit = func(events.Event) {}
	}
	s := &State{
		scope:       o.Scope,
		profileRole: o.ProfileRole,
		timing:      o.Timing.withDefaults(),
		outbox:      newOutbox(o.Emit),
		instances:   map[string]*instance{},
		requests:    map[string]*SpotRequest{},
		tokens:      map[string]launch{},
		hosts:       map[string]int{},
		tagged:      map[string]tagged{},
		templates:   map[string]*Template{},
		prices:      map[pool][]SpotPrice{},
		limits:      map[Offering]int{},
		born:        time.Now().UTC().Truncate(time.Second),

		fleetTokens: map[string]*Fleet{},
		replicas:    replica.New[Instance](replica.Lag{}),

		requestReplicas: replica.New[SpotRequest](replica.Lag{}),
	}
	s.tagNetwork(cmp.Or(o.ClusterName, DefaultClusterName))
	s.clock = timer.NewClock(&s.mu)
	return s
}

// SetLag lets Describe calls show instances and spot requests as they were up to a lag ago. The default is the current
// state.
func (s *State) SetLag(lag replica.Lag) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replicas.SetLag(lag)
	s.requestReplicas.SetLag(lag)
}

// Run delivers events and changes until ctx is done. After that timers have no effect, and the
// state stays readable. Call it once.
func (s *State) Run(ctx context.Context) {
	s.outbox.run(ctx)
	s.clock.Stop()
}

// Subscribe calls f with every change from now on, in order, sequentially and without any lock. The
// returned function ends the subscription.
func (s *State) Subscribe(f func(Change)) (cancel func()) {
	return s.outbox.subscribe(f)
}

// Instances lists all instances that are still listed, oldest first.
func (s *State) Instances() []Instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]Instance, 0, len(s.order))
	for _, id := range s.order {
		out = append(out, s.instances[id].Instance.clone())
	}
	return out
}

// Instance returns one instance, and whether it is listed.
func (s *State) Instance(id string) (Instance, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	in := s.instances[id]
	if in == nil {
		return Instance{}, false
	}
	return in.Instance.clone(), true
}

// find returns the instances with the given ids, or AWS's error for the whole call. It needs the
// lock.
func (s *State) find(ids []string) ([]*instance, error) {
	for _, id := range ids {
		if !isInstanceID(id) {
			return nil, malformedInstance(id)
		}
	}
	var found []*instance
	var missing []string
	for _, id := range ids {
		if in := s.instances[id]; in != nil {
			found = append(found, in)
		} else {
			missing = append(missing, id)
		}
	}
	if len(missing) > 0 {
		return nil, instancesNotFound(missing)
	}
	return found, nil
}

// after runs f with the lock held after d, unless the instance has a new generation by then. It
// needs the lock.
func (s *State) after(d time.Duration, in *instance, f func()) {
	course := in.generation
	s.clock.After(d, func() {
		if in.generation == course {
			f()
		}
	})
}

// The details of EC2's events, their fields in AWS's order.
type (
	stateDetail struct {
		ID    string        `json:"instance-id"`
		State InstanceState `json:"state"`
	}
	warningDetail struct {
		ID     string    `json:"instance-id"`
		Action Behaviour `json:"instance-action"`
	}
	rebalanceDetail struct {
		ID string `json:"instance-id"`
	}
)

// enter moves an instance to a state and notifies EventBridge. It needs the lock.
func (s *State) enter(in *instance, st InstanceState, what What) {
	if st == Terminated && in.State != Terminated {
		s.living--
	}
	in.State = st
	s.emit("EC2 Instance State-change Notification", s.arn(in), stateDetail{in.ID, st})
	s.notify(in, what)
}

// notify queues a change for the subscribers, and publishes it to the replicas. It needs the lock.
func (s *State) notify(in *instance, what What) {
	s.outbox.put(effect{change: &Change{What: what, Instance: in.Instance.clone()}})
	s.publish(in)
}

// publish lets Describe calls show an instance as it is now. It needs the lock.
func (s *State) publish(in *instance) {
	if s.instances[in.ID] == nil {
		s.replicas.Delete(in.ID)
		return
	}
	s.replicas.Put(in.ID, in.Instance.clone())
}

// emit queues an event for EventBridge. It needs the lock, so that events have the order of the
// changes.
func (s *State) emit(detailType, resource string, detail any) {
	s.outbox.put(effect{event: &events.Event{
		Source: "aws.ec2", DetailType: detailType, Time: time.Now(),
		Resources: []string{resource}, Detail: events.Detail(detail),
	}})
}

func (s *State) arn(in *instance) string {
	return s.scope.ARN("ec2", "instance/"+in.ID)
}

// zoneARN is the form in the two spot events: the availability zone in place of the region, and no
// account (EC2 User Guide, Spot Instance interruption notices).
func (s *State) zoneARN(in *instance) string {
	return fmt.Sprintf("arn:%s:ec2:%s:instance/%s", s.scope.Partition(), in.Zone, in.ID)
}

// newID is an identifier in EC2's format: a prefix and 17 hexadecimal digits.
func newID(prefix string) string {
	var b [9]byte
	rand.Read(b[:])
	return prefix + "-" + hex.EncodeToString(b[:])[:17]
}

// newSpotRequestID is sir- and eight lower-case letters or digits.
func newSpotRequestID() string {
	return "sir-" + strings.ToLower(rand.Text()[:8])
}

func isInstanceID(id string) bool {
	hexPart, ok := strings.CutPrefix(id, "i-")
	if !ok || len(hexPart) != 17 && len(hexPart) != 8 {
		return false
	}
	return strings.Trim(hexPart, "0123456789abcdef") == ""
}
