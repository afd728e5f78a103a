// Package tracing sends the history of each finished Interruption to a collector, as OpenTelemetry
// spans. It runs on the leader only. It writes nothing to the cluster, and nothing waits for it.
package tracing

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	tracepb "go.opentelemetry.io/proto/slim/otlp/trace/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/metric"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/tracing"
)

const (
	// queueSize is the number of interruptions whose spans wait for the collector: a storm of 1,000
	// fits.
	queueSize = 1024
	// recent is how long before this process became the leader an interruption may have finished, so
	// that its spans are sent. The last leader may have sent them already: the ids are the same.
	recent = 10 * time.Minute
)

// Sender sends the spans of one interruption, and returns how many the collector rejected.
type Sender interface {
	Send(ctx context.Context, spans []*tracepb.Span, version string) (rejected int64, err error)
}

// Options configure the controller. All fields are required.
type Options struct {
	Sender     Sender
	Version    string
	Clock      func() time.Time
	Registerer prometheus.Registerer
}

// Controller queues the spans of Interruptions that finish.
type Controller struct {
	o     Options
	queue chan job
	spans *prometheus.CounterVec

	mu sync.Mutex
	// since is when the oldest interruption finished whose spans are sent; zero: this process was not
	// the leader yet.
	since time.Time
	// sent has what was queued since then, by the name of the Interruption, with its completion time.
	sent map[string]finish
}

type finish struct {
	uid types.UID
	at  time.Time
}

type job struct {
	name  string
	spans []*tracepb.Span
}

const (
	outcomeSent     = "sent"
	outcomeRejected = "rejected"
	outcomeFailed   = "failed"
	outcomeOverflow = "overflow"
)

var spansTotal = metric.Definition{
	Name: "lifeboat_trace_spans_total", Type: metric.Counter, Unit: "spans",
	Help: "Spans of finished Interruptions, by result: sent, rejected by the collector, failed because the collector " +
		"did not accept the request, or overflow because too many were waiting. All but sent are lost.",
	Labels: []metric.Label{metric.OneOf("outcome", outcomeSent, outcomeRejected, outcomeFailed, outcomeOverflow)},
}

// Definitions are the metrics of this package.
func Definitions() []metric.Definition { return []metric.Definition{spansTotal} }

// New returns the controller.
func New(o Options) (*Controller, error) {
	c := &Controller{o: o, queue: make(chan job, queueSize), spans: spansTotal.NewCounters(), sent: map[string]finish{}}
	return c, metric.Register(o.Registerer, "spans", c.spans)
}

// Register adds the controller and its sender to a manager.
func (c *Controller) Register(mgr ctrl.Manager) error {
	if err := mgr.Add(c); err != nil {
		return err
	}
	reader := mgr.GetClient()
	return ctrl.NewControllerManagedBy(mgr).
		Named("tracing").
		For(&v1beta1.Interruption{}).
		Complete(reconcile.Func(func(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
			var in v1beta1.Interruption
			if err := reader.Get(ctx, r.NamespacedName, &in); apierrors.IsNotFound(err) {
				c.forget(r.Name)
				return reconcile.Result{}, nil
			} else if err != nil {
				return reconcile.Result{}, err
			}
			c.take(ctx, &in)
			return reconcile.Result{}, nil
		}))
}

// take queues the spans of an Interruption that finished, once.
func (c *Controller) take(ctx context.Context, in *v1beta1.Interruption) {
	if !c.isNew(in) {
		return
	}
	j := job{name: in.Name, spans: tracing.Spans(in)}
	select {
	case c.queue <- j:
	default:
		c.count(outcomeOverflow, len(j.spans))
		log.FromContext(ctx).Info("dropped spans: the collector is too slow", "spans", len(j.spans))
	}
}

// isNew reports whether an Interruption has finished and its spans were not queued, and remembers it.
// Only the leader reconciles, so the first call is at most moments after this process became it.
func (c *Controller) isNew(in *v1beta1.Interruption) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since.IsZero() {
		c.since = c.o.Clock().Add(-recent)
	}
	if !notice.Finished(in) || in.Status.CompletionTime.Time.Before(c.since) {
		return false
	}
	end := finish{in.UID, in.Status.CompletionTime.UTC()}
	known := c.sent[in.Name] == end
	c.sent[in.Name] = end
	return !known
}

func (c *Controller) forget(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sent, name)
}

func (c *Controller) count(outcome string, n int) {
	c.spans.WithLabelValues(outcome).Add(float64(n))
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (c *Controller) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable: it sends what is queued until ctx ends.
func (c *Controller) Start(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case j := <-c.queue:
			c.send(ctx, j)
		}
	}
}

func (c *Controller) send(ctx context.Context, j job) {
	rejected, err := c.o.Sender.Send(ctx, j.spans, c.o.Version)
	if err != nil {
		c.count(outcomeFailed, len(j.spans))
		log.FromContext(ctx).Info("dropped spans: cannot send them", "interruption", j.name, "spans", len(j.spans), "error", err.Error())
		return
	}
	lost := min(int(max(rejected, 0)), len(j.spans))
	c.count(outcomeRejected, lost)
	c.count(outcomeSent, len(j.spans)-lost)
}
