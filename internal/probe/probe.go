// Package probe proves a wiring from end to end: it sends a private event to
// EventBridge for each rule, which takes the rule's own way into the queue, and
// waits until a replica of lifeboatd says that it has come.
package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/google/uuid"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/wiring"
)

const (
	// DefaultPatience is how long a probe may take. EventBridge mostly delivers
	// within a second.
	DefaultPatience = 30 * time.Second
	// entriesPerCall is how many events PutEvents takes (EventBridge API
	// Reference, "PutEvents").
	entriesPerCall = 10
	// pause is how long a watch that ended is left alone before it begins anew.
	pause = 200 * time.Millisecond
)

// EventsAPI sends events. *eventbridge.Client implements it. It needs the
// permission events:PutEvents on the default bus.
type EventsAPI interface {
	PutEvents(context.Context, *eventbridge.PutEventsInput, ...func(*eventbridge.Options)) (*eventbridge.PutEventsOutput, error)
}

// Options are what a Prober needs. Zero values of the last two are defaults.
type Options struct {
	Events EventsAPI
	// Kube watches the Lease that lifeboatd answers in. It must not be a cache.
	Kube client.WithWatch
	// Cluster is the name of the cluster, which the probe carries.
	Cluster string
	// Patience is how long a probe may take; [DefaultPatience].
	Patience time.Duration
	// Clock tells the time; nil: time.Now.
	Clock func() time.Time
}

// Prober sends probes.
type Prober struct{ o Options }

// New returns a prober.
func New(o Options) *Prober {
	if o.Patience <= 0 {
		o.Patience = DefaultPatience
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return &Prober{o: o}
}

// Verdict is what became of a probe.
type Verdict string

// The verdicts.
const (
	// Answered: it came back.
	Answered Verdict = "answered"
	// Unanswered: EventBridge took it, and lifeboatd has not said in time that it
	// came. The rule, the queue's policy, or lifeboatd is at fault.
	Unanswered Verdict = "unanswered"
	// Refused: EventBridge did not take it, so that it says nothing of the rule.
	Refused Verdict = "refused"
	// Unheard: the answers could not be read, so that it says nothing of the rule.
	Unheard Verdict = "unheard"
)

// Result is what became of the probe of one rule.
type Result struct {
	// Rule is the rule's name, Role what it is there to hear, and Kinds the kinds
	// of notices that it brings.
	Rule  string   `json:"rule"`
	Role  string   `json:"role"`
	Kinds []string `json:"kinds,omitempty"`
	// Verdict says whether it came back.
	Verdict Verdict `json:"verdict"`
	// Seconds is how long it took, there and back, if it was answered.
	Seconds float64 `json:"seconds,omitempty"`
	// Problem says what went wrong, in half a sentence; empty if nothing did.
	Problem string `json:"problem,omitempty"`
	// Err is the error behind it, if there is one.
	Err error `json:"-"`
}

// flight is a probe that is under way.
type flight struct {
	rule   wiring.Rule
	id     string
	sent   time.Time
	result Result
	landed bool
}

// Run probes rules, all at a time, and returns one result for each, in their
// order. It takes no longer than the patience, and a moment to send.
func (p *Prober) Run(ctx context.Context, rules []wiring.Rule) []Result {
	flights := make([]*flight, len(rules))
	for i, rule := range rules {
		flights[i] = &flight{rule: rule, id: uuid.NewString(), result: Result{Rule: rule.Name, Role: rule.Role, Kinds: rule.Kinds}}
	}
	limit, cancel := context.WithTimeout(ctx, p.o.Patience)
	defer cancel()
	p.fly(limit, flights)
	results := make([]Result, len(flights))
	for i, f := range flights {
		if !f.landed {
			f.fail(Unanswered, fmt.Sprintf("nothing came back within %s", p.o.Patience), context.Cause(ctx))
		}
		results[i] = f.result
	}
	return results
}

func (f *flight) fail(v Verdict, problem string, err error) {
	f.landed = true
	f.result.Verdict, f.result.Problem, f.result.Err = v, problem, err
}

// fly sends the probes and notes the answers. The watch is there before
// anything is sent, so that no answer is missed.
func (p *Prober) fly(ctx context.Context, flights []*flight) {
	w, err := p.watch(ctx)
	if err != nil {
		for _, f := range flights {
			f.fail(Unheard, fmt.Sprintf("watching the Lease %s/%s: %v", intake.ProbeNamespace, intake.ProbeLease, err), err)
		}
		return
	}
	for batch := range slices.Chunk(flights, entriesPerCall) {
		p.send(ctx, batch)
	}
	for {
		p.follow(ctx, w, flights)
		if landed(flights) {
			return
		}
		if w = p.rewatch(ctx); w == nil {
			return
		}
	}
}

// follow notes the answers until all are there, the watch ends, as watches do
// from time to time, or ctx does.
func (p *Prober) follow(ctx context.Context, w watch.Interface, flights []*flight) {
	defer w.Stop()
	for !landed(flights) {
		select {
		case <-ctx.Done():
			return
		case change, open := <-w.ResultChan():
			if !open {
				return
			}
			if lease, ok := change.Object.(*coordinationv1.Lease); ok {
				p.heard(flights, lease)
			}
		}
	}
}

// rewatch returns a new watch, or nil where ctx ends first.
func (p *Prober) rewatch(ctx context.Context) watch.Interface {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		if w, err := p.watch(ctx); err == nil {
			return w
		}
	}
}

