package ec2

import (
	"context"
	"slices"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

type listInput struct {
	paging

	Filters []Filter `query:"Filter"`
}

type tagsReply struct {
	Tags      wire.Set[tagListReply] `xml:"tagSet"`
	NextToken string                 `xml:"nextToken,omitempty"`
}

func (a *api) describeTags(_ context.Context, _ *wire.Request, in *listInput) (*tagsReply, error) {
	list, err := filtered(a.state.Tags(), in.Filters,
		func(t Tag) map[string]string { return map[string]string{t.Key: t.Value} },
		map[string]field[Tag]{
			"key":           one(func(t Tag) string { return t.Key }),
			"resource-id":   one(func(t Tag) string { return t.ResourceID }),
			"resource-type": one(func(t Tag) string { return t.ResourceType }),
			"value":         func(t Tag) []string { return []string{t.Value} },
		})
	if err != nil {
		return nil, err
	}
	list, next, err := page(list, in.paging, 5)
	out := &tagsReply{NextToken: next}
	for _, t := range list {
		out.Tags = append(out.Tags, tagListReply(t))
	}
	return out, err
}

type zonesInput struct {
	ZoneNames []string `query:"ZoneName"`
	Filters   []Filter `query:"Filter"`
}

type zonesReply struct {
	Zones wire.Set[zoneReply] `xml:"availabilityZoneInfo"`
}

func (a *api) describeAvailabilityZones(_ context.Context, _ *wire.Request, in *zonesInput) (*zonesReply, error) {
	list := a.state.Subnets()
	for _, name := range in.ZoneNames {
		if !slices.ContainsFunc(list, func(n Subnet) bool { return n.Zone == name }) {
			return nil, invalidValue("Invalid availability zone: [" + name + "]")
		}
	}
	if len(in.ZoneNames) > 0 {
		list = slices.DeleteFunc(list, func(n Subnet) bool { return !slices.Contains(in.ZoneNames, n.Zone) })
	}
	list, err := filtered(list, in.Filters, func(Subnet) map[string]string { return nil }, map[string]field[Subnet]{
		"zone-name":     one(func(n Subnet) string { return n.Zone }),
		"zone-id":       one(func(n Subnet) string { return n.ZoneID }),
		"region-name":   one(func(Subnet) string { return a.state.scope.Region }),
		"state":         one(func(Subnet) string { return "available" }),
		"zone-type":     one(func(Subnet) string { return "availability-zone" }),
		"opt-in-status": one(func(Subnet) string { return "opt-in-not-required" }),
	})
	if err != nil {
		return nil, err
	}
	region, out := a.state.scope.Region, &zonesReply{}
	for _, n := range list {
		out.Zones = append(out.Zones, zoneReply{
			n.Zone, n.ZoneID, "available", region, region, region, "availability-zone", "opt-in-not-required",
		})
	}
	return out, nil
}

type regionsReply struct {
	Regions wire.Set[regionReply] `xml:"regionInfo"`
}

// describeRegions knows one region: the emulator supports no other.
func (a *api) describeRegions(context.Context, *wire.Request, *wire.None) (*regionsReply, error) {
	region := a.state.scope.Region
	return &regionsReply{wire.Set[regionReply]{{region, "ec2." + region + ".amazonaws.com", "opt-in-not-required"}}}, nil
}
