package ec2

import "slices"

// InstanceType is what a machine of a type has to offer.
type InstanceType struct {
	Name      string
	VCPU      int
	MemoryMiB int
	// Interfaces is the number of network interfaces, AddressesEach the IPv4 addresses
	// of each.
	Interfaces, AddressesEach int
}

// MaxPods is how many pods a node of this type takes with the Amazon VPC CNI: each
// interface keeps one address for itself, and two pods use the host's network (Amazon
// EKS User Guide, Choosing an instance type).
func (t InstanceType) MaxPods() int { return t.Interfaces*(t.AddressesEach-1) + 2 }

// Types is the catalogue (EC2 User Guide, Instance types: x86-64, no accelerators).
func Types() []InstanceType {
	return []InstanceType{
		{"c5.large", 2, 4096, 3, 10},
		{"c5.xlarge", 4, 8192, 4, 15},
		{"c5.2xlarge", 8, 16384, 4, 15},
		{"m5.large", 2, 8192, 3, 10},
		{"m5.xlarge", 4, 16384, 4, 15},
		{"m5.2xlarge", 8, 32768, 4, 15},
		{"m6i.large", 2, 8192, 3, 10},
		{"m6i.xlarge", 4, 16384, 4, 15},
		{"r5.large", 2, 16384, 3, 10},
		{"r5.xlarge", 4, 32768, 4, 15},
		{"t3.small", 2, 2048, 3, 4},
		{"t3.medium", 2, 4096, 3, 6},
		{"t3.large", 2, 8192, 3, 12},
	}
}

// FindType looks a type up by name.
func FindType(name string) (InstanceType, bool) {
	types := Types()
	i := slices.IndexFunc(types, func(t InstanceType) bool { return t.Name == name })
	if i < 0 {
		return InstanceType{}, false
	}
	return types[i], true
}

func typeNames() []string {
	var out []string
	for _, t := range Types() {
		out = append(out, t.Name)
	}
	return out
}
