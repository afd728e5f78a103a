package interruption

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// A drain, a cordon and a mark belong to the subject for which they were begun.

const twelveDays = 12 * 24 * time.Hour

// withdraw withdraws a notice of the record, as its source does.
func (w *world) withdraw(id string) {
	w.t.Helper()
	in := w.record()
	for i := range in.Spec.Notices {
		if in.Spec.Notices[i].ID == id {
			in.Spec.Notices[i].Withdrawn = true
		}
	}
	if err := w.client.Update(w.t.Context(), in); err != nil {
		w.t.Fatal(err)
	}
}

// reclaim adds the notice of a reclaim in two minutes.
func (w *world) reclaim() {
	w.t.Helper()
	n := spot()
	n.Time, n.ReceivedTime = metav1.NewTime(w.now), metav1.NewMicroTime(w.now)
	n.Deadline = notice.At(w.now.Add(2*time.Minute), v1beta1.DeadlineHard)
	w.addNotices(n)
}

// request is a person's request to drain the node, by a time if that is not zero.
func request(by time.Time) v1beta1.Notice {
	n := requested()
	n.ID = "request-1"
	if !by.IsZero() {
		n.Deadline = notice.At(by, v1beta1.DeadlineEstimated)
	}
	return n
}

// play reconciles when the controller wants it, at least every minute, for some time.
func (w *world) play(span time.Duration) {
	w.t.Helper()
	for until := w.now.Add(span); w.now.Before(until); {
		next := min(time.Minute, until.Sub(w.now))
		if w.wake > 0 {
			next = min(next, w.wake)
		}
		w.settle(max(next, time.Millisecond))
	}
}

// newPod creates a pod on the node after the drain.
func (w *world) newPod(name string) {
	w.t.Helper()
	if err := w.client.Create(w.t.Context(), pod(name)); err != nil {
		w.t.Fatal(err)
	}
}

func TestWithdrawnRequestBeginsNoPlannedDrain(t *testing.T) {
	before := node("a", instance)
	w := newWorld(t, recordOf(planned("h1", notice.ActionStop, start.Add(twelveDays)), request(time.Time{})), before, pod("web-1"))
	w.settle(time.Second)
	if !mutate.IsMarked(w.node(), mutate.MarkInterrupted) || len(w.evictions) != 1 {
		t.Fatalf("the request has not begun: evictions %v", w.evictions)
	}
	w.stopped("web-1")
	w.settle(time.Minute)
	w.withdraw("request-1")
	w.settle(time.Second)
	w.same(before)
	w.newPod("web-2")
	for range 10 {
		w.settle(24 * time.Hour)
	}
	w.same(before)
	if s := w.record().Status; len(w.asked) > 1 || s.Phase != v1beta1.PhaseScheduled || !record.Begun(&s).IsZero() {
		t.Errorf("ten days later: asked %v, phase %s, drain %+v", w.asked, s.Phase, s.Drain)
	}
	w.settle(start.Add(twelveDays - time.Hour).Sub(w.now))
	if _, asked := w.asked["web-2"]; !asked {
		t.Error("an hour before the stop the pod was not asked to leave")
	}
}

func TestWithdrawnRequestKeepsNodeClaim(t *testing.T) {
	k := withKarpenter(t, recordOf(planned("h1", notice.ActionStop, start.Add(twelveDays)), request(time.Time{})))
	k.settle(time.Second)
	k.settle(time.Minute)
	k.withdraw("request-1")
	for range 20 {
		k.settle(time.Minute)
	}
	if s := k.record().Status; k.claim("web-x7k2p") == nil || record.Drain(&s).NodeClaimDeletion != nil || mutate.HasMark(k.node()) {
		t.Errorf("the NodeClaim is there: %v; the node has a mark: %v; drain %+v", k.claim("web-x7k2p") != nil, mutate.HasMark(k.node()), s.Drain)
	}
}

// sick is a failed status check, and well the end of it.
func sick() v1beta1.Notice {
	n := impaired()
	n.Subject = "system"
	return n
}

