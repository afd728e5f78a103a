package runner

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics counts the results of hooks and notifications.
type Metrics struct {
	hooks         *prometheus.CounterVec
	notifications *prometheus.CounterVec
}

// NewMetrics creates the metrics and registers them. It fails if they are
// registered already. A nil registerer registers nothing.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		hooks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lifeboat_hooks_total",
			Help: "Tries of hooks that are over, by outcome: succeeded or failed.",
		}, []string{"outcome"}),
		notifications: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lifeboat_notifications_total",
			Help: "Requests of notifications that are over, by outcome: delivered or failed.",
		}, []string{"outcome"}),
	}
	if registerer == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.hooks, m.notifications} {
		if err := registerer.Register(c); err != nil {
			return nil, fmt.Errorf("registering hook and notification metrics: %w", err)
		}
	}
	return m, nil
}
