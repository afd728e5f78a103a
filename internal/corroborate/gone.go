package corroborate

import "github.com/lifeboat-dev/lifeboat/internal/cloud"

// Gone decides whether EC2 confirms that an instance no longer runs. EC2 forgets a terminated
// instance after about an hour, so one that it does not know is gone.
func Gone(i *cloud.Instance) Verdict {
	switch {
	case i == nil, i.State == "stopped", i.State == "terminated":
		return Verdict{Answer: Agree}
	}
	return differ("a notice says that instance %s no longer runs, but EC2 says that it is %s, and its kubelet reports Ready", i.ID, i.State)
}

// Terminating decides whether EC2 confirms that an instance terminates or is terminated.
func Terminating(i *cloud.Instance) Verdict {
	switch {
	case i == nil, i.State == "shutting-down", i.State == "terminated":
		return Verdict{Answer: Agree}
	}
	return differ("EC2 says that instance %s is %s", i.ID, i.State)
}

// PoweredOff decides whether EC2 itself says that an instance has no power, so that its volumes
// may be detached by force. Unlike for Gone, an instance that EC2 does not know is no proof: a
// wrong region or account looks the same.
func PoweredOff(i *cloud.Instance) Verdict {
	switch {
	case i == nil:
		return unknown("EC2 does not know the instance")
	case i.State == "stopped", i.State == "terminated":
		return Verdict{Answer: Agree}
	}
	return differ("EC2 says that instance %s is %s", i.ID, i.State)
}