func (w *world) recovers() {
	well := sick()
	well.ID, well.Withdrawn, well.Time, well.ReceivedTime = "well", true, metav1.NewTime(w.now), metav1.NewMicroTime(w.now)
	w.addNotices(well)
}

// bySickness is a policy that treats failed status checks and planned changes differently.
func bySickness(action v1beta1.Action, plan v1beta1.Rule) *v1beta1.InterruptionPolicy {
	plan.Kinds, plan.Action = []string{notice.KindScheduledChange}, v1beta1.ActionDrain
	return team(func(s *v1beta1.InterruptionPolicySpec) {
		s.Rules = []v1beta1.Rule{{Kinds: []string{notice.KindInstanceStatus}, Action: action}, plan}
	})
}

func TestApprovalIsNotInherited(t *testing.T) {
	for name, plan := range map[string]v1beta1.Rule{
		"approval": {Approval: v1beta1.ApprovalRequired, NotBefore: &metav1.Duration{Duration: 30 * 24 * time.Hour}},
		"time":     {},
		"window":   {Window: &v1beta1.Window{Schedule: "0 2 * * *", Duration: metav1.Duration{Duration: time.Hour}, TimeZone: "UTC"}},
	} {
		t.Run(name, func(t *testing.T) {
			before := node("a", instance)
			w := newWorld(t, recordOf(planned("h1", notice.ActionStop, start.Add(twelveDays)), sick()), before, pod("web-1"),
				bySickness(v1beta1.ActionDrain, plan))
			w.settle(time.Second)
			if len(w.evictions) != 1 {
				t.Fatal("the failed status check has not begun a drain")
			}
			w.stopped("web-1")
			w.settle(time.Second)
			w.recovers()
			w.settle(time.Second)
			w.newPod("web-2")
			for range 12 {
				w.settle(time.Hour)
			}
			w.same(before)
			if s := w.record().Status; len(w.asked) > 1 || !record.Begun(&s).IsZero() || record.Cordoned(&s) {
				t.Errorf("asked %v, phase %s, drain %+v", w.asked, s.Phase, s.Drain)
			}
		})
	}
}

// A restore that fails is tried again: the node does not belong to the notice that waits for its time.
func TestFailedRestoreIsRepeatedForTheNextPlan(t *testing.T) {
	near, far := planned("h1", notice.ActionReboot, start.Add(30*time.Minute)), planned("h2", notice.ActionReboot, start.Add(80*time.Minute))
	near.Subject, far.Subject = "event-1", "event-2"
	before := node("a", instance)
	w := newWorld(t, recordOf(near, far), before, pod("web-1"))
	w.settle(time.Second)
	if len(w.evictions) != 1 {
		t.Fatal("the plan of the next half hour has not begun a drain")
	}
	w.stopped("web-1")
	w.settle(time.Second)
	w.refuses.requests = []string{"patch Node"}
	w.withdraw("h1")
	_ = w.pass(time.Second)
	if w.refuses.count == 0 {
		t.Fatal("nothing was refused")
	}
	w.refuses.requests = nil
	w.play(10 * time.Minute)
	w.same(before)
	w.play(20 * time.Minute)
	if !mutate.HasMark(w.node()) {
		t.Error("half an hour later the time of the second plan has come, and the node is not cordoned")
	}
}

// A policy of the cluster refuses the cordon. The check recovers, and the plan that decides then has not begun, or
// is only reported.
func TestPlanThatWaitsListsNoPodsOfAnother(t *testing.T) {
	for _, action := range []v1beta1.Action{v1beta1.ActionDrain, v1beta1.ActionNotify} {
		t.Run(string(action), func(t *testing.T) {
			w := newWorld(t, recordOf(planned("h1", notice.ActionStop, start.Add(twelveDays)), sick()), node("a", instance), pod("web-1"), budget(0),
				team(func(s *v1beta1.InterruptionPolicySpec) {
					s.Rules = []v1beta1.Rule{{Kinds: []string{notice.KindInstanceStatus}, Action: v1beta1.ActionDrain}, {Kinds: []string{"*"}, Action: action}}
				}))
			w.refuses.requests = []string{"patch Node"}
			for range 5 {
				_ = w.pass(time.Second)
			}
			if n := len(record.Drain(&w.record().Status).Pods); n != 1 {
				t.Fatalf("%d pods wait for their budget, want 1", n)
			}
			w.recovers()
			for range 3 {
				_ = w.pass(time.Minute)
			}
			if d := record.Drain(&w.record().Status); len(d.Pods) > 0 || d.PodCounts.Waiting > 0 {
				t.Errorf("%s: the plan drains nothing now, and lists %+v", w.record().Status.Phase, d.Pods)
			}
		})
	}
}

