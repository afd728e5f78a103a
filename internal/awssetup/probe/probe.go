// Package probe tests wiring end to end. It sends a private event to EventBridge for
// each rule, which takes the rule's path into the queue. It waits until a replica of
// lifeboatd reports its arrival.
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
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
)

const (
	// DefaultTimeout is the default timeout of a probe. EventBridge usually delivers
	// within a second.
	DefaultTimeout = 30 * time.Second
	// entriesPerCall is the maximum number of events per PutEvents call (EventBridge
	// API Reference, "PutEvents").
	entriesPerCall = 10
	// rewatchDelay is the delay before a closed watch is restarted.
	rewatchDelay = 200 * time.Millisecond
)

// EventsAPI sends events. *eventbridge.Client implements it. It needs
// events:PutEvents on the default bus.
type EventsAPI interface {
	PutEvents(context.Context, *eventbridge.PutEventsInput, ...func(*eventbridge.Options)) (*eventbridge.PutEventsOutput, error)
}

// Options configure a Prober. Timeout and Clock have defaults.
type Options struct {
	Events EventsAPI
	// Kube writes and watches the Lease in which probes are announced, and in which
	// lifeboatd reports them. It must not be a cache.
	Kube client.WithWatch
	// Cluster is the cluster's name, which is part of the probe.
	Cluster string
	// Timeout is the timeout of a probe; by default [DefaultTimeout].
	Timeout time.Duration
	// Clock returns the current time; by default time.Now.
	Clock func() time.Time
}

// Prober sends probes.
type Prober struct{ o Options }

// New returns a prober.
func New(o Options) *Prober {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return &Prober{o: o}
}

// Verdict is the result of a probe.
type Verdict string

// The verdicts.
const (
	// Answered: lifeboatd reported the probe.
	Answered Verdict = "answered"
	// Unanswered: EventBridge accepted the probe, but lifeboatd did not report it in
	// time. The cause is the rule, the queue's policy, or lifeboatd.
	Unanswered Verdict = "unanswered"
	// Refused: EventBridge refused the probe, so it says nothing about the rule.
	Refused Verdict = "refused"
	// Unheard: the probe could not be announced, or the reports could not be read. It
	// says nothing about the rule.
	Unheard Verdict = "unheard"
)

// Result is the result of the probe of one rule.
type Result struct {
	// Rule is the rule's name, Role the role of the rule, and Kinds the kinds of
	// notices that it delivers.
	Rule  string   `json:"rule"`
	Role  string   `json:"role"`
	Kinds []string `json:"kinds,omitempty"`
	// Verdict is the class of the result.
	Verdict Verdict `json:"verdict"`
	// Seconds is the round-trip time, if the probe was answered.
	Seconds float64 `json:"seconds,omitempty"`
	// Problem describes the failure; empty if there is none.
	Problem string `json:"problem,omitempty"`
	// Err is the cause of the failure, if there is one.
	Err error `json:"-"`
}

// probe is a probe in progress.
type probe struct {
	rule     awssetup.Rule
	id       string
	sent     time.Time
	result   Result
	finished bool
}

// Run probes the rules concurrently and returns one result for each, in their order.
// It takes at most the timeout plus the time to send.
func (p *Prober) Run(ctx context.Context, rules []awssetup.Rule) []Result {
	probes := make([]*probe, len(rules))
	id := string(uuid.NewUUID())
	for i, rule := range rules {
		probes[i] = &probe{rule: rule, id: id, result: Result{Rule: rule.Name, Role: rule.Role, Kinds: rule.Kinds}}
	}
	limit, cancel := context.WithTimeout(ctx, p.o.Timeout)
	defer cancel()
	if err := p.announce(limit, id, p.o.Clock().Add(p.o.Timeout)); err != nil {
		failAll(probes, fmt.Sprintf("writing the Lease %s/%s: %v", intake.ProbeNamespace, intake.ProbeLease, err), err)
	} else {
		p.sendAndWait(limit, probes)
		p.retract(ctx, id)
	}
	results := make([]Result, len(probes))
	for i, f := range probes {
		if !f.finished {
			f.fail(Unanswered, fmt.Sprintf("no report arrived within %s", p.o.Timeout), context.Cause(ctx))
		}
		results[i] = f.result
	}
	return results
}

func (f *probe) fail(v Verdict, problem string, err error) {
	f.finished = true
	f.result.Verdict, f.result.Problem, f.result.Err = v, problem, err
}

