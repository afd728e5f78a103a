package interruption

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/hooks/runner"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// jobsFail adds a hook runner to the controller, and makes the creation of Jobs fail.
func (w *world) jobsFail(err error) *world { return w.jobsFailWith(func() error { return err }) }

func (w *world) jobsFailWith(err func() error) *world {
	inner, ok := w.client.(client.WithWatch)
	if !ok {
		w.t.Fatal("the fake client does not watch")
	}
	refusing := interceptor.NewClient(inner, interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if _, is := o.(*batchv1.Job); is {
				return err()
			}
			return c.Create(ctx, o, opts...)
		},
	})
	w.loop.HookRunner = runner.New(runner.Options{Client: refusing, Live: w.client, Namespace: "lifeboat-system", JobNamespaces: []string{"node-hooks"}})
	return w
}

// No error of the API server for a hook's Job may make a pod wait past its last call.
func TestFailedHookJobDelaysNoLastCall(t *testing.T) {
	for name, err := range map[string]error{
		"denied with 400": deniedBy(http.StatusBadRequest), "denied with 500": deniedBy(http.StatusInternalServerError),
		"the API server is away": errors.New("connection refused"),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"),
				team(withHook(v1beta1.HookBeforeDrain, v1beta1.HookHold))).jobsFail(err)
			passes, last := w.queued(start.Add(2 * time.Minute))
			if at, asked := w.asked["web-1"]; !asked || at.Sub(start) > 82*time.Second {
				t.Errorf("asked %t, after %s; want at its last call, after 80s (%d passes, last error %v): %+v",
					asked, at.Sub(start), passes, last, record.Pending(record.Drain(&w.record().Status)))
			}
		})
	}
}

// A Job that cannot be made for hours is tried once a minute.
func TestHookThatCannotBeStartedBacksOff(t *testing.T) {
	tries := 0
	w := newWorld(t, recordOf(request(time.Time{})), node("a", instance), team(withHook(v1beta1.HookAfterDrain, "")))
	w.jobsFailWith(func() error { tries++; return errors.New("connection refused") })
	w.runUntil(start.Add(3 * time.Hour))
	if tries < 60 || tries > 230 {
		t.Errorf("tried %d times in three hours, want about once a minute", tries)
	}
	if message := readyOf(w); !strings.HasPrefix(message, "waits: hook leaders: making Job ") {
		t.Errorf("a person reads %q", message)
	}
}

// The last known result of a hook still counts while the API server is unreachable, and the pass
// keeps its other wake-ups.
func TestUnreadableAfterDrainHookIsRetried(t *testing.T) {
	w := newWorld(t, recordOf(spot()), node("a", instance), team(withHook(v1beta1.HookAfterDrain, ""))).
		jobsFail(errors.New("connection refused"))
	w.settle(time.Second)
	if message := readyOf(w); w.wake != hookRetry || !strings.HasPrefix(message, "waits: hook leaders: making Job ") {
		t.Errorf("requeued after %s: %s", w.wake, message)
	}
	w.withHookRunner().settle(hookRetry)
	if len(w.jobs()) != 1 {
		t.Errorf("%d Jobs", len(w.jobs()))
	}
}

// A budget slot is kept until the last hook after the drain has finished, also between two hooks
// and between two tries.
func TestBudgetIsHeldForAllAfterDrainHooks(t *testing.T) {
	other := recordOf(rebalance())
	other.Name, other.Spec.InstanceID, other.Spec.NodeName = "i-0ffffffffffffffff", "i-0ffffffffffffffff", "z"
	w := newWorld(t, recordOf(rebalance()), node("a", instance), pod("web-1"), other, node("z", other.Name), team(func(s *v1beta1.InterruptionPolicySpec) {
		withHook(v1beta1.HookAfterDrain, "")(s)
		second := s.Hooks[0].DeepCopy()
		second.Name = "second"
		s.Hooks[0].Retries = 1
		s.Hooks = append(s.Hooks, *second)
		s.Budget = &v1beta1.Budget{MaxConcurrent: intstr.FromInt32(1)}
	})).withHookRunner()
	waits := func(when string) {
		t.Helper()
		var in v1beta1.Interruption
		for range 2 {
			if err := w.client.Get(t.Context(), types.NamespacedName{Name: other.Name}, &in); err != nil {
				t.Fatal(err)
			}
			if _, err := w.loop.Reconcile(t.Context(), &in); err != nil {
				t.Fatal(err)
			}
		}
		if in.Status.Phase != v1beta1.PhaseQueued {
			t.Errorf("%s the other node is %s", when, in.Status.Phase)
		}
	}
	w.settle(time.Second)
	w.settle(6 * time.Second)
	waits("during the drain")
	w.stopped("web-1")
	w.settle(time.Second)
	waits("while the first hook runs")
	w.ended(batchv1.JobFailed)
	if err := w.pass(0); err != nil {
		t.Fatal(err)
	}
	waits("between two tries")
	w.settle(2 * time.Second)
	w.ended(batchv1.JobComplete)
	if err := w.pass(0); err != nil {
		t.Fatal(err)
	}
	if got := record.Drain(&w.record().Status).Hooks; len(got) != 1 || got[0].State != v1beta1.HookSucceeded {
		t.Fatalf("hooks %+v", got)
	}
	waits("between two hooks")
}

