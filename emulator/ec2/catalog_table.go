package ec2

import "strings"

// The architectures of instances and images (EC2 API Reference, ProcessorInfo).
const (
	X86 = "x86_64"
	ARM = "arm64"
)

// family is what the types of one family have in common.
type family struct {
	name, manufacturer string
	clockGHz           float64
	// gibPerVCPU is the memory that comes with each vCPU; burstable sizes bring their own.
	gibPerVCPU int
	// large is the price of the size "large", on demand in us-east-1; the others are in
	// proportion to it.
	large float64
	// ebsMbps is the most that volumes get at once, from the size "large" on.
	ebsMbps int
	// network is what sizes up to 4xlarge may burst to, in Gbit/s.
	network string
	sizes   []size
	// traits are words out of those that families explains.
	traits string
}

// size is what types of one size have in common: how many times as much as a "large"
// they cost, and their vCPUs, network interfaces and addresses of each.
type size struct {
	name                      string
	price                     float64
	vCPU                      int
	interfaces, addressesEach int
	memoryMiB                 int // 0: by the family's share
}

// families is the catalogue in rows. Traits: "arm", "threads" (two a core), "crypt"
// (encryption in transit), "burst". Sources: EC2 User Guide, Instance types; Amazon EC2
// Instance Types, Specifications for general purpose, compute and memory optimized
// instances; Amazon EC2 On-Demand Pricing, Linux, US East (N. Virginia).
func families() []family {
	std, wide := standardSizes(4), standardSizes(5)
	return []family{
		{"c5", "Intel", 3.4, 2, 0.085, 4750, "10", std, "threads"},
		{"c5a", "AMD", 3.3, 2, 0.077, 3170, "10", std, "threads crypt"},
		{"c6i", "Intel", 3.5, 2, 0.085, 10000, "12.5", wide, "threads crypt"},
		{"c6a", "AMD", 3.6, 2, 0.0765, 10000, "12.5", wide, "threads crypt"},
		{"c7i", "Intel", 3.2, 2, 0.08925, 10000, "12.5", wide, "threads crypt"},
		{"c7a", "AMD", 3.7, 2, 0.10264, 10000, "12.5", wide, "crypt"},
		{"c6g", "AWS", 2.5, 2, 0.068, 4750, "10", std, "arm"},
		{"m5", "Intel", 3.1, 4, 0.096, 4750, "10", std, "threads"},
		{"m5a", "AMD", 2.5, 4, 0.086, 2880, "10", std, "threads"},
		{"m6i", "Intel", 3.5, 4, 0.096, 10000, "12.5", wide, "threads crypt"},
		{"m6a", "AMD", 3.6, 4, 0.0864, 10000, "12.5", wide, "threads crypt"},
		{"m7i", "Intel", 3.2, 4, 0.1008, 10000, "12.5", wide, "threads crypt"},
		{"m7a", "AMD", 3.7, 4, 0.11592, 10000, "12.5", wide, "crypt"},
		{"m6g", "AWS", 2.5, 4, 0.077, 4750, "10", std, "arm"},
		{"r5", "Intel", 3.1, 8, 0.126, 4750, "10", std, "threads"},
		{"r5a", "AMD", 2.5, 8, 0.113, 2880, "10", std, "threads"},
		{"r6i", "Intel", 3.5, 8, 0.126, 10000, "12.5", wide, "threads crypt"},
		{"r6a", "AMD", 3.6, 8, 0.1134, 10000, "12.5", wide, "threads crypt"},
		{"r7i", "Intel", 3.2, 8, 0.1323, 10000, "12.5", wide, "threads crypt"},
		{"r6g", "AWS", 2.5, 8, 0.1008, 4750, "10", std, "arm"},
		{"t3", "Intel", 2.5, 0, 0.0832, 2780, "5", burstableSizes(3), "threads burst"},
		{"t3a", "AMD", 2.2, 0, 0.0752, 2780, "5", burstableSizes(2), "threads burst"},
		{"t4g", "AWS", 2.5, 0, 0.0672, 2780, "5", burstableSizes(3), "arm burst"},
	}
}

// standardSizes are the first n of the sizes that the families with fixed performance
// share.
func standardSizes(n int) []size {
	return []size{
		{"large", 1, 2, 3, 10, 0},
		{"xlarge", 2, 4, 4, 15, 0},
		{"2xlarge", 4, 8, 4, 15, 0},
		{"4xlarge", 8, 16, 8, 30, 0},
		{"8xlarge", 16, 32, 8, 30, 0},
	}[:n]
}

// burstableSizes are those of the T families, which differ in the interfaces of the
// size "small".
func burstableSizes(interfacesOfSmall int) []size {
	return []size{
		{"small", 0.25, 2, interfacesOfSmall, 4, 2 << 10},
		{"medium", 0.5, 2, 3, 6, 4 << 10},
		{"large", 1, 2, 3, 12, 8 << 10},
		{"xlarge", 2, 4, 4, 15, 16 << 10},
		{"2xlarge", 4, 8, 4, 15, 32 << 10},
	}
}

// instanceType multiplies a family by one of its sizes.
func (f family) instanceType(s size) InstanceType {
	t := InstanceType{
		Name: f.name + "." + s.name, VCPU: s.vCPU, MemoryMiB: s.memoryMiB,
		Interfaces: s.interfaces, AddressesEach: s.addressesEach,
		Architecture: X86, Manufacturer: f.manufacturer, ClockGHz: f.clockGHz, ThreadsPerCore: 1,
		EBSMbps: f.ebsMbps, NetworkPerformance: "Up to " + f.network + " Gigabit",
		onDemand: f.large * s.price,
	}
	if t.MemoryMiB == 0 {
		t.MemoryMiB = s.vCPU * f.gibPerVCPU << 10
	}
	if s.price < 1 {
		t.EBSMbps = 2085 // of the small ones of the T families
	}
	if s.name == "8xlarge" {
		t.NetworkPerformance = f.network + " Gigabit"
	}
	for trait := range strings.FieldsSeq(f.traits) {
		switch trait {
		case "arm":
			t.Architecture = ARM
		case "threads":
			t.ThreadsPerCore = 2
		case "crypt":
			t.EncryptsInTransit = true
		case "burst":
			t.Burstable = true
		}
	}
	return t
}