// failAll fails probes of which no report can be read.
func failAll(probes []*probe, problem string, err error) {
	for _, f := range probes {
		f.fail(Unheard, problem, err)
	}
}

// sendAndWait sends the probes and records the reports. It starts the watch before it
// sends, so that it misses no report.
func (p *Prober) sendAndWait(ctx context.Context, probes []*probe) {
	w, err := p.watch(ctx)
	if err != nil {
		failAll(probes, fmt.Sprintf("watching the Lease %s/%s: %v", intake.ProbeNamespace, intake.ProbeLease, err), err)
		return
	}
	for batch := range slices.Chunk(probes, entriesPerCall) {
		p.send(ctx, batch)
	}
	for {
		p.follow(ctx, w, probes)
		if allFinished(probes) {
			return
		}
		if w = p.rewatch(ctx); w == nil {
			return
		}
	}
}

// follow records reports until all probes are reported, the watch closes, or ctx
// ends.
func (p *Prober) follow(ctx context.Context, w watch.Interface, probes []*probe) {
	defer w.Stop()
	for !allFinished(probes) {
		select {
		case <-ctx.Done():
			return
		case change, open := <-w.ResultChan():
			if !open {
				return
			}
			if lease, ok := change.Object.(*coordinationv1.Lease); ok {
				p.recordAnswers(probes, lease)
			}
		}
	}
}

// rewatch returns a new watch, or nil if ctx ends first.
func (p *Prober) rewatch(ctx context.Context) watch.Interface {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(rewatchDelay):
		}
		if w, err := p.watch(ctx); err == nil {
			return w
		}
	}
}

func allFinished(probes []*probe) bool {
	return !slices.ContainsFunc(probes, func(f *probe) bool { return !f.finished })
}

// watch starts with the current Lease if it exists: that is the API server's
// behaviour if no resource version is given.
func (p *Prober) watch(ctx context.Context) (watch.Interface, error) {
	return p.o.Kube.Watch(ctx, &coordinationv1.LeaseList{},
		client.InNamespace(intake.ProbeNamespace), client.MatchingFields{"metadata.name": intake.ProbeLease})
}

// send puts the probes on the default bus.
func (p *Prober) send(ctx context.Context, probes []*probe) {
	var sent []*probe
	in := &eventbridge.PutEventsInput{}
	now := p.o.Clock()
	for _, f := range probes {
		event, err := awssetup.Probe(f.rule, f.id, p.o.Cluster)
		if err == nil {
			event.Detail, err = addSentTime(event.Detail, now)
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
			f.fail(Refused, fmt.Sprintf("sending the probe to EventBridge: %v", err), err)
		case i < len(out.Entries) && aws.ToString(out.Entries[i].ErrorCode) != "":
			entry := out.Entries[i]
			f.fail(Refused, fmt.Sprintf("EventBridge refused the probe: %s: %s", aws.ToString(entry.ErrorCode), aws.ToString(entry.ErrorMessage)), errRefused)
		}
	}
}

// errRefused is the cause of results that EventBridge refused individually.
var errRefused = errors.New("refused by EventBridge")

// addSentTime adds the time of sending to the mark of a probe. lifeboatd uses it to
// measure the one-way latency.
func addSentTime(detail json.RawMessage, now time.Time) (json.RawMessage, error) {
	var whole map[string]json.RawMessage
	if err := json.Unmarshal(detail, &whole); err != nil {
		return nil, fmt.Errorf("reading the probe's detail: %w", err)
	}
	var mark awssetup.ProbeMark
	if err := json.Unmarshal(whole[awssetup.ProbeField], &mark); err != nil {
		return nil, fmt.Errorf("reading the probe's mark: %w", err)
	}
	with, err := json.Marshal(struct {
		awssetup.ProbeMark

		Sent string `json:"sent"`
	}{mark, now.UTC().Format(time.RFC3339Nano)})
	if err != nil {
		return nil, fmt.Errorf("encoding the probe's mark: %w", err)
	}
	whole[awssetup.ProbeField] = with
	return json.Marshal(whole)
}

// recordAnswers records the probes that the Lease reports.
func (p *Prober) recordAnswers(probes []*probe, lease *coordinationv1.Lease) {
	now := p.o.Clock()
	for _, f := range probes {
		if !f.finished && strings.HasPrefix(lease.Annotations[intake.ProbeAnnotation(f.rule.Role)], f.id+" ") {
			f.finished, f.result.Verdict, f.result.Seconds = true, Answered, max(0, now.Sub(f.sent).Seconds())
		}
	}
}
