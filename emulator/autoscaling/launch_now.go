package autoscaling

import (
	"errors"
	"reflect"
	"slices"

	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// LaunchRequest asks a group to launch instances immediately, in the given zones or subnets.
type LaunchRequest struct {
	Group, Token   string
	Count          int
	Zones, Subnets []string
	// Retry lets the group launch the missing instances later, in any of its subnets.
	Retry bool
}

// Launched is the result of a LaunchRequest.
type Launched struct {
	Request   LaunchRequest
	Instances []Member
	SubnetIDs []string // of the instances
	Errors    []LaunchError
}

// LaunchError is why a launch in a subnet failed.
type LaunchError struct {
	Zone, SubnetID, Code, Message string
}

// maxLaunch is the largest number of instances of one LaunchInstances call (Amazon EC2 Auto Scaling
// API Reference, LaunchInstances).
const maxLaunch = 100

// LaunchNow launches instances into a group immediately, and raises its desired capacity by the
// same number. A call that repeats a token returns the result of the first. Errors:
// ValidationError; IdempotentParameterMismatch.
func (s *State) LaunchNow(r LaunchRequest) (Launched, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if done, ok := s.launches[r.Token]; ok {
		if !reflect.DeepEqual(done.Request, r) {
			return Launched{}, wire.Errorf("IdempotentParameterMismatch", "The parameters of this request differ from those of an earlier one with the same client token.")
		}
		return done, nil
	}
	g, subnets, err := s.checkLaunch(r)
	if err != nil {
		return Launched{}, err
	}
	out, t := Launched{Request: r}, s.memberCounts(g)
	for range r.Count {
		m, err := s.launch(g, ColdStart, "an instance was started in response to a LaunchInstances request.", subnets, t)
		if err != nil {
			out.fail(subnets, err)
			break
		}
		in, _ := s.ec2.Instance(m.InstanceID)
		out.Instances, out.SubnetIDs = append(out.Instances, m.Member), append(out.SubnetIDs, in.SubnetID)
	}
	g.Desired += len(out.Instances)
	if r.Retry {
		g.Desired += r.Count - len(out.Instances)
	}
	s.launches[r.Token] = out
	s.scheduleEvaluation(g)
	return out, nil
}

func (l *Launched) fail(subnets []ec2.Subnet, err error) {
	e := LaunchError{Code: "InternalError", Message: err.Error()}
	var known *wire.Error
	if errors.As(err, &known) {
		e.Code, e.Message = known.Code, known.Message
	}
	for _, n := range subnets {
		e.Zone, e.SubnetID = n.Zone, n.ID
		l.Errors = append(l.Errors, e)
	}
}

func (r LaunchRequest) check() error {
	switch {
	case r.Token == "":
		return constraint("", "clientToken", "not be null")
	case r.Count < 1 || r.Count > maxLaunch:
		return constraint(r.Count, "requestedCapacity", "have value between 1 and 100")
	default:
		return nil
	}
}

// checkLaunch finds the group and the subnets of a request. It needs the lock.
func (s *State) checkLaunch(r LaunchRequest) (*group, []ec2.Subnet, error) {
	g, err := s.find(r.Group)
	if err == nil {
		err = r.check()
	}
	switch {
	case err != nil:
		return nil, nil, err
	case !g.hasTemplate():
		return nil, nil, validation("LaunchInstances needs a group with a launch template.")
	case !g.does(Launch):
		return nil, nil, validation("The Launch process of the group %s is suspended.", g.Name)
	case g.Desired+r.Count > g.Max:
		return nil, nil, outOfBounds("launch", g, r.Count)
	}
	all := s.subnetsByCount(g, s.memberCounts(g), false)
	if len(all) > 1 && len(r.Zones)+len(r.Subnets) == 0 {
		return nil, nil, validation("AvailabilityZones or SubnetIds must be specified for a group in more than one Availability Zone.")
	}
	subnets := slices.DeleteFunc(all, func(n ec2.Subnet) bool {
		return len(r.Zones) > 0 && !slices.Contains(r.Zones, n.Zone) || len(r.Subnets) > 0 && !slices.Contains(r.Subnets, n.ID)
	})
	if len(subnets) == 0 {
		return nil, nil, validation("The Availability Zones and subnets must be among those of the group %s.", g.Name)
	}
	return g, subnets, nil
}
