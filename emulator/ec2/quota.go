package ec2

import "github.com/lifeboat-dev/lifeboat/emulator/wire"

// MostInstances is how many instances the account can have in the region, of any type and purchase
// option. Stopped instances count, terminated ones do not. AWS's quotas count vCPUs of running
// instances by families of types. This limit rejects a call for a hundred thousand instances as AWS
// does, and protects the memory.
const MostInstances = 5000

// left is the remaining quota in instances. It needs the lock.
func (s *State) left() int { return max(MostInstances-s.living, 0) }

// overQuota is EC2's error for a launch beyond the account's quota; its number is the quota in
// vCPUs of the type (EC2 API Reference, Error codes).
func overQuota(o Offering) error {
	if o.CapacityType == Spot {
		return wire.Errorf("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
	}
	t, _ := FindType(o.Type)
	return wire.Errorf("VcpuLimitExceeded", "You have requested more vCPU capacity than your current vCPU limit of %d allows for the instance bucket "+
		"that the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit.",
		MostInstances*t.VCPU)
}
