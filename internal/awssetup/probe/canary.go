package probe

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/metric"
)

// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=lifeboat-system,resources=leases,verbs=create
// +kubebuilder:rbac:groups=coordination.k8s.io,namespace=lifeboat-system,resources=leases,resourceNames=lifeboat-probe,verbs=get;list;patch;watch

// Canary probes all rules periodically, so that broken wiring is noticed before an
// interruption. It is a Runnable for a controller-runtime manager and runs only on
// the leader.
type Canary struct {
	prober   *Prober
	rules    []awssetup.Rule
	interval time.Duration
	seconds  *prometheus.HistogramVec
	failed   *prometheus.CounterVec
}

var (
	ruleLabel     = metric.Open("rule", "the role of a rule of `lifeboat aws setup`: at most eight")
	canarySeconds = metric.Definition{
		Name: "lifeboat_canary_seconds", Type: metric.Histogram, Unit: "seconds",
		Help:    "Time that a probe of a rule took, from PutEvents through EventBridge, rule, queue and a replica back to the leader, by the rule's role.",
		Labels:  []metric.Label{ruleLabel},
		Buckets: []float64{0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30},
	}
	canaryFailed = metric.Definition{
		Name: "lifeboat_canary_failed_total", Type: metric.Counter, Unit: "probes",
		Help:   "Probes that did not come back in time, or could not be sent, by the role of the rule.",
		Labels: []metric.Label{ruleLabel},
	}
)

// Definitions are the metrics of this package.
func Definitions() []metric.Definition { return []metric.Definition{canarySeconds, canaryFailed} }

// minInterval limits the load: each probe is a message for every cluster of the
// account.
const minInterval = time.Minute

// NewCanary returns a canary that probes the rules every interval, and registers its
// metrics.
func NewCanary(p *Prober, rules []awssetup.Rule, interval time.Duration, registerer prometheus.Registerer) (*Canary, error) {
	if interval < minInterval {
		return nil, fmt.Errorf("canary interval %s is too short: at least %s", interval, minInterval)
	}
	c := &Canary{
		prober: p, rules: rules, interval: interval,
		seconds: canarySeconds.NewHistograms(), failed: canaryFailed.NewCounters(),
	}
	for _, rule := range rules { // Prometheus counts only what comes after the first sample of a series
		c.failed.WithLabelValues(rule.Role)
		c.seconds.WithLabelValues(rule.Role)
	}
	if err := metric.Register(registerer, "the canary", c.seconds, c.failed); err != nil {
		return nil, err
	}
	return c, nil
}

// NeedLeaderElection says that one replica is enough.
func (*Canary) NeedLeaderElection() bool { return true }

// Start probes at once and then every interval, until ctx ends.
func (c *Canary) Start(ctx context.Context) error {
	tick := time.NewTicker(c.interval)
	defer tick.Stop()
	for {
		c.probeOnce(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (c *Canary) probeOnce(ctx context.Context) {
	results := c.prober.Run(ctx, c.rules)
	if ctx.Err() != nil {
		return // cancelled: the results say nothing about the rules
	}
	for _, r := range results {
		if r.Verdict == Answered {
			c.seconds.WithLabelValues(r.Role).Observe(r.Seconds)
			continue
		}
		c.failed.WithLabelValues(r.Role).Inc()
		log.FromContext(ctx).Info("probe failed", "rule", r.Rule, "verdict", r.Verdict, "problem", r.Problem,
			"fix", "run lifeboat doctor --probe")
	}
}
