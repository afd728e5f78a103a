package lifecyclehook

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/asg/groupcache"
	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/asg/membership"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record/recordtest"
)

const instance = "i-0a1b2c3d4e5f60718"

var start = time.Date(2026, 5, 11, 8, 14, 2, 0, time.UTC)

// world is an Interruption of an instance of the group workers, which calls are made to.
type world struct {
	*testing.T
	client     client.Client
	controller *Controller
	now        time.Time
	state      string
	calls      []string
	refuse     error
	// intents are the numbers of heartbeats and results in the status when a call came.
	intents []string
	// failPatch is the API server's answer to the next status patch.
	failPatch error
	refreshes int
}

func newWorld(t *testing.T, in *v1beta1.Interruption) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, now: start.Add(time.Minute), state: "Terminating:Wait"}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(in).WithStatusSubresource(in).
		WithInterceptorFuncs(interceptor.Funcs{SubResourcePatch: w.patch}).Build()
	w.controller = New(Options{
		Client: w.client, Nodes: w, Hooks: w, Events: events.NewFakeRecorder(100), Clock: func() time.Time { return w.now },
		Members: membership.Reader{Client: w.client, Groups: w, Hooks: []string{"lifeboat-*"}},
	})
	return w
}

func (w *world) patch(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	if err := w.failPatch; err != nil {
		w.failPatch = nil
		return err
	}
	return c.SubResource(sub).Patch(ctx, o, p, opts...)
}

func (w *world) NodeByInstance(context.Context, string) (*corev1.Node, error) { return nil, nil }

func (w *world) Member(id string) (groupcache.Member, bool, time.Time) {
	return groupcache.Member{InstanceID: id, Group: "workers", State: w.state, At: lifecycle.Read(w.state)}, true, w.now
}

func (w *world) Group(name string) (groupcache.Group, bool) {
	return groupcache.Group{Name: name, At: w.now, HooksKnown: true, Hooks: []groupcache.Hook{
		{Name: "lifeboat-terminate", Terminating: true, Timeout: 5 * time.Minute, Global: time.Hour},
	}}, name == "workers"
}

func (w *world) RequestRefresh(string) { w.refreshes++ }

func (w *world) Complete(_ context.Context, a cloud.Action, r cloud.Result) error {
	return w.call(fmt.Sprintf("%s %s", r, a.Hook))
}

func (w *world) Heartbeat(_ context.Context, a cloud.Action) error {
	return w.call("heartbeat " + a.Hook)
}

func (w *world) call(what string) error {
	w.calls = append(w.calls, what)
	s := w.record().Status.LifecycleHooks
	w.intents = append(w.intents, fmt.Sprintf("%d heartbeats, %d results", s.Heartbeats, s.Tries))
	return w.refuse
}

func (w *world) record() *v1beta1.Interruption {
	w.Helper()
	var in v1beta1.Interruption
	if err := w.client.Get(w.Context(), client.ObjectKey{Name: instance}, &in); err != nil {
		w.Fatal(err)
	}
	return &in
}

func (w *world) reconcile() reconcile.Result {
	w.Helper()
	result, err := w.controller.Reconcile(w.Context(), w.record())
	if err != nil {
		w.Fatal(err)
	}
	return result
}

// write writes the status as the interruption controller does.
func (w *world) write(change func(*v1beta1.InterruptionStatus)) {
	w.Helper()
	in := w.record()
	change(&in.Status)
	if err := w.client.Status().Update(w.Context(), in); err != nil {
		w.Fatal(err)
	}
}

func termination() v1beta1.Notice {
	return v1beta1.Notice{
		ID: "token", Kind: notice.KindAutoScalingTermination, Source: notice.SourceQueue, Subject: "token",
		Time: metav1.NewTime(start), ReceivedTime: metav1.NewMicroTime(start), InstanceAction: notice.ActionTerminate,
		LifecycleHook: &v1beta1.LifecycleHookInvocation{Group: "workers", Name: "lifeboat-terminate", Token: "token"},
	}
}

func rebalance() v1beta1.Notice {
	return v1beta1.Notice{
		ID: "rebalance", Kind: notice.KindRebalanceRecommendation, Source: notice.SourceQueue,
		Time: metav1.NewTime(start), ReceivedTime: metav1.NewMicroTime(start),
	}
}

// decided is an Interruption with a decision about its last notice.
func decided(action v1beta1.Action, notices ...v1beta1.Notice) *v1beta1.Interruption {
	return &v1beta1.Interruption{
		ObjectMeta: metav1.ObjectMeta{Name: instance},
		Spec:       v1beta1.InterruptionSpec{InstanceID: instance, NodeName: "a", Notices: notices},
		Status: v1beta1.InterruptionStatus{
			NodeName: "a", LastNoticeID: notices[len(notices)-1].ID, Decision: &v1beta1.Decision{Action: action},
		},
	}
}

// due is when the interruption controller confirmed that the hooks can be completed.
func due(at time.Time) func(*v1beta1.InterruptionStatus) {
	return func(s *v1beta1.InterruptionStatus) {
		confirmed := metav1.NewMicroTime(at)
		s.Drain = &v1beta1.DrainStatus{LifecycleHooksDueTime: &confirmed}
	}
}

