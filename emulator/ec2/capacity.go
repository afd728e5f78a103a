package ec2

import (
	"fmt"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/events"
)

// expiryLead is how long before the end of a Capacity Block EC2 begins to terminate
// its instances (EC2 User Guide, Capacity Blocks for ML).
const expiryLead = 30 * time.Minute

// ReclaimOptions says how EC2 takes back instances in reserved capacity.
type ReclaimOptions struct {
	// Notice is the time from the warning to the reclaim; default two minutes.
	Notice time.Duration
	// ScalarResources sends the event's resources as one string, as the sample in the EC2 User
	// Guide shows.
	ScalarResources bool
}

// NotReservedError says that an instance cannot be reclaimed with its capacity reservation: it does
// not run, or has no reservation.
type NotReservedError struct{ ID string }

func (e *NotReservedError) Error() string {
	return fmt.Sprintf("reclaiming %s: it does not run in a capacity block or an interruptible capacity reservation", e.ID)
}

type (
	reservationDetail struct {
		ID              string    `json:"instance-id"`
		Action          Behaviour `json:"instance-action"`
		TerminationTime string    `json:"instance-termination-time"`
		ZoneID          string    `json:"azId"`
	}
	blockDetail struct {
		ID              string    `json:"instance-id"`
		Action          Behaviour `json:"instance-action"`
		TerminationTime string    `json:"instance-termination-time"`
		ZoneID          string    `json:"availability-zone-id"`
		Lifecycle       string    `json:"instance-lifecycle"`
	}
	expiryDetail struct {
		ReservationID string `json:"capacity-reservation-id"`
		EndDate       string `json:"end-date"`
	}
)

const wireTime = "2006-01-02T15:04:05Z"

// Reclaim makes EC2 take back instances in a capacity block or an interruptible capacity
// reservation. EC2 sends a Capacity Reservation Instance Interruption Warning with the deadline,
// and terminates the instances then. All ids are checked first; the error is a *NotReservedError.
// Instance metadata does not show it.
func (s *State) Reclaim(ids []string, o ReclaimOptions) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if in := s.instances[id]; in == nil || in.Market == "" || in.State != Running {
			return &NotReservedError{ID: id}
		}
	}
	if o.Notice == 0 {
		o.Notice = WarningLead
	}
	for _, id := range ids {
		s.reclaimReserved(s.instances[id], o)
	}
	return nil
}

// reclaimReserved needs the lock.
func (s *State) reclaimReserved(in *instance, o ReclaimOptions) {
	r := &reclaim{behaviour: Terminate, deadline: time.Now().Add(o.Notice)}
	in.reclaim = r
	at := r.deadline.UTC().Format(wireTime)
	var detail any = reservationDetail{in.ID, Terminate, at, zoneID(in.Zone)}
	if in.Market == CapacityBlock {
		detail = blockDetail{in.ID, Terminate, at, zoneID(in.Zone), in.Market}
	}
	s.outbox.put(effect{event: &events.Event{
		Source: "aws.ec2", DetailType: "EC2 Capacity Reservation Instance Interruption Warning", Time: time.Now(),
		Resources: []string{s.arn(in)}, Detail: events.Detail(detail), ScalarResources: o.ScalarResources,
	}})
	s.notify(in, Warned)
	s.clock.After(o.Notice, func() {
		if in.reclaim == r {
			s.end(in, byCapacity, "")
		}
	})
}

// ExpireBlock ends a Capacity Block. EC2 sends the Capacity Block Reservation Expiration Warning,
// which names no instance. After notice (on AWS and by default ten minutes) it terminates every
// instance in the block.
func (s *State) ExpireBlock(reservationID string, notice time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if notice == 0 {
		notice = 10 * time.Minute
	}
	s.emit("Capacity Block Reservation Expiration Warning", s.scope.ARN("ec2", "capacity-reservation/"+reservationID),
		expiryDetail{reservationID, time.Now().Add(notice + expiryLead).UTC().Format(wireTime)})
	s.clock.After(notice, func() {
		for _, id := range s.order {
			in := s.instances[id]
			if in.CapacityReservationID == reservationID && (in.State == Running || in.State == Pending) {
				s.end(in, byCapacity, "")
			}
		}
	})
}
