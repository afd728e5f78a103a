package ec2

import (
	"crypto/rand"
	"time"
)

// Transition is the state of an instance before and after a call.
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

// boot starts the boot of an instance. It needs the lock.
func (s *State) boot(in *instance, what What) {
	in.generation++
	in.StateReason, in.TransitionReason = StateReason{}, ""
	s.enter(in, Pending, what)
	s.after(s.timing.PendingFor, in, func() {
		in.Powered = true
		s.enter(in, Running, Booted)
	})
}

// end starts the termination of an instance. It needs the lock.
func (s *State) end(in *instance, why, reason string) {
	in.generation++
	in.reclaim = nil
	explain(in, why)
	s.shutDown(in, ShuttingDown, why == byUser, s.timing.ShutdownFor, func() {
		s.cut(in)
		in.Notice = Notice{}
		s.detach(in)
		s.closeSpotRequest(in, "terminated", reason)
		s.enter(in, Terminated, WasTerminated)
		s.conclude(in, func(Maintenance) bool { return true })
		s.after(s.timing.TerminatedFor, in, func() { s.forget(in) })
	})
}

// halt starts the stop of an instance. It needs the lock.
func (s *State) halt(in *instance, why, reason string) {
	in.generation++
	in.reclaim = nil
	explain(in, why)
	s.shutDown(in, Stopping, why == byUser, s.timing.StoppingFor, func() {
		s.cut(in)
		in.Notice = Notice{}
		s.closeSpotRequest(in, "stopped", reason)
		s.enter(in, Stopped, WasStopped)
		s.conclude(in, func(m Maintenance) bool { return !m.NotBefore.After(time.Now()) })
	})
}

// shutDown moves an instance to a state in which it shuts down, and calls off after the power-off
// and the remaining delay. If the user ends the instance, its operating system shuts down first
// (EC2 User Guide, "How instance termination works"): the state lasts until it has halted, or until
// the limit. An instance that EC2 takes back loses its power immediately, because no notice
// promises more. It needs the lock.
func (s *State) shutDown(in *instance, st InstanceState, graceful bool, rest time.Duration, off func()) {
	in.halted = nil
	if !graceful || !in.Powered || s.timing.ShutdownLimit == 0 {
		s.enter(in, st, WindingDown)
		s.powerOff(in)
		s.after(rest, in, off)
		return
	}
	if in.ShutdownTime.IsZero() { // otherwise it is shutting down already
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

// haltNow continues as if the operating system had halted, if it has not.
func (in *instance) haltNow() {
	if in.halted != nil {
		in.halted()
	}
}

// Halted reports that the operating system of an instance has halted after a request. For other
// instances it does nothing.
func (s *State) Halted(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in := s.instances[id]; in != nil {
		in.haltNow()
	}
}

// SkipShutdown cuts the power of instances without waiting for their operating systems, as Force
// and SkipOsShutdown do (EC2 API Reference, StopInstances, TerminateInstances).
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

// powerOff cuts the power now or after Timing.PowerOffAfter. It needs the lock.
func (s *State) powerOff(in *instance) {
	if s.timing.PowerOffAfter == 0 {
		s.cut(in)
		return
	}
	s.after(s.timing.PowerOffAfter, in, func() { s.cut(in) })
}

// cut removes the power, once. It needs the lock.
func (s *State) cut(in *instance) {
	in.ShutdownTime = time.Time{}
	if in.Powered {
		in.Powered = false
		s.notify(in, PowerOff)
	}
}

// forget removes a terminated instance from the list. It needs the lock.
func (s *State) forget(in *instance) {
	delete(s.instances, in.ID)
	for i, id := range s.order {
		if id == in.ID {
			s.order = append(s.order[:i:i], s.order[i+1:]...)
			break
		}
	}
	s.notify(in, Forgotten)
}

// Terminate ends instances for the user. Terminating and terminated instances do not change.
// Errors: InvalidInstanceID.NotFound and .Malformed.
func (s *State) Terminate(ids []string) ([]Transition, error) {
	return s.transit(ids, nil, func(in *instance) {
		if in.State != ShuttingDown && in.State != Terminated {
			s.end(in, byUser, reasonUser)
		}
	})
}

// Stop stops instances for the user. It rejects a one-time spot instance (UnsupportedOperation),
// and one that is shutting down (IncorrectInstanceState).
func (s *State) Stop(ids []string) ([]Transition, error) {
	return s.transit(ids, s.stoppable, func(in *instance) {
		if in.State == Pending || in.State == Running {
			in.Hibernated = false
			s.halt(in, byUser, reasonUser)
		}
	})
}

// Hibernate stops instances so that the next start resumes them.
func (s *State) Hibernate(ids []string) ([]Transition, error) {
	return s.transit(ids, s.stoppable, func(in *instance) {
		if in.State == Pending || in.State == Running {
			in.Hibernated = true
			s.halt(in, bySleep, reasonUser)
		}
	})
}

// Start starts stopped instances. A user cannot start a spot instance that EC2 stopped
// (IncorrectSpotRequestState).
func (s *State) Start(ids []string) ([]Transition, error) {
	return s.transit(ids, s.startable, func(in *instance) {
		if in.State != Stopped {
			return
		}
		if r := s.requests[in.SpotRequestID]; r != nil {
			r.State = "active"
			s.mark(r, "fulfilled", time.Now())
		}
		in.LaunchTime = time.Now().UTC().Truncate(time.Second)
		if !in.Hibernated {
			in.BootID = rand.Text()
		}
		s.boot(in, Started)
		// The instance starts on other hardware, which has no scheduled events.
		s.conclude(in, func(Maintenance) bool { return true })
	})
}

// Reboot restarts running instances. Their state does not change, and EC2 sends no event.
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

// reboot restarts the machine, with no other change.
func (s *State) reboot(in *instance) {
	in.BootID = rand.Text()
	s.notify(in, Rebooted)
}
