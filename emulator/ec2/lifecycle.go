package ec2

import (
	"crypto/rand"
	"time"
)

// Transition is what an instance was and what it is after a call.
type Transition struct {
	ID                string
	Previous, Current InstanceState
}

// Codes of state reasons (EC2 API Reference, StateReason).
const (
	byUser      = "Client.UserInitiatedShutdown"
	bySleep     = "Client.UserInitiatedHibernate"
	bySpotEnd   = "Server.SpotInstanceTermination"
	bySpotPause = "Server.SpotInstanceShutdown"
	bySchedule  = "Server.ScheduledStop"
	byCapacity  = "Server.InsufficientInstanceCapacity"
)

// boot sends an instance on its way to running. It needs the lock.
func (s *State) boot(in *instance, what What) {
	in.course++
	in.StateReason, in.TransitionReason = StateReason{}, ""
	s.enter(in, Pending, what)
	s.after(s.timing.PendingFor, in, func() {
		in.Powered = true
		s.enter(in, Running, Booted)
	})
}

// end sends an instance on its way to terminated. It needs the lock.
func (s *State) end(in *instance, why, reason string) {
	in.course++
	in.reclaim = nil
	explain(in, why)
	s.windDown(in, ShuttingDown, why == byUser, s.timing.ShutdownFor, func() {
		s.cut(in)
		in.Notice = Notice{}
		s.detach(in)
		s.settle(in, "terminated", reason)
		s.enter(in, Terminated, WasTerminated)
		s.conclude(in, func(Maintenance) bool { return true })
		s.after(s.timing.TerminatedFor, in, func() { s.forget(in) })
	})
}

// halt sends an instance on its way to stopped. It needs the lock.
func (s *State) halt(in *instance, why, reason string) {
	in.course++
	in.reclaim = nil
	explain(in, why)
	s.windDown(in, Stopping, why == byUser, s.timing.StoppingFor, func() {
		s.cut(in)
		in.Notice = Notice{}
		s.settle(in, "stopped", reason)
		s.enter(in, Stopped, WasStopped)
		s.conclude(in, func(m Maintenance) bool { return !m.NotBefore.After(time.Now()) })
	})
}

// windDown takes an instance to a state in which it shuts down, and calls off when its
// power has been off for a while. Where the user ends it, its operating system is asked
// to shut down first (EC2 User Guide, "How instance termination works"), and the state
// lasts until it has, or until the limit. What EC2 takes back loses its power at once:
// no notice promises more. It needs the lock.
func (s *State) windDown(in *instance, st InstanceState, graceful bool, rest time.Duration, off func()) {
	in.halted = nil
	if !graceful || !in.Powered || s.timing.ShutdownLimit == 0 {
		s.enter(in, st, WindingDown)
		s.powerOff(in)
		s.after(rest, in, off)
		return
	}
	if in.ShutdownTime.IsZero() { // else it is shutting down already
		in.ShutdownTime = time.Now().UTC()
	}
	in.halted = func() {
		in.halted = nil
		s.powerOff(in)
		s.after(rest, in, off)
	}
	s.enter(in, st, WindingDown)
	s.after(s.timing.ShutdownLimit, in, in.haltNow)
}

// haltNow takes the operating system for shut down, if it still is to.
func (in *instance) haltNow() {
	if in.halted != nil {
		in.halted()
	}
}

// Halted reports that the operating system of an instance has shut down after it was
// asked to. It does nothing for others.
func (s *State) Halted(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in := s.instances[id]; in != nil {
		in.haltNow()
	}
}

// SkipShutdown cuts the power of instances without waiting for their operating systems,
// as Force and SkipOsShutdown do (EC2 API Reference, StopInstances, TerminateInstances).
func (s *State) SkipShutdown(ids []string) {
	for _, id := range ids {
		s.Halted(id)
	}
}

func explain(in *instance, why string) {
	switch why {
	case byUser:
		in.StateReason = StateReason{why, why + ": User initiated shutdown"}
		in.TransitionReason = time.Now().UTC().Format("User initiated (2006-01-02 15:04:05 GMT)")
	case bySleep:
		in.StateReason = StateReason{why, why + ": User initiated hibernate"}
		in.TransitionReason = time.Now().UTC().Format("User initiated hibernate (2006-01-02 15:04:05 GMT)")
	case bySpotEnd:
		in.StateReason = StateReason{why, why + ": Spot Instance termination"}
		in.TransitionReason = in.StateReason.Message
	case bySpotPause:
		in.StateReason = StateReason{why, why + ": Spot Instance shutdown"}
		in.TransitionReason = in.StateReason.Message
	case bySchedule:
		in.StateReason = StateReason{why, why + ": Stopped due to a scheduled retirement"}
		in.TransitionReason = in.StateReason.Message
	case byCapacity:
		in.StateReason = StateReason{why, why + ": Capacity Reservation reclaimed"}
		in.TransitionReason = in.StateReason.Message
	}
}

