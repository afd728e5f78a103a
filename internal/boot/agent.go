package boot

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
)

const (
	// actPause is between two acts, so that nothing that goes wrong keeps a core busy.
	actPause = 20 * time.Millisecond
	// statusEvery is how old the status file gets at most.
	statusEvery = time.Minute
	// startJitter is over how much time machines that begin together spread their
	// first call to Auto Scaling.
	startJitter = 5 * time.Second
	// jumped is by how much the time of day may run off the other clock before the
	// machine is taken to have been suspended.
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
	wall     time.Time     // at the last look
	mono     time.Duration // at the last look
	used     uint64        // bytes, when there last was progress
	failures int           // of reading metadata, in a row

	status Status
	said   string
}

// schedule is when things are looked at next.
type schedule struct{ target, node, kubelet, disk, status time.Time }

// New returns the agent of the machine that o leads to.
func New(o Options) *Agent {
	o = o.withDefaults()
	a := &Agent{o: o, metadata: o.Metadata(), jobs: map[string]context.CancelFunc{}, news: make(chan outcome, 64)}
	a.facts.Rules = o.rules()
	return a
}

// Run sees the machine through its life in the group until ctx ends. It survives
// whatever metadata, Auto Scaling, the API server and commands do, and returns nil.
func (a *Agent) Run(ctx context.Context) error {
	log := logr.FromContextOrDiscard(ctx)
	defer a.running.Wait()
	defer a.cancelJobs(func(string) bool { return true })
	a.wall, a.mono = a.o.Clock.Wall(), a.o.Clock.Monotonic()
	for ctx.Err() == nil {
		now := a.observe(ctx)
		step := Decide(a.facts, now)
		a.tell(log, step, now)
		if a.act(ctx, step) {
			a.rest(ctx, actPause)
			continue
		}
		a.rest(ctx, a.until(step, a.o.Clock.Wall()))
	}
	return nil
}

// until is how long there is nothing to do, as far as is known.
func (a *Agent) until(step Step, now time.Time) time.Duration {
	next := a.due.target
	for _, at := range []time.Time{step.At, a.due.node, a.due.kubelet, a.due.disk, a.due.status} {
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	return max(actPause, next.Sub(now))
}

// rest waits, until there is news of a stage at the longest.
func (a *Agent) rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case o := <-a.news:
		a.heard(ctx, o)
	}
}

// vary changes a pause by up to a fifth, so that machines do not act at once.
func (a *Agent) vary(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.8 + 0.4*a.o.Dice()))
}

// backoff is the time until what failed is tried again.
func (a *Agent) backoff(tries int) time.Duration {
	return lifecycle.Backoff(tries, a.facts.Instance)
}

// jitter is the time to a first call to Auto Scaling.
func (a *Agent) jitter() time.Duration {
	return time.Duration(a.o.Dice() * float64(min(startJitter, a.o.Interval)))
}

// load reads the journal, once it is known which instance this is.
func (a *Agent) load(ctx context.Context, instance string) {
	log := logr.FromContextOrDiscard(ctx)
	data, err := a.o.State.Read(journalFile)
	if err != nil {
		log.Error(err, "could not read the journal, begins a new one")
	}
	journal, err := readJournal(data, instance)
	if err != nil {
		log.Error(err, "could not understand the journal")
	}
	now := a.o.Clock.Wall()
	a.facts.Instance, a.facts.Progress = instance, now
	open := a.gateOpen()
	if open && !journal.Served {
		// The journal was lost, and the gate not: the machine serves.
		journal.Served, journal.Gate = true, GateRecord{Boot: a.facts.Boot, At: now}
	}
	a.facts.Journal, a.facts.Gate = journal, open
	a.facts.Stages = a.o.stages(journal.Stages)
	a.facts.Talk.Due = now.Add(a.jitter())
	log.Info("began", "instance", instance, "boot", a.facts.Boot, "life", journal.Lives, "served", journal.Served, "leg", journal.Leg.Goal)
}

// save writes the journal. What cannot be written is said, and not waited for: a full
// disk must not keep a hook from its answer.
func (a *Agent) save(ctx context.Context) {
	data, err := json.MarshalIndent(a.facts.Journal, "", "  ")
	if err == nil {
		err = a.o.State.Write(journalFile, data)
	}
	if err != nil {
		logr.FromContextOrDiscard(ctx).Error(err, "could not write the journal: see whether the disk is full or read-only")
	}
}
