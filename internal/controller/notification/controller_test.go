package notification

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/hooks/runner"
)

var start = time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC)

// world is an Interruption, the policy team, and a server that receives notifications.
type world struct {
	*testing.T
	client     client.Client
	controller *Controller
	now        time.Time
	answered   chan string

	mu       sync.Mutex
	received []string
	code     int // of the server's responses
}

func newWorld(t *testing.T, change func(*v1beta1.Interruption, *v1beta1.InterruptionPolicy)) *world {
	t.Helper()
	w := &world{T: t, now: start, answered: make(chan string, 100), code: http.StatusOK}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		w.mu.Lock()
		defer w.mu.Unlock()
		if err == nil {
			w.received = append(w.received, string(body))
		}
		rw.WriteHeader(w.code)
	}))
	t.Cleanup(server.Close)
	p := &v1beta1.InterruptionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "team"}, Spec: v1beta1.InterruptionPolicySpec{
		Rules: []v1beta1.Rule{{Kinds: []string{"*"}, Action: v1beta1.ActionDrain}},
		Notifications: []v1beta1.Notification{{
			Name: "chat", Reasons: []string{v1beta1.ReasonCordoned, v1beta1.ReasonCompleted}, Webhook: v1beta1.Webhook{URL: server.URL, Body: `{{.Node}}: {{.Message}}`},
		}},
	}}
	in := &v1beta1.Interruption{ObjectMeta: metav1.ObjectMeta{Name: "i-a", UID: "uid"}, Status: v1beta1.InterruptionStatus{
		NodeName: "a", Phase: v1beta1.PhaseDraining,
		Decision: &v1beta1.Decision{Action: v1beta1.ActionDrain, EffectivePolicy: "team"},
	}}
	change(in, p)
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(in, p).WithStatusSubresource(in).Build()
	runner := runner.New(runner.Options{Client: w.client, Live: w.client, Destinations: runner.Destinations{HTTP: true, Loopback: true}, WakeNotifications: func(name string) { w.answered <- name }})
	w.controller = New(Options{Client: w.client, Sender: runner, Events: events.NewFakeRecorder(100), Clock: func() time.Time { return w.now }})
	return w
}

func (w *world) interruption() *v1beta1.Interruption {
	w.Helper()
	var in v1beta1.Interruption
	if err := w.client.Get(w.Context(), client.ObjectKey{Name: "i-a"}, &in); err != nil {
		w.Fatal(err)
	}
	return &in
}

func (w *world) reconcile() reconcile.Result {
	w.Helper()
	result, err := w.controller.Reconcile(w.Context(), w.interruption())
	if err != nil {
		w.Fatal(err)
	}
	return result
}

// add writes a timeline entry, as the interruption controller does.
func (w *world) add(reason, message string) {
	w.Helper()
	w.now = w.now.Add(time.Second)
	in := w.interruption()
	in.Status.Timeline = append(in.Status.Timeline, v1beta1.TimelineEntry{Time: metav1.NewMicroTime(w.now), Reason: reason, Message: message})
	if err := w.client.Status().Update(w.Context(), in); err != nil {
		w.Fatal(err)
	}
}

// deliver reconciles until a request is answered and its result is written.
func (w *world) deliver() {
	w.Helper()
	w.reconcile()
	<-w.answered
	w.reconcile()
}

func (w *world) reasons() (reasons []string) {
	w.Helper()
	for _, e := range w.interruption().Status.Timeline {
		reasons = append(reasons, e.Reason)
	}
	return reasons
}

func TestNotificationsMatchTimeline(t *testing.T) {
	w := newWorld(t, func(*v1beta1.Interruption, *v1beta1.InterruptionPolicy) {})
	w.add(v1beta1.ReasonDecided, "not asked for")
	w.add(v1beta1.ReasonCordoned, "no new pods")
	w.deliver()
	first := w.interruption().Status.Notifications
	w.now = w.now.Add(time.Minute)
	w.reconcile() // nothing is due
	w.add(v1beta1.ReasonCompleted, "all pods moved")
	w.deliver()

	w.mu.Lock()
	defer w.mu.Unlock()
	if want := []string{"a: no new pods", "a: all pods moved"}; !slices.Equal(w.received, want) {
		t.Errorf("received %q, want %q", w.received, want)
	}
	last := w.interruption().Status.Notifications
	if len(first) != 1 || len(last) != 1 || !last[0].LastDeliveredTime.After(first[0].LastDeliveredTime.Time) {
		t.Errorf("status.notifications %+v, then %+v", first, last)
	}
}

