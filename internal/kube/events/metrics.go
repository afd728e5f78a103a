package events

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lifeboat-dev/lifeboat/internal/metric"
)

// Reasons why an Event is dropped.
const (
	droppedQueueFull = "queueFull"
	droppedNoAnswer  = "noAnswer"
	droppedRefused   = "refused"
)

var (
	waitingEvents = metric.Definition{
		Name: "lifeboat_waiting_events", Type: metric.Gauge, Unit: "Events",
		Help: "Kubernetes Events that wait until they are written. Lifeboat writes at most 20 a second, and keeps 8192.",
	}
	droppedTotal = metric.Definition{
		Name: "lifeboat_dropped_events_total", Type: metric.Counter, Unit: "Events",
		Help:   "Kubernetes Events that were not written, by reason: queueFull, noAnswer (of the API server) or refused.",
		Labels: []metric.Label{metric.OneOf("reason", droppedQueueFull, droppedNoAnswer, droppedRefused)},
	}
)

// Definitions are the metrics of this package.
func Definitions() []metric.Definition { return []metric.Definition{waitingEvents, droppedTotal} }

// Register registers the metrics.
func (r *Recorder) Register(registerer prometheus.Registerer) error {
	waiting := waitingEvents.NewGauge(func() float64 { return float64(len(r.queue)) })
	return metric.Register(registerer, "Events", waiting, r.dropped)
}
