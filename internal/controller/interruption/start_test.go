package interruption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/concurrency"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// team is a policy for every node with one rule that drains.
func team(change func(*v1beta1.InterruptionPolicySpec)) *v1beta1.InterruptionPolicy {
	p := &v1beta1.InterruptionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "team"}, Spec: v1beta1.InterruptionPolicySpec{
		Rules: []v1beta1.Rule{{Kinds: []string{"*"}, Action: v1beta1.ActionDrain}},
	}}
	change(&p.Spec)
	return p
}

func needsApproval(s *v1beta1.InterruptionPolicySpec) {
	s.Rules[0].Approval = v1beta1.ApprovalRequired
}

// setStatement changes the approval or hold of the record.
func (w *world) setStatement(change func(*v1beta1.InterruptionSpec)) {
	w.t.Helper()
	in := w.record()
	change(&in.Spec)
	if err := w.client.Update(w.t.Context(), in); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) by(about string) *v1beta1.UserAction {
	return &v1beta1.UserAction{By: "alice", Time: metav1.NewMicroTime(w.now), About: about, Note: "go"}
}

// about is the subject that an approval of planned must name.
const about = notice.KindScheduledChange + " arn:aws:health:event"

func TestNoActionBeforeApproval(t *testing.T) {
	before := node("a", instance)
	w := newWorld(t, recordOf(planned("h1", notice.ActionStop, start.Add(30*time.Minute))), before, pod("web-1"), team(needsApproval))
	w.settle(time.Second)
	w.settle(25 * time.Minute)
	w.same(before)
	if got := w.record().Status; got.Phase != v1beta1.PhaseAwaitingApproval || len(w.evictions) > 0 {
		t.Fatalf("phase %s, evictions %v", got.Phase, w.evictions)
	}
	w.setStatement(func(s *v1beta1.InterruptionSpec) { s.Approval = w.by(about) })
	w.settle(time.Second)
	got := w.record().Status
	if !mutate.IsMarked(w.node(), mutate.MarkInterrupted) || len(w.evictions) != 1 || got.Phase != v1beta1.PhaseDraining {
		t.Errorf("phase %s, evictions %v", got.Phase, w.evictions)
	}
	if !slices.ContainsFunc(got.Timeline, func(e v1beta1.TimelineEntry) bool {
		return e.Reason == v1beta1.ReasonApproved && e.Message == "approved by alice: go"
	}) {
		t.Errorf("timeline %v", reasons(got))
	}
}

func TestUnapprovedChangeEndsAtDeadline(t *testing.T) {
	before := node("a", instance)
	w := newWorld(t, recordOf(planned("h1", notice.ActionStop, start.Add(30*time.Minute))), before, pod("web-1"), team(needsApproval))
	w.settle(time.Second)
	w.settle(30*time.Minute + notice.AfterDeadline)
	w.same(before)
	if got := w.record().Status; got.CompletionTime == nil || len(w.evictions) > 0 {
		t.Errorf("phase %s, evictions %v", got.Phase, w.evictions)
	}
}

func TestApprovalOfOtherChangeIsIgnored(t *testing.T) {
	w := newWorld(t, recordOf(planned("h1", notice.ActionStop, start.Add(30*time.Minute))), node("a", instance), pod("web-1"), team(needsApproval))
	w.setStatement(func(s *v1beta1.InterruptionSpec) { s.Approval = w.by(notice.KindSpotInterruption) })
	w.settle(time.Second)
	if got := w.record().Status.Phase; got != v1beta1.PhaseAwaitingApproval {
		t.Errorf("phase %s", got)
	}
}

func TestUserHoldsDrainUntilLastCall(t *testing.T) {
	w := newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"))
	w.setStatement(func(s *v1beta1.InterruptionSpec) { s.Hold = w.by("") })
	w.settle(time.Second)
	if got := w.record().Status; len(w.evictions) > 0 || record.Drain(&got).PodCounts.Waiting != 1 {
		t.Fatalf("evictions %v, pods %+v", w.evictions, record.Drain(&got).PodCounts)
	}
	w.settle(w.wake)
	if at := w.now.Sub(start); len(w.evictions) != 1 || at != 80*time.Second {
		t.Errorf("evicted %v at %s, want at its last call, after 80s", w.evictions, at)
	}
}

