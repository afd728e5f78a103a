package nodegroup

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/metric"
)

var (
	group     = metric.Open("nodegroup", "the name of a NodeGroup")
	instances = metric.Definition{
		Name: "lifeboat_nodegroup_instances", Type: metric.Gauge, Unit: "instances",
		Help:   "Instances of a node group, by where they are.",
		Labels: []metric.Label{group, metric.OneOf("phase", "in-service", "joining", "warming", "warm", "leaving", "retained", "other")},
	}
	pendingActions = metric.Definition{
		Name: "lifeboat_nodegroup_pending_actions", Type: metric.Gauge, Unit: "instances",
		Help:   "Instances of a node group that a lifecycle hook holds.",
		Labels: []metric.Label{group},
	}
	oldestAction = metric.Definition{
		Name: "lifeboat_nodegroup_oldest_pending_action_seconds", Type: metric.Gauge, Unit: "seconds",
		Help:   "For how long the oldest pending action of a node group has held its instance; 0 where there is none.",
		Labels: []metric.Label{group},
	}

	instancesDesc, pendingDesc, oldestDesc = instances.Desc(), pendingActions.Desc(), oldestAction.Desc()
)

// Definitions are the metrics of this package.
func Definitions() []metric.Definition {
	return []metric.Definition{instances, pendingActions, oldestAction}
}

// Describe implements prometheus.Collector.
func (c *Controller) Describe(ch chan<- *prometheus.Desc) {
	ch <- instancesDesc
	ch <- pendingDesc
	ch <- oldestDesc
}

// Collect implements prometheus.Collector.
func (c *Controller) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for name, m := range c.known {
		if m.group == "" {
			continue // not read yet
		}
		gauge := func(d *prometheus.Desc, value float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, append([]string{name}, labels...)...)
		}
		for phase, n := range map[string]int32{
			"in-service": m.counts.InService, "joining": m.counts.Joining, "warming": m.counts.Warming, "warm": m.counts.Warm,
			"leaving": m.counts.Leaving, "retained": m.counts.Retained, "other": m.counts.Other,
		} {
			gauge(instancesDesc, float64(n), phase)
		}
		gauge(pendingDesc, float64(m.held))
		var age time.Duration
		if !m.oldest.IsZero() {
			age = max(c.Clock().Sub(m.oldest), 0)
		}
		gauge(oldestDesc, age.Seconds())
	}
}

// count stores the values for the metrics.
func (c *Controller) count(m *memory, s v1beta1.NodeGroupStatus) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m.group, m.counts, m.held, m.oldest = s.Group, s.Instances, s.PendingActions, time.Time{}
	if s.PendingActions > 0 && len(s.Actions) > 0 { // before the first report of the tracker, the actions are those of the last leader
		m.oldest = slices.MinFunc(s.Actions, func(a, b v1beta1.LifecycleAction) int { return a.Since.Compare(b.Since.Time) }).Since.Time
	}
}
