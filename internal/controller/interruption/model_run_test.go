package interruption

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/model"

	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/status"
)

// chaos configures the faults of a run.
type chaos struct {
	fails    float64       // share of requests that fail without being carried out
	silent   float64       // share of carried out requests whose answer is lost
	crash    float64       // share of requests at which the process dies
	slow     time.Duration // maximum latency of a request
	lag      time.Duration // usual maximum lag of caches
	longLag  float64       // share of changes that arrive seconds late
	jump     float64       // chance of a clock jump, per minute
	outage   float64       // chance that the API server is unreachable, per minute
	standby  bool          // the next process has filled its caches when the last one dies
	sluggish time.Duration // maximum delay of a due pass
	held     time.Duration // how long changes of a node's pods are withheld after the list

	reboots, kubelets, vanishing float64       // share of scenarios in which a node reboots early, loses its kubelet, or is deleted
	hangs                        float64       // share of workloads whose pods have a finalizer that is never removed
	skew                         time.Duration // how far another replica's clock is ahead
}

// modelRun is one run: a cluster, the controller process, the faults, and the bookkeeping.
type modelRun struct {
	*model.Cluster
	c       *model.Scheduler
	seed    uint64
	chaos   chaos
	life    *controllerProcess
	lives   int
	metrics *status.Metrics
	logs    bool // whether notes are logged
	// compares enables the comparison of each verdict of the oracle with the product's
	// decision.
	compares    bool
	closed      bool      // the checks are disabled
	outage      time.Time // until when the API server is unreachable
	horizon     time.Time
	bookkeeping *bookkeeping
	group       *modelGroup // nil: the cluster has no group
	// plant plants a defect into what the controller calls; nil: there is none.
	plant func(*modelRun, *Options)
	// people is set for a world of people, in which the checks of promises apply. promise is one that is
	// checked even if it is switched off.
	people   bool
	promise  string
	halted   bool // the product repeats something without end: the run ends
	refusals []*refusedWrite
	// windows is how often the most frequent window of the policies opens; zero: there is none. A record
	// says until when its window is open.
	windows time.Duration
	repeats map[string][]time.Time // when a request was refused, within the last hour

	mu     sync.Mutex
	wanted []wantedWatch
	news   []wantedWatch // watches that wait for their next event
	hinted []*controllerProcess
	events int
	log    []string
	wrong  []string
}

func newModelRun(seed uint64, metrics *status.Metrics) *modelRun {
	c := model.New(seed)
	r := &modelRun{c: c, Cluster: model.NewCluster(c), seed: seed, metrics: metrics, repeats: map[string][]time.Time{}}
	r.bookkeeping = newBookkeeping(r)
	c.Admit = r.admit
	r.Changed = append(r.Changed, r.bookkeeping.changed, func(ch model.Change) {
		if ch.Key.Kind == "Pod" && r.life != nil {
			r.life.podChanged(ch)
		}
	})
	return r
}

// simulate runs everything to the end.
func (r *modelRun) simulate() {
	r.chaos = r.drawChaos()
	r.horizon = r.c.Now().Add(2 * time.Minute)
	switch {
	case r.group != nil:
		r.group.setUp()
		r.group.drawRefusals()
		r.group.scheduleEvents()
	case r.people:
		r.setUp()
		r.drawRefusals()
		r.scheduleUserEvents()
	default:
		r.setUp()
		r.scheduleEvents()
	}
	r.life = r.begin()
	r.life.reconcileAll()
	r.every(time.Minute, "trouble", r.drawClusterFault)
	if r.compares {
		r.every(time.Minute, "compare", r.bookkeeping.compareAll)
	}
	over := func() bool {
		r.answerWatches()
		r.answerHints()
		return len(r.wrong) > 0 || r.halted
	}
	r.c.Run(r.horizon, over)
	r.c.Run(r.c.Now().Add(time.Minute), func() bool { return over() || r.life != nil })
	if len(r.wrong) == 0 && !r.halted {
		r.bookkeeping.checkEnd()
		if r.group != nil {
			r.group.checkEnd()
		}
	}
	r.closed = true
	if r.life != nil {
		r.life.Kill()
	}
	r.c.Run(r.c.Now().Add(time.Hour), func() bool { return false }) // finish what is still running
}

// note logs an event, for replaying a run.
func (r *modelRun) note(format string, args ...any) {
	if !r.logs {
		return
	}
	r.log = append(r.log, fmt.Sprintf("%10.3f  ", r.c.Now().Sub(modelEpoch).Seconds())+fmt.Sprintf(format, args...))
}

// modelEpoch is the initial time in a synctest bubble.
var modelEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// fail reports an error and ends the run.
func (r *modelRun) fail(format string, args ...any) {
	if r.closed {
		return
	}
	r.note("WRONG: "+format, args...)
	r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
}

