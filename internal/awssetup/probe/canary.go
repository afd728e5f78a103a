package probe

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
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
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "lifeboat_canary_seconds",
			Help:    "Time that a probe of a rule took, from PutEvents through EventBridge, rule, queue and a replica back to the leader, by the rule's role.",
			Buckets: []float64{0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30},
		}, []string{"rule"}),
		failed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "lifeboat_canary_failed_total",
			Help: "Probes that did not come back in time, or could not be sent, by the role of the rule.",
		}, []string{"rule"}),
	}
	for _, rule := range rules { // alerts need the counter to exist before the first failure
		c.failed.WithLabelValues(rule.Role)
	}
	if err := errors.Join(registerer.Register(c.seconds), registerer.Register(c.failed)); err != nil {
		return nil, fmt.Errorf("registering the canary's metrics: %w", err)
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