// A hook after the drain that holds for an approval stops holding when the interruption ends.
func TestHoldOfAfterDrainHookEnds(t *testing.T) {
	for name, tc := range map[string]struct {
		notice v1beta1.Notice
		action v1beta1.Action
		gone   bool
		want   v1beta1.Phase
	}{
		"the node has gone":                        {spot(), v1beta1.ActionDrain, true, v1beta1.PhaseCompleted},
		"the instance lives":                       {spot(), v1beta1.ActionDrain, false, v1beta1.PhaseCancelled},
		"without a deadline":                       {rebalance(), v1beta1.ActionDrain, false, v1beta1.PhaseCancelled},
		"it is not terminated without an approval": {rebalance(), v1beta1.ActionTerminate, false, v1beta1.PhaseCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, recordOf(tc.notice), node("a", instance), pod("web-1"), team(func(s *v1beta1.InterruptionPolicySpec) {
				withHook(v1beta1.HookAfterDrain, v1beta1.HookHold)(s)
				s.Rules[0].Action = tc.action
			})).withHookRunner()
			w.settle(time.Second)
			w.stopped("web-1")
			w.settle(6 * time.Second)
			w.ended(batchv1.JobFailed)
			w.settle(time.Second)
			if tc.gone {
				w.remove(w.node())
			}
			for w.record().Status.CompletionTime == nil {
				w.settle(0)
				if w.record().Status.CompletionTime != nil || w.wake == 0 || w.now.Sub(start) > 24*time.Hour {
					break
				}
				w.now = w.now.Add(w.wake)
			}
			s := w.record().Status
			if s.Phase != tc.want || record.Drain(&s).TerminationTime != nil || w.now.Sub(start) > 2*time.Hour {
				t.Errorf("after %s: phase %s, want %s; terminated at %v; looks again in %s: %+v", w.now.Sub(start), s.Phase, tc.want, record.Drain(&s).TerminationTime, w.wake, record.Drain(&s).Hooks)
			}
			if n := w.node(); n != nil && n.Spec.Unschedulable {
				t.Error("the node that lives is cordoned")
			}
		})
	}
}

func TestHookRunsAgainForNextDrain(t *testing.T) {
	w := newWorld(t, recordOf(planned("h1", notice.ActionStop, start.Add(50*time.Minute))), node("a", instance), pod("web-1"), budget(0),
		team(withHook(v1beta1.HookBeforeDrain, ""))).withHookRunner()
	w.settle(time.Second)
	w.ended(batchv1.JobComplete)
	w.settle(5 * time.Second)
	w.loop = New(w.loop.Options) // after a restart it is still the same drain
	w.settle(5 * time.Second)
	if n := len(w.jobs()); n != 1 {
		t.Fatalf("%d Jobs for one drain", n)
	}
	moved := planned("h2", notice.ActionStop, start.Add(90*time.Minute))
	moved.Time = metav1.NewTime(w.now)
	w.addNotices(moved)
	w.settle(time.Minute)
	if s := w.record().Status; s.Phase != v1beta1.PhaseScheduled || len(record.Drain(&s).Hooks) > 0 {
		t.Fatalf("not put back: %s %+v", s.Phase, record.Drain(&s).Hooks)
	}
	w.settle(w.wake + time.Second)
	if s := w.record().Status; len(w.jobs()) != 2 || len(record.Drain(&s).Hooks) != 1 || record.Drain(&s).Hooks[0].State != v1beta1.HookRunning {
		t.Errorf("%d Jobs, hooks %+v", len(w.jobs()), record.Drain(&s).Hooks)
	}
}

func readyOf(w *world) string {
	w.t.Helper()
	c := meta.FindStatusCondition(w.record().Status.Conditions, v1beta1.ConditionReady)
	if c == nil {
		w.t.Fatal("there is no condition Ready")
	}
	return c.Message
}
