package ec2

import (
	"context"
	"slices"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// The pool members of the answers of CreateFleet and DescribeFleets.
type (
	fleetSpecReply struct {
		ID      string `xml:"launchTemplateId"`
		Version string `xml:"version"`
	}
	fleetOverrideReply struct {
		InstanceType     string   `xml:"instanceType,omitempty"`
		MaxPrice         string   `xml:"maxPrice,omitempty"`
		SubnetID         string   `xml:"subnetId,omitempty"`
		Zone             string   `xml:"availabilityZone,omitempty"`
		ZoneID           string   `xml:"availabilityZoneId,omitempty"`
		WeightedCapacity *float64 `xml:"weightedCapacity"`
		Priority         *float64 `xml:"priority"`
		ImageID          string   `xml:"imageId,omitempty"`
	}
	fleetPoolReply struct {
		Template  fleetSpecReply     `xml:"launchTemplateSpecification"`
		Overrides fleetOverrideReply `xml:"overrides"`
	}
	fleetInstancesReply struct {
		Pool      fleetPoolReply   `xml:"launchTemplateAndOverrides"`
		Lifecycle string           `xml:"lifecycle"`
		IDs       wire.Set[string] `xml:"instanceIds"`
		Type      string           `xml:"instanceType"`
		Zone      string           `xml:"availabilityZone"`
		ZoneID    string           `xml:"availabilityZoneId"`
		SubnetID  string           `xml:"subnetId"`
	}
	fleetErrorReply struct {
		Pool      fleetPoolReply `xml:"launchTemplateAndOverrides"`
		Lifecycle string         `xml:"lifecycle"`
		Code      string         `xml:"errorCode"`
		Message   string         `xml:"errorMessage"`
	}
	createFleetReply struct {
		ID        string                        `xml:"fleetId"`
		Errors    wire.Set[fleetErrorReply]     `xml:"errorSet"`
		Instances wire.Set[fleetInstancesReply] `xml:"fleetInstanceSet"`
	}
)

func (a *api) createFleet(_ context.Context, _ *wire.Request, in *FleetInput) (*createFleetReply, error) {
	f, err := a.state.CreateFleet(*in)
	if err != nil {
		return nil, err
	}
	return &createFleetReply{f.ID, fleetErrorsToWire(f), fleetInstancesToWire(f)}, nil
}

func poolToWire(p FleetPool) fleetPoolReply {
	o := p.Override
	return fleetPoolReply{
		fleetSpecReply{p.Template.ID, p.Template.Version},
		fleetOverrideReply{
			o.InstanceType, o.MaxPrice, o.SubnetID, o.AvailabilityZone, o.AvailabilityZoneID, o.WeightedCapacity, o.Priority, o.ImageID,
		},
	}
}

func fleetInstancesToWire(f Fleet) wire.Set[fleetInstancesReply] {
	var out wire.Set[fleetInstancesReply]
	for _, i := range f.Instances {
		out = append(out, fleetInstancesReply{poolToWire(i.Pool), i.Lifecycle, i.IDs, i.Type, i.Zone, zoneID(i.Zone), i.SubnetID})
	}
	return out
}

func fleetErrorsToWire(f Fleet) wire.Set[fleetErrorReply] {
	var out wire.Set[fleetErrorReply]
	for _, e := range f.Errors {
		out = append(out, fleetErrorReply{poolToWire(e.Pool), e.Lifecycle, e.Code, e.Message})
	}
	return out
}

type fleetsInput struct {
	paging

	IDs     []string `query:"FleetId"`
	Filters []Filter `query:"Filter"`
}

type targetReply struct {
	Total       int    `xml:"totalTargetCapacity"`
	OnDemand    int    `xml:"onDemandTargetCapacity"`
	Spot        int    `xml:"spotTargetCapacity"`
	DefaultType string `xml:"defaultTargetCapacityType"`
}

type fleetReply struct {
	ID          string                        `xml:"fleetId"`
	State       string                        `xml:"fleetState"`
	Type        string                        `xml:"type"`
	Created     wire.Time                     `xml:"createTime"`
	ClientToken string                        `xml:"clientToken,omitempty"`
	Fulfilled   float64                       `xml:"fulfilledCapacity"`
	OnDemand    float64                       `xml:"fulfilledOnDemandCapacity"`
	Target      targetReply                   `xml:"targetCapacitySpecification"`
	Errors      wire.Set[fleetErrorReply]     `xml:"errorSet"`
	Instances   wire.Set[fleetInstancesReply] `xml:"fleetInstanceSet"`
	Tags        wire.Set[tagReply]            `xml:"tagSet"`
}

type fleetsReply struct {
	Fleets    wire.Set[fleetReply] `xml:"fleetSet"`
	NextToken string               `xml:"nextToken,omitempty"`
}

// describeFleets lists instant fleets only when they are asked for by id, as EC2 does.
func (a *api) describeFleets(_ context.Context, _ *wire.Request, in *fleetsInput) (*fleetsReply, error) {
	if len(in.IDs) == 0 {
		return &fleetsReply{}, nil
	}
	list, err := byID(a.state.Fleets(), in.IDs, func(f Fleet) string { return f.ID }, resourceNotFound)
	if err != nil {
		return nil, err
	}
	list, err = filtered(list, in.Filters, func(f Fleet) map[string]string { return f.Tags }, map[string]field[Fleet]{
		"fleet-state": one(func(Fleet) string { return "active" }),
		"type":        one(func(f Fleet) string { return f.Input.Type }),
	})
	if err != nil {
		return nil, err
	}
	list, next, err := page(list, in.paging, 1)
	out := &fleetsReply{NextToken: next}
	for _, f := range list {
		out.Fleets = append(out.Fleets, fleetToWire(f))
	}
	return out, err
}

func fleetToWire(f Fleet) fleetReply {
	onDemand, spot := f.Input.Target.split()
	return fleetReply{
		ID: f.ID, State: "active", Type: f.Input.Type, Created: wire.Time{Time: f.Created}, ClientToken: f.Input.ClientToken,
		Fulfilled: f.fulfilled(OnDemand, Spot), OnDemand: f.fulfilled(OnDemand),
		Target: targetReply{f.Input.Target.Total, onDemand, spot, f.Input.Target.DefaultType},
		Errors: fleetErrorsToWire(f), Instances: fleetInstancesToWire(f), Tags: tagsToWire(f.Tags),
	}
}

// fulfilled is how many units of the given lifecycles the fleet launched.
func (f Fleet) fulfilled(lifecycles ...string) float64 {
	sum := 0.0
	for _, i := range f.Instances {
		if slices.Contains(lifecycles, i.Lifecycle) {
			sum += float64(len(i.IDs)) * i.Pool.weight()
		}
	}
	return sum
}
