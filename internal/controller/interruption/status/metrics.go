package status

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// Metrics counts what drains do.
type Metrics struct {
	pods     *prometheus.CounterVec
	refusals *prometheus.CounterVec
	cordon   prometheus.Histogram
	drain    prometheus.Histogram
	finished *prometheus.CounterVec
	replaced *prometheus.CounterVec
	ready    prometheus.Histogram
	doubted  *prometheus.CounterVec
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(reg prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		pods: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lifeboat_drained_pods_total",
			Help: "Pods that had to leave an interrupted node, by result: moved or lost.",
		}, []string{"outcome"}),
		refusals: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lifeboat_refused_evictions_total",
			Help: "Evictions that the API server refused, by cause: budget or busy.",
		}, []string{"by"}),
		cordon: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "lifeboat_cordon_seconds",
			Help:    "Time from receiving the notice to the node being cordoned.",
			Buckets: []float64{.05, .1, .25, .5, 1, 2, 5, 10, 30, 60},
		}),
		drain: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "lifeboat_drain_seconds",
			Help:    "Time from receiving the notice to no pod being left that had to leave.",
			Buckets: []float64{1, 2, 5, 10, 20, 30, 45, 60, 90, 120, 300, 900, 3600},
		}),
		finished: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lifeboat_finished_interruptions_total",
			Help: "Interruptions that are over, by the phase they ended in.",
		}, []string{"phase"}),
		replaced: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lifeboat_replacements_total",
			Help: "Replacements of interrupted nodes that policy wants, by result: ready, failed (for each try), not_needed or not_possible.",
		}, []string{"outcome"}),
		ready: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "lifeboat_replacement_ready_seconds",
			Help:    "Time from ordering a replacement to its node being Ready.",
			Buckets: []float64{5, 10, 20, 30, 40, 50, 60, 80, 100, 120, 180, 300, 900},
		}),
		doubted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lifeboat_uncorroborated_total",
			Help: "Times that an interruption began to wait because facts about its instance do not agree, by reason: NodeConflict, Contradicted or Unconfirmed.",
		}, []string{"reason"}),
	}
	for _, c := range []prometheus.Collector{m.pods, m.refusals, m.cordon, m.drain, m.finished, m.replaced, m.ready, m.doubted} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("registering metrics of the interruption loop: %w", err)
		}
	}
	return m, nil
}

// Refused counts an eviction that a budget refused.
func (m *Metrics) Refused() { m.refusals.WithLabelValues("budget").Inc() }

// Busy counts an eviction that an overloaded API server rejected.
func (m *Metrics) Busy() { m.refusals.WithLabelValues("busy").Inc() }

// count counts what a pass did, after its status is written.
func (m *Metrics) count(u *Update) {
	m.pods.WithLabelValues("moved").Add(float64(u.moved))
	m.pods.WithLabelValues("lost").Add(float64(u.lost))
	for _, e := range u.writtenEvents {
		if isDoubt(e.Reason) {
			m.doubted.WithLabelValues(e.Reason).Inc()
		}
	}
	if u.pass == nil {
		return
	}
	took := u.now.Sub(u.pass.Decision.Notice.ReceivedTime.Time)
	for _, e := range u.writtenEvents {
		switch e.Reason {
		case v1alpha1.ReasonCordoned:
			observe(m.cordon, e.Time.Sub(u.pass.Decision.Notice.ReceivedTime.Time))
		case v1alpha1.ReasonDrained:
			observe(m.drain, took)
		case v1alpha1.ReasonCompleted:
			m.finished.WithLabelValues(string(u.after.Status.Phase)).Inc()
		default:
			m.replacement(e.Reason, u.Drain().Replacement)
		}
	}
}

func (m *Metrics) replacement(reason string, s *v1alpha1.ReplacementStatus) {
	switch {
	case s == nil:
	case reason == v1alpha1.ReasonReplacementReady:
		m.replaced.WithLabelValues("ready").Inc()
		if s.OrderTime != nil && s.ReadyTime != nil {
			observe(m.ready, s.ReadyTime.Sub(s.OrderTime.Time))
		}
	case reason == v1alpha1.ReasonReplacementFailed:
		m.replaced.WithLabelValues("failed").Inc()
	case reason == v1alpha1.ReasonNotReplaced && isNotNeeded(s):
		m.replaced.WithLabelValues("not_needed").Inc()
	case reason == v1alpha1.ReasonNotReplaced:
		m.replaced.WithLabelValues("not_possible").Inc()
	}
}

func observe(h prometheus.Observer, d time.Duration) { h.Observe(d.Seconds()) }
