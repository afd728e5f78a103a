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

// roundTime is what one round of a question may take.
const roundTime = time.Minute

// Question is something that AWS is asked again and again.
type Question struct {
	// Name tells it from others, in metrics and logs: spotRequests.
	Name string
	// Permission is the IAM action that it needs.
	Permission string
	// Interval is how often it is asked.
	Interval time.Duration
	// Late lets an interval pass, or something wake it, before it is asked for the
	// first time.
	Late bool
	// Wake has it asked before its time; nil: nothing does.
	Wake <-chan struct{}
	// Ask returns what is the case now of instances that are nodes of this
	// cluster. What it returns beside an error counts too. An error may name
	// another permission with Needs.
	Ask func(ctx context.Context) ([]notice.Notice, error)
}

// Rounds asks the questions of one source.
type Rounds struct {
	source   string
	ledger   *Ledger
	metrics  *intake.Metrics
	clock    func() time.Time
	throttle *intake.Throttle

	mu       sync.Mutex
	answered map[string]bool // by question, as of its last round
}

// NewRounds returns the Rounds of the source whose ledger it is.
func NewRounds(ledger *Ledger) *Rounds {
	o := ledger.o
	return &Rounds{
		source: o.Source, ledger: ledger, metrics: o.Metrics, clock: o.Clock,
		throttle: intake.NewThrottle(o.Clock), answered: map[string]bool{},
	}
}

// Run asks until ctx is done, each question at its own pace, so that none waits
// for another. It survives whatever AWS and the API server do.
func (r *Rounds) Run(ctx context.Context, questions []Question) {
	r.metrics.Up(r.source, false)
	var group sync.WaitGroup
	for _, q := range questions {
		group.Go(func() { r.repeat(ctx, q) })
	}
	group.Wait()
}

func (r *Rounds) repeat(ctx context.Context, q Question) {
	ctx = log.IntoContext(ctx, log.FromContext(ctx).WithValues("source", r.source, "question", q.Name))
	var p Pace
	if q.Late && !sleep.OrWake(ctx, vary(q.Interval), q.Wake) {
		return
	}
	for ctx.Err() == nil {
		if !sleep.OrWake(ctx, p.Next(q.Interval, r.once(ctx, q)), q.Wake) {
			return
		}
	}
}

// once asks once and makes durable what it hears. It returns why that failed.
func (r *Rounds) once(ctx context.Context, q Question) Reason {
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
		r.ledger.See(notices[i])
	}
	if err := r.ledger.Settle(ctx); err != nil && ctx.Err() == nil {
		r.say(ctx, "settle", "could not record notices, goes on trying", "left", r.ledger.Pending(), "error", err.Error())
		if reason == "" {
			reason = Unavailable
		}
	}
	return reason
}

// Failed counts a call that failed and says, once a minute, what to do about
// it.
func (r *Rounds) Failed(ctx context.Context, operation, permission string, err error) Reason {
	var cluster *clusterError
	if errors.As(err, &cluster) {
		r.say(ctx, operation+" cluster", "could not read the cluster, goes on trying", "error", err.Error())
		return Unavailable
	}
	var needs *needsError
	if errors.As(err, &needs) {
		permission = needs.permission
	}
	reason := Sort(err)
	r.metrics.Failed(r.source, operation, string(reason))
	r.say(ctx, permission+" "+string(reason), "could not ask AWS, goes on trying",
		"reason", reason, "permission", permission, "error", err.Error(), "advice", Advice(permission, reason))
	return reason
}

// answers notes whether a question was answered. The source is up while any is.
func (r *Rounds) answers(ctx context.Context, question string, answered bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if was, asked := r.answered[question]; answered && (!asked || !was) {
		log.FromContext(ctx).Info("AWS answers")
	}
	r.answered[question] = answered
	up := false
	for _, a := range r.answered {
		up = up || a
	}
	r.metrics.Up(r.source, up)
}

func (r *Rounds) say(ctx context.Context, key, message string, names ...any) {
	if held, ok := r.throttle.Allow(key); ok {
		log.FromContext(ctx).Info(message, append(names, "alikeSince", held)...)
	}
}

// needsError is an error of a call that needs another permission than its
// question's.
type needsError struct {
	permission string
	err        error
}

func (e *needsError) Error() string { return e.err.Error() }
func (e *needsError) Unwrap() error { return e.err }

// Needs says which permission the call needed that failed.
func Needs(permission string, err error) error { return &needsError{permission, err} }

// clusterError is an error that is none of AWS.
type clusterError struct{ err error }

func (e *clusterError) Error() string { return e.err.Error() }
func (e *clusterError) Unwrap() error { return e.err }

// OfCluster says that it was the cluster that could not be read, and not AWS.
func OfCluster(err error) error { return &clusterError{err} }

// Explain tells why a call failed, which permission it needed, and what to do,
// for those who ask outside of Rounds. The permission is the one that the error
// names, or the one given.
func Explain(err error, permission string) (reason Reason, needed, advice string) {
	var cluster *clusterError
	if errors.As(err, &cluster) {
		return Unavailable, "", "nothing, if it passes: it is the cluster that could not be read"
	}
	var needs *needsError
	if errors.As(err, &needs) {
		permission = needs.permission
	}
	reason = Sort(err)
	return reason, permission, Advice(permission, reason)
}
