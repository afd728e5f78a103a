package status

import (
	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/kube/writes"
	"github.com/lifeboat-dev/lifeboat/internal/metric"
)

var (
	podsTotal = metric.Definition{
		Name: "lifeboat_drained_pods_total", Type: metric.Counter, Unit: "pods",
		Help:   "Pods that had to leave an interrupted node, by result: moved or lost.",
		Labels: []metric.Label{metric.OneOf("outcome", "moved", "lost")},
	}
	refusalsTotal = metric.Definition{
		Name: "lifeboat_refused_evictions_total", Type: metric.Counter, Unit: "evictions",
		Help:   "Evictions that the API server refused, by cause: budget or busy.",
		Labels: []metric.Label{metric.OneOf("by", "budget", "busy")},
	}
	cordonSeconds = metric.Definition{
		Name: "lifeboat_cordon_seconds", Type: metric.Histogram, Unit: "seconds",
		Help:    "Time from receiving the notice to the node being cordoned.",
		Buckets: []float64{.05, .1, .25, .5, 1, 2, 5, 10, 30, 60},
	}
	drainSeconds = metric.Definition{
		Name: "lifeboat_drain_seconds", Type: metric.Histogram, Unit: "seconds",
		Help:    "Time from receiving the notice to no pod being left that had to leave.",
		Buckets: []float64{1, 2, 5, 10, 20, 30, 45, 60, 90, 120, 300, 900, 3600},
	}
	finishedTotal = metric.Definition{
		Name: "lifeboat_finished_interruptions_total", Type: metric.Counter, Unit: "Interruptions",
		Help: "Interruptions that are over, by the phase they ended in.",
		Labels: []metric.Label{metric.OneOf("phase", metric.Strings(
			v1beta1.PhaseCompleted, v1beta1.PhaseCancelled, v1beta1.PhaseIgnored, v1beta1.PhaseNotified)...)},
	}
	replacedTotal = metric.Definition{
		Name: "lifeboat_replacements_total", Type: metric.Counter, Unit: "replacements",
		Help:   "Replacements of interrupted nodes that policy wants, by result: ready, failed (for each try), not_needed or not_possible.",
		Labels: []metric.Label{metric.OneOf("outcome", "ready", "failed", "not_needed", "not_possible")},
	}
	readySeconds = metric.Definition{
		Name: "lifeboat_replacement_ready_seconds", Type: metric.Histogram, Unit: "seconds",
		Help:    "Time from ordering a replacement to its node being Ready.",
		Buckets: []float64{5, 10, 20, 30, 40, 50, 60, 80, 100, 120, 180, 300, 900},
	}
	doubtedTotal = metric.Definition{
		Name: "lifeboat_uncorroborated_total", Type: metric.Counter, Unit: "times",
		Help:   "Times that an interruption began to wait because facts about its instance do not agree, by reason: NodeConflict, Contradicted or Unconfirmed.",
		Labels: []metric.Label{metric.OneOf("reason", v1beta1.ReasonNodeConflict, v1beta1.ReasonContradicted, v1beta1.ReasonUnconfirmed)},
	}
	refusedTotal = metric.Definition{
		Name: "lifeboat_refused_writes_total", Type: metric.Counter, Unit: "writes",
		Help:   "Writes of the interruption loop that the API server refused for good, by the kind of the object: an admission policy, a webhook, validation or RBAC refuses them. Evictions do not count.",
		Labels: []metric.Label{metric.OneOf("kind", append(writes.Kinds(), "other")...)},
	}
)

// Definitions are the metrics of this package.
func Definitions() []metric.Definition {
	return []metric.Definition{
		podsTotal, refusalsTotal, cordonSeconds, drainSeconds, finishedTotal, replacedTotal, readySeconds, doubtedTotal, refusedTotal,
	}
}