// The date of a plan has passed before its notice came. It is handled, and the drain of a request goes on.
func TestLateNoticeKeepsTheDrainOfARequest(t *testing.T) {
	w := newWorld(t, recordOf(request(start.Add(time.Hour))), node("a", instance), pod("web-1"))
	w.settle(time.Second)
	begun := record.Begun(&w.record().Status)
	if len(w.evictions) != 1 || begun.IsZero() {
		t.Fatal("the request has not begun a drain")
	}
	w.addNotices(planned("h1", notice.ActionStop, start.Add(-5*time.Hour)))
	w.play(time.Minute)
	in := w.record()
	if got := record.Begun(&in.Status); !got.Equal(begun) || !record.Cordoned(&in.Status) || len(handledIn(in)) != 1 {
		t.Errorf("drain begun %s, then %s; handled %v", begun, got, handledIn(in))
	}
	if len(w.evictions) != 1 {
		t.Errorf("evicted %v, want each pod once", w.evictions)
	}
}

// The budget allows one drain. A request drained node n0, which then waits for the plan's slot like any other.
func TestSlotIsNotInherited(t *testing.T) {
	for name, leaves := range map[string]bool{"its pod has left": true, "its pod is still leaving": false} {
		t.Run(name, func(t *testing.T) {
			w := fleet(t, 2, team(func(s *v1beta1.InterruptionPolicySpec) {
				s.Budget = &v1beta1.Budget{MaxConcurrent: intstr.FromInt32(1)}
				s.Rules[0].NotBefore = &metav1.Duration{Duration: 24 * time.Hour}
			}), start.Add(12*time.Hour))
			first := fmt.Sprintf("i-%017d", 0)
			w.edit(first, func(in *v1beta1.Interruption) { in.Spec.Notices = []v1beta1.Notice{request(time.Time{})} })
			each := func(when string, span time.Duration) {
				t.Helper()
				for until := w.now.Add(span); w.now.Before(until); {
					w.each(5 * time.Second)
					if n := w.phases()[v1beta1.PhaseDraining]; n > 1 {
						t.Fatalf("%s: %d nodes are drained at a time; evicted %v", when, n, w.evictions)
					}
				}
			}
			each("with the request", 20*time.Second)
			if !slices.Equal(w.evictions, []string{"p0"}) {
				t.Fatalf("evicted %v, want the pod of the request", w.evictions)
			}
			if leaves {
				w.stopped("p0")
				each("after its pod left", 20*time.Second)
			}
			w.edit(first, func(in *v1beta1.Interruption) {
				in.Spec.Notices[0].Withdrawn = true
				in.Spec.Notices = append(in.Spec.Notices, planned("h1", notice.ActionStop, start.Add(12*time.Hour)))
			})
			another := pod("p2")
			another.Spec.NodeName = "n0"
			if err := w.client.Create(t.Context(), another); err != nil {
				t.Fatal(err)
			}
			each("without the request", time.Minute)
			if !leaves {
				return // it has its slot still
			}
			var n0 corev1.Node
			if err := w.client.Get(t.Context(), client.ObjectKey{Name: "n0"}, &n0); err != nil {
				t.Fatal(err)
			}
			if mutate.HasMark(&n0) || !slices.Equal(w.evictions, []string{"p0", "p1"}) || w.phases()[v1beta1.PhaseQueued] != 1 {
				t.Fatalf("while n1 has the slot: n0 marked %t, evicted %v, phases %v", mutate.HasMark(&n0), w.evictions, w.phases())
			}
			w.stopped("p1")
			each("with a free slot", time.Minute)
			if !slices.Equal(w.evictions, []string{"p0", "p1", "p2"}) {
				t.Errorf("with a free slot: evicted %v, phases %v", w.evictions, w.phases())
			}
		})
	}
}

