package interruption

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// runUntil reconciles as often as the passes ask for it, or something changes.
func (w *world) runUntil(end time.Time) {
	w.t.Helper()
	for n := 0; w.now.Before(end) && n < 5000; n++ {
		_ = w.pass(0)
		w.now = w.now.Add(min(max(w.wake, time.Second), end.Sub(w.now)))
	}
}

func TestRefusedTerminationBacksOffAndNeedsAPerson(t *testing.T) {
	w := newWorld(t, recordOf(impaired()), node("a", instance), team(terminate))
	ec2 := &fakeTerminator{world: w, err: errors.New("OperationNotPermitted: the instance has termination protection")}
	w.loop.Cloud = ec2
	w.runUntil(start.Add(12 * time.Hour))
	if n := len(ec2.asked); n < 10 || n > 20 {
		t.Errorf("asked %d times in 12 hours, want a backoff up to an hour", n)
	}
	in := w.record()
	c := meta.FindStatusCondition(in.Status.Conditions, v1beta1.ConditionRequestsAccepted)
	if c == nil || c.Status != metav1.ConditionFalse || c.Reason != v1beta1.ReasonTerminationRefused || !strings.Contains(c.Message, "termination protection") {
		t.Errorf("condition %+v", c)
	}
	if needs := record.Needs(in, "lifeboat", w.now); len(needs) != 1 || !strings.Contains(needs[0].Why, "termination protection") {
		t.Errorf("a person reads %+v", needs)
	}
	ec2.err = nil // a person has ended the protection
	w.runUntil(w.now.Add(62 * time.Minute))
	if c := meta.FindStatusCondition(w.record().Status.Conditions, v1beta1.ConditionRequestsAccepted); c == nil || c.Status != metav1.ConditionTrue {
		t.Errorf("condition %+v after EC2 has accepted it", c)
	}
}

// As long as the NodeClaim exists, Karpenter does not end the node.
func TestRefusedNodeClaimDeletionIsRetried(t *testing.T) {
	k := withKarpenter(t, recordOf(spot()), pod("web-1"))
	k.refuses.requests = []string{"delete NodeClaim"}
	k.runUntil(start.Add(40 * time.Second))
	k.stopped("web-1")
	k.runUntil(start.Add(5 * time.Minute))
	if n := k.refuses.count; n < 5 || n > 15 {
		t.Errorf("refused %d times in five minutes, want a backoff", n)
	}
	k.refuses.requests = nil
	k.runUntil(start.Add(7 * time.Minute))
	if k.claim("web-x7k2p") != nil {
		t.Errorf("the NodeClaim is not deleted: %+v", record.Drain(&k.record().Status).NodeClaimDeletion)
	}
}

func TestFailedForwardIsRetried(t *testing.T) {
	k := withKarpenter(t, recordOf(spot()), pod("web-1"))
	down := true
	k.loop.Forward = func(_ context.Context, m string) error {
		if down {
			return errors.New("AccessDenied")
		}
		k.forwarded = append(k.forwarded, m)
		return nil
	}
	k.runUntil(start.Add(40 * time.Second))
	k.stopped("web-1")
	k.runUntil(start.Add(5 * time.Minute))
	down = false
	k.runUntil(start.Add(7 * time.Minute))
	if len(k.forwarded) != 1 {
		t.Errorf("forwarded %d times: %+v", len(k.forwarded), record.Drain(&k.record().Status).NodeClaimDeletion)
	}
}

// Windows that open at the same time share the barrier, as reclaims do.
func TestPlannedDrainsOfOneWindowShareTheBarrier(t *testing.T) {
	due := start.Add(30 * time.Hour)
	w := fleet(t, 3, team(func(s *v1beta1.InterruptionPolicySpec) {
		s.Rules[0].NotBefore = &metav1.Duration{Duration: 24 * time.Hour}
	}), due)
	w.each(time.Second)
	if got := w.phases(); got[v1beta1.PhaseScheduled] != 3 {
		t.Fatalf("%v", got)
	}
	w.now = due.Add(-24 * time.Hour)
	for i := range 3 {
		var in v1beta1.Interruption
		for range 3 { // the first passes of this one come before those of the others
			if err := w.client.Get(t.Context(), types.NamespacedName{Name: fmt.Sprintf("i-%017d", i)}, &in); err != nil {
				t.Fatal(err)
			}
			w.inform(&in)
			if _, err := w.loop.Reconcile(t.Context(), &in); err != nil {
				t.Fatal(err)
			}
		}
		if n := w.nodeNamed(fmt.Sprint("n", i)); !mutate.IsMarked(n, mutate.MarkInterrupted) {
			t.Errorf("%s is not cordoned", n.Name)
		}
		if i < 2 && len(w.evictions) > 0 {
			t.Fatalf("%v were evicted, and %d nodes are not cordoned", w.evictions, 2-i)
		}
	}
	w.each(time.Second)
	if len(w.evictions) != 3 {
		t.Errorf("evicted %v", w.evictions)
	}
}

// A drain that waits for a slot holds up no other.
func TestQueuedDrainHoldsNoBarrier(t *testing.T) {
	due := start.Add(30 * time.Hour)
	w := fleet(t, 3, team(func(s *v1beta1.InterruptionPolicySpec) {
		s.Budget = &v1beta1.Budget{MaxConcurrent: intstr.FromInt32(1)}
		s.Rules[0].NotBefore = &metav1.Duration{Duration: 24 * time.Hour}
	}), due)
	w.each(time.Second)
	w.now = due.Add(-24 * time.Hour)
	w.each(0)
	w.each(time.Second)
	if len(w.evictions) != 1 {
		t.Errorf("evicted %v, want the pod of the one node that is drained", w.evictions)
	}
}

func (w *world) nodeNamed(name string) *corev1.Node {
	w.t.Helper()
	n := &corev1.Node{}
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Name: name}, n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// Hooks need work that was begun: the node of a planned change went long before it.
func TestNodeThatWentBeforeItsDrainRunsNoHook(t *testing.T) {
	for name, when := range map[string]v1beta1.HookTime{"after": v1beta1.HookAfterDrain, "before": v1beta1.HookBeforeDrain} {
		t.Run(name, func(t *testing.T) {
			due := start.Add(12 * 24 * time.Hour)
			w := newWorld(t, recordOf(planned("h1", notice.ActionStop, due)), node("a", instance), pod("web-1"), team(withHook(when, ""))).withHookRunner()
			w.settle(time.Second)
			w.stopped("web-1")
			w.remove(w.node())
			w.runUntil(due.Add(-2 * time.Hour))
			// Another instance has a node of the same name.
			if err := w.client.Create(t.Context(), node("a", "i-0ffffffffffffffff")); err != nil {
				t.Fatal(err)
			}
			w.runUntil(due.Add(2 * time.Hour))
			if jobs := w.jobs(); len(jobs) > 0 {
				t.Errorf("%d hooks ran for a node that was never drained: %+v", len(jobs), record.Drain(&w.record().Status))
			}
		})
	}
}

func TestAnnotationOfNodeTriggersAPass(t *testing.T) {
	was := node("a", instance)
	is := was.DeepCopy()
	is.Annotations = map[string]string{v1beta1.AnnotationOriginalState: "{}"}
	if !nodePredicate.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is}) {
		t.Error("a change of Lifeboat's annotation triggers no pass")
	}
	if nodePredicate.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: was.DeepCopy()}) {
		t.Error("a heartbeat triggers a pass")
	}
}
