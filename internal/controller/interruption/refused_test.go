package interruption

import (
	"errors"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/evict"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// deniedBy is the API server's error for an admission webhook that denies with only a message:
// it has a code and no reason.
func deniedBy(code int32) error {
	return deniedWith(code, `admission webhook "validate.example" denied the request: no`)
}

func deniedWith(code int32, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: message}}
}

// queued reconciles as the controller's queue does: after an error it backs off, and the wake-up
// of the pass is lost.
func (w *world) queued(until time.Time) (passes int, last error) {
	w.t.Helper()
	limiter, r := w.loop.backoff, reconcile.Request{}
	r.Name = instance
	for ; w.now.Before(until) && passes < 3000; passes++ {
		if err := w.pass(0); err != nil {
			last, w.now = err, w.now.Add(limiter.When(r))
			continue
		}
		limiter.Forget(r)
		if w.wake <= 0 {
			w.wake = time.Second // something changes
		}
		w.now = w.now.Add(w.wake)
	}
	return passes, last
}

func TestRejectedEvictionIsRetriedAtLastCall(t *testing.T) {
	for name, err := range map[string]error{
		"denied with 400": deniedBy(http.StatusBadRequest), "denied with 500": deniedBy(http.StatusInternalServerError),
		"no right":               apierrors.NewForbidden(corev1.Resource("pods"), "web-1", errors.New("rbac")),
		"the API server is away": errors.New("connection refused"),
	} {
		t.Run(name, func(t *testing.T) {
			kept := pod("batch-1")
			kept.Annotations = map[string]string{v1beta1.AnnotationDoNotDisrupt: "true"}
			w := newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"), kept)
			w.refuse = err
			passes, last := w.queued(start.Add(2 * time.Minute))
			for _, name := range []string{"web-1", "batch-1"} {
				if at, asked := w.asked[name]; !asked || at.Sub(start) > 82*time.Second {
					t.Errorf("%s: asked %t, after %s; want at its last call, after 80s (%d passes, last error %v)", name, asked, at.Sub(start), passes, last)
				}
			}
		})
	}
}

func TestRejectedEvictionOfPlannedChangeIsRetried(t *testing.T) {
	deadline := start.Add(3 * time.Hour)
	w := newWorld(t, recordOf(planned("h1", notice.ActionStop, deadline)), node("a", instance), pod("web-1"), team(func(s *v1beta1.InterruptionPolicySpec) {
		s.Rules[0].NotBefore = &metav1.Duration{Duration: 24 * time.Hour}
	}))
	w.refuse = deniedBy(http.StatusForbidden)
	w.settle(time.Second)
	left := record.Pending(record.Drain(&w.record().Status))
	if want := `the API server refused its eviction: admission webhook "validate.example" denied the request: no`; len(left) != 1 ||
		left[0].Message != want || left[0].EvictionTime != nil || w.wake > evict.RetryRefused {
		t.Errorf("looks again in %s; left %+v, want %s", w.wake, left, want)
	}
	w.now = deadline.Add(-3 * time.Minute)
	passes, last := w.queued(deadline)
	if at, asked := w.asked["web-1"]; !asked || deadline.Sub(at) < 38*time.Second {
		t.Errorf("asked %t, %s before the deadline (%d passes, last error %v)", asked, deadline.Sub(at), passes, last)
	}
}

// Passes that fail are repeated within seconds for two minutes, and later each minute.
func TestFailedReconcileBacksOff(t *testing.T) {
	now := start
	limiter := newBackoff(func() time.Time { return now })
	r := reconcile.Request{NamespacedName: types.NamespacedName{Name: instance}}
	fail := func() time.Duration {
		limiter.failed(instance, 1)
		wait := limiter.When(r)
		now = now.Add(wait)
		return wait
	}
	if first := fail(); first != 100*time.Millisecond {
		t.Errorf("first after %s", first)
	}
	for now.Before(start.Add(100 * time.Second)) {
		if got := fail(); got > maxBackoff {
			t.Fatalf("backs off for %s after %s", got, now.Sub(start))
		}
	}
	tries := 0
	for ; now.Before(start.Add(time.Hour)); tries++ {
		fail()
	}
	if tries > 75 {
		t.Errorf("%d tries in an hour of failures", tries)
	}
	limiter.succeeded(instance)
	if first := limiter.When(r); first != 100*time.Millisecond {
		t.Errorf("after a success the first is after %s", first)
	}
	now = now.Add(2 * longestBackoff)
	limiter.succeeded(instance)
	if first := fail(); first != 100*time.Millisecond {
		t.Errorf("after a success the first is after %s", first)
	}
}

// Two passes that undo each other's work back off, though only one of them fails.
func TestPassesThatUndoEachOtherBackOff(t *testing.T) {
	now := start
	b := newBackoff(func() time.Time { return now })
	tries := 0
	for ; now.Before(start.Add(time.Hour)); tries++ {
		b.failed(instance, 1)
		now = now.Add(b.left(instance))
		b.succeeded(instance)
		if left := b.leftOfEvent(instance, 1); left > 0 {
			t.Fatalf("waits %s after a success", left)
		}
	}
	if tries > 100 {
		t.Errorf("%d failures in an hour", tries)
	}
}

// A pass that a watch requests waits too: what a failing pass writes would repeat it at once. A drain waits
// for two seconds at most, later for ten, and a new notice does not wait.
func TestEventsDoNotRepeatFailingPassAtOnce(t *testing.T) {
	now := start
	b := newBackoff(func() time.Time { return now })
	for range 40 {
		b.failed(instance, 1)
	}
	if got := b.leftOfEvent(instance, 1); got != longestBackoff {
		t.Errorf("waits %s", got)
	}
	if got := b.leftOfEvent(instance, 2); got > 0 {
		t.Errorf("a new notice waits %s", got)
	}
	b.setUnderway(instance, true, time.Time{})
	if got := b.leftOfEvent(instance, 1); got != longEventBackoff {
		t.Errorf("a drain waits %s", got)
	}
	b.forget(instance)
	b.setUnderway(instance, true, time.Time{})
	for range shortBackoffs {
		b.failed(instance, 1)
	}
	if got := b.leftOfEvent(instance, 1); got != eventBackoff {
		t.Errorf("a drain waits %s at first", got)
	}
	b.forget(instance)
	if got := b.leftOfEvent(instance, 1); got > 0 {
		t.Errorf("waits %s after it is forgotten", got)
	}
}

// One pod whose requests are refused is asked less and less often, and again at its last call.
func TestRequestsForPodBackOff(t *testing.T) {
	now := start
	b := newBackoff(func() time.Time { return now })
	refused := evict.Result{Verdict: drain.Verdict{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "a"}}}, Reason: "a webhook refuses it", RetryAfter: evict.RetryRefused}
	lastCall, tries, atLastCall := start.Add(20*time.Minute), 0, false
	for ; now.Before(start.Add(time.Hour)); now = now.Add(100 * time.Millisecond) {
		if at, _, why := b.waitsFor(instance, "a", lastCall); !at.IsZero() {
			if why != refused.Reason {
				t.Fatalf("waits, and says %q", why)
			}
			continue
		}
		atLastCall = atLastCall || now.Equal(lastCall)
		b.notePod(instance, refused)
		tries++
	}
	if tries > 100 || !atLastCall {
		t.Errorf("%d tries, at the last call: %t", tries, atLastCall)
	}
	b.notePod(instance, evict.Result{Verdict: refused.Verdict, Evicted: true})
	if at, _, _ := b.waitsFor(instance, "a", lastCall); !at.IsZero() {
		t.Error("waits after a success")
	}
}