// powerOff cuts the current now or after Timing.PowerOffAfter. It needs the lock.
func (s *State) powerOff(in *instance) {
	if s.timing.PowerOffAfter == 0 {
		s.cut(in)
		return
	}
	s.after(s.timing.PowerOffAfter, in, func() { s.cut(in) })
}

// cut takes the current away, once. It needs the lock.
func (s *State) cut(in *instance) {
	in.ShutdownTime = time.Time{}
	if in.Powered {
		in.Powered = false
		s.tell(in, PowerOff)
	}
}

// forget takes a terminated instance off the list. It needs the lock.
func (s *State) forget(in *instance) {
	delete(s.instances, in.ID)
	for i, id := range s.order {
		if id == in.ID {
			s.order = append(s.order[:i:i], s.order[i+1:]...)
			break
		}
	}
	s.tell(in, Forgotten)
}

// Terminate ends instances on the user's behalf. Those that are already going or gone
// are left as they are. Errors: InvalidInstanceID.NotFound and .Malformed.
func (s *State) Terminate(ids []string) ([]Transition, error) {
	return s.transit(ids, nil, func(in *instance) {
		if in.State != ShuttingDown && in.State != Terminated {
			s.end(in, byUser, reasonUser)
		}
	})
}

// Stop stops instances on the user's behalf; a one-time spot instance cannot be
// stopped (UnsupportedOperation), nor one that is going away
// (IncorrectInstanceState).
func (s *State) Stop(ids []string) ([]Transition, error) {
	return s.transit(ids, s.stoppable, func(in *instance) {
		if in.State == Pending || in.State == Running {
			in.Hibernated = false
			s.halt(in, byUser, reasonUser)
		}
	})
}

// Hibernate stops instances as Stop does, but so that the next start resumes them.
func (s *State) Hibernate(ids []string) ([]Transition, error) {
	return s.transit(ids, s.stoppable, func(in *instance) {
		if in.State == Pending || in.State == Running {
			in.Hibernated = true
			s.halt(in, bySleep, reasonUser)
		}
	})
}

// Start starts stopped instances. A spot instance that EC2 stopped is not the user's
// to start (IncorrectSpotRequestState).
func (s *State) Start(ids []string) ([]Transition, error) {
	return s.transit(ids, s.startable, func(in *instance) {
		if in.State != Stopped {
			return
		}
		if r := s.requests[in.SpotRequestID]; r != nil {
			r.State = "active"
			r.mark("fulfilled", time.Now())
		}
		in.LaunchTime = time.Now().UTC().Truncate(time.Second)
		if !in.Hibernated {
			in.BootID = rand.Text()
		}
		s.boot(in, Started)
		// It comes up on other hardware, which nothing is scheduled for.
		s.conclude(in, func(Maintenance) bool { return true })
	})
}

// Reboot restarts running instances. Their state does not change, and EC2 sends no
// event.
func (s *State) Reboot(ids []string) error {
	_, err := s.transit(ids, rebootable, s.reboot)
	return err
}

// transit checks all instances before it changes any, as EC2 does.
func (s *State) transit(ids []string, allowed func(*instance) error, do func(*instance)) ([]Transition, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.find(ids)
	if err != nil {
		return nil, err
	}
	for _, in := range found {
		if allowed == nil {
			break
		}
		if err := allowed(in); err != nil {
			return nil, err
		}
	}
	out := make([]Transition, 0, len(found))
	for _, in := range found {
		was := in.State
		do(in)
		out = append(out, Transition{ID: in.ID, Previous: was, Current: in.State})
	}
	return out, nil
}

func (s *State) stoppable(in *instance) error {
	if in.State == ShuttingDown || in.State == Terminated {
		return wrongState(in.ID, "stopped")
	}
	if r := s.requests[in.SpotRequestID]; r != nil && !r.Persistent {
		return oneTimeSpot(in.ID)
	}
	return nil
}

func (s *State) startable(in *instance) error {
	if in.State != Stopped && in.State != Running && in.State != Pending {
		return wrongState(in.ID, "started")
	}
	if in.State == Stopped && in.Spot() && in.StateReason.Code == bySpotPause {
		return notYoursToStart(in.ID)
	}
	return nil
}

func rebootable(in *instance) error {
	if in.State != Running {
		return wrongState(in.ID, "rebooted")
	}
	return nil
}

// reboot starts the machine again; nothing else of it changes.
func (s *State) reboot(in *instance) {
	in.BootID = rand.Text()
	s.tell(in, Rebooted)
}
