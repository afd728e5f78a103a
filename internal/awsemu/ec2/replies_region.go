package ec2

import (
	"github.com/lifeboat-dev/lifeboat/internal/awsemu/wire"
)

type networkReply struct {
	Interfaces    int         `xml:"maximumNetworkInterfaces"`
	AddressesEach int         `xml:"ipv4AddressesPerInterface"`
	Cards         int         `xml:"maximumNetworkCards"`
	DefaultCard   int         `xml:"defaultNetworkCardIndex"`
	CardList      []cardReply `xml:"networkCards>item"`
}

type cardReply struct {
	Index      int `xml:"networkCardIndex"`
	Interfaces int `xml:"maximumNetworkInterfaces"`
}

type typeReply struct {
	Name           string       `xml:"instanceType"`
	Current        bool         `xml:"currentGeneration"`
	UsageClasses   []string     `xml:"supportedUsageClasses>item"`
	Virtualization []string     `xml:"supportedVirtualizationTypes>item"`
	BareMetal      bool         `xml:"bareMetal"`
	Hypervisor     string       `xml:"hypervisor"`
	Architectures  []string     `xml:"processorInfo>supportedArchitectures>item"`
	VCPU           int          `xml:"vCpuInfo>defaultVCpus"`
	MemoryMiB      int          `xml:"memoryInfo>sizeInMiB"`
	Network        networkReply `xml:"networkInfo"`
}

func typeToWire(t InstanceType) typeReply {
	return typeReply{
		Name: t.Name, Current: true, UsageClasses: []string{"on-demand", "spot"},
		Virtualization: []string{"hvm"}, Hypervisor: "nitro", Architectures: []string{architecture},
		VCPU: t.VCPU, MemoryMiB: t.MemoryMiB,
		Network: networkReply{
			Interfaces: t.Interfaces, AddressesEach: t.AddressesEach, Cards: 1,
			CardList: []cardReply{{0, t.Interfaces}},
		},
	}
}

type zoneReply struct {
	Name    string `xml:"zoneName"`
	ID      string `xml:"zoneId"`
	State   string `xml:"zoneState"`
	Region  string `xml:"regionName"`
	Group   string `xml:"groupName"`
	Border  string `xml:"networkBorderGroup"`
	Type    string `xml:"zoneType"`
	OptedIn string `xml:"optInStatus"`
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
	Tags      wire.Set[tagReply] `xml:"tagSet"`
}

type regionReply struct {
	Name     string `xml:"regionName"`
	Endpoint string `xml:"regionEndpoint"`
	OptedIn  string `xml:"optInStatus"`
}

type tagListReply struct {
	ResourceID   string `xml:"resourceId"`
	ResourceType string `xml:"resourceType"`
	Key          string `xml:"key"`
	Value        string `xml:"value"`
}
