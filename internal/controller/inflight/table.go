package inflight

import (
	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/metric"
)

// The values of label pool that are no pools.
const (
	noPool     = "none"
	otherPools = "other"
)

// maxPools is the number of pools that have series of their own, and maxNodes that of nodes.
const maxPools, maxNodes = 20, 20

var (
	interruptions = metric.Definition{
		Name: "lifeboat_interruptions", Type: metric.Gauge, Unit: "Interruptions",
		Help: "Interruptions that are not finished, by phase, action and pool. A combination without any has no series.",
		Labels: []metric.Label{
			metric.OneOf("phase", append([]string{"Pending"}, metric.Strings(v1beta1.PhaseScheduled, v1beta1.PhaseAwaitingApproval,
				v1beta1.PhaseQueued, v1beta1.PhaseCordoned, v1beta1.PhaseDraining, v1beta1.PhaseDrained, v1beta1.PhaseCompleted,
				v1beta1.PhaseIgnored, v1beta1.PhaseNotified, v1beta1.PhaseCancelled)...)...),
			metric.OneOf("action", append([]string{"None"}, metric.Strings(v1beta1.ActionIgnore, v1beta1.ActionNotify,
				v1beta1.ActionCordon, v1beta1.ActionDrain, v1beta1.ActionTerminate)...)...),
			metric.Open("pool", "the NodePool or node group: the 20 with the most Interruptions, then other, and none for nodes without one"),
		},
	}
	underWay = metric.Definition{
		Name: "lifeboat_interruptions_under_way", Type: metric.Gauge, Unit: "Interruptions",
		Help: "Interruptions that are not finished.",
	}
	nearestDeadline = metric.Definition{
		Name: "lifeboat_nearest_deadline_seconds", Type: metric.Gauge, Unit: "seconds",
		Help: "Time until the nearest deadline of a node that is not drained, by type of the deadline. " +
			"Negative after the deadline; no series if there is none.",
		Labels: []metric.Label{metric.OneOf("type", metric.Strings(v1beta1.DeadlineHard, v1beta1.DeadlineEstimated, v1beta1.DeadlineSoft)...)},
	}
	pendingPods = metric.Definition{
		Name: "lifeboat_pending_pods", Type: metric.Gauge, Unit: "pods",
		Help:   "Pods that must still leave interrupted nodes: waiting to be evicted, or leaving.",
		Labels: []metric.Label{metric.OneOf("state", "waiting", "leaving")},
	}
	podsPastLastCall = metric.Definition{
		Name: "lifeboat_pods_past_last_call", Type: metric.Gauge, Unit: "pods",
		Help: "Pods of an interrupted node that wait to be asked to leave although their last call is over. " +
			"A node without any has no series.",
		Labels: []metric.Label{metric.Open("node", "the node: the 20 with the most such pods, then other")},
	}
	blockedDrains = metric.Definition{
		Name: "lifeboat_blocked_drains", Type: metric.Gauge, Unit: "Interruptions",
		Help: "Drains that no deadline ends and that have made no progress for 15 minutes, such as one that a PodDisruptionBudget holds. " +
			"One that a person has acknowledged does not count.",
	}
	blockedWait = metric.Definition{
		Name: "lifeboat_oldest_blocked_drain_seconds", Type: metric.Gauge, Unit: "seconds",
		Help: "For how long the oldest of them has made no progress; 0 where there is none.",
	}
	unreachableNodes = metric.Definition{
		Name: "lifeboat_nodes_without_provider_id", Type: metric.Gauge, Unit: "nodes",
		Help: "Nodes on EC2 without spec.providerID: no notice about their instances reaches them.",
	}
	awaitingApproval = metric.Definition{
		Name: "lifeboat_awaiting_approval", Type: metric.Gauge, Unit: "Interruptions",
		Help: "Interruptions that wait for a person's approval.",
	}
	approvalWait = metric.Definition{
		Name: "lifeboat_oldest_approval_wait_seconds", Type: metric.Gauge, Unit: "seconds",
		Help: "For how long the oldest of them has waited; 0 where none waits.",
	}
	onHold = metric.Definition{
		Name: "lifeboat_on_hold", Type: metric.Gauge, Unit: "Interruptions",
		Help: "Interruptions whose pods a person holds.",
	}
	uncorroborated = metric.Definition{
		Name: "lifeboat_uncorroborated", Type: metric.Gauge, Unit: "Interruptions",
		Help: "Interruptions that wait because facts about the instance do not agree.",
	}
	replacementsPending = metric.Definition{
		Name: "lifeboat_replacements_without_instance", Type: metric.Gauge, Unit: "replacements",
		Help: "Replacements that policy wants and that have no instance yet.",
	}
	replacementWait = metric.Definition{
		Name: "lifeboat_oldest_replacement_wait_seconds", Type: metric.Gauge, Unit: "seconds",
		Help: "For how long the oldest of them has been needed; 0 where there is none.",
	}
	hooks = metric.Definition{
		Name: "lifeboat_hooks_waiting", Type: metric.Gauge, Unit: "hooks",
		Help:   "Hooks of policies that run, or whose last try failed, of Interruptions that are not finished.",
		Labels: []metric.Label{metric.OneOf("state", "running", "failed")},
	}
	hookWait = metric.Definition{
		Name: "lifeboat_oldest_hook_wait_seconds", Type: metric.Gauge, Unit: "seconds",
		Help: "For how long the oldest running hook has run; 0 where none runs.",
	}
	pauses = metric.Definition{
		Name: "lifeboat_pauses", Type: metric.Gauge, Unit: "pauses",
		Help:   "Pauses that are in force, of the cluster and of NodePools, by what they stop.",
		Labels: []metric.Label{metric.OneOf("stops", metric.Strings(v1beta1.PauseDeferrable, v1beta1.PauseEverything)...)},
	}
	pauseAge = metric.Definition{
		Name: "lifeboat_oldest_pause_seconds", Type: metric.Gauge, Unit: "seconds",
		Help: "For how long the oldest of them has been in force; 0 where there is none.",
	}
	paused = metric.Definition{
		Name: "lifeboat_paused_interruptions", Type: metric.Gauge, Unit: "Interruptions",
		Help: "Interruptions that a pause stops.",
	}
	lifecycleHooks = metric.Definition{
		Name: "lifeboat_lifecycle_hooks_waiting", Type: metric.Gauge, Unit: "instances",
		Help: "Interrupted instances that a lifecycle hook of their Auto Scaling group holds.",
	}
)

// Definitions are the metrics of this package.
func Definitions() []metric.Definition {
	return []metric.Definition{
		interruptions, underWay, nearestDeadline, pendingPods, podsPastLastCall, blockedDrains, blockedWait, unreachableNodes, awaitingApproval, approvalWait, onHold, uncorroborated,
		replacementsPending, replacementWait, hooks, hookWait, lifecycleHooks, pauses, pauseAge, paused,
	}
}
