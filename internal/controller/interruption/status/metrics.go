package status

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/kube/writes"
	"github.com/lifeboat-dev/lifeboat/internal/metric"
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
	refused  *prometheus.CounterVec
}

// NewMetrics makes the metrics and registers them.
func NewMetrics(reg prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		pods: podsTotal.NewCounters(), refusals: refusalsTotal.NewCounters(), cordon: cordonSeconds.NewHistogram(),
		drain: drainSeconds.NewHistogram(), finished: finishedTotal.NewCounters(), replaced: replacedTotal.NewCounters(),
		ready: readySeconds.NewHistogram(), doubted: doubtedTotal.NewCounters(), refused: refusedTotal.NewCounters(),
	}
	if err := metric.Register(reg, "the interruption loop",
		m.pods, m.refusals, m.cordon, m.drain, m.finished, m.replaced, m.ready, m.doubted, m.refused); err != nil {
		return nil, err
	}
	return m, nil
}

// Refused counts an eviction that a budget refused.
func (m *Metrics) Refused() { m.refusals.WithLabelValues("budget").Inc() }

// Busy counts an eviction that an overloaded API server rejected.
func (m *Metrics) Busy() { m.refusals.WithLabelValues("busy").Inc() }

// WriteRefused counts a write that the API server refuses for good.
func (m *Metrics) WriteRefused(kind string) {
	if m == nil {
		return
	}
	if !slices.Contains(writes.Kinds(), kind) {
		kind = "other"
	}
	m.refused.WithLabelValues(kind).Inc()
}

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
		case v1beta1.ReasonCordoned:
			observe(m.cordon, e.Time.Sub(u.pass.Decision.Notice.ReceivedTime.Time))
		case v1beta1.ReasonDrained:
			observe(m.drain, took)
		case v1beta1.ReasonCompleted:
			m.finished.WithLabelValues(string(u.after.Status.Phase)).Inc()
		default:
			m.replacement(e.Reason, u.Drain().Replacement)
		}
	}
}

func (m *Metrics) replacement(reason string, s *v1beta1.ReplacementStatus) {
	switch {
	case s == nil:
	case reason == v1beta1.ReasonReplacementReady:
		m.replaced.WithLabelValues("ready").Inc()
		if s.OrderTime != nil && s.ReadyTime != nil {
			observe(m.ready, s.ReadyTime.Sub(s.OrderTime.Time))
		}
	case reason == v1beta1.ReasonReplacementFailed:
		m.replaced.WithLabelValues("failed").Inc()
	case reason == v1beta1.ReasonNotReplaced && isNotNeeded(s):
		m.replaced.WithLabelValues("not_needed").Inc()
	case reason == v1beta1.ReasonNotReplaced:
		m.replaced.WithLabelValues("not_possible").Inc()
	}
}

func observe(h prometheus.Observer, d time.Duration) { h.Observe(d.Seconds()) }