func landed(flights []*flight) bool {
	return !slices.ContainsFunc(flights, func(f *flight) bool { return !f.landed })
}

// watch begins with the Lease as it is, if it is there at all: that is what the
// API server does where no version is named.
func (p *Prober) watch(ctx context.Context) (watch.Interface, error) {
	return p.o.Kube.Watch(ctx, &coordinationv1.LeaseList{},
		client.InNamespace(intake.ProbeNamespace), client.MatchingFields{"metadata.name": intake.ProbeLease})
}

// send puts the probes on the default bus.
func (p *Prober) send(ctx context.Context, flights []*flight) {
	var sent []*flight
	in := &eventbridge.PutEventsInput{}
	now := p.o.Clock()
	for _, f := range flights {
		event, err := wiring.Probe(f.rule, f.id, p.o.Cluster)
		if err == nil {
			event.Detail, err = stamped(event.Detail, now)
		}
		if err != nil {
			f.fail(Refused, err.Error(), err)
			continue
		}
		f.sent = now
		sent = append(sent, f)
		in.Entries = append(in.Entries, types.PutEventsRequestEntry{
			Source: aws.String(event.Source), DetailType: aws.String(event.DetailType), Detail: aws.String(string(event.Detail)),
		})
	}
	if len(sent) == 0 {
		return
	}
	out, err := p.o.Events.PutEvents(ctx, in)
	for i, f := range sent {
		switch {
		case err != nil:
			f.fail(Refused, fmt.Sprintf("sending it to EventBridge: %v", err), err)
		case i < len(out.Entries) && aws.ToString(out.Entries[i].ErrorCode) != "":
			entry := out.Entries[i]
			f.fail(Refused, fmt.Sprintf("EventBridge did not take it: %s: %s", aws.ToString(entry.ErrorCode), aws.ToString(entry.ErrorMessage)), errRefused)
		}
	}
}

// errRefused stands behind results that EventBridge refused one by one.
var errRefused = errors.New("refused by EventBridge")

// stamped adds to the mark of a probe when it was sent, from which lifeboatd
// measures how long it took one way.
func stamped(detail json.RawMessage, now time.Time) (json.RawMessage, error) {
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(detail, &whole); err != nil {
		return nil, fmt.Errorf("reading the probe's detail: %w", err)
	}
	var mark wiring.ProbeMark
	if err := json.Unmarshal(whole[wiring.ProbeField], &mark); err != nil {
		return nil, fmt.Errorf("reading the probe's mark: %w", err)
	}
	with, err := json.Marshal(struct {
		wiring.ProbeMark

		Sent string `json:"sent"`
	}{mark, now.UTC().Format(time.RFC3339Nano)})
	if err != nil {
		return nil, fmt.Errorf("writing the probe's mark: %w", err)
	}
	whole[wiring.ProbeField] = with
	return json.Marshal(whole)
}

// heard notes the probes that the Lease says have come.
func (p *Prober) heard(flights []*flight, lease *coordinationv1.Lease) {
	now := p.o.Clock()
	for _, f := range flights {
		if !f.landed && strings.HasPrefix(lease.Annotations[intake.ProbeAnnotation(f.rule.Role)], f.id+" ") {
			f.landed, f.result.Verdict, f.result.Seconds = true, Answered, max(0, now.Sub(f.sent).Seconds())
		}
	}
}
