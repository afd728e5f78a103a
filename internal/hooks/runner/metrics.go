package runner

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lifeboat-dev/lifeboat/internal/metric"
)

var (
	hooksTotal = metric.Definition{
		Name: "lifeboat_hooks_total", Type: metric.Counter, Unit: "tries",
		Help:   "Tries of hooks that are over, by outcome: succeeded or failed.",
		Labels: []metric.Label{metric.OneOf("outcome", "succeeded", "failed")},
	}
	notificationsTotal = metric.Definition{
		Name: "lifeboat_notifications_total", Type: metric.Counter, Unit: "requests",
		Help:   "Requests of notifications that are over, by outcome: delivered or failed.",
		Labels: []metric.Label{metric.OneOf("outcome", "delivered", "failed")},
	}
)

// Definitions are the metrics of this package.
func Definitions() []metric.Definition { return []metric.Definition{hooksTotal, notificationsTotal} }

// Metrics counts the results of hooks and notifications.
type Metrics struct {
	hooks         *prometheus.CounterVec
	notifications *prometheus.CounterVec
}

// NewMetrics creates the metrics and registers them. It fails if they are
// registered already. A nil registerer registers nothing.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{hooks: hooksTotal.NewCounters(), notifications: notificationsTotal.NewCounters()}
	return m, metric.Register(registerer, "hooks and notifications", m.hooks, m.notifications)
}
