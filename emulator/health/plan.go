package health

import (
	"cmp"
	"fmt"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// Plan is scheduled maintenance of instances.
type Plan struct {
	InstanceIDs []string
	// Code is EC2's: instance-stop, instance-retirement, instance-reboot, system-reboot
	// or system-maintenance.
	Code string
	// HealthCode is Health's event type code; default: the one that goes with Code.
	HealthCode string
	// NotBefore is when it happens, NotAfter when it is over at the latest, Deadline how
	// far NotBefore could be put off.
	NotBefore, NotAfter, Deadline time.Time
	Description                   string
	Form                          Form
}

// healthCode is Health's usual code for a scheduled event of EC2.
func healthCode(code string) string {
	switch code {
	case "instance-stop":
		return "AWS_EC2_INSTANCE_STOP_SCHEDULED"
	case "instance-retirement":
		return "AWS_EC2_PERSISTENT_INSTANCE_RETIREMENT_SCHEDULED"
	case "instance-reboot":
		return "AWS_EC2_INSTANCE_REBOOT_MAINTENANCE_SCHEDULED"
	case "system-reboot":
		return "AWS_EC2_SYSTEM_REBOOT_MAINTENANCE_SCHEDULED"
	default:
		return "AWS_EC2_INSTANCE_NETWORK_MAINTENANCE_SCHEDULED"
	}
}

// Schedule plans maintenance: EC2 puts a scheduled event on each instance, which
// DescribeInstanceStatus and instance metadata show and which happens at its time. Health
// sends one event about them all. What becomes of it at EC2, Health sends on: an
// instance that is done is resolved, and with the last of them the event is closed. It
// returns the ARN of Health's event. The error is an instance that does not exist; then
// nothing is planned.
func (s *State) Schedule(p Plan) (arn string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range p.InstanceIDs {
		if _, ok := s.ec2.Instance(id); !ok {
			return "", fmt.Errorf("scheduling %s: there is no instance %s", p.Code, id)
		}
	}
	e := Event{
		Code: cmp.Or(p.HealthCode, healthCode(p.Code)), Start: p.NotBefore, End: p.NotAfter,
		Description: p.Description, Form: p.Form,
	}
	plan := map[string]string{}
	for _, id := range p.InstanceIDs {
		event, err := s.ec2.ScheduleMaintenance(id, ec2.Maintenance{
			Code: p.Code, Description: p.Description, NotBefore: p.NotBefore, NotAfter: p.NotAfter, NotBeforeDeadline: p.Deadline,
		})
		if err != nil {
			return "", fmt.Errorf("scheduling %s: %w", p.Code, err)
		}
		plan[id] = event
		e.Entities = append(e.Entities, Entity{ID: id})
	}
	return s.open(e, plan), nil
}

// Planned returns the ids of EC2's scheduled events that a Health event is about, by
// instance.
func (s *State) Planned(arn string) map[string]string {
	out := map[string]string{}
	// An unknown event has none.
	_ = s.with(arn, func(r *record) error {
		for id, event := range r.plan {
			out[id] = event
		}
		return nil
	})
	return out
}

// move changes the times of a scheduled event of EC2.
func (s *State) move(instanceID, event string, start, end time.Time) error {
	m, ok := s.scheduled(instanceID, event)
	if !ok {
		return fmt.Errorf("%s of %s is gone", event, instanceID)
	}
	m.NotBefore, m.NotAfter = start, end
	_, err := s.ec2.ScheduleMaintenance(instanceID, m)
	return err
}

func (s *State) scheduled(instanceID, event string) (ec2.Maintenance, bool) {
	in, ok := s.ec2.Instance(instanceID)
	if !ok {
		return ec2.Maintenance{}, false
	}
	for _, m := range in.Maintenance {
		if m.ID == event {
			return m, true
		}
	}
	return ec2.Maintenance{}, false
}

// follow handles changes of instances, and sends Health's events about them. It uses the current
// state, since the change may be an old one.
func (s *State) follow(c ec2.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.records {
		if event, about := r.plan[c.Instance.ID]; about && r.Status != Closed {
			m, ok := s.scheduled(c.Instance.ID, event)
			s.catchUp(r, c.Instance.ID, m, ok && m.State == ec2.MaintenanceActive)
		}
	}
}

// catchUp needs the lock.
func (s *State) catchUp(r *record, instanceID string, m ec2.Maintenance, active bool) {
	for i, x := range r.Entities {
		switch {
		case x.ID != instanceID || x.Status == Resolved:
		case !active:
			if !r.Start.After(time.Now()) {
				s.begin(r)
			}
			r.Entities[i].Status = Resolved
			if r.over() {
				s.close(r)
			} else {
				s.update(r)
			}
		case !m.NotBefore.Equal(r.Start) && len(r.plan) == 1:
			// EC2 has moved it. Several instances could move to different times, so Health's event
			// then keeps its time.
			s.reschedule(r, m.NotBefore, m.NotAfter)
		}
	}
}
