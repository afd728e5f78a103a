package ec2

type networkReply struct {
	Performance   string      `xml:"networkPerformance"`
	Interfaces    int         `xml:"maximumNetworkInterfaces"`
	Cards         int         `xml:"maximumNetworkCards"`
	DefaultCard   int         `xml:"defaultNetworkCardIndex"`
	CardList      []cardReply `xml:"networkCards>item"`
	AddressesEach int         `xml:"ipv4AddressesPerInterface"`
	SixesEach     int         `xml:"ipv6AddressesPerInterface"`
	IPv6          bool        `xml:"ipv6Supported"`
	ENA           string      `xml:"enaSupport"`
	EFA           bool        `xml:"efaSupported"`
	Encrypts      bool        `xml:"encryptionInTransitSupported"`
}

type cardReply struct {
	Index       int    `xml:"networkCardIndex"`
	Performance string `xml:"networkPerformance"`
	Interfaces  int    `xml:"maximumNetworkInterfaces"`
}

type processorReply struct {
	Manufacturer  string   `xml:"manufacturer"`
	Architectures []string `xml:"supportedArchitectures>item"`
	ClockGHz      float64  `xml:"sustainedClockSpeedInGhz"`
}

type cpuReply struct {
	VCPU    int `xml:"defaultVCpus"`
	Cores   int `xml:"defaultCores"`
	Threads int `xml:"defaultThreadsPerCore"`
}

type ebsInfoReply struct {
	Optimized  string `xml:"ebsOptimizedSupport"`
	Encryption string `xml:"encryptionSupport"`
	MaxMbps    int    `xml:"ebsOptimizedInfo>maximumBandwidthInMbps"`
	NVMe       string `xml:"nvmeSupport"`
}

type typeReply struct {
	Name           string         `xml:"instanceType"`
	Current        bool           `xml:"currentGeneration"`
	FreeTier       bool           `xml:"freeTierEligible"`
	UsageClasses   []string       `xml:"supportedUsageClasses>item"`
	RootDevices    []string       `xml:"supportedRootDeviceTypes>item"`
	Virtualization []string       `xml:"supportedVirtualizationTypes>item"`
	BareMetal      bool           `xml:"bareMetal"`
	Hypervisor     string         `xml:"hypervisor"`
	Processor      processorReply `xml:"processorInfo"`
	CPU            cpuReply       `xml:"vCpuInfo"`
	MemoryMiB      int            `xml:"memoryInfo>sizeInMiB"`
	Storage        bool           `xml:"instanceStorageSupported"`
	EBS            ebsInfoReply   `xml:"ebsInfo"`
	Network        networkReply   `xml:"networkInfo"`
	Strategies     []string       `xml:"placementGroupInfo>supportedStrategies>item"`
	Burstable      bool           `xml:"burstablePerformanceSupported"`
}

func typeToWire(t InstanceType) typeReply {
	return typeReply{
		Name: t.Name, Current: true, UsageClasses: []string{OnDemand, Spot}, RootDevices: []string{"ebs"},
		Virtualization: []string{"hvm"}, Hypervisor: "nitro",
		Processor: processorReply{t.Manufacturer, []string{t.Architecture}, t.ClockGHz},
		CPU:       cpuReply{t.VCPU, t.VCPU / t.ThreadsPerCore, t.ThreadsPerCore}, MemoryMiB: t.MemoryMiB,
		EBS: ebsInfoReply{"default", "supported", t.EBSMbps, "required"},
		Network: networkReply{
			Performance: t.NetworkPerformance, Interfaces: t.Interfaces, Cards: 1,
			CardList:      []cardReply{{0, t.NetworkPerformance, t.Interfaces}},
			AddressesEach: t.AddressesEach, SixesEach: t.AddressesEach, IPv6: true, ENA: "required", Encrypts: t.EncryptsInTransit,
		},
		Strategies: []string{"cluster", "partition", "spread"}, Burstable: t.Burstable,
	}
}
