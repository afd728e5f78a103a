package intake

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

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
		received: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lifeboat_received_messages_total",
			Help: "Messages received, by source and outcome. A repeated message counts again.",
		}, []string{"source", "outcome"}),
		recorded: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lifeboat_recorded_notices_total",
			Help: "Notices that were added to an Interruption, by source and kind.",
		}, []string{"source", "kind"}),
		delay: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "lifeboat_notice_delay_seconds",
			Help:    "Time from the moment that a notice says it was issued until it was recorded.",
			Buckets: []float64{0.5, 1, 2, 3, 5, 10, 20, 30, 60, 90, 120, 300, 600},
		}),
		unreadable: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lifeboat_unreadable_messages_total",
			Help: "Messages that could not be read and were left where they are, by source and reason.",
		}, []string{"source", "reason"}),
		up: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "lifeboat_source_up",
			Help: "1 while the source can be reached, else 0.",
		}, []string{"source"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lifeboat_source_errors_total",
			Help: "Calls to a source that failed, by operation (such as receive or acknowledge) and reason.",
		}, []string{"source", "operation", "reason"}),
		probe: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "lifeboat_probe_seconds",
			Help:    "Time that a probe took through EventBridge, a rule and the queue to a replica.",
			Buckets: []float64{0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30, 60},
		}),
	}
	if registerer == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.received, m.recorded, m.delay, m.unreadable, m.up, m.errors, m.probe} {
		if err := registerer.Register(c); err != nil {
			return nil, fmt.Errorf("registering intake metrics: %w", err)
		}
	}
	return m, nil
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