// edit changes a record.
func (w *world) edit(name string, change func(*v1beta1.Interruption)) {
	w.t.Helper()
	var in v1beta1.Interruption
	if err := w.client.Get(w.t.Context(), client.ObjectKey{Name: name}, &in); err != nil {
		w.t.Fatal(err)
	}
	change(&in)
	in.Generation++
	if err := w.client.Update(w.t.Context(), &in); err != nil {
		w.t.Fatal(err)
	}
}

func TestCordonOfRecoveredInstanceIsRemoved(t *testing.T) {
	before := node("a", instance)
	w := newWorld(t, recordOf(planned("h1", notice.ActionStop, start.Add(twelveDays)), sick()), before, pod("web-1"), team(func(s *v1beta1.InterruptionPolicySpec) {
		s.Rules = []v1beta1.Rule{{Kinds: []string{notice.KindInstanceStatus}, Action: v1beta1.ActionCordon}, {Kinds: []string{"*"}, Action: v1beta1.ActionCordon}}
	}))
	w.settle(time.Second)
	w.recovers()
	w.settle(time.Second)
	w.same(before)
}

func TestMarkOfClosedMaintenanceIsRemoved(t *testing.T) {
	before := node("a", instance)
	maintenance := planned("m1", notice.ActionMaintain, start.Add(30*time.Minute))
	maintenance.Subject, maintenance.EventTypeCode = "ev-1", "system-maintenance"
	w := newWorld(t, recordOf(planned("h1", notice.ActionStop, start.Add(twelveDays)), maintenance), before, pod("web-1"))
	w.settle(time.Second)
	w.settle(30 * time.Minute)
	if !mutate.IsMarked(w.node(), mutate.MarkAtRisk) {
		t.Fatal("the node is not marked for the maintenance")
	}
	w.withdraw("m1")
	w.settle(time.Minute)
	w.same(before)
}

// The drain of a request goes on for a reclaim, which would have begun now anyway.
func TestReclaimTakesDrainOfRequestOver(t *testing.T) {
	w := newWorld(t, recordOf(request(time.Time{})), node("a", instance), pod("web-1"), pod("web-2"), budget(0))
	w.settle(time.Second)
	w.reclaim()
	w.settle(time.Second)
	w.withdraw("request-1")
	for range 12 {
		w.settle(10 * time.Second)
	}
	if len(w.asked) != 2 || !mutate.IsMarked(w.node(), mutate.MarkInterrupted) {
		t.Errorf("asked %v, cordoned %v", w.asked, mutate.IsMarked(w.node(), mutate.MarkInterrupted))
	}
}

// A passed date is no haste.

func TestUpdateOfFinishedRebootChangesNothing(t *testing.T) {
	for name, changed := range map[string]func(*v1beta1.Notice){
		"another text":  func(n *v1beta1.Notice) { n.Description = "the event was updated" },
		"the same text": func(*v1beta1.Notice) {},
	} {
		t.Run(name, func(t *testing.T) {
			before := node("a", instance)
			before.Status.NodeInfo.BootID = "first"
			w := newWorld(t, recordOf(planned("h1", notice.ActionReboot, start.Add(30*time.Minute))), before, pod("web-1"))
			w.settle(time.Second)
			w.stopped("web-1")
			w.settle(31 * time.Minute)
			w.boot("second")
			w.settle(time.Minute)
			before.Status.NodeInfo.BootID = "second"
			w.same(before)
			w.newPod("web-2")
			update := planned("h2", notice.ActionReboot, start.Add(30*time.Minute))
			update.Time, update.ReceivedTime = metav1.NewTime(w.now), metav1.NewMicroTime(w.now)
			changed(&update)
			w.addNotices(update)
			for range 10 {
				w.settle(time.Minute)
			}
			w.same(before)
			if len(w.asked) > 1 || !notice.Finished(w.record()) {
				t.Errorf("asked %v, status %+v", w.asked, w.record().Status)
			}
		})
	}
}

