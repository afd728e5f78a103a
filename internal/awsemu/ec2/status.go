package ec2

import (
	"slices"
	"strings"
	"time"
)

// The results of a status check (EC2 API Reference, InstanceStatusSummary).
const (
	StatusOK               = "ok"
	StatusImpaired         = "impaired"
	StatusInsufficientData = "insufficient-data"
	StatusInitializing     = "initializing"
	StatusNotApplicable    = "not-applicable"
)

// Health is what the status checks of a running instance say; an empty one is ok.
type Health struct {
	Instance, System, AttachedEBS string
	// ImpairedSince is when reachability was lost, if it was.
	ImpairedSince time.Time
}

// Maintenance is a scheduled event of an instance (EC2 User Guide, Scheduled events).
type Maintenance struct {
	ID string // instance-event-…; given by ScheduleMaintenance when empty
	// Code is instance-reboot, system-reboot, system-maintenance, instance-retirement
	// or instance-stop.
	Code              string
	Description       string
	NotBefore         time.Time
	NotAfter          time.Time
	NotBeforeDeadline time.Time
}

// SetHealth sets the status checks of an instance. The error is
// InvalidInstanceID.NotFound.
func (s *State) SetHealth(id string, h Health) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.find([]string{id})
	if err != nil {
		return err
	}
	found[0].Health = h
	s.tell(found[0], StatusChanged)
	return nil
}

// ScheduleMaintenance puts a scheduled event on an instance, or replaces the one with
// the same id, and returns its id. The error is InvalidInstanceID.NotFound.
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
	if i := slices.IndexFunc(in.Maintenance, func(o Maintenance) bool { return o.ID == m.ID }); i >= 0 {
		in.Maintenance[i] = m
	} else {
		in.Maintenance = append(in.Maintenance, m)
	}
	s.tell(in, StatusChanged)
	return m.ID, nil
}

// EndMaintenance marks a scheduled event as over. EC2 goes on listing it for up to a
// week, its description beginning with [Completed] or [Canceled]. The error is
// InvalidInstanceID.NotFound; an unknown event is left alone.
func (s *State) EndMaintenance(id, eventID string, completed bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, err := s.find([]string{id})
	if err != nil {
		return err
	}
	mark := "[Canceled] "
	if completed {
		mark = "[Completed] "
	}
	for i := range found[0].Maintenance {
		if m := &found[0].Maintenance[i]; m.ID == eventID && !strings.HasPrefix(m.Description, "[") {
			m.Description = mark + m.Description
			s.tell(found[0], StatusChanged)
		}
	}
	return nil
}

// check is what the API says of one status check of an instance.
func check(in Instance, set string) string {
	switch {
	case in.State == Pending:
		return StatusInitializing
	case in.State != Running:
		return StatusNotApplicable
	case set == "":
		return StatusOK
	default:
		return set
	}
}

// reachability is the detail that goes with a check.
func reachability(status string) string {
	switch status {
	case StatusOK:
		return "passed"
	case StatusImpaired:
		return "failed"
	default:
		return status
	}
}
