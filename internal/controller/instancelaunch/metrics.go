package instancelaunch

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/metric"
)

var (
	callsTotal = metric.Definition{
		Name: "lifeboat_launch_calls_total", Type: metric.Counter, Unit: "calls",
		Help: "Lifecycle hooks that were completed or extended for instances without an Interruption, by operation (answer, heartbeat) and result.",
		Labels: []metric.Label{
			metric.OneOf("operation", "answer", "heartbeat"), metric.OneOf("result", metric.Strings(lifecycle.Outcomes()...)...),
		},
	}
	launchesTotal = metric.Definition{
		Name: "lifeboat_launches_total", Type: metric.Counter, Unit: "launches",
		Help:   "Launches into Auto Scaling groups and their warm pools that ended, by result.",
		Labels: []metric.Label{metric.OneOf("result", metric.Strings(lifecycle.Launches()...)...)},
	}
	givenUpTotal = metric.Definition{
		Name: "lifeboat_launches_given_up_total", Type: metric.Counter, Unit: "launches",
		Help: "Launches whose heartbeats were stopped because the patience was over.",
	}
)

// Definitions are the metrics of this package.
func Definitions() []metric.Definition {
	return []metric.Definition{callsTotal, launchesTotal, givenUpTotal}
}

// meters are the metrics of the controller.
type meters struct {
	calls    *prometheus.CounterVec
	launches *prometheus.CounterVec
	gaveUp   prometheus.Counter
}

func newMeters() *meters {
	return &meters{calls: callsTotal.NewCounters(), launches: launchesTotal.NewCounters(), gaveUp: givenUpTotal.NewCounter()}
}

func (m *meters) register(registerer prometheus.Registerer) error {
	return metric.Register(registerer, "launches", m.calls, m.launches, m.gaveUp)
}
