package notice

// Kinds of notices. The API takes any string; these are the ones that this
// release understands.
const (
	// KindSpotInterruption: EC2 takes a spot instance back, two minutes after
	// it says so (EC2 User Guide, "Spot Instance interruption notices").
	KindSpotInterruption = "SpotInterruption"
	// KindRebalanceRecommendation: a spot instance is at elevated risk. It has
	// no deadline and often nothing follows (EC2 User Guide, "EC2 instance
	// rebalance recommendations").
	KindRebalanceRecommendation = "RebalanceRecommendation"
	// KindInstanceStateChange: the instance is stopping or going, or has gone.
	KindInstanceStateChange = "InstanceStateChange"
)

// States of an instance that a KindInstanceStateChange notice reports
// (EC2 API, InstanceState).
const (
	StateStopping     = "stopping"
	StateStopped      = "stopped"
	StateShuttingDown = "shutting-down"
	StateTerminated   = "terminated"
)

// Kinds returns every kind that this release understands, sorted.
func Kinds() []string {
	return []string{KindInstanceStateChange, KindRebalanceRecommendation, KindSpotInterruption}
}
