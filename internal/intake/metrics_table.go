package intake

import (
	"github.com/lifeboat-dev/lifeboat/internal/metric"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

var (
	sourceLabel = metric.OneOf("source", notice.SourceQueue, notice.SourceIMDS, notice.SourceEC2, notice.SourceAutoScaling, notice.SourceCloudTrail)

	receivedTotal = metric.Definition{
		Name: "lifeboat_received_messages_total", Type: metric.Counter, Unit: "messages",
		Help: "Messages received, by source and outcome. A repeated message counts again.",
		Labels: []metric.Label{sourceLabel, metric.Open("outcome", "recorded, joined, repeated, foreign, stale, implausible, unpermitted, notYetKnown; "+
			"of sqs also ofNoConcern, unreadable, failed, probe; of an agent written")},
		Lazy: true,
	}
	recordedTotal = metric.Definition{
		Name: "lifeboat_recorded_notices_total", Type: metric.Counter, Unit: "notices",
		Help:   "Notices that were added to an Interruption, by source and kind.",
		Labels: []metric.Label{sourceLabel, metric.OneOf("kind", notice.Kinds()...)},
		Lazy:   true,
	}
	delaySeconds = metric.Definition{
		Name: "lifeboat_notice_delay_seconds", Type: metric.Histogram, Unit: "seconds",
		Help:    "Time from the moment that a notice says it was issued until it was recorded.",
		Buckets: []float64{0.5, 1, 2, 3, 5, 10, 20, 30, 60, 90, 120, 300, 600},
	}
	unreadableTotal = metric.Definition{
		Name: "lifeboat_unreadable_messages_total", Type: metric.Counter, Unit: "messages",
		Help:   "Messages that could not be read and were left where they are, by source and reason.",
		Labels: []metric.Label{sourceLabel, metric.Open("reason", "the field that could not be read, from a list in the code")},
		Lazy:   true,
	}
	sourceUp = metric.Definition{
		Name: "lifeboat_source_up", Type: metric.Gauge, Unit: "0 or 1",
		Help:   "1 while the source can be reached, else 0.",
		Labels: []metric.Label{sourceLabel},
		Lazy:   true,
	}
	errorsTotal = metric.Definition{
		Name: "lifeboat_source_errors_total", Type: metric.Counter, Unit: "calls",
		Help: "Calls to a source that failed, by operation (such as receive or acknowledge) and reason.",
		Labels: []metric.Label{
			sourceLabel, metric.Open("operation", "what was tried, from a list in the code"),
			metric.Open("reason", "why it failed, from a list in the code, such as accessDenied or throttled"),
		},
		Lazy: true,
	}
	probeSeconds = metric.Definition{
		Name: "lifeboat_probe_seconds", Type: metric.Histogram, Unit: "seconds",
		Help:    "Time that a probe took through EventBridge, a rule and the queue to a replica.",
		Buckets: []float64{0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60},
	}
)

// Definitions are the metrics of this package.
func Definitions() []metric.Definition {
	return []metric.Definition{receivedTotal, recordedTotal, delaySeconds, unreadableTotal, sourceUp, errorsTotal, probeSeconds}
}
