package wire

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

// AnyAction matches all actions of a service.
const AnyAction = "*"

// Gate is what every call passes before it reaches its service. It counts calls. It
// can turn them away as AWS does when permission is lacking, when there are too
// many, or when a service is down. It is safe for concurrent use.
//
// Each method names a service by its signing name ("ec2", "autoscaling") and one
// action ("DescribeInstances") or [AnyAction]. A service and action have one fault at
// a time, the one that was set last; a fault of the action itself goes before one of
// AnyAction. A fault of an action also meets the actions that need its permission, as
// DeleteMessageBatch needs sqs:DeleteMessage.
type Gate struct {
	identify func(accessKey string) Identity
	refuse   func(*Request, Access) Refusal // nil: all calls are authorized

	mu     sync.Mutex
	watch  []func(*Request, *Error)
	faults map[target]*fault
	delays map[target]func() time.Duration
	calls  map[target]int
	quotas *quotas // nil: calls are never throttled for their rate
}

type target struct{ service, action string }

// fault changes the result of calls. Left is how many; negative: all. With a bucket, calls that get
// a token pass.
type fault struct {
	do     func(ctx context.Context, s *Service, r *Request) error
	left   int
	bucket *Bucket
}

// NewGate makes a gate that passes all calls. Identify returns the owner of an access key. Watch,
// unless nil, receives each call and its result; a nil error is success.
func NewGate(identify func(accessKey string) Identity, watch func(*Request, *Error)) *Gate {
	g := &Gate{identify: identify, faults: map[target]*fault{}, delays: map[target]func() time.Duration{}, calls: map[target]int{}}
	if watch != nil {
		g.Watch(watch)
	}
	return g
}

// Watch lets f receive each further call and its result; a nil error is success.
func (g *Gate) Watch(f func(*Request, *Error)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.watch = append(g.watch, f)
}

// done passes a call and its result to those who watch.
func (g *Gate) done(r *Request, failure *Error) {
	g.mu.Lock()
	all := slices.Clone(g.watch)
	g.mu.Unlock()
	for _, f := range all {
		f(r, failure)
	}
}

// Deny rejects calls for lack of permission, as if no policy of the caller allowed the action.
func (g *Gate) Deny(service, action string) { g.set(service, action, -1, g.deny) }

// Throttle rejects the next n calls as too many; all, if n is negative.
func (g *Gate) Throttle(service, action string, n int) { g.set(service, action, n, throttle) }

// Limit throttles calls with a token bucket: burst at once, and perSecond over time, as EC2 does
// (Amazon EC2 API Reference, Request throttling).
func (g *Gate) Limit(service, action string, perSecond float64, burst int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.faults[target{service, action}] = &fault{do: throttle, left: -1, bucket: NewBucket(perSecond, burst, time.Now())}
}

func throttle(_ context.Context, s *Service, r *Request) error { return s.throttled(r.Protocol) }

// Fail answers calls that the service is unavailable: status 503.
func (g *Gate) Fail(service, action string) {
	g.set(service, action, -1, func(_ context.Context, _ *Service, r *Request) error { return unavailable(r.Protocol) })
}

// Hang leaves calls without an answer until their caller cancels them.
func (g *Gate) Hang(service, action string) {
	g.set(service, action, -1, func(ctx context.Context, _ *Service, r *Request) error {
		<-ctx.Done()
		return unavailable(r.Protocol)
	})
}

// Slow delays each call by delay before its service, or a fault, answers it. A call that its caller
// cancels meanwhile is not performed. A delay exists independently of a fault. An action's own
// delay replaces that of AnyAction.
func (g *Gate) Slow(service, action string, delay func() time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.delays[target{service, action}] = delay
}

// keep delays a call, and reports whether its caller still waits.
func (g *Gate) keep(r *Request) bool {
	g.mu.Lock()
	delay := g.delays[target{r.Service, r.Action}]
	if delay == nil {
		delay = g.delays[target{r.Service, AnyAction}]
	}
	g.mu.Unlock()
	if delay == nil {
		return true
	}
	return sleep.For(r.http.Context(), delay())
}

// Lift removes the fault, and the delay, of a service and action.
func (g *Gate) Lift(service, action string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.faults, target{service, action})
	delete(g.delays, target{service, action})
}

// LiftAll removes all faults and delays.
func (g *Gate) LiftAll() {
	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.faults)
	clear(g.delays)
}

// Calls is how many calls of an action arrived, with the rejected ones.
func (g *Gate) Calls(service, action string) int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls[target{service, action}]
}

// AllCalls is the number of calls of each action of a service.
func (g *Gate) AllCalls(service string) map[string]int {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := map[string]int{}
	for t, n := range g.calls {
		if t.service == service {
			out[t.action] = n
		}
	}
	return out
}

func (g *Gate) set(service, action string, n int, do func(context.Context, *Service, *Request) error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.faults[target{service, action}] = &fault{do: do, left: n}
}

// perform counts a call, executes the action or the fault, and notifies Watch.
func (g *Gate) perform(s *Service, r *Request, action Action) (out any, err error) {
	f := g.meet(s, r)
	switch {
	case !g.keep(r):
		err = unavailable(r.Protocol)
	case f != nil:
		err = f.do(r.http.Context(), s, r)
	case g.exceeds(s, r):
		err = s.throttled(r.Protocol)
	default:
		if err = g.authorize(s, r); err == nil {
			out, err = action(r.http.Context(), r)
		}
	}
	if err != nil {
		e, _ := asError(err)
		g.done(r, e)
		return nil, err
	}
	g.done(r, nil)
	return out, nil
}

func (g *Gate) meet(s *Service, r *Request) *fault {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.calls[target{r.Service, r.Action}]++
	// An action that is its own permission is checked once: a bucket gives one token per call.
	names := slices.Compact([]string{r.Action, s.permission(r.Action), AnyAction})
	for _, name := range names {
		t := target{r.Service, name}
		f := g.faults[t]
		switch {
		case f == nil || f.left == 0 || f.bucket != nil && f.bucket.Take(time.Now()):
			continue
		case f.left > 0:
			f.left--
		}
		return f
	}
	return nil
}

// deny is the error for a call that no policy allows.
func (g *Gate) deny(_ context.Context, s *Service, r *Request) error {
	a := s.Access(r)
	return g.unauthorized(s, r, a, NotAllowed(a.Action))
}

// permission is the action that policies have to allow.
func (s *Service) permission(action string) string {
	if s.Permission != nil {
		return s.Permission(action)
	}
	return action
}

// throttled is the error for a throttled call. Services name it differently; see the lists of
// errors in their API references.
func (s *Service) throttled(p Protocol) error {
	if s.Throttled != nil {
		return s.Throttled
	}
	e := &Error{Code: "ThrottlingException", QueryCode: "Throttling", Message: "Rate exceeded"}
	switch p {
	case EC2Query:
		e.Status, e.QueryCode, e.Message = http.StatusServiceUnavailable, "RequestLimitExceeded", "Request limit exceeded."
	case RESTJSON:
		e.Status = http.StatusTooManyRequests
	case Query, JSON10, JSON11:
	}
	return e
}

func unavailable(p Protocol) error {
	e := &Error{
		Status: http.StatusServiceUnavailable, Code: "ServiceUnavailableException", QueryCode: "ServiceUnavailable", Namespace: Coral,
		Message: "The request has failed due to a temporary failure of the server.",
	}
	if p == EC2Query {
		e.QueryCode = "Unavailable"
	}
	return e
}
