package ec2

import "time"

// The results of a status check (EC2 API Reference, InstanceStatusSummary).
const (
	StatusOK               = "ok"
	StatusImpaired         = "impaired"
	StatusInsufficientData = "insufficient-data"
	StatusInitializing     = "initializing"
	StatusNotApplicable    = "not-applicable"
)

// Health is the status checks of a running instance; an empty check is ok.
type Health struct {
	Instance, System, AttachedEBS string
	// ImpairedSince is when reachability was lost; zero: it was not.
	ImpairedSince time.Time
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
	s.notify(found[0], StatusChanged)
	return nil
}

// check is the API's form of one status check.
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

// reachability is the detail of a check.
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
