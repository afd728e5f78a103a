package interruption

import (
	"errors"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/evict"
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
	left := record.Drain(&w.record().Status).PendingPods
	if want := `the API server refused its eviction: admission webhook "validate.example" denied the request: no`; len(left) != 1 ||
		left[0].Reason != want || left[0].EvictionTime != nil || w.wake > evict.RetryRefused {
		t.Errorf("looks again in %s; left %+v, want %s", w.wake, left, want)
	}
	w.now = deadline.Add(-3 * time.Minute)
	passes, last := w.queued(deadline)
	if at, asked := w.asked["web-1"]; !asked || deadline.Sub(at) < 38*time.Second {
		t.Errorf("asked %t, %s before the deadline (%d passes, last error %v)", asked, deadline.Sub(at), passes, last)
	}
}

func TestFailedReconcileRetriesWithinSeconds(t *testing.T) {
	limiter := newBackoff(time.Now)
	var r reconcile.Request
	if first := limiter.When(r); first != 100*time.Millisecond {
		t.Errorf("first after %s", first)
	}
	for range 100 {
		if got := limiter.When(r); got > maxBackoff {
			t.Fatalf("backs off for %s", got)
		}
	}
}
