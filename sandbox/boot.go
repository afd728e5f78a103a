package sandbox

import (
	"hash/fnv"
	"time"
)

// The boot times of an ordinary cluster, from RunInstances to a Ready node. AWS documents none: they
// depend on the image, the instance type and the size of the pods' images.
const (
	leastBoot = 30 * time.Second
	mostBoot  = 60 * time.Second
)

// OrdinaryBoot is how long an instance takes from its launch to its Node if no other time is set. It
// depends on the id alone, so that each instance keeps its time.
func OrdinaryBoot(instanceID string) time.Duration {
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(instanceID)) // a hash returns no error
	return leastBoot + time.Duration(sum.Sum32()%uint32((mostBoot-leastBoot)/time.Second+1))*time.Second
}

// SetBootDelay changes Options.BootDelay, for instances that boot from now on.
func (s *Sandbox) SetBootDelay(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opts.BootDelay = d
}

// bootDelay is the boot time of an instance without a tag that sets it.
func (s *Sandbox) bootDelay(instanceID string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opts.BootDelay == 0 && !s.opts.RealNodes {
		return OrdinaryBoot(instanceID)
	}
	return s.opts.BootDelay
}

// describeBoot is a boot delay in words.
func describeBoot(d time.Duration) string {
	if d == 0 {
		return "30 to 60 s"
	}
	return d.String()
}
