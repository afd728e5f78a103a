package interruption

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// apiRefusal is what an API server refuses. It counts, so that a test can show that the request was made.
type apiRefusal struct {
	// requests are those that it refuses: a verb and a kind, such as "patch Node".
	requests []string
	// object is the name of what it refuses to change; empty: of all.
	object string
	// err is the answer; nil: an admission policy denies it.
	err error
	// from is the time before which all is allowed, by the clock.
	from  time.Time
	clock func() time.Time
	// count counts what was refused, and status the writes of the status among them.
	count, status int
}

const deniedByPolicy = `ValidatingAdmissionPolicy 'platform-nodes' with binding 'platform-nodes' denied request: the platform team changes these`

func (r *apiRefusal) of(verb string, o runtime.Object) error {
	kind := o.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = strings.TrimPrefix(fmt.Sprintf("%T", o)[strings.LastIndex(fmt.Sprintf("%T", o), "."):], ".")
	}
	for _, refused := range r.requests {
		named, _ := o.(client.Object)
		if r.object != "" && (named == nil || named.GetName() != r.object) || verb+" "+kind != refused || r.clock != nil && r.clock().Before(r.from) {
			continue
		}
		r.count++
		if strings.HasPrefix(refused, "patch status") {
			r.status++
		}
		if r.err != nil {
			return r.err
		}
		return deniedWith(http.StatusForbidden, deniedByPolicy)
	}
	return nil
}

// withBudget is a world whose budget allows nothing: at last call its pods are deleted.
func withBudget(t *testing.T) *world {
	t.Helper()
	return newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"), pod("web-2"), budget(0))
}

func surgingWorld(t *testing.T) *world {
	t.Helper()
	w, _ := surging(t, v1beta1.StrategySurge)
	return w
}

func withHooks(t *testing.T) *world {
	t.Helper()
	return newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"), team(withHook(v1beta1.HookBeforeDrain, v1beta1.HookHold))).withHookRunner()
}

func replacing(t *testing.T) *world {
	t.Helper()
	return withKarpenter(t, recordOf(spot()), pod("web-1"), team(func(s *v1beta1.InterruptionPolicySpec) {
		s.Rules[0].Replacement = v1beta1.ReplacementBefore
	})).world
}

// Whatever the API server refuses: every pod is asked to leave by its last call, which is
// 80 s after the notice.
func TestPodsAreAskedByLastCallWhateverIsRefused(t *testing.T) {
	for _, c := range []struct {
		name    string
		world   func(*testing.T) *world
		refused []string
		// after is when the API server begins to refuse.
		after time.Duration
	}{
		{"cordon", withBudget, []string{"patch Node"}, 0},
		{"cordon of a node whose pods nothing holds", surgingWorld, []string{"patch Node"}, 0},
		{"status", withBudget, []string{"patch status Interruption"}, 0},
		{"status, after the drain began", withBudget, []string{"patch status Interruption"}, 10 * time.Second},
		{"status and evictions", withBudget, []string{"patch status Interruption", "evict Pod"}, 0},
		{"cordon and status", withBudget, []string{"patch Node", "patch status Interruption"}, 0},
		{"surge", surgingWorld, []string{"patch Pod"}, 0},
		{"eviction", surgingWorld, []string{"evict Pod"}, 0},
		{"hook", withHooks, []string{"create Job"}, 0},
		{"hook and status", withHooks, []string{"create Job", "patch status Interruption"}, 0},
		{"order of the replacement", replacing, []string{"create NodeClaim"}, 0},
		{"status, with a replacement", replacing, []string{"patch status Interruption"}, 0},
		{"deadline of the NodeClaim", replacing, []string{"patch NodeClaim"}, 0},
		{"deletion of the NodeClaim", replacing, []string{"delete NodeClaim"}, 0},
		{"PodDisruptionBudgets", withBudget, []string{"list PodDisruptionBudgetList"}, 0},
		{"nodes, after the drain began", withBudget, []string{"list NodeList"}, 10 * time.Second},
		{"policies", withBudget, []string{"list InterruptionPolicyList"}, 10 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := c.world(t)
			pods := w.podNames()
			w.refuses.requests, w.refuses.clock, w.refuses.from = c.refused, func() time.Time { return w.now }, start.Add(c.after)
			passes, last := w.queued(start.Add(125 * time.Second))
			if w.refuses.count == 0 {
				t.Fatalf("nothing was refused in %d passes, so that the test shows nothing", passes)
			}
			for _, name := range pods {
				if at, asked := w.asked[name]; !asked || at.Sub(start) > 83*time.Second {
					t.Errorf("%s: asked %t, after %s; want at its last call, after 80s (%d passes, last error %v)", name, asked, at.Sub(start), passes, last)
				}
			}
		})
	}
}

