package ec2

import (
	"context"
	"slices"
	"strconv"

	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

type subnetsInput struct {
	paging

	IDs     []string `query:"SubnetId"`
	Filters []Filter `query:"Filter"`
}

type subnetReply struct {
	ID        string             `xml:"subnetId"`
	ARN       string             `xml:"subnetArn"`
	State     string             `xml:"state"`
	OwnerID   string             `xml:"ownerId"`
	VPCID     string             `xml:"vpcId"`
	CIDR      string             `xml:"cidrBlock"`
	Zone      string             `xml:"availabilityZone"`
	ZoneID    string             `xml:"availabilityZoneId"`
	Addresses int                `xml:"availableIpAddressCount"`
	Default   bool               `xml:"defaultForAz"`
	Public    bool               `xml:"mapPublicIpOnLaunch"`
	Tags      wire.Set[tagReply] `xml:"tagSet"`
}

type subnetsReply struct {
	Subnets   wire.Set[subnetReply] `xml:"subnetSet"`
	NextToken string                `xml:"nextToken,omitempty"`
}

func (a *api) describeSubnets(_ context.Context, _ *wire.Request, in *subnetsInput) (*subnetsReply, error) {
	list, err := byID(a.state.Subnets(), in.IDs, func(n Subnet) string { return n.ID }, subnetNotFound)
	if err != nil {
		return nil, err
	}
	free := func(n Subnet) string { return strconv.Itoa(a.state.freeAddresses(n)) }
	list, err = filtered(list, in.Filters, func(n Subnet) map[string]string { return a.state.tagsOn(n.ID) }, map[string]field[Subnet]{
		"availability-zone":          one(func(n Subnet) string { return n.Zone }),
		"availability-zone-id":       one(func(n Subnet) string { return n.ZoneID }),
		"available-ip-address-count": one(free),
		"cidr-block":                 one(func(n Subnet) string { return n.CIDR }),
		"default-for-az":             one(func(Subnet) string { return "true" }),
		"owner-id":                   one(func(Subnet) string { return a.state.scope.Account }),
		"state":                      one(func(Subnet) string { return "available" }),
		"subnet-id":                  one(func(n Subnet) string { return n.ID }),
		"vpc-id":                     one(func(Subnet) string { return vpcID }),
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
			Addresses: a.state.freeAddresses(n), Default: true, Tags: tagsToWire(a.state.tagsOn(n.ID)),
		})
	}
	return out, err
}

// byID returns the items with the given ids, or all; missing makes the error for an unknown id.
func byID[T any](list []T, ids []string, id func(T) string, missing func(string) error) ([]T, error) {
	for _, want := range ids {
		if !slices.ContainsFunc(list, func(t T) bool { return id(t) == want }) {
			return nil, missing(want)
		}
	}
	if len(ids) == 0 {
		return list, nil
	}
	return slices.DeleteFunc(list, func(t T) bool { return !slices.Contains(ids, id(t)) }), nil
}

type groupsInput struct {
	paging

	IDs     []string `query:"GroupId"`
	Names   []string `query:"GroupName"`
	Filters []Filter `query:"Filter"`
}

type securityGroupReply struct {
	ID          string             `xml:"groupId"`
	Name        string             `xml:"groupName"`
	Description string             `xml:"groupDescription"`
	OwnerID     string             `xml:"ownerId"`
	VPCID       string             `xml:"vpcId"`
	ARN         string             `xml:"securityGroupArn"`
	Tags        wire.Set[tagReply] `xml:"tagSet"`
}

type groupsReply struct {
	Groups    wire.Set[securityGroupReply] `xml:"securityGroupInfo"`
	NextToken string                       `xml:"nextToken,omitempty"`
}

func (a *api) describeSecurityGroups(_ context.Context, _ *wire.Request, in *groupsInput) (*groupsReply, error) {
	list, err := byID(a.state.SecurityGroups(), in.IDs, func(g SecurityGroup) string { return g.ID }, groupNotFound)
	if err != nil {
		return nil, err
	}
	if list, err = byID(list, in.Names, func(g SecurityGroup) string { return g.Name }, groupNotFound); err != nil {
		return nil, err
	}
	list, err = filtered(list, in.Filters, func(g SecurityGroup) map[string]string { return a.state.tagsOn(g.ID) }, map[string]field[SecurityGroup]{
		"description": one(func(g SecurityGroup) string { return g.Description }),
		"group-id":    one(func(g SecurityGroup) string { return g.ID }),
		"group-name":  one(func(g SecurityGroup) string { return g.Name }),
		"owner-id":    one(func(SecurityGroup) string { return a.state.scope.Account }),
		"vpc-id":      one(func(SecurityGroup) string { return vpcID }),
	})
	if err != nil {
		return nil, err
	}
	list, next, err := page(list, in.paging, 5)
	out := &groupsReply{NextToken: next}
	for _, g := range list {
		out.Groups = append(out.Groups, securityGroupReply{
			g.ID, g.Name, g.Description, a.state.scope.Account, vpcID,
			a.state.scope.ARN("ec2", "security-group/"+g.ID), tagsToWire(a.state.tagsOn(g.ID)),
		})
	}
	return out, err
}

type vpcsInput struct {
	paging

	IDs     []string `query:"VpcId"`
	Filters []Filter `query:"Filter"`
}

type vpcReply struct {
	ID      string             `xml:"vpcId"`
	OwnerID string             `xml:"ownerId"`
	State   string             `xml:"state"`
	CIDR    string             `xml:"cidrBlock"`
	Tenancy string             `xml:"instanceTenancy"`
	Default bool               `xml:"isDefault"`
	Tags    wire.Set[tagReply] `xml:"tagSet"`
}

type vpcsReply struct {
	VPCs      wire.Set[vpcReply] `xml:"vpcSet"`
	NextToken string             `xml:"nextToken,omitempty"`
}

func (a *api) describeVPCs(_ context.Context, _ *wire.Request, in *vpcsInput) (*vpcsReply, error) {
	list, err := byID([]string{vpcID}, in.IDs, func(id string) string { return id }, resourceNotFound)
	if err != nil {
		return nil, err
	}
	list, err = filtered(list, in.Filters, a.state.tagsOn, map[string]field[string]{
		"cidr":       one(func(string) string { return vpcCIDR }),
		"is-default": one(func(string) string { return "true" }),
		"owner-id":   one(func(string) string { return a.state.scope.Account }),
		"state":      one(func(string) string { return "available" }),
		"vpc-id":     one(func(id string) string { return id }),
	})
	if err != nil {
		return nil, err
	}
	list, next, err := page(list, in.paging, 5)
	out := &vpcsReply{NextToken: next}
	for _, id := range list {
		out.VPCs = append(out.VPCs, vpcReply{id, a.state.scope.Account, "available", vpcCIDR, "default", true, tagsToWire(a.state.tagsOn(id))})
	}
	return out, err
}
