package replacement

import "time"

// Reasons of a replacement's phase; docs/guides/karpenter.md explains each.
const (
	ReasonNoPods       = "NoPodsToMove"
	ReasonRoom         = "RoomElsewhere"
	ReasonInstanceGone = "InstanceGone"
	ReasonNoKarpenter  = "NoKarpenter"
	ReasonNoNodeClaim  = "NoNodeClaim"
	ReasonDeleting     = "KarpenterIsDeleting"
	ReasonStandalone   = "Standalone"
	ReasonStatic       = "Static"
	ReasonNoPool       = "NodePoolMissing"
	ReasonPoolDeleting = "NodePoolDeleting"
	ReasonPoolNotReady = "NodePoolNotReady"
	ReasonClassUnready = "NodeClassNotReady"
	ReasonLimits       = "LimitsReached"
	ReasonNameTaken    = "NameTaken"
	ReasonRefused      = "Refused"
	ReasonUnreadable   = "Unreadable"
	ReasonQueued       = "Queued"
	ReasonCrowded      = "Crowded"
	ReasonOrdered      = "Ordered"
	ReasonLaunched     = "Launched"
	ReasonReady        = "Ready"
	ReasonVanished     = "Vanished"
	ReasonNoCapacity   = "NoCapacity"
)

// Reasons of a replacement by an Auto Scaling group;
// docs/guides/terminations.md explains each.
const (
	ReasonGroupReplaces   = "GroupReplaces"
	ReasonDrill           = "Drill"
	ReasonSurvives        = "InstanceLives"
	ReasonNoGroup         = "NoGroup"
	ReasonNotConfirmed    = "NotConfirmed"
	ReasonNoCloud         = "NoCloud"
	ReasonOperator        = "OperatorOwned"
	ReasonLaunchSuspended = "LaunchSuspended"
	ReasonNotInService    = "NotInService"
	ReasonProtected       = "Protected"
	ReasonTooLate         = "TooLate"
	ReasonKept            = "KeptInGroup"
)

const (
	// MostUnlaunched is how many replacements may be without an instance at the
	// same time. While such a NodeClaim exists, Karpenter schedules nothing in
	// the cluster (kubernetes-sigs/karpenter, pkg/controllers/state,
	// Cluster.Synced).
	MostUnlaunched = 3
	// MostTries is how many times a replacement is ordered.
	MostTries = 3
	// tryAgain is the least time between two orders before a hard deadline.
	// After the first order it is tryAgainSoon: Karpenter may have just
	// started.
	tryAgain     = 30 * time.Second
	tryAgainSoon = 10 * time.Second
	// tryAgainLater is the interval without a hard deadline: Karpenter
	// remembers for that long that there was no capacity
	// (karpenter-provider-aws, pkg/cache, UnavailableOfferingsTTL).
	tryAgainLater = 3 * time.Minute
	// patience is how long pods wait for a replacement without a hard deadline:
	// longer than Karpenter waits for a node to register.
	patience = 20 * time.Minute
	// queuePatience is how long a replacement waits to be ordered before a hard
	// deadline. After that so many nodes leave that Karpenter launches capacity
	// sooner for all their pods together.
	queuePatience = 30 * time.Second
	// readPatience is how long failed reads are retried.
	readPatience = 10 * time.Second
)
