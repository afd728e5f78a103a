package interruption

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/model"
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
	metrics *Metrics
	outage  time.Time // until when the API server is away
	horizon time.Time
	books   *books

	mu     sync.Mutex
	wanted []wantedWatch
	events int
	log    []string
	wrong  []string
}

func newModelRun(seed uint64, metrics *Metrics) *modelRun {
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
	r.stage()
	r.horizon = r.c.Now().Add(2 * time.Minute)
	r.script()
	r.life = r.begin()
	r.life.up()
	r.every(time.Minute, "trouble", r.trouble)
	r.c.Run(r.c.Now().Add(24*365*time.Hour), func() bool {
		r.answerWatches()
		return len(r.wrong) > 0 || r.c.Now().After(r.horizon)
	})
	if len(r.wrong) == 0 {
		r.books.close()
	}
	r.life.Kill()
	r.c.Run(r.c.Now().Add(time.Hour), func() bool { return false }) // all that still runs ends
}

// note keeps a line of what happened, for who looks into a failure.
func (r *modelRun) note(format string, args ...any) {
	r.log = append(r.log, fmt.Sprintf("%10.3f  ", r.c.Now().Sub(modelEpoch).Seconds())+fmt.Sprintf(format, args...))
}

// modelEpoch is when time begins in a synctest bubble.
var modelEpoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// fail says that something is wrong. It ends the run.
func (r *modelRun) fail(format string, args ...any) {
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

// fate is what becomes of a request.
type fate int

const (
	answered fate = iota
	failed        // not carried out
	silent        // carried out, but that is not known
	fatalBefore
	fatalAfter
)

// admit draws the fate of a request and answers it when its time comes. What the
// intake asks for is drawn from a chance of its own, and comes at whole seconds:
// it waits between tries for times that nobody can foretell.
func (r *modelRun) admit(q *model.Request) {
	chance, delay := r.c.Rand, r.latency
	if strings.Contains(q.Actor, "recorder") {
		h := fnv.New64a()
		_, _ = h.Write([]byte(q.String()))
		chance = rand.New(rand.NewPCG(r.seed, h.Sum64()))
		delay = func() time.Duration {
			return r.c.Now().Truncate(time.Second).Add(time.Second + 100*time.Millisecond).Sub(r.c.Now())
		}
	}
	f, inFlight, err := r.draw(chance, q)
	r.c.After(delay(), "request "+q.String(), func() {
		switch {
		case q.Process.Dead():
			if inFlight && q.Writes() {
				r.carryOut(q)
			}
			q.Answer(model.ErrDead)
		case f == failed, r.c.Now().Before(r.outage):
			r.note("%s: not carried out: %v", q, err)
			r.books.disturb(r.c.Now(), faultTakes(err), "fault")
			q.Answer(err)
		case f == silent:
			r.carryOut(q)
			r.note("%s: the answer is lost", q)
			r.books.disturb(r.c.Now(), 3*time.Second, "lost answer")
			q.Answer(apierrors.NewTimeoutError("the answer is lost", 0))
		case f == fatalBefore:
			r.die(q, "before")
			q.Answer(model.ErrDead)
		case f == fatalAfter:
			r.carryOut(q)
			r.die(q, "after")
			q.Answer(model.ErrDead)
		default:
			q.Answer(r.carryOut(q))
		}
	})
}

func (r *modelRun) draw(chance *rand.Rand, q *model.Request) (fate, bool, error) {
	x, inFlight := chance.Float64(), chance.Float64() < .3
	err := r.mishap(chance, q)
	for _, f := range []struct {
		fate  fate
		share float64
	}{{failed, r.chaos.fails}, {silent, r.chaos.silent}, {fatalBefore, r.chaos.crash / 2}, {fatalAfter, r.chaos.crash / 2}} {
		if x < f.share {
			return f.fate, inFlight, err
		}
		x -= f.share
	}
	return answered, inFlight, err
}

// mishap is what a request that is not carried out is answered.
func (r *modelRun) mishap(chance *rand.Rand, q *model.Request) error {
	switch chance.IntN(5) {
	case 0:
		return apierrors.NewTooManyRequests("the server is busy", 1+chance.IntN(3))
	case 1:
		err := apierrors.NewTooManyRequests("the server is busy and does not say", 0)
		err.ErrStatus.Details.RetryAfterSeconds = 0
		return err
	case 2:
		return apierrors.NewInternalError(errors.New("etcd has no leader"))
	case 3:
		if q.Verb == "patch" {
			return apierrors.NewConflict(schema.GroupResource{Resource: q.Key.Kind}, q.Key.Name, errors.New("somebody else was faster"))
		}
	}
	return apierrors.NewServerTimeout(schema.GroupResource{Resource: q.Key.Kind}, q.Verb, 1)
}

// faultTakes is how long a fault may delay what it befell.
func faultTakes(err error) time.Duration {
	after, _ := apierrors.SuggestsClientDelay(err)
	return 3*time.Second + time.Duration(after)*time.Second
}

// carryOut has the API server do what is asked for, and looks at it closely.
func (r *modelRun) carryOut(q *model.Request) error {
	if !q.Writes() {
		return q.CarryOut()
	}
	after := r.books.asks(q)
	err := q.CarryOut()
	if err == nil {
		r.note("%s%s", q, detail(q))
	} else {
		r.note("%s: %v", q, err)
	}
	after(err)
	return err
}

func detail(q *model.Request) string {
	if q.Stop.Grace != nil {
		return fmt.Sprintf("grace %d", *q.Stop.Grace)
	}
	return ""
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
		var (
			outcome intake.Outcome
			err     error
		)
		actor := fmt.Sprintf("recorder %s %d", n.ID, try)
		r.c.Go(actor, func() {
			outcome, err = l.recorder.Record(model.WithActor(l.Context, actor), n)
		}, func() {
			// When this comes hangs on how long the intake paused between tries.
			if err != nil || !outcome.Final() {
				r.deliver(r.c.Now().Truncate(10*time.Second).Add(10*time.Second+again), instance, n, try+1)
				return
			}
			r.note("acknowledged %s (%s)", n.ID, outcome)
		})
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
