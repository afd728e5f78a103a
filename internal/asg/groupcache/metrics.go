package groupcache

import (
	"context"
	"fmt"

	awsas "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/lifeboat-dev/lifeboat/internal/asg/ratelimit"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
	"github.com/lifeboat-dev/lifeboat/internal/metric"
)

var (
	callsTotal = metric.Definition{
		Name: "lifeboat_group_calls_total", Type: metric.Counter, Unit: "calls",
		Help: "Calls to read Auto Scaling groups, by operation and result: ok, or why it failed.",
		Labels: []metric.Label{
			metric.OneOf("operation", "DescribeAutoScalingGroups", "DescribeAutoScalingInstances", "DescribeLifecycleHooks", "DescribeWarmPool"),
			metric.OneOf("result", append([]string{"ok"}, metric.Strings(poll.Reasons()...)...)...),
		},
	}
	ageSeconds = metric.Definition{
		Name: "lifeboat_group_age_seconds", Type: metric.Gauge, Unit: "seconds",
		Help: "For how long Auto Scaling groups have not been read in full; 0 where there is none to read.",
	}
)

// Definitions are the metrics of this package.
func Definitions() []metric.Definition { return []metric.Definition{callsTotal, ageSeconds} }

// meters are the watcher's metrics.
type meters struct {
	calls *prometheus.CounterVec
	age   prometheus.GaugeFunc
}

func newMeters(w *Watcher) *meters {
	return &meters{calls: callsTotal.NewCounters(), age: ageSeconds.NewGauge(func() float64 { return w.Age().Seconds() })}
}

func (m *meters) register(registerer prometheus.Registerer) error {
	return metric.Register(registerer, "Auto Scaling groups", m.calls, m.age)
}

// call waits for the rate limiter, makes a call, and counts it.
func call[In, Out any](ctx context.Context, w *Watcher, operation string,
	do func(context.Context, *In, ...func(*awsas.Options)) (*Out, error), in *In,
) (*Out, error) {
	if err := w.o.Quota.Wait(ctx, ratelimit.Ask); err != nil {
		return nil, fmt.Errorf("waiting for the API rate limiter: %w", err)
	}
	out, err := do(ctx, in)
	if err == nil {
		w.o.Quota.Passed()
		w.meters.calls.WithLabelValues(operation, "ok").Inc()
		return out, nil
	}
	reason := poll.Sort(err)
	if reason == poll.Throttled {
		w.o.Quota.Throttled()
	}
	w.meters.calls.WithLabelValues(operation, string(reason)).Inc()
	return nil, err
}
