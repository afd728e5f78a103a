package ec2

import (
	"slices"
	"time"
)

// MaintenanceState is the state of a scheduled event.
type MaintenanceState string

// The states of a scheduled event, as instance metadata names them.
const (
	MaintenanceActive    MaintenanceState = "active"
	MaintenanceCompleted MaintenanceState = "completed"
	MaintenanceCanceled  MaintenanceState = "canceled"
)

// remembered is how long EC2 lists a scheduled event after its end (EC2 API Reference,
// InstanceStatusEvent).
const remembered = 7 * 24 * time.Hour

// Maintenance is a scheduled event of an instance (EC2 User Guide, Scheduled events).
type Maintenance struct {
	ID string // instance-event-…; given by ScheduleMaintenance when empty
	// Code is instance-reboot, system-reboot, system-maintenance, instance-retirement
	// or instance-stop.
	Code string
	// Description begins with [Completed] or [Canceled] after the end.
	Description       string
	NotBefore         time.Time
	NotAfter          time.Time
	NotBeforeDeadline time.Time
	// State is set by EC2.
	State MaintenanceState
}

// ScheduleMaintenance adds a scheduled event to an instance, or replaces the one with the same id,
// and returns its id. At NotBefore EC2 executes the event's Code. It reboots the instance, whose
// state remains running, or stops it. One-time spot instances cannot be stopped, so it terminates
// them. A system-maintenance has no visible effect until its end at NotAfter. The error is
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
	s.notify(in, StatusChanged)
	if wait := time.Until(m.NotBefore); wait > 0 {
		s.clock.After(wait, func() { s.maintain(in, m) })
	}
	return m.ID, nil
}

// EndMaintenance ends a scheduled event. EC2 lists it for another week, with a description that
// begins with [Completed] or [Canceled]. The error is InvalidInstanceID.NotFound; an unknown event
// is ignored.
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

// maintain executes a scheduled event, unless it was rescheduled or has ended. It needs the lock.
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

// conclude marks due scheduled events as completed. It needs the lock.
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
	s.notify(in, StatusChanged)
	ended := *m
	s.clock.After(remembered, func() {
		in.Maintenance = slices.DeleteFunc(in.Maintenance, func(m Maintenance) bool { return m == ended })
		s.publish(in)
	})
}

// maintenance is the index of a scheduled event, or -1.
func (in *instance) maintenance(eventID string) int {
	return slices.IndexFunc(in.Maintenance, func(m Maintenance) bool { return m.ID == eventID })
}
