package ec2

import (
	"fmt"
	"time"
)

// WarningLead is how long before the deadline EC2 warns a spot instance (EC2 User Guide, Spot
// Instance interruption notices).
const WarningLead = 2 * time.Minute

// InterruptOptions says how EC2 interrupts spot instances.
type InterruptOptions struct {
	// Behaviour overrides the spot request's behaviour; empty: the request's.
	Behaviour Behaviour
	// Notice is the time from now to the deadline; default two minutes. With less the warning is
	// immediate, as when EC2 reclaims on short notice. With more it is sent two minutes before the
	// deadline.
	Notice time.Duration
	// Rebalance sends a rebalance recommendation immediately.
	Rebalance bool
	// Reason is one of the Reason constants; default ReasonNoCapacity.
	Reason string
	// Exhaust removes the offering's remaining capacity, so that no replacement can launch there
	// until [State.SetCapacity] changes it.
	Exhaust bool
}

// reclaim is an active interruption.
type reclaim struct {
	behaviour Behaviour
	deadline  time.Time
	reason    string
}

// NotRunningSpotError says that an instance cannot be interrupted, because it is not a running spot
// instance.
type NotRunningSpotError struct {
	ID    string
	State InstanceState // empty: the instance does not exist
}

func (e *NotRunningSpotError) Error() string {
	switch e.State {
	case "":
		return fmt.Sprintf("interrupting %s: no such instance", e.ID)
	case Running:
		return fmt.Sprintf("interrupting %s: it is not a spot instance", e.ID)
	default:
		return fmt.Sprintf("interrupting %s: it is %s, not running", e.ID, e.State)
	}
}

// Interrupt makes EC2 interrupt running spot instances: an optional recommendation, the warning,
// and the reclaim at the deadline. All ids are checked first; the error is a *NotRunningSpotError.
// An active interruption with an earlier deadline stays.
func (s *State) Interrupt(ids []string, o InterruptOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if err := s.interruptible(id); err != nil {
			return err
		}
	}
	for _, id := range ids {
		s.interrupt(s.instances[id], o)
	}
	return nil
}

// Recommend only sends the rebalance recommendation for running spot instances. The error is a
// *NotRunningSpotError.
func (s *State) Recommend(ids []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if err := s.interruptible(id); err != nil {
			return err
		}
	}
	for _, id := range ids {
		s.recommend(s.instances[id])
	}
	return nil
}

// Withdraw cancels interruptions before their warning; after the warning they stay.
func (s *State) Withdraw(ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if in := s.instances[id]; in != nil && in.Notice.Action == "" {
			in.reclaim = nil
		}
	}
}

func (s *State) interruptible(id string) error {
	in := s.instances[id]
	switch {
	case in == nil:
		return &NotRunningSpotError{ID: id}
	case !in.Spot() || in.State != Running:
		return &NotRunningSpotError{ID: id, State: in.State}
	default:
		return nil
	}
}

// interrupt needs the lock.
func (s *State) interrupt(in *instance, o InterruptOptions) {
	if o.Notice == 0 {
		o.Notice = WarningLead
	}
	r := &reclaim{behaviour: o.Behaviour, deadline: time.Now().Add(o.Notice), reason: o.Reason}
	if r.behaviour == "" {
		r.behaviour = s.requests[in.SpotRequestID].Behaviour
	}
	if r.reason == "" {
		r.reason = ReasonNoCapacity
	}
	if o.Exhaust {
		s.limit(Offering{in.Type, in.Zone, Spot}, 0)
	}
	if o.Rebalance {
		s.recommend(in)
	}
	if in.reclaim != nil && !r.deadline.Before(in.reclaim.deadline) {
		return
	}
	in.reclaim = r
	if o.Notice <= WarningLead {
		s.warn(in, r)
		return
	}
	s.clock.After(o.Notice-WarningLead, func() { s.warn(in, r) })
}

// recommend needs the lock.
func (s *State) recommend(in *instance) {
	in.RebalanceAt = time.Now().UTC()
	s.emit("EC2 Instance Rebalance Recommendation", s.zoneARN(in), rebalanceDetail{in.ID})
	s.notify(in, Recommended)
}

// warn needs the lock. An instance that its user stopped or terminated in the meantime has no
// reclaim and does not change.
func (s *State) warn(in *instance, r *reclaim) {
	if in.reclaim != r {
		return
	}
	in.Notice = Notice{Action: r.behaviour, Deadline: r.deadline.UTC()}
	s.mark(s.requests[in.SpotRequestID], markedStatus(r), time.Now())
	s.emit("EC2 Spot Instance Interruption Warning", s.zoneARN(in), warningDetail{in.ID, r.behaviour})
	s.notify(in, Warned)
	if r.behaviour == Hibernate {
		// Hibernation starts with the warning (EC2 User Guide, Hibernate interrupted Spot
		// Instances).
		s.takeBack(in, r)
		return
	}
	s.clock.After(time.Until(r.deadline), func() { s.takeBack(in, r) })
}

// takeBack needs the lock.
func (s *State) takeBack(in *instance, r *reclaim) {
	if in.reclaim != r {
		return
	}
	if r.behaviour == Terminate {
		s.end(in, bySpotEnd, r.reason)
		return
	}
	s.halt(in, bySpotPause, r.reason)
}

func markedStatus(r *reclaim) string {
	switch {
	case r.behaviour == Terminate:
		return "marked-for-termination"
	case r.reason == ReasonExperiment:
		return "marked-for-stop-by-experiment"
	default:
		return "marked-for-stop"
	}
}