// The notice of a reclaim comes half an hour after it, for example after an outage of the controller. The node still exists.
func TestLateReclaimBeginsNothing(t *testing.T) {
	late := spot()
	late.Deadline = notice.At(start.Add(-30*time.Minute), v1beta1.DeadlineHard)
	w := newWorld(t, recordOf(late), node("a", instance), pod("web-1"))
	w.refuses.requests = []string{"patch status Interruption"}
	for range 60 {
		_ = w.pass(time.Second)
		if w.node().Spec.Unschedulable {
			t.Fatal("the node is cordoned for a reclaim that it has outlived")
		}
	}
	w.refuses.requests = nil
	w.settle(time.Minute)
	if w.record().Status.CompletionTime == nil || len(w.evictions)+len(w.deletions) > 0 {
		t.Errorf("phase %s, evicted %v, deleted %v", w.record().Status.Phase, w.evictions, w.deletions)
	}
}

// Until its date a planned stop is as hard as any other: no pod is on the instance then.
func TestPlannedStopOverridesBudgetBeforeItsDate(t *testing.T) {
	w := newWorld(t, recordOf(planned("h1", notice.ActionStop, start.Add(30*time.Minute))), node("a", instance), pod("web-1"), budget(0))
	w.play(30 * time.Minute)
	if grace, deleted := w.deletions["web-1"]; !deleted || grace != -1 || w.asked["web-1"].Add(30*time.Second).After(start.Add(30*time.Minute)) {
		t.Errorf("deleted %v with grace %d at %s", deleted, grace, w.asked["web-1"])
	}
}

// A person's wish only adds.

func TestRequestWithTimeHidesNoStop(t *testing.T) {
	w := newWorld(t, recordOf(planned("h1", notice.ActionStop, start.Add(30*time.Minute)), request(start.Add(6*time.Hour))),
		node("a", instance), pod("web-1"), budget(0))
	w.play(30 * time.Minute)
	if asked := w.asked["web-1"]; asked.IsZero() || asked.After(start.Add(30*time.Minute-40*time.Second)) {
		t.Errorf("asked %v, want before the stop", w.asked)
	}
}

// The group's hooks end the instance, whatever a person asks for.
func TestRequestHidesNoEndOfHooks(t *testing.T) {
	const global = 8 * time.Minute
	for name, by := range map[string]time.Time{"without a time": {}, "overdue": start.Add(-time.Hour), "with a time later": start.Add(6 * time.Hour)} {
		for decides, action := range map[string]v1beta1.Action{notice.KindAutoScalingTermination: v1beta1.ActionDrain, notice.KindRequested: v1beta1.ActionNotify} {
			t.Run(name+", and "+decides+" decides", func(t *testing.T) {
				g := withGroup(t, recordOf(terminating(notice.SourceQueue), request(by)), pod("web-1"), budget(0), team(func(s *v1beta1.InterruptionPolicySpec) {
					s.Rules = append([]v1beta1.Rule{{Kinds: []string{notice.KindAutoScalingTermination}, Action: action}}, s.Rules...)
				}))
				g.group.Hooks[0].Global = global
				g.hold("Terminating:Wait")
				g.look()
				g.run(global, g.stopsIn(29*time.Second))
				s := g.record().Status
				if at, asked := g.asked["web-1"]; !asked || at.Sub(start) > global-40*time.Second || len(g.completed) != 1 || s.Kind != decides {
					t.Errorf("%s decides; asked %t, after %s; answered %v; deadline %v", s.Kind, asked, at.Sub(start), g.completed, s.Deadline)
				}
			})
		}
	}
}

