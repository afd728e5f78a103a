package ec2

import (
	"maps"
	"time"
)

// SpotRequest is a spot request and its state.
type SpotRequest struct {
	ID           string // sir- and 8 letters or digits
	InstanceID   string
	ImageID      string
	InstanceType string
	Zone         string
	Persistent   bool
	Behaviour    Behaviour
	// State is open, active, disabled, closed or cancelled.
	State      string
	Status     SpotStatus
	CreateTime time.Time
	Tags       map[string]string
}

// SpotStatus is the detailed state of a spot request (EC2 User Guide, Get the status of a Spot
// Instance request).
type SpotStatus struct {
	Code, Message string
	UpdateTime    time.Time
}

// Reasons for the interruption of a spot instance; they end the status codes of its request
// ("instance-terminated-no-capacity").
const (
	ReasonNoCapacity = "no-capacity"
	ReasonOversold   = "capacity-oversubscribed"
	ReasonPrice      = "by-price"
	ReasonService    = "by-service"
	ReasonExperiment = "by-experiment"
	reasonUser       = "by-user"
)

// statusMessage explains the status codes in one sentence each.
func statusMessage(code string) string {
	switch code {
	case "fulfilled":
		return "Your Spot request is fulfilled."
	case "marked-for-termination":
		return "Your Spot Instance is marked for termination."
	case "marked-for-stop", "marked-for-stop-by-experiment":
		return "Your Spot Instance is marked for stopping."
	case "instance-terminated-by-user":
		return "Your Spot Instance was terminated by a user."
	case "instance-terminated-no-capacity":
		return "Your Spot Instance was terminated because there is no Spot capacity available."
	case "instance-terminated-by-experiment":
		return "Your Spot Instance was terminated by an experiment."
	case "request-canceled-and-instance-running":
		return "Your Spot request is canceled, but your instance is still running."
	default:
		return "Your Spot request has the status " + code + "."
	}
}

// mark sets the status of a request, and publishes the request to the replicas. It needs the lock.
func (s *State) mark(r *SpotRequest, code string, now time.Time) {
	r.Status = SpotStatus{Code: code, Message: statusMessage(code), UpdateTime: now}
	s.requestReplicas.Put(r.ID, r.clone())
}

func (r SpotRequest) clone() SpotRequest {
	r.Tags = maps.Clone(r.Tags)
	return r
}

// SpotRequests lists every spot request, oldest first.
func (s *State) SpotRequests() []SpotRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]SpotRequest, 0, len(s.requestOrder))
	for _, id := range s.requestOrder {
		out = append(out, s.requests[id].clone())
	}
	return out
}

// seenRequests lists the spot requests that the replicas have, oldest first.
func (s *State) seenRequests() []SpotRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []SpotRequest
	for _, id := range s.requestOrder {
		if r, ok := s.requestReplicas.Get(id); ok {
			out = append(out, r.clone())
		}
	}
	return out
}

// CancelSpotRequests cancels requests and returns them. A running instance continues. The error is
// InvalidSpotInstanceRequestID.NotFound, and then no request is cancelled.
func (s *State) CancelSpotRequests(ids []string) ([]SpotRequest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		if s.requests[id] == nil {
			return nil, spotRequestNotFound(id)
		}
	}
	out := make([]SpotRequest, 0, len(ids))
	for _, id := range ids {
		r := s.requests[id]
		s.cancel(r)
		out = append(out, r.clone())
	}
	return out, nil
}

// cancel needs the lock.
func (s *State) cancel(r *SpotRequest) {
	if r.State == "closed" || r.State == "cancelled" {
		return
	}
	r.State = "cancelled"
	code := "canceled-before-fulfillment"
	if in := s.instances[r.InstanceID]; in != nil && in.State != Terminated && in.State != ShuttingDown {
		code = "request-canceled-and-instance-running"
	}
	s.mark(r, code, time.Now())
}

// closeSpotRequest records on the spot request that its instance ended or stopped; reason is one of
// the Reason constants. It needs the lock.
func (s *State) closeSpotRequest(in *instance, outcome, reason string) {
	r := s.requests[in.SpotRequestID]
	if r == nil {
		return
	}
	now := time.Now()
	if r.State != "cancelled" {
		switch {
		case outcome == "stopped":
			r.State = "disabled"
		case r.Persistent:
			r.State = "open"
		default:
			r.State = "closed"
		}
	}
	s.mark(r, "instance-"+outcome+"-"+reason, now)
}
