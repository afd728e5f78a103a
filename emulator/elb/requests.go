package elb

import (
	"context"
	"strconv"
	"time"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// api turns requests into calls on the state.
type api struct{ state *State }

// input has the members of all actions.
type input struct {
	Name            string
	Protocol        string
	Port            int
	VPC             string `query:"VpcId"`
	TargetType      string
	TargetGroupArn  string
	TargetGroupArns []string
	Names           []string
	Targets         []Target
	Attributes      []attribute
}

type attribute struct{ Key, Value string }

// attributeDelay is the one attribute that the emulator has.
const attributeDelay = "deregistration_delay.timeout_seconds"

type groupReply struct {
	ARN        string `xml:"TargetGroupArn"`
	Name       string `xml:"TargetGroupName"`
	Protocol   string
	Port       int
	VPC        string `xml:"VpcId,omitempty"`
	TargetType string
}

type groupsOutput struct {
	TargetGroups wire.Members[groupReply]
}

func groupsToWire(groups ...group) *groupsOutput {
	out := &groupsOutput{}
	for _, g := range groups {
		out.TargetGroups = append(out.TargetGroups, groupReply{g.ARN, g.Name, g.Protocol, g.Port, g.VPC, g.Type})
	}
	return out
}

func (a *api) createTargetGroup(_ context.Context, _ *wire.Request, in *input) (*groupsOutput, error) {
	g, err := a.state.create(&group{Name: in.Name, Protocol: in.Protocol, Port: in.Port, VPC: in.VPC, Type: in.TargetType})
	if err != nil {
		return nil, err
	}
	return groupsToWire(g), nil
}

func (a *api) describeTargetGroups(_ context.Context, _ *wire.Request, in *input) (*groupsOutput, error) {
	found, err := a.state.list(in.TargetGroupArns, in.Names)
	return groupsToWire(found...), err
}

// empty is the output of actions whose result is an empty element.
type empty struct{}

func (a *api) deleteTargetGroup(_ context.Context, _ *wire.Request, in *input) (*empty, error) {
	a.state.delete(in.TargetGroupArn)
	return &empty{}, nil
}

func (a *api) registerTargets(_ context.Context, _ *wire.Request, in *input) (*empty, error) {
	return &empty{}, a.state.Register(in.TargetGroupArn, in.Targets...)
}

func (a *api) deregisterTargets(_ context.Context, _ *wire.Request, in *input) (*empty, error) {
	return &empty{}, a.state.Deregister(in.TargetGroupArn, in.Targets...)
}

type attributesOutput struct{ Attributes wire.Members[attribute] }

func (a *api) describeAttributes(_ context.Context, _ *wire.Request, in *input) (*attributesOutput, error) {
	found, err := a.state.list([]string{in.TargetGroupArn}, nil)
	if err != nil {
		return nil, err
	}
	seconds := strconv.Itoa(int(found[0].Delay / time.Second))
	return &attributesOutput{wire.Members[attribute]{{attributeDelay, seconds}}}, nil
}

func (a *api) modifyAttributes(ctx context.Context, r *wire.Request, in *input) (*attributesOutput, error) {
	for _, set := range in.Attributes {
		seconds, err := strconv.Atoi(set.Value)
		switch {
		case set.Key != attributeDelay:
			return nil, invalid("this emulator does not have the target group attribute '%s'", set.Key)
		case err != nil:
			return nil, invalid("'%s' is not a number of seconds", set.Value)
		}
		if err := a.state.SetDelay(in.TargetGroupArn, time.Duration(seconds)*time.Second); err != nil {
			return nil, err
		}
	}
	return a.describeAttributes(ctx, r, in)
}

type healthReply struct {
	Target struct {
		ID   string `xml:"Id"`
		Port int
	}
	HealthCheckPort int
	TargetHealth    struct {
		State       string
		Reason      string `xml:",omitempty"`
		Description string `xml:",omitempty"`
	}
}

type healthOutput struct {
	Descriptions wire.Members[healthReply] `xml:"TargetHealthDescriptions"`
}

// describeTargetHealth is not paged on AWS.
func (a *api) describeTargetHealth(_ context.Context, _ *wire.Request, in *input) (*healthOutput, error) {
	found, err := a.state.Health(in.TargetGroupArn, in.Targets...)
	out := &healthOutput{}
	for _, h := range found {
		var reply healthReply
		reply.Target.ID, reply.Target.Port, reply.HealthCheckPort = h.ID, h.Port, h.Port
		reply.TargetHealth.State, reply.TargetHealth.Reason, reply.TargetHealth.Description = h.State, h.Reason, descriptions[h.Reason]
		out.Descriptions = append(out.Descriptions, reply)
	}
	return out, err
}

// descriptions are the sentences that AWS adds to a reason.
var descriptions = map[string]string{
	reasonInitial:       "Initial health checks in progress",
	reasonDraining:      "Target deregistration is in progress",
	reasonNotRegistered: "Target is not registered to the target group",
	reasonStopped:       "Target is in the stopped state",
}