// A planned change, whose deadline is soft until an hour before it, is no other case.
func TestPodsOfPlannedChangeAreAskedByLastCallWhateverIsRefused(t *testing.T) {
	deadline := start.Add(3 * time.Hour)
	for _, refused := range []string{"patch Node", "patch status Interruption"} {
		t.Run(refused, func(t *testing.T) {
			w := newWorld(t, recordOf(planned("h1", notice.ActionStop, deadline)), node("a", instance), pod("web-1"), budget(0), team(func(s *v1beta1.InterruptionPolicySpec) {
				s.Rules[0].NotBefore = &metav1.Duration{Duration: 24 * time.Hour}
			}))
			w.refuses.requests = []string{refused}
			w.settleRefused()
			w.now = deadline.Add(-3 * time.Minute)
			passes, last := w.queued(deadline)
			if at, asked := w.asked["web-1"]; w.refuses.count == 0 || !asked || deadline.Sub(at) < 37*time.Second {
				t.Errorf("refused %d, asked %t, %s before the deadline (%d passes, last error %v)", w.refuses.count, asked, deadline.Sub(at), passes, last)
			}
		})
	}
}

// The record is refused for good, so its passes wait up to a minute. A request that fails at the last call of a
// pod does not wait that long.
func TestFailedRequestAtLastCallIsRepeatedSoon(t *testing.T) {
	deadline := start.Add(30 * time.Minute)
	w := newWorld(t, recordOf(planned("h1", notice.ActionStop, deadline)), node("a", instance), pod("web-1"))
	w.refuses.requests, w.refuse = []string{"patch status Interruption"}, errors.New("connection refused")
	_, _ = w.queued(deadline.Add(-38 * time.Second)) // its last call was two seconds before
	w.refuse = nil
	passes, last := w.queued(deadline.Add(-30 * time.Second))
	if at, asked := w.asked["web-1"]; !asked {
		t.Errorf("asked %t, %s before the deadline (%d passes, last error %v)", asked, deadline.Sub(at), passes, last)
	}
}

// settleRefused makes some passes, which may fail.
func (w *world) settleRefused() {
	for range 3 {
		_ = w.pass(time.Second)
	}
}

func (w *world) podNames() []string {
	w.t.Helper()
	pods, _, err := w.Pods(w.t.Context(), "a")
	if err != nil || len(pods) == 0 {
		w.t.Fatalf("%d pods: %v", len(pods), err)
	}
	var names []string
	for _, p := range pods {
		names = append(names, p.Name)
	}
	return names
}

// events returns the Events so far.
func (w *world) events() (all []string) {
	recorder, ok := w.loop.Events.(*events.FakeRecorder)
	if !ok {
		w.t.Fatal("the recorder is no fake")
	}
	for len(recorder.Events) > 0 {
		all = append(all, <-recorder.Events)
	}
	return all
}

func TestRefusedWriteIsShown(t *testing.T) {
	for _, c := range []struct {
		name, refused, reason string
		world                 func(*testing.T) *world
		// unwritten is set where the status cannot say it.
		unwritten bool
	}{
		{"cordon", "patch Node", v1beta1.ReasonNodeWriteRefused, withBudget, false},
		{"surge", "patch Pod", v1beta1.ReasonPodWriteRefused, surgingWorld, false},
		{"replacement", "create NodeClaim", v1beta1.ReasonNodeClaimWriteRefused, replacing, false},
		{"hook", "create Job", v1beta1.ReasonJobWriteRefused, withHooks, false},
		{"status", "patch status Interruption", v1beta1.ReasonStatusWriteRefused, withBudget, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := c.world(t)
			w.refuses.requests = []string{c.refused}
			for range 5 {
				_ = w.pass(time.Second)
			}
			about := 0
			for _, e := range w.events() {
				if strings.HasPrefix(e, "Warning "+c.reason) && strings.Contains(e, deniedByPolicy) {
					about++
				}
			}
			if about != 2 {
				t.Errorf("%d Events name the policy, want one about the node and one about the Interruption", about)
			}
			in := w.record()
			cond := meta.FindStatusCondition(in.Status.Conditions, v1beta1.ConditionRequestsAccepted)
			if c.unwritten {
				return
			}
			if cond == nil || cond.Status != metav1.ConditionFalse || cond.Reason != c.reason || !strings.Contains(cond.Message, deniedByPolicy) {
				t.Errorf("condition %+v", cond)
			}
			if needs := record.Needs(in, "lifeboat", w.now); len(needs) == 0 || !strings.Contains(needs[0].Why, deniedByPolicy) || len(needs) > 1 && c.name != "hook" {
				t.Errorf("a person reads %+v", needs)
			}
			w.refuses.requests = nil // a person has changed the policy
			for range 5 {
				_ = w.pass(time.Second)
			}
			if cond := meta.FindStatusCondition(w.record().Status.Conditions, v1beta1.ConditionRequestsAccepted); c.name != "replacement" && c.name != "hook" && (cond == nil || cond.Status != metav1.ConditionTrue) {
				t.Errorf("condition %+v after the policy was changed", cond)
			}
		})
	}
}

