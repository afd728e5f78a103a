package ec2

import "github.com/lifeboat-dev/lifeboat/emulator/wire"

// MostInstances is how many instances the account can have in the region, of any type and
// bought in any way, stopped ones too: those that are terminated do not count. AWS's quotas
// are in vCPUs, by families of types, and of what runs. This one is there so that a
// call that asks for a hundred thousand is refused as AWS would, and does not take all of
// the memory.
const MostInstances = 5000

// left is how many more instances the quota allows. It needs the lock.
func (s *State) left() int { return max(MostInstances-s.living, 0) }

// overQuota is what EC2 says to a launch beyond the account's quota; its number is what
// the quota comes to in vCPUs of the type (EC2 API Reference, Error codes).
func overQuota(o Offering) error {
	if o.CapacityType == Spot {
		return wire.Errorf("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
	}
	t, _ := FindType(o.Type)
	return wire.Errorf("VcpuLimitExceeded", "You have requested more vCPU capacity than your current vCPU limit of %d allows for the instance bucket "+
		"that the specified instance type belongs to. Please visit http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit.",
		MostInstances*t.VCPU)
}
