package ec2

import (
	"maps"
	"slices"
	"time"
)

// InstanceState is the state of an instance in its life cycle.
type InstanceState string

// The six states of an instance (EC2 User Guide, Instance lifecycle).
const (
	Pending      InstanceState = "pending"
	Running      InstanceState = "running"
	Stopping     InstanceState = "stopping"
	Stopped      InstanceState = "stopped"
	ShuttingDown InstanceState = "shutting-down"
	Terminated   InstanceState = "terminated"
)

// Code is the number of the state on the wire (EC2 API Reference, InstanceState).
func (s InstanceState) Code() int {
	switch s {
	case Pending:
		return 0
	case Running:
		return 16
	case ShuttingDown:
		return 32
	case Terminated:
		return 48
	case Stopping:
		return 64
	default:
		return 80
	}
}

// Behaviour is what EC2 does to a spot instance that it interrupts.
type Behaviour string

// The interruption behaviours of a spot instance (EC2 User Guide, Behavior of Spot
// Instance interruptions).
const (
	Terminate Behaviour = "terminate"
	Stop      Behaviour = "stop"
	Hibernate Behaviour = "hibernate"
)

// StateReason says who changed the state of an instance: codes that begin with "Client." mean the
// user, "Server." EC2.
type StateReason struct {
	Code, Message string
}

// Notice is the interruption notice in the metadata of a spot instance.
type Notice struct {
	// Action is what will happen; empty without a notice.
	Action Behaviour
	// Deadline is the time of the action.
	Deadline time.Time
}

// Instance is a snapshot of one instance.
type Instance struct {
	ID            string // i- and 17 hexadecimal digits
	ReservationID string // shared by the instances of one RunInstances call
	ImageID       string
	Type          string
	Zone          string // availability zone, such as eu-west-1b
	SubnetID      string
	PrivateIP     string
	// PrivateDNSName is ip-10-0-1-23.<region>.compute.internal, or in us-east-1
	// ip-10-0-1-23.ec2.internal. The API shows it only while the instance is pending
	// or running.
	PrivateDNSName   string
	SecurityGroupIDs []string
	KeyName          string
	// InstanceProfileARN is the profile with the instance's role; empty: none.
	InstanceProfileARN string
	// Metadata holds the metadata options of the launch request.
	Metadata    MetadataOptions
	Volumes     []Volume
	UserData    string // base64, as given
	ClientToken string
	Tags        map[string]string
	LaunchTime  time.Time

	State            InstanceState
	StateReason      StateReason
	TransitionReason string
	// Powered reports whether the machine has power: from running until the power off, which may be
	// later than the state change.
	Powered bool
	// ShutdownTime is when the operating system was asked to shut down. It is zero before that, if
	// it is not asked, and after the power off.
	ShutdownTime time.Time
	// BootID changes with every boot, like the kernel's.
	BootID string
	// Hibernated tells that the last stop was a hibernation: the next start resumes, with the same
	// memory and BootID.
	Hibernated bool

	SpotRequestID string // empty: not a spot instance
	// Market is the purchase option other than on demand and spot: capacity-block or
	// interruptible-capacity-reservation.
	Market string
	// CapacityReservationID is the instance's reservation, HostID its dedicated host; empty: none.
	CapacityReservationID, HostID string
	// Notice is the active interruption notice; zero until EC2 has sent the warning.
	Notice Notice
	// RebalanceAt is the time of EC2's rebalance recommendation; zero: none.
	RebalanceAt time.Time

	// Health holds the status checks, Maintenance the scheduled events.
	Health      Health
	Maintenance []Maintenance
}

// Spot reports whether this is a spot instance.
func (in Instance) Spot() bool { return in.SpotRequestID != "" }

// Architecture is that of the processor, X86 or ARM.
func (in Instance) Architecture() string {
	if t, ok := FindType(in.Type); ok {
		return t.Architecture
	}
	return X86
}

// Lifecycle is the API's name of the purchase option: spot, capacity-block,
// interruptible-capacity-reservation, or empty for on demand.
func (in Instance) Lifecycle() string {
	if in.Spot() {
		return "spot"
	}
	return in.Market
}

// clone is a copy that shares no data with the original.
func (in Instance) clone() Instance {
	in.Tags = maps.Clone(in.Tags)
	in.SecurityGroupIDs = slices.Clone(in.SecurityGroupIDs)
	in.Volumes = slices.Clone(in.Volumes)
	in.Maintenance = slices.Clone(in.Maintenance)
	return in
}

// What names a change of an instance.
type What string

// The changes that [State.Subscribe] reports.
const (
	Launched      What = "Launched"      // created; its state is pending
	Started       What = "Started"       // a stopped instance is pending again
	Booted        What = "Running"       // running, with power
	Rebooted      What = "Rebooted"      // restarted, state unchanged
	Recommended   What = "Recommended"   // rebalance recommendation sent
	Warned        What = "Warned"        // interruption warning sent
	WindingDown   What = "ShuttingDown"  // shutting-down or stopping has started
	PowerOff      What = "PowerOff"      // the machine has no power
	WasStopped    What = "Stopped"       // stopped
	WasTerminated What = "Terminated"    // terminated
	Forgotten     What = "Forgotten"     // no longer listed
	StatusChanged What = "StatusChanged" // health or maintenance set
)

// Change is one change of an instance, with the instance right after it.
type Change struct {
	What     What
	Instance Instance
}
