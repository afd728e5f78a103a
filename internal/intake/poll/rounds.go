package poll

import (
	"context"
	"errors"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

// roundTime is the timeout of one round.
const roundTime = time.Minute

// Query is a periodic request to AWS.
type Query struct {
	// Name identifies the query in metrics and logs, such as spotRequests.
	Name string
	// Permission is the IAM action that it needs.
	Permission string
	// Interval is the polling interval.
	Interval time.Duration
	// Late delays the first poll by an interval, or until a wake.
	Late bool
	// Wake triggers an early poll; nil: never.
	Wake <-chan struct{}
	// Ask returns the current notices for instances that are nodes of this
	// cluster. Its result counts even with an error. An error may name another
	// permission with Needs.
	Ask func(ctx context.Context) ([]notice.Notice, error)
}

// Poller polls the queries of one source.
type Poller struct {
	source   string
	deduper  *Deduper
	metrics  *intake.Metrics
	clock    func() time.Time
	throttle *intake.Throttle

	mu       sync.Mutex
	answered map[string]bool // by query, as of its last round
}

// NewPoller returns the Poller of the source that uses the Deduper.
func NewPoller(deduper *Deduper) *Poller {
	o := deduper.o
	return &Poller{
		source: o.Source, deduper: deduper, metrics: o.Metrics, clock: o.Clock,
		throttle: intake.NewThrottle(o.Clock), answered: map[string]bool{},
	}
}

// Run polls until ctx is done, each query at its own interval and independent
// of the others. It retries all failures of AWS and the API server.
func (r *Poller) Run(ctx context.Context, questions []Query) {
	r.metrics.Up(r.source, false)
	var group sync.WaitGroup
	for _, q := range questions {
		group.Go(func() { r.pollRepeatedly(ctx, q) })
	}
	group.Wait()
}

func (r *Poller) pollRepeatedly(ctx context.Context, q Query) {
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithValues("source", r.source, "query", q.Name))
	var p Backoff
	if q.Late && !sleep.OrWake(ctx, vary(q.Interval), q.Wake) {
		return
	}
	for ctx.Err() == nil {
		if !sleep.OrWake(ctx, p.Next(q.Interval, r.poll(ctx, q)), q.Wake) {
			return
		}
	}
}

// poll runs a query once and makes the results durable. It returns the reason
// of a failure.
func (r *Poller) poll(ctx context.Context, q Query) Reason {
	round, cancel := context.WithTimeout(ctx, roundTime)
	notices, err := q.Ask(round)
	cancel()
	if ctx.Err() != nil {
		return ""
	}
	var reason Reason
	if err != nil {
		reason = r.Failed(ctx, q.Name, q.Permission, err)
	}
	r.answers(ctx, q.Name, err == nil)
	for i := range notices {
		r.deduper.Observe(notices[i])
	}
	if err := r.deduper.Flush(ctx); err != nil && ctx.Err() == nil {
		r.logThrottled(ctx, "settle", "cannot record notices, retrying", "left", r.deduper.Pending(), "error", err.Error())
		if reason == "" {
			reason = Unavailable
		}
	}
	return reason
}

// Failed counts a failed call and logs, at most once a minute, what to do about
// it.
func (r *Poller) Failed(ctx context.Context, operation, permission string, err error) Reason {
	var cluster *clusterError
	if errors.As(err, &cluster) {
		r.logThrottled(ctx, operation+" cluster", "cannot read the cluster, retrying", "error", err.Error())
		return Unavailable
	}
	var needs *needsError
	if errors.As(err, &needs) {
		permission = needs.permission
	}
	reason := Sort(err)
	r.metrics.Failed(r.source, operation, string(reason))
	r.logThrottled(ctx, permission+" "+string(reason), "cannot poll AWS, retrying",
		"reason", reason, "permission", permission, "error", err.Error(), "advice", Advice(permission, reason))
	return reason
}

// answers stores whether a query succeeded. The source is up while any query
// does.
func (r *Poller) answers(ctx context.Context, question string, answered bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if was, asked := r.answered[question]; answered && (!asked || !was) {
		log.FromContext(ctx).Info("AWS responds")
	}
	r.answered[question] = answered
	up := false
	for _, a := range r.answered {
		up = up || a
	}
	r.metrics.Up(r.source, up)
}

func (r *Poller) logThrottled(ctx context.Context, key, message string, names ...any) {
	if held, ok := r.throttle.Allow(key); ok {
		log.FromContext(ctx).Info(message, append(names, "alikeSince", held)...)
	}
}

// needsError is the error of a call that needs another permission than its
// query.
type needsError struct {
	permission string
	err        error
}

func (e *needsError) Error() string { return e.err.Error() }
func (e *needsError) Unwrap() error { return e.err }

// Needs names the permission that the failed call needs.
func Needs(permission string, err error) error { return &needsError{permission, err} }

// clusterError is an error of the cluster, not of AWS.
type clusterError struct{ err error }

func (e *clusterError) Error() string { return e.err.Error() }
func (e *clusterError) Unwrap() error { return e.err }

// OfCluster marks an error as one of reading the cluster, not of AWS.
func OfCluster(err error) error { return &clusterError{err} }

// Explain returns why a call failed, which permission it needs, and what to do,
// for callers without a Poller. The permission is the one that the error names,
// or the given one.
func Explain(err error, permission string) (reason Reason, needed, advice string) {
	var cluster *clusterError
	if errors.As(err, &cluster) {
		return Unavailable, "", "nothing if it is temporary: the Kubernetes API could not be read"
	}
	var needs *needsError
	if errors.As(err, &needs) {
		permission = needs.permission
	}
	reason = Sort(err)
	return reason, permission, Advice(permission, reason)
}
