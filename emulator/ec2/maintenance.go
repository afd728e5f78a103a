package ec2

import (
	"slices"
	"time"
)

// MaintenanceState tells whether a scheduled event is still to come.
type MaintenanceState string

// The states of a scheduled event, as instance metadata names them.
const (
	MaintenanceActive    MaintenanceState = "active"
	MaintenanceCompleted MaintenanceState = "completed"
	MaintenanceCanceled  MaintenanceState = "canceled"
)

// remembered is how long EC2 goes on listing a scheduled event that is over (EC2 API
// Reference, InstanceStatusEvent).
const remembered = 7 * 24 * time.Hour

// Maintenance is a scheduled event of an instance (EC2 User Guide, Scheduled events).
type Maintenance struct {
	ID string // instance-event-…; given by ScheduleMaintenance when empty
	// Code is instance-reboot, system-reboot, system-maintenance, instance-retirement
	// or instance-stop.
	Code string
	// Description begins with [Completed] or [Canceled] once that is so.
	Description       string
	NotBefore         time.Time
	NotAfter          time.Time
	NotBeforeDeadline time.Time
	// State is set by EC2.
	State MaintenanceState
}

// ScheduleMaintenance puts a scheduled event on an instance, or replaces the one with
// the same id, and returns its id. At NotBefore, if that is still ahead, EC2 does what
// Code says: it reboots the instance, whose state remains running, or stops it;
// one-time spot instances, which cannot be stopped, are terminated; for
// system-maintenance nothing is to be seen until it is over at NotAfter. The error is
// InvalidInstanceID.NotFound.
func (s *State) ScheduleMaintenance(id string, m Maintenance) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.find([]string{id})
	if err != nil {
		return "", err
	}
	in := found[0]
	if m.ID == "" {
		m.ID = newID("instance-event")
	}
	m.State = MaintenanceActive
	if i := in.maintenance(m.ID); i >= 0 {
		in.Maintenance[i] = m
	} else {
		in.Maintenance = append(in.Maintenance, m)
	}
	s.tell(in, StatusChanged)
	if wait := time.Until(m.NotBefore); wait > 0 {
		s.clock.After(wait, func() { s.maintain(in, m) })
	}
	return m.ID, nil
}

// EndMaintenance marks a scheduled event as over. EC2 goes on listing it for a week,
// its description beginning with [Completed] or [Canceled]. The error is
// InvalidInstanceID.NotFound; an unknown event is left alone.
func (s *State) EndMaintenance(id, eventID string, completed bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.find([]string{id})
	if err != nil {
		return err
	}
	state := MaintenanceCanceled
	if completed {
		state = MaintenanceCompleted
	}
	if i := found[0].maintenance(eventID); i >= 0 {
		s.endMaintenance(found[0], i, state)
	}
	return nil
}

// maintain does what was scheduled, unless it has been rescheduled or is over. It
// needs the lock.
func (s *State) maintain(in *instance, planned Maintenance) {
	i := in.maintenance(planned.ID)
	if i < 0 || in.Maintenance[i] != planned {
		return
	}
	switch r := s.requests[in.SpotRequestID]; {
	case planned.Code == "system-maintenance":
		s.clock.After(max(0, time.Until(planned.NotAfter)), func() {
			if i := in.maintenance(planned.ID); i >= 0 && in.Maintenance[i] == planned {
				s.endMaintenance(in, i, MaintenanceCompleted)
			}
		})
	case in.State != Running:
		s.endMaintenance(in, i, MaintenanceCompleted)
	case planned.Code == "instance-reboot" || planned.Code == "system-reboot":
		s.reboot(in)
		s.endMaintenance(in, i, MaintenanceCompleted)
	case r != nil && !r.Persistent:
		s.end(in, bySchedule, ReasonService)
	default:
		s.halt(in, bySchedule, ReasonService)
	}
}

// conclude marks the scheduled events as completed that are still to come and due. It
// needs the lock.
func (s *State) conclude(in *instance, due func(Maintenance) bool) {
	for i, m := range in.Maintenance {
		if due(m) {
			s.endMaintenance(in, i, MaintenanceCompleted)
		}
	}
}

// endMaintenance needs the lock.
func (s *State) endMaintenance(in *instance, i int, state MaintenanceState) {
	m := &in.Maintenance[i]
	if m.State != MaintenanceActive {
		return
	}
	m.State = state
	if state == MaintenanceCompleted {
		m.Description = "[Completed] " + m.Description
	} else {
		m.Description = "[Canceled] " + m.Description
	}
	s.tell(in, StatusChanged)
	ended := *m
	s.clock.After(remembered, func() {
		in.Maintenance = slices.DeleteFunc(in.Maintenance, func(m Maintenance) bool { return m == ended })
	})
}

// maintenance is the index of a scheduled event, or -1.
func (in *instance) maintenance(eventID string) int {
	return slices.IndexFunc(in.Maintenance, func(m Maintenance) bool { return m.ID == eventID })
}
