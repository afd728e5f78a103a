package ec2

import (
	"fmt"
	"slices"
	"strings"
)

// The emulated account has one VPC with a subnet in each zone.
const (
	vpcID          = "vpc-0a1f3f2be6c5d4e01"
	defaultGroupID = "sg-0a1f3f2be6c5d4e02"
)

// Subnet is the default subnet of one availability zone: a /18 of 10.0.0.0/16.
type Subnet struct {
	ID, Zone, ZoneID string
	CIDR             string
	index            int
}

// A subnet reserves addresses 0 to 3 (VPC User Guide, Subnet sizing); start a little higher so that
// addresses are easy to read.
const (
	firstHost  = 10
	subnetSize = 1 << 14
)

func (n Subnet) capacity() int { return subnetSize - firstHost - 1 }

// address is that of the k-th host, counted from 0.
func (n Subnet) address(k int) string {
	k += firstHost
	return fmt.Sprintf("10.0.%d.%d", n.index*64+k/256, k%256)
}

// Subnets lists the subnets of the region, one a zone, in the order of the zones.
func (s *State) Subnets() []Subnet {
	var out []Subnet
	for i, letter := range []string{"a", "b", "c"} {
		zone := s.scope.Region + letter
		out = append(out, Subnet{
			ID: fmt.Sprintf("subnet-0%016x", hash(zone)), Zone: zone,
			ZoneID: zoneID(zone),
			CIDR:   fmt.Sprintf("10.0.%d.0/18", i*64), index: i,
		})
	}
	return out
}

// zoneID is the id of a zone, the same in every account: eu-west-1b is euw1-az2.
func zoneID(zone string) string {
	if zone == "" {
		return ""
	}
	last := len(zone) - 1
	return fmt.Sprintf("%s-az%d", zonePrefix(zone[:last]), zone[last]-'a'+1)
}

// zonePrefix shortens a region as zone ids do: eu-west-1 is euw1, ap-southeast-2 is
// apse2 (AWS RAM User Guide, Availability Zone IDs).
func zonePrefix(region string) string {
	parts := strings.Split(region, "-")
	var b strings.Builder
	for i, p := range parts {
		switch {
		case i == 0 || i == len(parts)-1:
			b.WriteString(p)
		case strings.HasPrefix(p, "north") && len(p) > 5, strings.HasPrefix(p, "south") && len(p) > 5:
			b.WriteString(p[:1] + p[5:6])
		default:
			b.WriteString(p[:1])
		}
	}
	return b.String()
}

// place returns the subnet that a launch requests.
func (s *State) place(subnetID, zone string) (Subnet, error) {
	all := s.Subnets()
	switch {
	case subnetID != "":
		i := slices.IndexFunc(all, func(n Subnet) bool { return n.ID == subnetID })
		if i < 0 {
			return Subnet{}, subnetNotFound(subnetID)
		}
		if zone != "" && all[i].Zone != zone {
			return Subnet{}, invalidCombination("The subnet '" + subnetID + "' is not in the Availability Zone '" + zone + "'")
		}
		return all[i], nil
	case zone != "":
		i := slices.IndexFunc(all, func(n Subnet) bool { return n.Zone == zone })
		if i < 0 {
			return Subnet{}, invalidValue("Invalid availability zone: [" + zone + "]")
		}
		return all[i], nil
	default:
		return all[0], nil
	}
}

// freeAddresses is how many more instances a subnet can take.
func (s *State) freeAddresses(n Subnet) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return n.capacity() - s.hosts[n.Zone]
}