func TestHeartbeatsDuringDrain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, decided(v1beta1.ActionDrain, termination()))
	for end := start.Add(10 * time.Minute); w.now.Before(end); w.now = w.now.Add(5 * time.Second) {
		w.reconcile()
	}
	if n := len(w.calls); n < 4 || n > 8 || slices.ContainsFunc(w.calls, func(c string) bool { return c != "heartbeat lifeboat-terminate" }) {
		t.Errorf("calls in ten minutes: %v", w.calls)
	}
	if s := w.record().Status.LifecycleHooks; s.WaitingSince == nil || int(s.Heartbeats) != len(w.calls) || s.CompletedTime != nil {
		t.Errorf("%+v", s)
	}
}

// The record had the decision Notify for a rebalance recommendation. A termination notice is
// added, and this controller is faster than the interruption controller.
func TestEarlierDecisionIsNotActedOn(t *testing.T) {
	t.Parallel()
	in := decided(v1beta1.ActionNotify, rebalance())
	due(start.Add(time.Minute))(&in.Status)
	in.Spec.Notices = append(in.Spec.Notices, termination())
	w := newWorld(t, in)
	before := w.record()
	w.reconcile()
	if len(w.calls) > 0 || w.record().ResourceVersion != before.ResourceVersion {
		t.Fatalf("called %v: %+v", w.calls, w.record().Status)
	}
	w.write(func(s *v1beta1.InterruptionStatus) {
		s.Decision.Action, s.LastNoticeID, s.Drain = v1beta1.ActionDrain, "token", nil
	})
	w.reconcile()
	if s := w.record().Status.LifecycleHooks; s == nil || s.WaitingSince == nil || strings.Contains(s.Message, "policy says") {
		t.Errorf("%+v", s)
	}
	w.write(due(w.now))
	w.reconcile()
	if !slices.Equal(w.calls, []string{"CONTINUE lifeboat-terminate"}) {
		t.Errorf("called %v", w.calls)
	}
}

// Each try needs a confirmation that is newer than the try before, and not old.
func TestCompletionNeedsConfirmation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, decided(v1beta1.ActionDrain, termination()))
	w.reconcile()
	w.write(due(w.now.Add(-time.Minute)))
	if w.reconcile(); len(w.calls) > 0 {
		t.Fatalf("called %v with an old confirmation", w.calls)
	}
	w.write(due(w.now))
	if w.reconcile(); len(w.calls) != 1 || w.intents[0] != "0 heartbeats, 1 results" {
		t.Fatalf("called %v, after %v", w.calls, w.intents)
	}
	w.now = w.now.Add(10 * time.Second)
	if w.reconcile(); len(w.calls) != 1 {
		t.Fatalf("called %v without another confirmation", w.calls)
	}
	w.write(due(w.now))
	if w.reconcile(); len(w.calls) != 2 {
		t.Fatalf("called %v", w.calls)
	}
	w.state = "Terminating:Proceed"
	w.now = w.now.Add(10 * time.Second)
	w.reconcile()
	if s := w.record().Status.LifecycleHooks; len(w.calls) != 2 || s.CompletedTime == nil || s.Tries != 2 {
		t.Errorf("called %v: %+v", w.calls, s)
	}
}

// No call is made unless its intent is written.
func TestIntentIsWrittenFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, decided(v1beta1.ActionDrain, termination()))
	w.reconcile()
	w.write(due(w.now))
	w.failPatch = apierrors.NewConflict(schema.GroupResource{Resource: "interruptions"}, instance, fmt.Errorf("it has changed"))
	if result := w.reconcile(); len(w.calls) > 0 || result.RequeueAfter != conflictRequeue {
		t.Fatalf("called %v, requeued after %s", w.calls, result.RequeueAfter)
	}
	w.reconcile()
	if len(w.calls) != 1 {
		t.Errorf("called %v", w.calls)
	}
}

// Only the fields of this controller change.
func TestOtherFieldsStay(t *testing.T) {
	t.Parallel()
	in := decided(v1beta1.ActionDrain, termination())
	in.Status.Phase = v1beta1.PhaseDraining
	w := newWorld(t, in)
	stale := w.record()
	w.write(func(s *v1beta1.InterruptionStatus) { s.Phase = v1beta1.PhaseDrained; due(w.now)(s) })
	result, err := w.controller.Reconcile(t.Context(), stale)
	if err != nil || result.RequeueAfter != conflictRequeue || w.record().Status.Phase != v1beta1.PhaseDrained {
		t.Fatalf("%v, %v: %+v", result, err, w.record().Status)
	}
	w.reconcile()
	s := w.record().Status
	if s.Phase != v1beta1.PhaseDrained || s.Drain.LifecycleHooksDueTime == nil || s.LifecycleHooks.Tries != 1 {
		t.Errorf("%+v", s)
	}
}

func TestHooksThatAreLeftAlone(t *testing.T) {
	t.Parallel()
	withdrawn := termination()
	withdrawn.Withdrawn = true
	finished := decided(v1beta1.ActionDrain, termination())
	recordtest.Complete(finished, start, "token")
	for name, in := range map[string]*v1beta1.Interruption{
		"of a withdrawn notice":       decided(v1beta1.ActionDrain, withdrawn),
		"of a finished Interruption":  finished,
		"where policy says Notify":    decided(v1beta1.ActionNotify, termination()),
		"while nothing is decided":    {ObjectMeta: metav1.ObjectMeta{Name: instance}, Spec: finished.Spec},
		"where policy says to cordon": decided(v1beta1.ActionCordon, termination()),
	} {
		due(start.Add(time.Minute))(&in.Status)
		w := newWorld(t, in)
		for range 100 {
			w.reconcile()
			w.now = w.now.Add(2 * time.Second)
		}
		if len(w.calls) > 0 {
			t.Errorf("%s: called %v", name, w.calls)
		}
	}
}
