package instancelaunch

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// meters are the metrics of the controller.
type meters struct {
	calls    *prometheus.CounterVec
	launches *prometheus.CounterVec
	gaveUp   prometheus.Counter
}

func newMeters() *meters {
	return &meters{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lifeboat_launch_calls_total",
			Help: "Lifecycle hooks that were completed or extended for instances without an Interruption, by operation (answer, heartbeat) and result.",
		}, []string{"operation", "result"}),
		launches: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lifeboat_launches_total",
			Help: "Launches into Auto Scaling groups and their warm pools that ended, by result.",
		}, []string{"result"}),
		gaveUp: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "lifeboat_launches_given_up_total",
			Help: "Launches whose heartbeats were stopped because the patience was over.",
		}),
	}
}

func (m *meters) register(registerer prometheus.Registerer) error {
	if registerer == nil {
		return nil
	}
	for _, c := range []prometheus.Collector{m.calls, m.launches, m.gaveUp} {
		if err := registerer.Register(c); err != nil {
			return fmt.Errorf("registering the metrics of launches: %w", err)
		}
	}
	return nil
}
