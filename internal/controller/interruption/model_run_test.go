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

// chaos is how much goes wrong in a run.
type chaos struct {
	fails    float64       // share of requests that fail and are not carried out
	silent   float64       // share of those carried out whose answer is lost
	crash    float64       // share of requests at which the process dies
	slow     time.Duration // what a request takes at most
	lag      time.Duration // what caches are behind at most, mostly
	longLag  float64       // share of changes that come seconds late
	jump     float64       // chance of a jump of the clock, each minute
	outage   float64       // chance of the API server being away, each minute
	standby  bool          // the next process has filled its caches when the last one dies
	sluggish time.Duration // what a due pass is late at most
	held     time.Duration // for how long changes of a node's pods are not told after the list

	reboots, kubelets, vanishing float64       // share of stories in which a node boots early, loses its kubelet, or is deleted
	hangs                        float64       // share of workloads whose pods have a finalizer that hangs
	skew                         time.Duration // how far the agents' clocks are ahead
}

// modelRun is one run: a cluster, the process that looks after it, what goes
// wrong, and the books that are kept of it.
type modelRun struct {
	*model.Cluster
	c       *model.Conductor
	seed    uint64
	chaos   chaos
	life    *life
	lives   int
	metrics *status.Metrics
	tells   bool // whether notes are kept
	// compares has each verdict of the oracle compared with the product's decision.
	compares bool
	closed   bool      // no law holds any more
	outage   time.Time // until when the API server is away
	horizon  time.Time
	books    *books
	group    *modelGroup // nil: the cluster has none

	mu     sync.Mutex
	wanted []wantedWatch
	news   []wantedWatch // of which changes are wanted now
	hinted []*life
	events int
	log    []string
	wrong  []string
}

func newModelRun(seed uint64, metrics *status.Metrics) *modelRun {
	c := model.New(seed)
	r := &modelRun{c: c, Cluster: model.NewCluster(c), seed: seed, metrics: metrics}
	r.books = newBooks(r)
	c.Admit = r.admit
	r.Changed = append(r.Changed, r.books.changed, func(ch model.Change) {
		if ch.Key.Kind == "Pod" && r.life != nil {
			r.life.podChanged(ch)
		}
	})
	return r
}

// play runs the story to its end.
func (r *modelRun) play() {
	r.chaos = r.drawChaos()
	r.horizon = r.c.Now().Add(2 * time.Minute)
	if r.group == nil {
		r.stage()
		r.script()
	} else {
		r.group.stage()
		r.group.script()
	}
	r.life = r.begin()
	r.life.up()
	r.every(time.Minute, "trouble", r.trouble)
	if r.compares {
		r.every(time.Minute, "compare", r.books.compareAll)
	}
	over := func() bool {
		r.answerWatches()
		r.answerHints()
		return len(r.wrong) > 0
	}
	r.c.Run(r.horizon, over)
	r.c.Run(r.c.Now().Add(time.Minute), func() bool { return over() || r.life != nil })
	if len(r.wrong) == 0 {
		r.books.close()
		if r.group != nil {
			r.group.close()
		}
	}
	r.closed = true
	if r.life != nil {
		r.life.Kill()
	}
	r.c.Run(r.c.Now().Add(time.Hour), func() bool { return false }) // all that still runs ends
}

// note keeps a line of what happened, for who plays a run again.
func (r *modelRun) note(format string, args ...any) {
	if !r.tells {
		return
	}
	r.log = append(r.log, fmt.Sprintf("%10.3f  ", r.c.Now().Sub(modelEpoch).Seconds())+fmt.Sprintf(format, args...))
}

// modelEpoch is when time begins in a synctest bubble.
var modelEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// fail says that something is wrong. It ends the run.
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
	case 0: // all is well
	case 1: // one thing goes wrong now and then
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
	if c.Chance(.3) { // many nodes go at once
		ch.held = c.Between(0, 40*time.Second)
	}
	r.drawTroubles(&ch)
	return ch
}

// every does something again and again, while there is a story.
func (r *modelRun) every(d time.Duration, name string, do func()) {
	r.c.After(d, name, func() {
		do()
		if r.c.Now().Before(r.books.busyUntil) {
			r.every(d, name, do)
		}
	})
}

// trouble is what may befall the whole.
func (r *modelRun) trouble() {
	if r.c.Chance(r.chaos.jump) {
		d := r.c.Between(time.Second, 20*time.Second)
		r.note("the clock jumps by %s", d)
		now := r.c.Now()
		r.c.Jump(d)
		r.books.disturb(now, d, "jump")
	}
	if r.c.Chance(r.chaos.outage) {
		d := r.c.Between(time.Second, 20*time.Second)
		r.note("the API server is away for %s", d)
		r.outage = r.c.Now().Add(d)
		r.books.disturb(r.c.Now(), 2*d, "outage") // queues back off as long
	}
}

func (r *modelRun) tick() time.Duration { return r.c.Between(0, 10*time.Millisecond+r.chaos.sluggish) }

func (r *modelRun) latency() time.Duration { return r.c.Between(time.Millisecond, r.chaos.slow) }

// lag says how long a change takes to a cache.
func (r *modelRun) lag(string) time.Duration {
	if r.c.Chance(r.chaos.longLag) {
		d := r.c.Between(0, 4*time.Second)
		r.books.disturb(r.c.Now(), d, "lag")
		return d
	}
	return r.c.Between(0, r.chaos.lag)
}

// die ends the process. The next one begins after a while.
func (r *modelRun) die(q *model.Request, when string) {
	r.note("the process dies %s: %s", when, q)
	r.books.crashes++
	q.Process.Kill()
	down := r.c.Between(200*time.Millisecond, 10*time.Second)
	r.books.disturb(r.c.Now(), down+time.Second, "crash")
	var next *life
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
		next.up()
	})
}

// deliver has a notice taken in, again and again until that is certain.
func (r *modelRun) deliver(at time.Time, instance string, n notice.Notice, try int) {
	r.c.At(at, "deliver "+n.ID, func() {
		l := r.life
		again := r.c.Between(2*time.Second, 15*time.Second)
		if try > 20 {
			return // its retention is over
		}
		if l == nil {
			r.deliver(r.c.Now().Add(again), instance, n, try+1)
			return
		}
		r.record(l, fmt.Sprintf("recorder %s %d", n.ID, try), instance, n, try, again)
	})
}

// record has a notice recorded that was received, and delivers it again where that fails.
func (r *modelRun) record(l *life, actor, instance string, n notice.Notice, try int, again time.Duration) {
	var (
		outcome intake.Outcome
		err     error
	)
	r.c.Go(actor, func() {
		outcome, err = l.recorderOf(n).Record(model.WithActor(l.Context, actor), n)
	}, func() {
		// When this comes hangs on how long the intake paused between tries.
		if err != nil || !outcome.Final() {
			r.deliver(r.c.Now().Truncate(10*time.Second).Add(10*time.Second+again), instance, n, try+1)
			return
		}
		r.note("acknowledged %s (%s)", n.ID, outcome)
		if !r.books.heard[n.ID] && (outcome == intake.Recorded || outcome == intake.Joined) {
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
