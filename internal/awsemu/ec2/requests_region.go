package ec2

import (
	"context"
	"slices"

	"github.com/lifeboat-dev/lifeboat/internal/awsemu/wire"
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

type typesInput struct {
	paging

	Types   []string `query:"InstanceType"`
	Filters []Filter `query:"Filter"`
}

type typesReply struct {
	Types     wire.Set[typeReply] `xml:"instanceTypeSet"`
	NextToken string              `xml:"nextToken,omitempty"`
}

func (a *api) describeInstanceTypes(_ context.Context, _ *wire.Request, in *typesInput) (*typesReply, error) {
	list := Types()
	for _, name := range in.Types {
		if _, ok := FindType(name); !ok {
			return nil, wire.Errorf("InvalidInstanceType", "The following supplied instance types do not exist: [%s]", name)
		}
	}
	if len(in.Types) > 0 {
		list = slices.DeleteFunc(list, func(t InstanceType) bool { return !slices.Contains(in.Types, t.Name) })
	}
	always := func(values ...string) field[InstanceType] {
		return func(InstanceType) []string { return values }
	}
	list, err := filtered(list, in.Filters, func(InstanceType) map[string]string { return nil },
		map[string]field[InstanceType]{
			"instance-type":                         one(func(t InstanceType) string { return t.Name }),
			"current-generation":                    always("true"),
			"bare-metal":                            always("false"),
			"processor-info.supported-architecture": always(architecture),
			"supported-usage-class":                 always("on-demand", "spot"),
			"supported-virtualization-type":         always("hvm"),
		})
	if err != nil {
		return nil, err
	}
	list, next, err := page(list, in.paging, 5)
	out := &typesReply{NextToken: next}
	for _, t := range list {
		out.Types = append(out.Types, typeToWire(t))
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

type subnetsInput struct {
	paging

	IDs     []string `query:"SubnetId"`
	Filters []Filter `query:"Filter"`
}

type subnetsReply struct {
	Subnets   wire.Set[subnetReply] `xml:"subnetSet"`
	NextToken string                `xml:"nextToken,omitempty"`
}

func (a *api) describeSubnets(_ context.Context, _ *wire.Request, in *subnetsInput) (*subnetsReply, error) {
	list := a.state.Subnets()
	for _, id := range in.IDs {
		if !slices.ContainsFunc(list, func(n Subnet) bool { return n.ID == id }) {
			return nil, subnetNotFound(id)
		}
	}
	if len(in.IDs) > 0 {
		list = slices.DeleteFunc(list, func(n Subnet) bool { return !slices.Contains(in.IDs, n.ID) })
	}
	list, err := filtered(list, in.Filters, func(Subnet) map[string]string { return nil }, map[string]field[Subnet]{
		"availability-zone":    one(func(n Subnet) string { return n.Zone }),
		"availability-zone-id": one(func(n Subnet) string { return n.ZoneID }),
		"subnet-id":            one(func(n Subnet) string { return n.ID }),
		"vpc-id":               one(func(Subnet) string { return vpcID }),
		"default-for-az":       one(func(Subnet) string { return "true" }),
	})
	if err != nil {
		return nil, err
	}
	list, next, err := page(list, in.paging, 5)
	out := &subnetsReply{NextToken: next}
	for _, n := range list {
		out.Subnets = append(out.Subnets, subnetReply{
			ID: n.ID, ARN: a.state.scope.ARN("ec2", "subnet/"+n.ID), State: "available",
			OwnerID: a.state.scope.Account, VPCID: vpcID, CIDR: n.CIDR, Zone: n.Zone, ZoneID: n.ZoneID,
			Addresses: a.state.freeAddresses(n), Default: true,
		})
	}
	return out, err
}

type regionsReply struct {
	Regions wire.Set[regionReply] `xml:"regionInfo"`
}

// describeRegions knows one region: the emulator plays no other.
func (a *api) describeRegions(context.Context, *wire.Request, *wire.None) (*regionsReply, error) {
	region := a.state.scope.Region
	return &regionsReply{wire.Set[regionReply]{{region, "ec2." + region + ".amazonaws.com", "opt-in-not-required"}}}, nil
}