func TestReleasedNodeContinues(t *testing.T) {
	w := newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"))
	w.setStatement(func(s *v1beta1.InterruptionSpec) { s.Hold = w.by("") })
	w.settle(time.Second)
	w.setStatement(func(s *v1beta1.InterruptionSpec) { s.Hold = nil })
	w.settle(time.Second)
	if got := reasons(w.record().Status); len(w.evictions) != 1 || !slices.Contains(got, v1beta1.ReasonReleased) {
		t.Errorf("evictions %v, timeline %v", w.evictions, got)
	}
}

func TestDrainIsRevertedWhenDeadlineMoves(t *testing.T) {
	before := node("a", instance)
	w := newWorld(t, recordOf(planned("h1", notice.ActionStop, start.Add(30*time.Minute))), before, pod("web-1"))
	w.settle(time.Second)
	if len(w.evictions) != 1 {
		t.Fatal("not begun")
	}
	moved := planned("h2", notice.ActionStop, start.Add(12*24*time.Hour))
	moved.Time = metav1.NewTime(start.Add(time.Minute))
	w.addNotices(moved)
	w.settle(2 * time.Minute)
	w.same(before)
	got := w.record().Status
	if got.Phase != v1beta1.PhaseScheduled || !slices.Contains(reasons(got), v1beta1.ReasonPostponed) || !got.Deadline.Time.Equal(&moved.Deadline.Time) {
		t.Errorf("phase %s, deadline %v, timeline %v", got.Phase, got.Deadline, reasons(got))
	}
	w.settle(w.wake)
	if !mutate.IsMarked(w.node(), mutate.MarkInterrupted) {
		t.Errorf("not begun again an hour before, at %s", w.now)
	}
}

