package ec2

import (
	"maps"
	"slices"
	"time"
)

// InstanceState is where an instance stands in its life cycle.
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

// Code is the number that goes with the state on the wire (EC2 API Reference,
// InstanceState).
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

// Behaviour is what EC2 does to a spot instance that it takes back.
type Behaviour string

// The interruption behaviours of a spot instance (EC2 User Guide, Behavior of Spot
// Instance interruptions).
const (
	Terminate Behaviour = "terminate"
	Stop      Behaviour = "stop"
	Hibernate Behaviour = "hibernate"
)

// StateReason says who changed the state of an instance: codes that begin with
// "Client." were the user's doing, "Server." the provider's.
type StateReason struct {
	Code, Message string
}

// Notice is what instance metadata tells a spot instance about its own end.
type Notice struct {
	// Action is what will happen; empty while there is no notice.
	Action Behaviour
	// Deadline is when it will happen.
	Deadline time.Time
}

// Instance is one virtual machine as it stands at one moment.
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
	// InstanceProfileARN is the profile whose role the instance has; empty: none.
	InstanceProfileARN string
	// Metadata is how its metadata is reached, as far as whoever launched it said.
	Metadata    MetadataOptions
	Volumes     []Volume
	UserData    string // base64, as given
	ClientToken string
	Tags        map[string]string
	LaunchTime  time.Time

	State            InstanceState
	StateReason      StateReason
	TransitionReason string
	// Powered tells whether the machine has current: from running until the power
	// goes off, which may be later than the state says.
	Powered bool
	// ShutdownTime is when the operating system was asked to shut down. It is zero
	// before that, where it is not asked, and once the power is off.
	ShutdownTime time.Time
	// BootID is another one after every boot, as the kernel's is.
	BootID string
	// Hibernated tells that the last stop was a hibernation: the next start resumes, with
	// the memory and the BootID that there were.
	Hibernated bool

	SpotRequestID string // empty: no spot instance
	// Market is how the instance was bought, unless on demand or on the spot market:
	// capacity-block or interruptible-capacity-reservation.
	Market string
	// CapacityReservationID is the reservation that it runs in, HostID the dedicated
	// host that it runs on; empty: none.
	CapacityReservationID, HostID string
	// Notice is the interruption notice in force; zero until EC2 has warned.
	Notice Notice
	// RebalanceAt is when EC2 recommended rebalancing; zero: never.
	RebalanceAt time.Time

	// Health holds the status checks, Maintenance the scheduled events.
	Health      Health
	Maintenance []Maintenance
}

// Spot tells whether this is a spot instance.
func (in Instance) Spot() bool { return in.SpotRequestID != "" }

// Architecture is that of the processor, X86 or ARM.
func (in Instance) Architecture() string {
	if t, ok := FindType(in.Type); ok {
		return t.Architecture
	}
	return X86
}

// Lifecycle is what the API calls the way in which an instance was bought: spot,
// capacity-block, interruptible-capacity-reservation, or nothing for on demand.
func (in Instance) Lifecycle() string {
	if in.Spot() {
		return "spot"
	}
	return in.Market
}

// clone is a copy that shares nothing with the original.
func (in Instance) clone() Instance {
	in.Tags = maps.Clone(in.Tags)
	in.SecurityGroupIDs = slices.Clone(in.SecurityGroupIDs)
	in.Volumes = slices.Clone(in.Volumes)
	in.Maintenance = slices.Clone(in.Maintenance)
	return in
}

// What names a change in the life of an instance.
type What string

// The changes that [State.Subscribe] reports.
const (
	Launched      What = "Launched"      // made; its state is pending
	Started       What = "Started"       // a stopped one is pending again
	Booted        What = "Running"       // running, and under power
	Rebooted      What = "Rebooted"      // was restarted, state unchanged
	Recommended   What = "Recommended"   // rebalance recommendation sent
	Warned        What = "Warned"        // interruption warning sent
	WindingDown   What = "ShuttingDown"  // shutting-down or stopping has begun
	PowerOff      What = "PowerOff"      // the current is gone
	WasStopped    What = "Stopped"       // stopped
	WasTerminated What = "Terminated"    // terminated
	Forgotten     What = "Forgotten"     // no longer listed
	StatusChanged What = "StatusChanged" // health or maintenance set
)

// Change is one step in the life of an instance, with the instance as it was right
// after the step.
type Change struct {
	What     What
	Instance Instance
}
