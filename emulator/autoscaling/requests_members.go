package autoscaling

import (
	"context"
	"fmt"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

type membersInput struct {
	Group       string   `query:"AutoScalingGroupName"`
	InstanceIDs []string `query:"InstanceIds"`
	InstanceID  string   `query:"InstanceId"`
	Decrement   *bool    `query:"ShouldDecrementDesiredCapacity"`
	Protected   *bool    `query:"ProtectedFromScaleIn"`
}

// The most instances of one call (Amazon EC2 Auto Scaling API Reference).
const (
	maxMoved      = 20
	maxTerminated = 100
	maxProtected  = 50
)

// check rejects calls without instances, with too many, or with missing parameters.
func (in *membersInput) check(most int, needed *bool, name string) error {
	switch n := len(in.InstanceIDs); {
	case needed == nil && name != "":
		return constraint("", name, "not be null")
	case n == 0:
		return validation("At least one instance ID is required.")
	case n > most:
		return constraint(fmt.Sprintf("[%d ids]", n), "instanceIds", fmt.Sprintf("have length less than or equal to %d", most))
	default:
		return nil
	}
}

const decrement = "shouldDecrementDesiredCapacity"

type activitiesReply struct {
	Activities wire.Members[activityReply]
	NextToken  string `xml:",omitempty"`
}

func (a *api) activities(list []Activity, err error) (*activitiesReply, error) {
	if err != nil {
		return nil, err
	}
	out := &activitiesReply{}
	for _, act := range list {
		out.Activities = append(out.Activities, activityToWire(act, a.state.GroupARN(act.Group)))
	}
	return out, nil
}

func (a *api) detach(_ context.Context, _ *wire.Request, in *membersInput) (*activitiesReply, error) {
	if err := in.check(maxMoved, in.Decrement, decrement); err != nil {
		return nil, err
	}
	return a.activities(a.state.DetachMembers(in.Group, in.InstanceIDs, *in.Decrement))
}

func (a *api) enterStandby(_ context.Context, _ *wire.Request, in *membersInput) (*activitiesReply, error) {
	if err := in.check(maxMoved, in.Decrement, decrement); err != nil {
		return nil, err
	}
	return a.activities(a.state.EnterStandby(in.Group, in.InstanceIDs, *in.Decrement))
}

func (a *api) exitStandby(_ context.Context, _ *wire.Request, in *membersInput) (*activitiesReply, error) {
	if err := in.check(maxMoved, nil, ""); err != nil {
		return nil, err
	}
	return a.activities(a.state.ExitStandby(in.Group, in.InstanceIDs))
}

func (a *api) attach(_ context.Context, _ *wire.Request, in *membersInput) (*wire.None, error) {
	if err := in.check(maxMoved, nil, ""); err != nil {
		return nil, err
	}
	return nil, a.state.AttachRunning(in.Group, in.InstanceIDs)
}

func (a *api) protect(_ context.Context, _ *wire.Request, in *membersInput) (*wire.None, error) {
	if err := in.check(maxProtected, in.Protected, "protectedFromScaleIn"); err != nil {
		return nil, err
	}
	return &wire.None{}, a.state.Protect(in.Group, in.InstanceIDs, *in.Protected)
}

type terminateReply struct {
	Activity   *activityReply `xml:",omitempty"`
	Activities wire.Members[activityReply]
}

// terminate terminates one instance, or several of a named group.
func (a *api) terminate(_ context.Context, _ *wire.Request, in *membersInput) (*terminateReply, error) {
	one := in.InstanceID != ""
	switch {
	case one && len(in.InstanceIDs) > 0:
		return nil, validation("Specify either InstanceId or InstanceIds, but not both.")
	case !one && in.Group == "":
		return nil, validation("AutoScalingGroupName is required with InstanceIds.")
	case one:
		in.InstanceIDs = []string{in.InstanceID}
	}
	if err := in.check(maxTerminated, in.Decrement, decrement); err != nil {
		return nil, err
	}
	for _, id := range in.InstanceIDs {
		if m, ok := a.state.Member(id); ok && in.Group != "" && m.Group != in.Group {
			return nil, notInGroup(id, in.Group)
		}
	}
	list, err := a.activities(a.state.TerminateMember(in.InstanceIDs, *in.Decrement))
	switch {
	case err != nil:
		return nil, err
	case one:
		return &terminateReply{Activity: &list.Activities[0]}, nil
	default:
		return &terminateReply{Activities: list.Activities}, nil
	}
}

type healthInput struct {
	InstanceID   string `query:"InstanceId"`
	HealthStatus string
	RespectGrace *bool `query:"ShouldRespectGracePeriod"`
}

func (a *api) setHealth(_ context.Context, _ *wire.Request, in *healthInput) (*wire.None, error) {
	if in.HealthStatus != "Healthy" && in.HealthStatus != "Unhealthy" {
		return nil, validation("Valid instance health states are: [Healthy, Unhealthy].")
	}
	return nil, a.state.SetHealth(in.InstanceID, in.HealthStatus == "Healthy", in.RespectGrace == nil || *in.RespectGrace)
}

type launchInput struct {
	Group             string `query:"AutoScalingGroupName"`
	ClientToken       string
	RequestedCapacity int
	AvailabilityZones []string
	SubnetIDs         []string `query:"SubnetIds"`
	RetryStrategy     string
}

type (
	launchedReply struct {
		Group       string `xml:"AutoScalingGroupName"`
		ClientToken string
		Instances   wire.Members[collectionReply]
		Errors      wire.Members[launchErrorReply]
	}
	collectionReply struct {
		InstanceType, MarketType string
		SubnetID                 string `xml:"SubnetId"`
		AvailabilityZone         string
		InstanceIDs              wire.Members[string] `xml:"InstanceIds"`
	}
	launchErrorReply struct {
		SubnetID         string `xml:"SubnetId"`
		AvailabilityZone string
		ErrorCode        string
		ErrorMessage     string
	}
)

func (a *api) launch(_ context.Context, _ *wire.Request, in *launchInput) (*launchedReply, error) {
	switch in.RetryStrategy {
	case "", "none", "retry-with-group-configuration":
	default:
		return nil, constraint(in.RetryStrategy, "retryStrategy", "satisfy enum value set: [none, retry-with-group-configuration]")
	}
	done, err := a.state.LaunchNow(LaunchRequest{
		Group: in.Group, Token: in.ClientToken, Count: in.RequestedCapacity, Zones: in.AvailabilityZones, Subnets: in.SubnetIDs,
		Retry: in.RetryStrategy == "retry-with-group-configuration",
	})
	if err != nil {
		return nil, err
	}
	out := &launchedReply{Group: in.Group, ClientToken: in.ClientToken}
	for i, m := range done.Instances {
		market := "OnDemand"
		if m.Spot {
			market = "Spot"
		}
		out.Instances = append(out.Instances, collectionReply{m.Type, market, done.SubnetIDs[i], m.Zone, wire.Members[string]{m.InstanceID}})
	}
	for _, e := range done.Errors {
		out.Errors = append(out.Errors, launchErrorReply{e.SubnetID, e.Zone, e.Code, e.Message})
	}
	return out, nil
}
