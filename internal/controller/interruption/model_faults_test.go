package interruption

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/model"
)

// requestFault is the result of a request.
type requestFault int

const (
	answered requestFault = iota
	failed                // not carried out
	silent                // carried out, but the answer is lost
	fatalBefore
	fatalAfter
)

// admit draws the fault of a request and schedules its answer. The intake's requests are drawn
// from a separate random source and answered at whole seconds, because the intake pauses for
// unpredictable times between tries.
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
		refused := r.refuses(q)
		switch {
		case q.Process.Dead():
			if inFlight && q.Writes() {
				_ = r.carryOut(q) // the process is dead
			}
			q.Answer(model.ErrDead)
		case refused != nil:
			r.noteRefused(q, refused)
			q.Answer(refused)
		case f == failed, r.c.Now().Before(r.outage):
			r.note("%s: not carried out: %v", q, err)
			r.bookkeeping.noteUnwritten(q, err)
			r.bookkeeping.disturb(r.c.Now(), faultTakes(err), "fault")
			q.Answer(err)
		case f == silent:
			_ = r.carryOut(q) // the answer is lost
			r.note("%s: the answer is lost", q)
			r.bookkeeping.disturb(r.c.Now(), 3*time.Second, "lost answer")
			q.Answer(apierrors.NewTimeoutError("the answer is lost", 0))
		case f == fatalBefore:
			r.die(q, "before")
			q.Answer(model.ErrDead)
		case f == fatalAfter:
			_ = r.carryOut(q) // the process is dead
			r.die(q, "after")
			q.Answer(model.ErrDead)
		default:
			q.Answer(r.carryOut(q))
		}
	})
}

func (r *modelRun) draw(chance *rand.Rand, q *model.Request) (requestFault, bool, error) {
	x, inFlight := chance.Float64(), chance.Float64() < .3
	err := r.randomError(chance, q)
	for _, f := range []struct {
		fate  requestFault
		share float64
	}{{failed, r.chaos.fails}, {silent, r.chaos.silent}, {fatalBefore, r.chaos.crash / 2}, {fatalAfter, r.chaos.crash / 2}} {
		if x < f.share {
			return f.fate, inFlight, err
		}
		x -= f.share
	}
	return answered, inFlight, err
}

// randomError is the error of a request that is not carried out.
func (r *modelRun) randomError(chance *rand.Rand, q *model.Request) error {
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
			return apierrors.NewConflict(schema.GroupResource{Resource: q.Key.Kind}, q.Key.Name, errors.New("the object has been modified"))
		}
	}
	return apierrors.NewServerTimeout(schema.GroupResource{Resource: q.Key.Kind}, q.Verb, 1)
}

// faultTakes is how long a fault may delay the request.
func faultTakes(err error) time.Duration {
	after, _ := apierrors.SuggestsClientDelay(err)
	return 3*time.Second + time.Duration(after)*time.Second
}

// carryOut executes a request and checks it.
func (r *modelRun) carryOut(q *model.Request) error {
	if !q.Writes() {
		return q.CarryOut()
	}
	after := r.bookkeeping.checkRequest(q)
	err := q.CarryOut()
	if err == nil {
		r.note("%s%s", q, detail(q))
	} else {
		r.note("%s: %v", q, err)
		r.bookkeeping.noteStale(q, err)
	}
	after(err)
	return err
}

func detail(q *model.Request) string {
	if q.Stop.Grace != nil {
		return fmt.Sprintf("grace %d", *q.Stop.Grace)
	}
	in, ok := q.Wanted.(*v1beta1.Interruption)
	if !ok || len(in.Status.Timeline) == 0 {
		return ""
	}
	last := in.Status.Timeline[len(in.Status.Timeline)-1]
	return fmt.Sprintf(": %s, last %s: %s", in.Status.Phase, last.Reason, last.Message)
}
