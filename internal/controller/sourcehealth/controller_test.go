package sourcehealth

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

var start = time.Date(2026, 5, 11, 8, 14, 2, 0, time.UTC)

const instance = "i-0a1b2c3d4e5f60718"

func spot(source string, received time.Time) v1beta1.Notice {
	return v1beta1.Notice{ID: source, Kind: notice.KindSpotInterruption, Source: source, ReceivedTime: metav1.NewMicroTime(received)}
}

type world struct {
	t      *testing.T
	client client.Client
	loop   *Controller
	now    time.Time
	events *events.FakeRecorder
	asked  int
	refuse error
	// repaired is true once the wiring has no known problem.
	repaired bool
}

func newWorld(t *testing.T, notices ...v1beta1.Notice) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, now: start, events: events.NewFakeRecorder(10)}
	in := &v1beta1.Interruption{
		ObjectMeta: metav1.ObjectMeta{Name: instance},
		Spec:       v1beta1.InterruptionSpec{InstanceID: instance, Notices: notices},
	}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(in).WithStatusSubresource(in).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
			if err := w.refuse; err != nil {
				w.refuse = nil
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, p, opts...)
		}}).Build()
	loop, err := New(Options{
		Client: w.client, Events: w.events, Clock: func() time.Time { return w.now }, Registerer: prometheus.NewRegistry(),
		Cause: func(_ context.Context, kind string) (string, string) {
			w.asked++
			if w.repaired {
				return "the wiring for it has no known problem", ""
			}
			return "the rule for " + kind + " is misspelt", "write it as AWS does"
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.loop = loop
	return w
}

func (w *world) record() *v1beta1.Interruption {
	w.t.Helper()
	in := &v1beta1.Interruption{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Name: instance}, in); err != nil {
		w.t.Fatal(err)
	}
	return in
}

// pass advances the clock, reconciles once, and returns the requeue interval.
func (w *world) pass(after time.Duration) time.Duration {
	w.t.Helper()
	w.now = w.now.Add(after)
	result, err := w.loop.Reconcile(w.t.Context(), w.record())
	if err != nil {
		w.t.Fatal(err)
	}
	return result.RequeueAfter
}

func (w *world) condition() *metav1.Condition {
	return meta.FindStatusCondition(w.record().Status.Conditions, v1beta1.ConditionWiringDegraded)
}

func TestMissingQueueNoticeIsReportedOnce(t *testing.T) {
	w := newWorld(t, spot(notice.SourceIMDS, start))
	if conflictRetry := w.pass(time.Second); conflictRetry != 14*time.Second || w.condition() != nil {
		t.Errorf("looks again in %s, condition %v", conflictRetry, w.condition())
	}
	w.pass(14 * time.Second)
	want := "SpotInterruption was reported by imds but not by the queue: the rule for SpotInterruption is misspelt; write it as AWS does"
	if c := w.condition(); c == nil || c.Status != metav1.ConditionTrue || c.Message != want {
		t.Fatalf("condition %+v", c)
	}
	w.pass(time.Minute)
	if len(w.events.Events) != 1 || !strings.Contains(<-w.events.Events, want) {
		t.Error("no event, or several")
	}
	if got := testutil.ToFloat64(w.loop.degraded.WithLabelValues(notice.KindSpotInterruption)); got != 1 {
		t.Errorf("counted %v times", got)
	}
}

func TestLateQueueNoticeIsTolerated(t *testing.T) {
	w := newWorld(t, spot(notice.SourceIMDS, start))
	w.pass(time.Minute)
	in := w.record()
	in.Spec.Notices = append(in.Spec.Notices, spot(notice.SourceQueue, w.now))
	if err := w.client.Update(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	w.pass(0)
	if c := w.condition(); c == nil || c.Status != metav1.ConditionFalse {
		t.Errorf("condition %+v", c)
	}
}

// The group proceeds without an event: only the poll saw its wait.
func TestMissedNoticeStaysReported(t *testing.T) {
	waits := spot(notice.SourceAutoScaling, start)
	waits.Kind, waits.EventTypeCode = notice.KindAutoScalingTermination, "Terminating:Wait"
	w := newWorld(t, waits)
	w.pass(time.Minute)
	in := w.record()
	in.Spec.Notices[0].EventTypeCode = "Terminating:Proceed"
	if err := w.client.Update(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	w.pass(0)
	if c := w.condition(); c == nil || c.Status != metav1.ConditionTrue {
		t.Errorf("condition %+v", c)
	}
}

// Wiring that a person has corrected is not unhealthy for a day.
func TestRepairedWiringIsNoLongerDegraded(t *testing.T) {
	w := newWorld(t, spot(notice.SourceIMDS, start))
	w.pass(time.Minute)
	if wait := w.pass(time.Minute); wait != recheckInterval-time.Minute || w.condition().Status != metav1.ConditionTrue {
		t.Errorf("looks again in %s, condition %+v", wait, w.condition())
	}
	if wait := w.pass(recheckInterval); wait != recheckInterval || w.condition().Status != metav1.ConditionTrue {
		t.Errorf("the cause is still there: looks again in %s, condition %+v", wait, w.condition())
	}
	w.repaired = true
	w.pass(recheckInterval)
	if c := w.condition(); c.Status != metav1.ConditionFalse || c.Reason != v1beta1.ReasonWiringRepaired || !strings.Contains(c.Message, "is misspelt") {
		t.Errorf("condition %+v", c)
	}
	if wait := w.pass(recheckInterval); wait != 0 || w.condition().Status != metav1.ConditionFalse {
		t.Errorf("looks again in %s, condition %+v", wait, w.condition())
	}
}

// A notice that was lost without a known cause is not repaired by the absence of one.
func TestUnexplainedLossStaysDegraded(t *testing.T) {
	w := newWorld(t, spot(notice.SourceIMDS, start))
	w.repaired = true
	w.pass(time.Minute)
	if wait := w.pass(recheckInterval); wait != recheckInterval || w.condition().Status != metav1.ConditionTrue {
		t.Errorf("looks again in %s, condition %+v", wait, w.condition())
	}
	if wait := w.pass(25 * time.Hour); wait != 0 || w.condition().Status != metav1.ConditionTrue {
		t.Errorf("a day later: looks again in %s, condition %+v", wait, w.condition())
	}
}

func TestNoReportIfQueueDelivered(t *testing.T) {
	w := newWorld(t, spot(notice.SourceQueue, start), spot(notice.SourceIMDS, start))
	if conflictRetry := w.pass(time.Hour); conflictRetry != 0 || w.condition() != nil || w.asked != 0 {
		t.Errorf("looks again in %s, condition %v, asked %d times", conflictRetry, w.condition(), w.asked)
	}
}

func TestConcurrentStatusWriteIsRetried(t *testing.T) {
	w := newWorld(t, spot(notice.SourceEC2, start))
	w.refuse = apierrors.NewConflict(v1beta1.GroupVersion.WithResource("interruptions").GroupResource(), instance, nil)
	conflictRetry := w.pass(time.Minute)
	if conflictRetry == 0 || w.condition() != nil || len(w.events.Events) != 0 {
		t.Fatalf("looks again in %s, condition %v", conflictRetry, w.condition())
	}
	w.pass(conflictRetry)
	if w.condition() == nil || w.asked != 1 {
		t.Errorf("condition %v, asked %d times", w.condition(), w.asked)
	}
}

func TestCauseIsDiagnosedAgainAfterInterval(t *testing.T) {
	now, asked := start, 0
	c := newCauses(func(context.Context, string) (string, string) { asked++; return "", "" }, func() time.Time { return now })
	for _, step := range []struct {
		kind  string
		after time.Duration
		asked int
	}{{"a", 0, 1}, {"a", 59 * time.Second, 1}, {"b", 0, 2}, {"a", time.Second, 3}} {
		now = now.Add(step.after)
		if c.of(t.Context(), step.kind); asked != step.asked {
			t.Errorf("%+v: asked %d times", step, asked)
		}
	}
}
