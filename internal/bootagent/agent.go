package bootagent

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
)

const (
	// actPause is the pause between two actions, so that a persistent error does not use a
	// whole core.
	actPause = 20 * time.Millisecond
	// statusEvery is the maximum age of the status file.
	statusEvery = time.Minute
	// startJitter is the time over which machines that start together spread their first call
	// to Auto Scaling.
	startJitter = 5 * time.Second
	// jumped is the difference between the wall clock and the monotonic clock from which the
	// machine counts as suspended.
	jumped = 10 * time.Second
)

// Agent is the agent of one machine. It is used by one goroutine.
type Agent struct {
	o     Options
	facts Facts

	metadata Metadata
	cloud    *AutoScaling // nil: not connected
	jobs     map[string]context.CancelFunc
	news     chan outcome
	running  sync.WaitGroup // jobs
	due      schedule
	wall     time.Time     // in the last pass
	mono     time.Duration // in the last pass
	used     uint64        // bytes in use at the last progress
	failures int           // consecutive failures to read metadata

	status Status
	logged string
}

// schedule is when things are read next.
type schedule struct{ target, node, kubelet, disk, status time.Time }

// New returns the agent of the machine that o gives access to.
func New(o Options) *Agent {
	o = o.withDefaults()
	a := &Agent{o: o, metadata: o.Metadata(), jobs: map[string]context.CancelFunc{}, news: make(chan outcome, 64)}
	a.facts.Rules = o.rules()
	return a
}

// Run runs the agent until ctx ends. It retries all failures of metadata, Auto Scaling, the API
// server and commands, and returns nil.
func (a *Agent) Run(ctx context.Context) error {
	log := logr.FromContextOrDiscard(ctx)
	defer a.running.Wait()
	defer a.cancelJobs(func(string) bool { return true })
	a.wall, a.mono = a.o.Clock.Wall(), a.o.Clock.Monotonic()
	for ctx.Err() == nil {
		now := a.observe(ctx)
		step := Decide(a.facts, now)
		a.publish(log, step, now)
		if a.act(ctx, step) {
			a.rest(ctx, actPause)
			continue
		}
		a.rest(ctx, a.until(step, a.o.Clock.Wall()))
	}
	return nil
}

// until is the time until the next action.
func (a *Agent) until(step Step, now time.Time) time.Duration {
	next := a.due.target
	for _, at := range []time.Time{step.At, a.due.node, a.due.kubelet, a.due.disk, a.due.status} {
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	return max(actPause, next.Sub(now))
}

// rest waits for a time, or until a stage ends.
func (a *Agent) rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case o := <-a.news:
		a.recordStage(ctx, o)
	}
}

// vary changes a pause by up to a fifth, so that machines do not act at the same time.
func (a *Agent) vary(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*a.o.Dice()))
}

// backoff is the time until a failed action is retried.
func (a *Agent) backoff(tries int) time.Duration {
	return lifecycle.Backoff(tries, a.facts.Instance)
}

// jitter is the delay of the first call to Auto Scaling.
func (a *Agent) jitter() time.Duration {
	return time.Duration(a.o.Dice() * float64(min(startJitter, a.o.Interval)))
}

// load reads the journal, once the instance id is known.
func (a *Agent) load(ctx context.Context, instance string) {
	log := logr.FromContextOrDiscard(ctx)
	data, err := a.o.State.Read(journalFile)
	if err != nil {
		log.Error(err, "cannot read the journal, starting a new one")
	}
	journal, err := readJournal(data, instance)
	if err != nil {
		log.Error(err, "cannot parse the journal")
	}
	now := a.o.Clock.Wall()
	a.facts.Instance, a.facts.Progress = instance, now
	open := a.gateOpen()
	if open && !journal.Served {
		// The journal was lost, but the gate is open: the machine serves.
		journal.Served, journal.Gate = true, GateRecord{Boot: a.facts.Boot, At: now}
	}
	a.facts.Journal, a.facts.Gate = journal, open
	a.facts.Stages = a.o.stages(journal.Stages)
	a.facts.Talk.Due = now.Add(a.jitter())
	log.Info("began", "instance", instance, "boot", a.facts.Boot, "life", journal.Lives, "served", journal.Served, "leg", journal.Leg.Goal)
}

// save writes the journal. An error is only logged: a full disk must not prevent the completion
// of a hook.
func (a *Agent) save(ctx context.Context) {
	data, err := json.MarshalIndent(a.facts.Journal, "", "  ")
	if err == nil {
		err = a.o.State.Write(journalFile, data)
	}
	if err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "cannot write the journal: check whether the disk is full or read-only")
	}
}
