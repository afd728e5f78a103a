package notice

import "time"

// Kinds of notices. The API takes any string; these are the ones that this
// release understands.
const (
	// KindSpotInterruption: EC2 reclaims a spot instance, two minutes after the notice (EC2
	// User Guide, "Spot Instance interruption notices").
	KindSpotInterruption = "SpotInterruption"
	// KindRebalanceRecommendation: a spot instance is at elevated risk. It has
	// no deadline and often nothing follows (EC2 User Guide, "EC2 instance
	// rebalance recommendations").
	KindRebalanceRecommendation = "RebalanceRecommendation"
	// KindScheduledChange: AWS plans to stop, retire, reboot or maintain the instance (AWS
	// Health User Guide, "EventBridge event schema"; EC2 User Guide, "Scheduled events for
	// Amazon EC2 instances").
	KindScheduledChange = "ScheduledChange"
	// KindHealthIssue: an AWS Health event about the instance that is no scheduled change.
	KindHealthIssue = "HealthIssue"
	// KindInstanceStateChange: the instance is stopping, shutting down, stopped or terminated.
	KindInstanceStateChange = "InstanceStateChange"
	// KindInstanceStatus: the instance has failed its status checks for a while
	// (EC2 User Guide, "Status checks for Amazon EC2 instances").
	KindInstanceStatus = "InstanceStatus"
	// KindCapacityReservationInterruption: EC2 reclaims the capacity that the instance uses,
	// two minutes after the notice (EC2 User Guide, "Interruptible Capacity Reservations").
	KindCapacityReservationInterruption = "CapacityReservationInterruption"
	// KindCapacityBlockExpiration: the Capacity Block that the instance runs in
	// ends; EC2 begins to terminate 30 minutes before that (EC2 User Guide,
	// "Capacity Blocks for ML").
	KindCapacityBlockExpiration = "CapacityBlockExpiration"
	// KindAutoScalingTermination: its Auto Scaling group terminates the
	// instance, and waits for its lifecycle hook first (EC2 Auto Scaling User
	// Guide, "Lifecycle hooks").
	KindAutoScalingTermination = "AutoScalingTermination"
	// KindLifecycleActionFailure: a call to complete a lifecycle action of the instance was
	// refused, so the hook may end by its timeout (CloudTrail's record of
	// CompleteLifecycleAction).
	KindLifecycleActionFailure = "LifecycleActionFailure"
	KindRequested              = "Requested" // a person asked for a drain; nothing ends the instance
)

// States of an instance that a KindInstanceStateChange notice reports
// (EC2 API, InstanceState).
const (
	StateStopping     = "stopping"
	StateStopped      = "stopped"
	StateShuttingDown = "shutting-down"
	StateTerminated   = "terminated"
)

// What will be done to an instance, in Notice.InstanceAction.
const (
	ActionTerminate = "terminate"
	ActionStop      = "stop"
	ActionHibernate = "hibernate"
	ActionReboot    = "reboot"
	// ActionMaintain: the network or the power is interrupted for a moment; the instance may
	// survive it without a reboot.
	ActionMaintain = "maintain"
	// ActionReturn: its Auto Scaling group takes the instance back into its warm
	// pool (Amazon EC2 Auto Scaling User Guide, "Use warm pools").
	ActionReturn = "return"
)

// Sources, in Notice.Source.
const (
	// SourceQueue is the queue that EventBridge delivers to, the primary source.
	SourceQueue = "sqs"
	// SourceIMDS is the agent that reads the instance's own metadata.
	SourceIMDS = "imds"
	// SourceEC2 is the poll of spot requests and of instance status.
	SourceEC2 = "ec2"
	// SourceAutoScaling is the poll of lifecycle states.
	SourceAutoScaling = "autoscaling"
	// SourceCloudTrail is the poll of CloudTrail's event history.
	SourceCloudTrail = "cloudtrail"
	SourceUser       = "user" // a person
)

// Kinds returns every kind of AWS that this release understands, sorted.
func Kinds() []string {
	return []string{
		KindAutoScalingTermination, KindCapacityBlockExpiration, KindCapacityReservationInterruption, KindHealthIssue,
		KindInstanceStateChange, KindInstanceStatus, KindLifecycleActionFailure, KindRebalanceRecommendation,
		KindScheduledChange, KindSpotInterruption,
	}
}

// AtRiskFor is how long a node counts as at risk after a notice without a deadline that
// EC2 usually does not follow up. EC2 never withdraws a rebalance recommendation, and the
// instance metadata keeps it for the life of the instance (EC2 User Guide, "EC2 instance
// rebalance recommendations").
const AtRiskFor = time.Hour