func TestFailedNotificationIsReportedOnce(t *testing.T) {
	w := newWorld(t, func(in *v1beta1.Interruption, _ *v1beta1.InterruptionPolicy) {
		in.Status.Phase = v1beta1.PhaseCompleted
	})
	w.code = http.StatusInternalServerError
	w.add(v1beta1.ReasonCompleted, "all pods moved")
	for range 3 {
		w.deliver()
		w.now = w.now.Add(10 * time.Second)
	}
	w.reconcile()
	if got, want := w.reasons(), []string{v1beta1.ReasonCompleted, v1beta1.ReasonNotifyFailed}; !slices.Equal(got, want) {
		t.Errorf("timeline %v, want %v", got, want)
	}
}

// Adding a notification to a policy must not report the Interruptions of a whole day.
func TestNewNotificationSkipsOldInterruptions(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		ended    time.Duration
		begun    bool
		delivers bool
	}{
		"it ended just now":                  {ended: time.Minute, delivers: true},
		"it ended before":                    {ended: time.Hour},
		"it ended before, and was delivered": {ended: time.Hour, begun: true, delivers: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, func(in *v1beta1.Interruption, _ *v1beta1.InterruptionPolicy) {
				at := metav1.NewMicroTime(start.Add(-test.ended))
				in.Status.Phase, in.Status.CompletionTime = v1beta1.PhaseCompleted, &at
				if test.begun {
					in.Status.Notifications = []v1beta1.NotificationStatus{{Name: "chat", LastDeliveredTime: at}}
				}
			})
			w.add(v1beta1.ReasonCompleted, "all pods moved")
			if got := w.reconcile() != (reconcile.Result{}); got != test.delivers {
				t.Errorf("delivers: %t, want %t", got, test.delivers)
			}
		})
	}
}

func TestSkippedNotifications(t *testing.T) {
	for name, change := range map[string]func(*v1beta1.Interruption, *v1beta1.InterruptionPolicy){
		"before a decision": func(in *v1beta1.Interruption, _ *v1beta1.InterruptionPolicy) { in.Status.Decision = nil },
		"without a policy": func(in *v1beta1.Interruption, _ *v1beta1.InterruptionPolicy) {
			in.Status.Decision.EffectivePolicy = ""
		},
		"the policy is deleted": func(in *v1beta1.Interruption, _ *v1beta1.InterruptionPolicy) {
			in.Status.Decision.EffectivePolicy = "other"
		},
		"the policy is not valid": func(_ *v1beta1.Interruption, p *v1beta1.InterruptionPolicy) { p.Spec.Rules[0].Action = "Drian" },
		"the policy ignores it": func(in *v1beta1.Interruption, _ *v1beta1.InterruptionPolicy) {
			in.Status.Decision.Action = v1beta1.ActionIgnore
		},
		"it asks for other reasons": func(_ *v1beta1.Interruption, p *v1beta1.InterruptionPolicy) {
			p.Spec.Notifications[0].Reasons = []string{v1beta1.ReasonPodLost}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, change)
			w.add(v1beta1.ReasonCordoned, "no new pods")
			version := w.interruption().ResourceVersion
			if result := w.reconcile(); result != (reconcile.Result{}) {
				t.Errorf("result %+v, want none", result)
			}
			if got := w.interruption(); got.ResourceVersion != version || len(got.Status.Notifications) > 0 {
				t.Errorf("it wrote %+v", got.Status)
			}
		})
	}
	t.Run("a withdrawn notice is reported", func(t *testing.T) {
		w := newWorld(t, func(in *v1beta1.Interruption, _ *v1beta1.InterruptionPolicy) {
			in.Status.Decision.Action, in.Status.Phase = v1beta1.ActionIgnore, v1beta1.PhaseCancelled
		})
		w.add(v1beta1.ReasonCompleted, "the node is as it was")
		w.deliver()
		if len(w.interruption().Status.Notifications) != 1 {
			t.Errorf("status %+v", w.interruption().Status)
		}
	})
}
