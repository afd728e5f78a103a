package ec2

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// InstanceType holds the properties of an instance type.
type InstanceType struct {
	Name      string
	VCPU      int
	MemoryMiB int
	// Interfaces is the number of network interfaces, AddressesEach the IPv4 addresses
	// of each.
	Interfaces, AddressesEach int

	Architecture string // X86 or ARM
	Manufacturer string // of the processor: Intel, AMD or AWS
	// ClockGHz is the sustained clock speed.
	ClockGHz       float64
	ThreadsPerCore int
	// EBSMbps is the most that volumes get, in Mbit/s.
	EBSMbps int
	// NetworkPerformance is EC2's text, such as "Up to 10 Gigabit".
	NetworkPerformance string
	EncryptsInTransit  bool
	Burstable          bool

	onDemand float64 // USD an hour in us-east-1
}

// MaxPods is how many pods a node of this type runs with the Amazon VPC CNI: each interface keeps
// one address for itself, and two pods use the host's network (Amazon EKS User Guide, Choosing an
// instance type).
func (t InstanceType) MaxPods() int { return t.Interfaces*(t.AddressesEach-1) + 2 }

// catalogue is every type, by family and size, and byName the place of each in it.
var catalogue, byName = makeCatalogue()

func makeCatalogue() ([]InstanceType, map[string]int) {
	var list []InstanceType
	for _, f := range families() {
		for _, s := range f.sizes {
			list = append(list, f.instanceType(s))
		}
	}
	slices.SortStableFunc(list, func(a, b InstanceType) int {
		return cmp.Compare(familyName(a.Name), familyName(b.Name))
	})
	index := make(map[string]int, len(list))
	for i, t := range list {
		index[t.Name] = i
	}
	return list, index
}

func familyName(typeName string) string {
	name, _, _ := strings.Cut(typeName, ".")
	return name
}

// Types is the catalogue: types of the families c, m, r and t, without accelerators or
// local disks, by family and within it by size. Every zone offers all of them.
func Types() []InstanceType { return slices.Clone(catalogue) }

// FindType looks a type up by name.
func FindType(name string) (InstanceType, bool) {
	i, ok := byName[name]
	if !ok {
		return InstanceType{}, false
	}
	return catalogue[i], true
}

// OnDemandPrice is the hourly price of a type in USD, to five places, and whether the catalogue has
// the type: Linux, shared tenancy, US East (N. Virginia). The emulator uses the same price in other
// regions (Amazon EC2 On-Demand Pricing).
func OnDemandPrice(typeName string) (usdPerHour float64, ok bool) {
	t, ok := FindType(typeName)
	return math.Round(t.onDemand*1e5) / 1e5, ok
}