func TestOverdueRequestHidesNoReclaim(t *testing.T) {
	for name, by := range map[string]time.Duration{"overdue": -2 * time.Hour, "just over": -11 * time.Minute, "later": time.Hour} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, recordOf(request(start.Add(by)), spot()), node("a", instance), pod("web-1"))
			w.settle(time.Second)
			if !slices.Contains(w.evictions, "web-1") {
				t.Errorf("evicted %v, deleted %v: %+v", w.evictions, w.deletions, w.record().Status)
			}
			if s := w.record().Status; s.Kind != notice.KindSpotInterruption || !s.Deadline.Time.Time.Equal(start.Add(2*time.Minute)) {
				t.Errorf("kind %s, deadline %v", s.Kind, s.Deadline)
			}
		})
	}
}

func TestOverdueRequestForwardsReclaimToKarpenter(t *testing.T) {
	k := withKarpenter(t, recordOf(request(start.Add(-2*time.Hour)), spot()))
	for range 12 {
		k.settle(10 * time.Second)
	}
	if record.Drain(&k.record().Status).NodeClaimDeletion == nil {
		t.Errorf("the NodeClaim of the reclaimed instance is not deleted: %+v", k.record().Status)
	}
}

// Work has no end but its own.

func TestRequestEvictsUntilNodeIsEmpty(t *testing.T) {
	for name, by := range map[string]time.Time{"without a time": {}, "its time is over": start.Add(20 * time.Minute)} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, recordOf(request(by)), node("a", instance), pod("web-1"), budget(0))
			w.play(10 * time.Hour)
			if by.IsZero() && len(w.asked) > 0 {
				t.Fatalf("asked %v although the budget allows nothing", w.asked)
			}
			w.setBudget(1)
			w.newPod("web-2")
			w.settle(time.Second)
			w.setBudget(1)
			w.settle(time.Second)
			if _, asked := w.asked["web-2"]; !asked {
				t.Errorf("after ten hours asked %v: %+v", w.asked, w.record().Status)
			}
		})
	}
}

func TestFailedCheckDrainsUntilItRecovers(t *testing.T) {
	before := node("a", instance)
	w := newWorld(t, recordOf(sick()), before, pod("web-1"), budget(0), bySickness(v1beta1.ActionDrain, v1beta1.Rule{}))
	for range 20 {
		w.settle(30 * time.Minute)
	}
	w.setBudget(1)
	w.settle(time.Second)
	if len(w.evictions) != 1 || !mutate.IsMarked(w.node(), mutate.MarkInterrupted) {
		t.Fatalf("after ten hours evicted %v", w.evictions)
	}
	w.stopped("web-1")
	w.recovers()
	w.settle(time.Second)
	w.same(before)
}

// A person or a controller deletes the Node object, and the kubelet registers it again.
func TestWorkSurvivesDeletedNode(t *testing.T) {
	for name, tc := range map[string]struct {
		notice v1beta1.Notice
		policy *v1beta1.InterruptionPolicy
	}{
		"request":             {request(time.Time{}), team(func(*v1beta1.InterruptionPolicySpec) {})},
		"failed status check": {sick(), bySickness(v1beta1.ActionDrain, v1beta1.Rule{})},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, recordOf(tc.notice), node("a", instance), tc.policy)
			w.settle(time.Second)
			w.settle(5 * time.Hour)
			w.remove(w.node())
			w.settle(time.Second)
			w.settle(2 * time.Minute)
			again := node("a", instance)
			again.UID = "again"
			if err := w.client.Create(t.Context(), again); err != nil {
				t.Fatal(err)
			}
			w.newPod("web-9")
			w.settle(time.Second)
			w.settle(time.Second)
			if !mutate.IsMarked(w.node(), mutate.MarkInterrupted) || !slices.Contains(w.evictions, "web-9") {
				t.Errorf("cordoned %v, evicted %v, phase %s", mutate.IsMarked(w.node(), mutate.MarkInterrupted), w.evictions, w.record().Status.Phase)
			}
		})
	}
}

// The record of a request ends if its node does not come back.
func TestRequestEndsWithItsNode(t *testing.T) {
	w := newWorld(t, recordOf(request(time.Time{})), node("a", instance))
	w.settle(time.Second)
	w.remove(w.node())
	w.settle(time.Second)
	w.settle(59 * time.Minute)
	if s := w.record().Status; s.CompletionTime != nil {
		t.Fatalf("59 minutes after its node went: phase %s", s.Phase)
	}
	w.settle(2 * time.Minute)
	if s := w.record().Status; s.CompletionTime == nil {
		t.Errorf("an hour after its node went: phase %s", s.Phase)
	}
}