func (r *modelRun) drawChaos() chaos {
	c := r.c
	ch := chaos{slow: 30 * time.Millisecond, lag: 100 * time.Millisecond, standby: c.Chance(.3)}
	switch c.Rand.IntN(5) {
	case 0: // no faults
	case 1: // one kind of fault, rarely
		ch.crash = .01
	case 2:
		ch.fails, ch.silent, ch.slow = .1, .05, 300*time.Millisecond
	case 3:
		ch.longLag, ch.lag, ch.sluggish = .05, time.Second, 500*time.Millisecond
		ch.crash = .02
	default:
		ch = chaos{
			fails: .08, silent: .08, crash: .03, slow: time.Second, lag: 400 * time.Millisecond, longLag: .02,
			jump: .02, outage: .02, standby: c.Chance(.5), sluggish: 200 * time.Millisecond,
		}
	}
	if c.Chance(.3) { // many nodes are interrupted at once
		ch.held = c.Between(0, 40*time.Second)
	}
	r.drawMachineFaults(&ch)
	return ch
}

// every repeats something until the end of the run.
func (r *modelRun) every(d time.Duration, name string, do func()) {
	r.c.After(d, name, func() {
		do()
		if r.c.Now().Before(r.bookkeeping.busyUntil) {
			r.every(d, name, do)
		}
	})
}

// drawClusterFault draws the faults of the whole cluster.
func (r *modelRun) drawClusterFault() {
	if r.c.Chance(r.chaos.jump) {
		d := r.c.Between(time.Second, 20*time.Second)
		r.note("the clock jumps by %s", d)
		now := r.c.Now()
		r.c.Jump(d)
		r.bookkeeping.disturb(now, d, "jump")
	}
	if r.c.Chance(r.chaos.outage) {
		d := r.c.Between(time.Second, 20*time.Second)
		r.note("the API server is unreachable for %s", d)
		r.outage = r.c.Now().Add(d)
		r.bookkeeping.disturb(r.c.Now(), 2*d, "outage") // queues back off as long
	}
}

func (r *modelRun) tick() time.Duration { return r.c.Between(0, 10*time.Millisecond+r.chaos.sluggish) }

func (r *modelRun) latency() time.Duration { return r.c.Between(time.Millisecond, r.chaos.slow) }

// lag is how long a change takes to reach a cache.
func (r *modelRun) lag(string) time.Duration {
	if r.c.Chance(r.chaos.longLag) {
		d := r.c.Between(0, 4*time.Second)
		r.bookkeeping.disturb(r.c.Now(), d, "lag")
		return d
	}
	return r.c.Between(0, r.chaos.lag)
}

// die ends the process. The next one starts after a while.
func (r *modelRun) die(q *model.Request, when string) {
	r.note("the process dies %s: %s", when, q)
	r.bookkeeping.crashes++
	q.Process.Kill()
	down := r.c.Between(200*time.Millisecond, 10*time.Second)
	r.bookkeeping.disturb(r.c.Now(), down+time.Second, "crash")
	var next *controllerProcess
	if r.chaos.standby {
		next = r.begin()
	}
	r.life = nil
	r.c.After(down, "begin", func() {
		if next == nil {
			next = r.begin()
		}
		r.note("%s begins", next.Name)
		r.life = next
		next.reconcileAll()
	})
}

// deliver delivers a notice to the intake, again and again until it is recorded.
func (r *modelRun) deliver(at time.Time, instance string, n notice.Notice, try int) {
	r.c.At(at, "deliver "+n.ID, func() {
		l := r.life
		again := r.c.Between(2*time.Second, 15*time.Second)
		if try > 20 {
			return // its retention period is over
		}
		if l == nil {
			r.deliver(r.c.Now().Add(again), instance, n, try+1)
			return
		}
		r.record(l, fmt.Sprintf("recorder %s %d", n.ID, try), instance, n, try, again)
	})
}

// record records a received notice, and delivers it again if that fails.
func (r *modelRun) record(l *controllerProcess, actor, instance string, n notice.Notice, try int, again time.Duration) {
	var (
		outcome intake.Outcome
		err     error
	)
	r.c.Go(actor, func() {
		outcome, err = l.recorderOf(n).Record(model.WithActor(l.Context, actor), n)
	}, func() {
		// The time depends on how long the intake paused between tries.
		if err != nil || !outcome.Final() {
			r.deliver(r.c.Now().Truncate(10*time.Second).Add(10*time.Second+again), instance, n, try+1)
			return
		}
		r.note("acknowledged %s (%s)", n.ID, outcome)
		if !r.bookkeeping.durable[n.ID] && (outcome == intake.Recorded || outcome == intake.Joined) {
			r.fail("%s was acknowledged, and no record has it", n.ID)
		}
	})
}

func sortedWatches(w []wantedWatch) []wantedWatch {
	slices.SortFunc(w, func(a, b wantedWatch) int {
		return cmp.Or(cmp.Compare(a.node, b.node), cmp.Compare(a.life.Name, b.life.Name))
	})
	return w
}

func instanceOf(n *corev1.Node) string {
	return n.Spec.ProviderID[strings.LastIndex(n.Spec.ProviderID, "/")+1:]
}
