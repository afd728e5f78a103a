package replacement

import "time"

// Reasons of a replacement's phase, one word each; docs/guides/karpenter.md says
// what each means and what to do.
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

// Reasons of a replacement by an Auto Scaling group; docs/guides/terminations.md
// says what each means and what to do.
const (
	ReasonGroupReplaces   = "GroupReplaces"
	ReasonDrill           = "Drill"
	ReasonSurvives        = "InstanceLives"
	ReasonNoGroup         = "NoGroup"
	ReasonNoCloud         = "NoCloud"
	ReasonOperator        = "OperatorOwned"
	ReasonLaunchSuspended = "LaunchSuspended"
	ReasonNotInService    = "NotInService"
	ReasonProtected       = "Protected"
	ReasonTooLate         = "TooLate"
	ReasonKept            = "KeptInGroup"
)

const (
	// MostUnlaunched is how many replacements may stand without an instance at a
	// time. While there is any such NodeClaim Karpenter schedules nothing anywhere
	// (kubernetes-sigs/karpenter, pkg/controllers/state, Cluster.Synced).
	MostUnlaunched = 3
	// MostTries is how often a replacement is ordered.
	MostTries = 3
	// tryAgain is the least time between two tries before a hard deadline; but for
	// the first, which may have met a Karpenter that has only just begun.
	tryAgain     = 30 * time.Second
	tryAgainSoon = 10 * time.Second
	// tryAgainLater is that without one: for so long Karpenter remembers that there
	// was no capacity (karpenter-provider-aws, pkg/cache, UnavailableOfferingsTTL).
	tryAgainLater = 3 * time.Minute
	// patience is for how long pods wait for a replacement where no deadline presses:
	// as long as Karpenter waits for a node to register, and for some more.
	patience = 20 * time.Minute
	// queuePatience is for how long a replacement waits to be ordered before a hard
	// deadline. So many nodes are then going away that Karpenter makes room sooner
	// for their pods together than one by one.
	queuePatience = 30 * time.Second
	// readPatience is for how long what cannot be read is asked for again.
	readPatience = 10 * time.Second
)
