package intake

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/lifeboat-dev/lifeboat/internal/metric"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Metrics are the metrics of intake, for all sources. Label values are from closed lists: never
// an instance, node or message id.
type Metrics struct {
	received   *prometheus.CounterVec
	recorded   *prometheus.CounterVec
	delay      prometheus.Histogram
	unreadable *prometheus.CounterVec
	up         *prometheus.GaugeVec
	errors     *prometheus.CounterVec
	probe      prometheus.Histogram
}

// NewMetrics creates and registers the metrics. It fails if they are already registered. With a
// nil registerer they are not exposed.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		received: receivedTotal.NewCounters(), recorded: recordedTotal.NewCounters(), delay: delaySeconds.NewHistogram(),
		unreadable: unreadableTotal.NewCounters(), up: sourceUp.NewGauges(), errors: errorsTotal.NewCounters(),
		probe: probeSeconds.NewHistogram(),
	}
	if err := metric.Register(registerer, "intake", m.received, m.recorded, m.delay, m.unreadable, m.up, m.errors, m.probe); err != nil {
		return nil, err
	}
	return m, nil
}

// Expect makes the counters of enabled sources exist before their first event, for alerts. Agents
// do not call it: there are as many of them as nodes, and each series counts.
func (m *Metrics) Expect(sources []string) {
	for _, source := range sources {
		for _, kind := range notice.Kinds() {
			m.recorded.WithLabelValues(source, kind)
		}
		for _, outcome := range []Outcome{Recorded, Joined, Repeated, Foreign, Stale, Implausible, Unpermitted, NotYetKnown} {
			m.received.WithLabelValues(source, string(outcome))
		}
	}
}

// unread returns metrics that are not exposed.
func unread() *Metrics {
	m, _ := NewMetrics(nil) // registers nothing, so it cannot fail
	return m
}

// OrUnread returns m, or metrics that are not exposed if m is nil.
func (m *Metrics) OrUnread() *Metrics {
	if m == nil {
		return unread()
	}
	return m
}

// Received counts a message of a source. The outcome is an Outcome, or a source's own value for
// messages without a notice.
func (m *Metrics) Received(source, outcome string) {
	m.received.WithLabelValues(source, outcome).Inc()
}

// Unreadable counts a message that could not be read.
func (m *Metrics) Unreadable(source, reason string) {
	m.unreadable.WithLabelValues(source, reason).Inc()
}

// Up sets whether a source can be reached.
func (m *Metrics) Up(source string, up bool) {
	value := 0.0
	if up {
		value = 1
	}
	m.up.WithLabelValues(source).Set(value)
}

// Failed counts a failed call to a source.
func (m *Metrics) Failed(source, operation, reason string) {
	m.errors.WithLabelValues(source, operation, reason).Inc()
}

// Probed records a probe that arrived at now.
func (m *Metrics) Probed(p Probe, now time.Time) {
	if !p.Sent.IsZero() {
		m.probe.Observe(max(0, now.Sub(p.Sent).Seconds()))
	}
}

// wrote counts a notice that became durable at now.
func (m *Metrics) wrote(n *notice.Notice, now time.Time) {
	m.recorded.WithLabelValues(n.Source, n.Kind).Inc()
	// The cloud's clock may be ahead.
	m.delay.Observe(max(0, now.Sub(n.Time.Time).Seconds()))
}