// A plan has begun because no one approved it in time, a person asks for the node too, and the plan moves by a week.
// Then the person withdraws the request: nothing wants the drain any more.
func TestMovedPlanNeedsItsApprovalAgain(t *testing.T) {
	open := &v1beta1.Window{Schedule: "0 0 * * *", Duration: metav1.Duration{Duration: 24 * time.Hour}}
	for name, by := range map[string]time.Time{"by tomorrow": start.Add(24 * time.Hour), "without a time": {}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, recordOf(planned("h1", notice.ActionReboot, start.Add(20*time.Minute))), node("a", instance), pod("web-1"), budget(0),
				team(func(s *v1beta1.InterruptionPolicySpec) {
					s.Rules = []v1beta1.Rule{
						{Kinds: []string{notice.KindScheduledChange}, Action: v1beta1.ActionDrain, Approval: v1beta1.ApprovalRequired, IfUnanswered: v1beta1.UnansweredProceed, Window: open},
						{Kinds: []string{"*"}, Action: v1beta1.ActionDrain},
					}
				}))
			w.settle(time.Second)
			w.addNotices(request(by))
			w.settle(time.Minute)
			moved := planned("h2", notice.ActionReboot, start.Add(7*24*time.Hour))
			moved.Time, moved.ReceivedTime = metav1.NewTime(w.now), metav1.NewMicroTime(w.now)
			w.addNotices(moved)
			w.settle(time.Minute)
			if d := record.Drain(&w.record().Status); d.Kind != notice.KindRequested || !mutate.IsMarked(w.node(), mutate.MarkInterrupted) {
				t.Fatalf("the request stands: the drain serves %s, cordoned %v", d.Kind, mutate.IsMarked(w.node(), mutate.MarkInterrupted))
			}
			w.withdraw("request-1")
			w.settle(time.Minute)
			w.settle(time.Minute)
			if s := w.record().Status; mutate.HasMark(w.node()) {
				t.Errorf("phase %s, still marked; history %v", s.Phase, historyOf(w))
			}
		})
	}
}

// A plan has begun a drain. Then the policy says that a person must approve, and that the node is only cordoned: it is
// restored once, and the record is quiet.
func TestReleasedNodeIsNotReleasedAgain(t *testing.T) {
	rule := func(r v1beta1.Rule) v1beta1.InterruptionPolicySpec {
		r.Kinds = []string{"*"}
		return v1beta1.InterruptionPolicySpec{Rules: []v1beta1.Rule{r}}
	}
	policy := team(func(s *v1beta1.InterruptionPolicySpec) {
		s.Rules = rule(v1beta1.Rule{Action: v1beta1.ActionDrain}).Rules
	})
	w := newWorld(t, recordOf(rebalance()), node("a", instance), pod("web-1"), budget(0), policy)
	w.settle(time.Second)
	if !w.node().Spec.Unschedulable {
		t.Fatal("the drain has not begun")
	}
	live := policy.DeepCopy()
	if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(policy), live); err != nil {
		t.Fatal(err)
	}
	live.Spec.Rules = rule(v1beta1.Rule{Action: v1beta1.ActionCordon, Approval: v1beta1.ApprovalRequired}).Rules
	if err := w.client.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	live.Generation++
	w.settle(time.Second)
	w.settle(time.Second)
	if record.Cordoned(&w.record().Status) != w.node().Spec.Unschedulable {
		t.Errorf("the condition says that the node is cordoned: %v; it is: %v", record.Cordoned(&w.record().Status), w.node().Spec.Unschedulable)
	}
	before := w.record().ResourceVersion
	for range 5 {
		w.settle(time.Second)
	}
	if after := w.record().ResourceVersion; after != before {
		t.Errorf("the record is written again and again: history %v", historyOf(w))
	}
}