// A refused Job fails a try of its hook. So no message may say that the write is repeated: the hook may have no retry.
func TestRefusedJobIsNotSaidToBeRepeated(t *testing.T) {
	for name, retries := range map[string]int32{"without retries": 0, "with retries": 2} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, recordOf(planned("h1", notice.ActionStop, start.Add(50*time.Minute))), node("a", instance), pod("web-1"),
				team(func(s *v1beta1.InterruptionPolicySpec) {
					withHook(v1beta1.HookBeforeDrain, v1beta1.HookHold)(s)
					s.Hooks[0].Retries = retries
				})).withHookRunner()
			w.refuses.requests = []string{"create Job"}
			_, _ = w.queued(start.Add(20 * time.Minute))
			if tries := int32(w.refuses.count); tries != retries+1 {
				t.Errorf("%d tries, want %d", tries, retries+1)
			}
			c := meta.FindStatusCondition(w.record().Status.Conditions, v1beta1.ConditionRequestsAccepted)
			if c == nil || strings.Contains(c.Message, "is repeated") || !strings.Contains(c.Message, "tried again while it has retries, and then fails") {
				t.Errorf("condition %+v", c)
			}
		})
	}
}

// A node that cannot be cordoned is retried, and others of its policy do not wait for it.
func TestRefusedCordonTakesNoSlot(t *testing.T) {
	w := fleet(t, 3, team(func(s *v1beta1.InterruptionPolicySpec) {
		s.Budget = &v1beta1.Budget{MaxConcurrent: intstr.FromInt32(1)}
		s.Rules[0].NotBefore = &metav1.Duration{Duration: 24 * time.Hour}
	}), start.Add(12*time.Hour))
	w.refuses.requests, w.refuses.object = []string{"patch Node"}, "n0"
	for range 20 {
		w.now = w.now.Add(5 * time.Second)
		var all v1beta1.InterruptionList
		if err := w.client.List(t.Context(), &all); err != nil {
			t.Fatal(err)
		}
		for i := range all.Items {
			w.inform(&all.Items[i])
			_, _ = w.loop.Reconcile(t.Context(), &all.Items[i])
		}
		if len(w.evictions) == 1 {
			w.stopped(w.evictions[0])
		}
	}
	if w.refuses.count == 0 || len(w.evictions) != 2 {
		t.Errorf("refused %d times; evicted %v, want the pods of the other two nodes", w.refuses.count, w.evictions)
	}
}

// A node that could not be cordoned, and lives, completes its Interruption.
func TestRefusedCordonOfNodeThatLivesEnds(t *testing.T) {
	w := withBudget(t)
	w.refuses.requests = []string{"patch Node"}
	_, _ = w.queued(start.Add(125 * time.Second)) // the cordon is refused
	w.stopped("web-1", "web-2")
	_, _ = w.queued(start.Add(time.Hour))
	if got := w.record().Status; got.CompletionTime == nil {
		t.Errorf("phase %s: %+v", got.Phase, got.Conditions)
	}
}

func TestBackoffEndsAtLastCall(t *testing.T) {
	now := start
	b, r := newBackoff(func() time.Time { return now }), reconcile.Request{}
	r.Name = instance
	for range 10 {
		b.failed(instance, 1)
	}
	b.setUnderway(instance, true, now.Add(2*time.Second))
	if got := b.When(r); got != 2*time.Second {
		t.Errorf("waits %s, and the last call is in 2s", got)
	}
	now = now.Add(2 * time.Second)
	b.failed(instance, 1)
	if got := b.When(r); got != maxBackoff {
		t.Errorf("waits %s after the last call", got)
	}
}
