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
	"github.com/lifeboat-dev/lifeboat/emulator/timer"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// Options says whose cloud it is and how fast its machines are.
type Options struct {
	// Scope is the account and region.
	Scope wire.Scope
	// Emit receives the events that EC2 sends to EventBridge, one after the other and
	// in order. Nil: nobody listens.
	Emit func(events.Event)
	// Timing is how fast the machines are.
	Timing Timing
	// ClusterName is the cluster that the network is tagged for, as eksctl and Karpenter
	// look for it; default DefaultClusterName.
	ClusterName string
}

// Timing is how long the steps in the life of an instance take. A duration of zero
// takes the default.
type Timing struct {
	PendingFor    time.Duration // pending to running; default 300 ms
	StoppingFor   time.Duration // stopping to stopped; default 2 s
	ShutdownFor   time.Duration // shutting-down to terminated; default 2 s
	TerminatedFor time.Duration // how long terminated ones stay listed; default 1 h
	// ShutdownLimit is how long an operating system that is asked to shut down may
	// take until the power is cut (EC2 User Guide: "a few minutes"). Whoever runs the
	// machines reports with [State.Halted] that it has shut down. The default, zero,
	// is for machines without an operating system: nothing is asked to shut down.
	ShutdownLimit time.Duration
	// PowerOffAfter is how long a machine keeps its current after stopping or
	// shutting-down has begun, at most until that is over. The default, zero, is a
	// power cut.
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

	mu           sync.Mutex
	clock        *timer.Clock // under mu
	instances    map[string]*instance
	order        []string // instance ids, oldest first
	living       int      // instances that are not terminated
	requests     map[string]*SpotRequest
	requestOrder []string
	tokens       map[string]launch // by client token
	hosts        map[string]int    // addresses given out, by zone
	tagged       map[string]tagged // what has tags besides instances and requests, by id
	templates    map[string]*Template
	fleets       []*Fleet             // oldest first
	fleetTokens  map[string]*Fleet    // by client token
	prices       map[pool][]SpotPrice // changes, oldest first
	limits       map[Offering]int
	born         time.Time
}

// instance is an Instance with what only the state itself needs.
type instance struct {
	Instance
	// course counts changes of direction (start, stop, terminate); a timer that was
	// set on an earlier course is void.
	course int
	// reclaim is the interruption under way; nil: none.
	reclaim *reclaim
	// halted goes on with stopping or terminating once the operating system has shut
	// down, or may take no longer; nil: it was not asked to.
	halted func()
}

// New is an EC2 without instances. It tells nobody anything before Run.
func New(o Options) *State {
	if o.Emit == nil {
		o.Emit = func(events.Event) {}
	}
	s := &State{
		scope:     o.Scope,
		timing:    o.Timing.withDefaults(),
		outbox:    newOutbox(o.Emit),
		instances: map[string]*instance{},
		requests:  map[string]*SpotRequest{},
		tokens:    map[string]launch{},
		hosts:     map[string]int{},
		tagged:    map[string]tagged{},
		templates: map[string]*Template{},
		prices:    map[pool][]SpotPrice{},
		limits:    map[Offering]int{},
		born:      time.Now().UTC().Truncate(time.Second),

		fleetTokens: map[string]*Fleet{},
	}
	s.tagNetwork(cmp.Or(o.ClusterName, DefaultClusterName))
	s.clock = timer.NewClock(&s.mu)
	return s
}

// Run hands events and changes on until ctx is done; from then on nothing happens by
// itself any more, and the state stays readable. Call it once.
func (s *State) Run(ctx context.Context) {
	s.outbox.run(ctx)
	s.clock.Stop()
}

// Subscribe calls f with every change from now on, in order, one at a time and outside
// of all locks. The returned function ends it.
func (s *State) Subscribe(f func(Change)) (cancel func()) {
	return s.outbox.subscribe(f)
}

// Instances lists every instance that is still listed, oldest first.
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

// find returns the instances with the given ids, or the error that AWS would give for
// the whole call. It needs the lock.
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

// after runs f with the lock held when d is over, unless the instance has changed its
// course by then. It needs the lock.
func (s *State) after(d time.Duration, in *instance, f func()) {
	course := in.course
	s.clock.After(d, func() {
		if in.course == course {
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

// enter moves an instance to a state and tells EventBridge. It needs the lock.
func (s *State) enter(in *instance, st InstanceState, what What) {
	if st == Terminated && in.State != Terminated {
		s.living--
	}
	in.State = st
	s.emit("EC2 Instance State-change Notification", s.arn(in), stateDetail{in.ID, st})
	s.tell(in, what)
}

// tell queues a change for the subscribers. It needs the lock.
func (s *State) tell(in *instance, what What) {
	s.outbox.put(effect{change: &Change{What: what, Instance: in.Instance.clone()}})
}

// emit queues an event for EventBridge. It needs the lock, so that the order of events
// is the order of what happened.
func (s *State) emit(detailType, resource string, detail any) {
	s.outbox.put(effect{event: &events.Event{
		Source: "aws.ec2", DetailType: detailType, Time: time.Now(),
		Resources: []string{resource}, Detail: events.Detail(detail),
	}})
}

func (s *State) arn(in *instance) string {
	return s.scope.ARN("ec2", "instance/"+in.ID)
}

// zoneARN is the form that the two spot events carry: the availability zone in the
// place of the region, and no account (EC2 User Guide, Spot Instance interruption
// notices).
func (s *State) zoneARN(in *instance) string {
	return fmt.Sprintf("arn:%s:ec2:%s:instance/%s", s.scope.Partition(), in.Zone, in.ID)
}

// newID is an identifier as EC2 makes them: a prefix and 17 hexadecimal digits.
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