// fleet is nodes a, b, c … with a record each, all of the same change.
func fleet(t *testing.T, n int, policy *v1beta1.InterruptionPolicy, due time.Time) *world {
	w := newWorld(t, policy)
	for i := range n {
		id := fmt.Sprintf("i-%017d", i)
		in := recordOf(planned("h1", notice.ActionStop, due))
		in.Name, in.Spec.InstanceID, in.Spec.NodeName = id, id, fmt.Sprint("n", i)
		p := pod(fmt.Sprint("p", i))
		p.Spec.NodeName = in.Spec.NodeName
		for _, err := range []error{
			w.client.Create(t.Context(), in), w.client.Create(t.Context(), node(in.Spec.NodeName, id)), w.client.Create(t.Context(), p),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	return w
}

// each reconciles every record of a fleet.
func (w *world) each(after time.Duration) {
	w.t.Helper()
	w.now = w.now.Add(after)
	var all v1beta1.InterruptionList
	for range 4 {
		if err := w.client.List(w.t.Context(), &all); err != nil {
			w.t.Fatal(err)
		}
		for i := range all.Items {
			w.inform(&all.Items[i])
			if _, err := w.loop.Reconcile(w.t.Context(), &all.Items[i]); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

func (w *world) phases() map[v1beta1.Phase]int {
	w.t.Helper()
	var all v1beta1.InterruptionList
	if err := w.client.List(w.t.Context(), &all); err != nil {
		w.t.Fatal(err)
	}
	phases := map[v1beta1.Phase]int{}
	for i := range all.Items {
		phases[all.Items[i].Status.Phase]++
	}
	return phases
}

func TestBudgetDrainsOneNodeAtATime(t *testing.T) {
	w := fleet(t, 5, team(func(s *v1beta1.InterruptionPolicySpec) {
		s.Budget = &v1beta1.Budget{MaxConcurrent: intstr.FromInt32(1)}
		s.Rules[0].NotBefore = &metav1.Duration{Duration: 24 * time.Hour}
	}), start.Add(12*time.Hour))
	for drained := range 5 {
		w.each(time.Second)
		got := w.phases()
		if got[v1beta1.PhaseDraining] != 1 || got[v1beta1.PhaseDrained] != drained || got[v1beta1.PhaseQueued] != 4-drained {
			t.Fatalf("after %d: %v", drained, got)
		}
		if len(w.evictions) != drained+1 {
			t.Fatalf("evictions %v", w.evictions)
		}
		if drained%2 == 0 {
			w.loop.slots = concurrency.Slots{} // as after a restart
		}
		w.stopped(w.evictions[drained])
	}
}

func TestBudgetPercentageCountsSelectedNodes(t *testing.T) {
	w := fleet(t, 10, team(func(s *v1beta1.InterruptionPolicySpec) {
		s.Budget = &v1beta1.Budget{MaxConcurrent: intstr.FromString("25%")}
		s.Rules[0].NotBefore = &metav1.Duration{Duration: 24 * time.Hour}
	}), start.Add(12*time.Hour))
	w.each(time.Second)
	if got := w.phases(); got[v1beta1.PhaseDraining] != 3 {
		t.Errorf("%v, want three draining", got)
	}
}

func TestHardDeadlineIgnoresBudget(t *testing.T) {
	w := fleet(t, 5, team(func(s *v1beta1.InterruptionPolicySpec) {
		s.Budget = &v1beta1.Budget{MaxConcurrent: intstr.FromInt32(1)}
	}), start.Add(30*time.Minute))
	w.each(time.Second) // cordons all
	w.each(time.Second)
	if got := w.phases(); got[v1beta1.PhaseDraining] != 5 {
		t.Errorf("%v", got)
	}
}

// fakeTerminator counts the termination requests.
type fakeTerminator struct {
	*world
	asked []string
	err   error
}

func (e *fakeTerminator) Terminate(_ context.Context, id string) error {
	e.asked = append(e.asked, id)
	return e.err
}

// Describe returns the instance as its node is; see world.describe.
func (e *fakeTerminator) Describe(_ context.Context, id string) (*cloud.Instance, error) {
	return e.describe(id)
}

// MayTerminate is called only for instances that will be detached from their groups.
func (e *fakeTerminator) MayTerminate(context.Context, string) error { return nil }

// impaired is a failed status check; it has no deadline.
func impaired() v1beta1.Notice {
	n := rebalance()
	n.ID, n.Kind = "status-1", notice.KindInstanceStatus
	return n
}

func terminate(s *v1beta1.InterruptionPolicySpec) { s.Rules[0].Action = v1beta1.ActionTerminate }

func TestInstanceIsTerminatedAfterPodsLeft(t *testing.T) {
	w := newWorld(t, recordOf(impaired()), node("a", instance), pod("web-1"), team(terminate))
	cloud := &fakeTerminator{world: w}
	w.loop.Cloud = cloud
	w.settle(time.Second)
	if len(cloud.asked) > 0 || len(w.evictions) != 1 {
		t.Fatalf("terminated %v, evicted %v", cloud.asked, w.evictions)
	}
	w.stopped("web-1")
	w.settle(10 * time.Second)
	w.settle(10 * time.Second)
	if !slices.Equal(cloud.asked, []string{instance}) {
		t.Errorf("terminated %v", cloud.asked)
	}
	w.settle(terminateRetry)
	if len(cloud.asked) != 2 {
		t.Errorf("an instance that does not go was asked %d times", len(cloud.asked))
	}
	w.remove(w.node())
	w.settle(time.Second)
	if got := w.record().Status; got.Phase != v1beta1.PhaseCompleted {
		t.Errorf("phase %s", got.Phase)
	}
}

// A refused termination is repeated less and less often. One that EC2 was too busy for is no refusal.
func TestTerminationIsRepeated(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		asks int // within ten minutes
	}{
		"EC2 is busy":    {fmt.Errorf("%w: RequestLimitExceeded", cloud.ErrBusy), 11},
		"EC2 refuses it": {errors.New("IncorrectInstanceState"), 4},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, recordOf(impaired()), node("a", instance), team(terminate))
			ec2 := &fakeTerminator{world: w, err: tc.err}
			w.loop.Cloud = ec2
			w.settle(time.Second)
			for range 60 {
				w.settle(10 * time.Second)
			}
			if len(ec2.asked) != tc.asks {
				t.Errorf("asked %d times", len(ec2.asked))
			}
		})
	}
}

// EC2 gives no address of an instance that terminates, so its node cannot be compared with it
// again.
func TestAcceptedTerminationIsNotRepeated(t *testing.T) {
	w := newWorld(t, recordOf(impaired()), node("a", instance), team(terminate))
	ended := &fakeTerminator{world: w}
	w.loop.Cloud = ended
	w.settle(time.Second)
	w.ec2 = map[string]cloud.Instance{instance: {State: "shutting-down", DNSName: "-"}}
	for range 5 {
		w.settle(terminateRetry)
	}
	if got := w.record().Status; len(ended.asked) != 1 || got.CompletionTime != nil || w.doubt() != "" {
		t.Errorf("EC2 was asked %d times; completed at %v; %s", len(ended.asked), got.CompletionTime, w.doubt())
	}
	w.remove(w.node())
	w.settle(terminateRetry)
	if got := w.record().Status; got.Phase != v1beta1.PhaseCompleted || len(ended.asked) != 1 {
		t.Errorf("phase %s, asked %d times", got.Phase, len(ended.asked))
	}
}

// Anyone who may send to the queue can send a drill, so a drill must not end an instance.
func TestDrillTerminatesNoInstance(t *testing.T) {
	n := impaired()
	n.Drill = true
	w := newWorld(t, recordOf(n), node("a", instance), pod("web-1"), team(terminate))
	cloud := &fakeTerminator{world: w}
	w.loop.Cloud = cloud
	w.settle(time.Second)
	if len(w.evictions) != 1 {
		t.Fatalf("evicted %v", w.evictions)
	}
	w.stopped("web-1")
	for range 10 {
		w.settle(w.wake)
	}
	if len(cloud.asked) > 0 {
		t.Errorf("terminated %v", cloud.asked)
	}
}

// A budget that allows no disruption must not keep a failed instance.
func TestTerminationForcesPodsAfterTwoMinutes(t *testing.T) {
	w := newWorld(t, recordOf(impaired()), node("a", instance), pod("web-1"), budget(0), team(terminate))
	w.loop.Cloud = &fakeTerminator{world: w}
	w.settle(time.Second)
	w.settle(30 * time.Second)
	if len(w.deletions) > 0 {
		t.Fatalf("deleted %v", w.deletions)
	}
	w.settle(w.wake)
	if at := w.now.Sub(start); len(w.deletions) != 1 || at > 2*time.Minute {
		t.Errorf("deleted %v after %s", w.deletions, at)
	}
}

func TestFailedTerminationIsReported(t *testing.T) {
	w := newWorld(t, recordOf(impaired()), node("a", instance), team(terminate))
	cloud := &fakeTerminator{world: w, err: errors.New("UnauthorizedOperation")}
	w.loop.Cloud = cloud
	w.settle(time.Second)
	ready := w.record().Status.Conditions
	if i := slices.IndexFunc(ready, func(c metav1.Condition) bool { return c.Type == v1beta1.ConditionReady }); i < 0 || ready[i].Message != "terminating the instance: UnauthorizedOperation; tried again at 2026-05-11T08:15:03Z" {
		t.Errorf("conditions %v", ready)
	}
	if len(cloud.asked) != 1 || w.wake != terminateRetry {
		t.Errorf("asked %d times, looks again in %s", len(cloud.asked), w.wake)
	}
}

func TestTerminationsAreLimitedPerPool(t *testing.T) {
	w := newWorld(t, team(terminate))
	w.loop.Cloud = &fakeTerminator{world: w}
	for i := range 10 {
		id := fmt.Sprintf("i-%017d", i)
		in, n := recordOf(impaired()), node(fmt.Sprint("n", i), id)
		in.Name, in.Spec.InstanceID, in.Spec.NodeName = id, id, n.Name
		n.Labels["karpenter.sh/nodepool"] = "spot"
		if err := errors.Join(w.client.Create(t.Context(), in), w.client.Create(t.Context(), n)); err != nil {
			t.Fatal(err)
		}
	}
	w.each(time.Second) // cordons all
	w.each(time.Second)
	if got := len(w.loop.Cloud.(*fakeTerminator).asked); got != 2 {
		t.Errorf("%d of ten terminated at once, want two: %v", got, w.phases())
	}
}

func TestVolumesDetachBeforeTermination(t *testing.T) {
	n := node("a", instance)
	n.Status.VolumesAttached = []corev1.AttachedVolume{{Name: "kubernetes.io/csi/ebs.csi.aws.com^vol-1"}}
	w := newWorld(t, recordOf(impaired()), n, team(terminate))
	cloud := &fakeTerminator{world: w}
	w.loop.Cloud, w.loop.Live = cloud, w.client
	w.settle(time.Second)
	if len(cloud.asked) > 0 {
		t.Fatal("terminated with a volume attached")
	}
	if w.wake != detachRequeue {
		t.Errorf("looks again in %s", w.wake)
	}
	got := &corev1.Node{}
	if err := w.client.Get(t.Context(), types.NamespacedName{Name: "a"}, got); err != nil {
		t.Fatal(err)
	}
	got.Status.VolumesAttached = nil
	if err := w.client.Status().Update(t.Context(), got); err != nil {
		t.Fatal(err)
	}
	w.settle(detachRequeue)
	if len(cloud.asked) != 1 {
		t.Errorf("asked %d times", len(cloud.asked))
	}
}

func TestCordonedNodeWaitsForApproval(t *testing.T) {
	hint := rebalance()
	w := newWorld(t, recordOf(hint), node("a", instance), pod("web-1"), team(func(s *v1beta1.InterruptionPolicySpec) {
		needsApproval(s)
		s.Rules = append([]v1beta1.Rule{{Kinds: []string{notice.KindRebalanceRecommendation}, Action: v1beta1.ActionCordon}}, s.Rules...)
	}))
	w.settle(time.Second)
	if got := w.record().Status.Phase; got != v1beta1.PhaseCordoned {
		t.Fatalf("phase %s", got)
	}
	w.addNotices(planned("h1", notice.ActionStop, start.Add(30*time.Minute)))
	w.settle(time.Second)
	if got := w.record().Status.Phase; got != v1beta1.PhaseAwaitingApproval || len(w.evictions) > 0 {
		t.Errorf("phase %s, evictions %v", got, w.evictions)
	}
}

func TestCordonedNodeWaitsForStartTime(t *testing.T) {
	w := newWorld(t, recordOf(rebalance()), node("a", instance), pod("web-1"), team(func(s *v1beta1.InterruptionPolicySpec) {
		s.Rules = append([]v1beta1.Rule{{Kinds: []string{notice.KindRebalanceRecommendation}, Action: v1beta1.ActionCordon}}, s.Rules...)
	}))
	w.settle(time.Second)
	w.addNotices(planned("h1", notice.ActionStop, start.Add(12*24*time.Hour)))
	w.settle(time.Second)
	if len(w.evictions) > 0 {
		t.Errorf("evicted %v twelve days before", w.evictions)
	}
}

func TestDrainIsRevertedWhenRuleIsIgnore(t *testing.T) {
	before := node("a", instance)
	w := newWorld(t, recordOf(rebalance()), before, pod("web-1"), budget(0), team(func(s *v1beta1.InterruptionPolicySpec) {
		s.Rules = append([]v1beta1.Rule{{Kinds: []string{notice.KindSpotInterruption}, Action: v1beta1.ActionIgnore}}, s.Rules...)
	}))
	w.settle(time.Second)
	if !mutate.IsMarked(w.node(), mutate.MarkInterrupted) {
		t.Fatal("not begun")
	}
	w.addNotices(spot())
	w.settle(time.Second)
	w.same(before)
	if got := w.record().Status; got.Phase != v1beta1.PhaseIgnored || len(record.Pending(record.Drain(&got))) > 0 || record.Drain(&got).StartTime != nil {
		t.Errorf("phase %s, left %v", got.Phase, record.Pending(record.Drain(&got)))
	}
}

// An instance was impaired for more than an hour before the notice arrived. The wait for
// approval still lasts an hour.
func TestApprovalTimeoutStartsAtReceivedTime(t *testing.T) {
	sick := v1beta1.Notice{
		ID: "sick", Kind: notice.KindInstanceStatus, Source: "ec2", Subject: "instance status",
		Time: metav1.NewTime(start.Add(-61 * time.Minute)), ReceivedTime: metav1.NewMicroTime(start),
	}
	w := newWorld(t, recordOf(sick), node("a", instance), pod("web-1"), team(func(s *v1beta1.InterruptionPolicySpec) {
		s.Rules[0].Action, s.Rules[0].Approval = v1beta1.ActionTerminate, v1beta1.ApprovalRequired
	}))
	for _, tc := range []struct {
		after time.Duration
		want  v1beta1.Phase
	}{{time.Second, v1beta1.PhaseAwaitingApproval}, {59 * time.Minute, v1beta1.PhaseAwaitingApproval}, {time.Minute, v1beta1.PhaseCancelled}} {
		w.settle(tc.after)
		if s := w.record().Status; s.Phase != tc.want {
			t.Errorf("after %s: phase %s, want %s", w.now.Sub(start), s.Phase, tc.want)
		}
	}
}

// A policy can be edited in the middle of a drain. A pod that is gone must not stay in the status, and a
// surged pod must not stay without its ReplicaSet.
func TestPolicyEndsDrainAndKeepsCordon(t *testing.T) {
	cordons := func(w *world) {
		t.Helper()
		policy := team(func(s *v1beta1.InterruptionPolicySpec) { s.Rules[0].Action = v1beta1.ActionCordon })
		var was v1beta1.InterruptionPolicy
		if err := w.client.Get(t.Context(), types.NamespacedName{Name: "team"}, &was); err != nil {
			t.Fatal(err)
		}
		was.Spec = policy.Spec
		if err := w.client.Update(t.Context(), &was); err != nil {
			t.Fatal(err)
		}
		w.settle(time.Second)
		got := w.record().Status
		if !record.Begun(&got).IsZero() || !record.Cordoned(&got) || !mutate.IsMarked(w.node(), mutate.MarkInterrupted) {
			t.Errorf("drain %+v, conditions %v, node %+v", got.Drain, got.Conditions, w.node().Spec)
		}
	}
	t.Run("evicted", func(t *testing.T) {
		w := newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"), team(func(*v1beta1.InterruptionPolicySpec) {}))
		w.settle(time.Second)
		if len(w.evictions) != 1 || len(record.Pending(record.Drain(&w.record().Status))) != 1 {
			t.Fatalf("evictions %v", w.evictions)
		}
		cordons(w)
	})
	t.Run("surged", func(t *testing.T) {
		w, rs := surging(t, v1beta1.StrategySurge)
		if err := w.client.Create(t.Context(), rs); err != nil {
			t.Fatal(err)
		}
		w.loop.Live = w.client
		w.settle(time.Second)
		cordons(w)
		got := &corev1.Pod{}
		if err := w.client.Get(t.Context(), types.NamespacedName{Namespace: "default", Name: "web-1"}, got); err != nil {
			t.Fatal(err)
		}
		if got.Labels["pod-template-hash"] != "5d9c" || got.Labels[v1beta1.LabelSurged] != "" {
			t.Errorf("the pod stays without a ReplicaSet: %v", got.Labels)
		}
	})
}

// Listing the pods is forbidden, or always fails.
func TestPodListThatNeverComes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"))
	w.unknown = true
	w.settle(time.Second)
	for range 4 {
		w.settle(5 * time.Second)
	}
	if w.record().Status.Decision == nil {
		t.Error("the status does not say what is waited for")
	}
	w.settle(15 * time.Minute)
	if w.record().Status.CompletionTime == nil || mutate.HasMark(w.node()) {
		t.Errorf("after the deadline it still waits: %+v", w.record().Status)
	}
}

// What a person asked for stays cordoned, and a detached instance is not forgotten.
func TestPodListThatNeverComesEndsAsOthers(t *testing.T) {
	t.Parallel()
	asked := rebalance()
	asked.ID, asked.Kind, asked.Source = "requested-1", notice.KindRequested, notice.SourceUser
	w := newWorld(t, recordOf(asked), node("a", instance), pod("web-1"))
	w.unknown = true
	w.settle(time.Second)
	w.settle(2 * time.Hour)
	if w.record().Status.CompletionTime != nil || !mutate.IsMarked(w.node(), mutate.MarkInterrupted) {
		t.Errorf("a requested drain ended: %+v", w.record().Status)
	}
	g := withGroup(t, recordOf(spot()), pod("web-1"))
	g.run(5*time.Second, nil)
	if len(g.detached) != 1 {
		t.Fatalf("not detached: %+v", g.replaces())
	}
	g.unknown = true
	g.restart()
	for range 15 {
		if err := g.pass(time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	if g.record().Status.CompletionTime != nil {
		t.Errorf("the detached instance is forgotten, terminated %v: %+v", g.ended, g.record().Status)
	}
}
