package interruption

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
	"github.com/lifeboat-dev/lifeboat/internal/record/recordtest"
)

// boot changes the boot id of the node: it was rebooted.
func (w *world) boot(id string) {
	w.t.Helper()
	n := w.node()
	n.Status.NodeInfo.BootID = id
	if err := w.client.Status().Update(w.t.Context(), n); err != nil {
		w.t.Fatal(err)
	}
}

// A reboot before the drain is not the planned one: EC2 still reboots the instance.
func TestEarlierRebootDoesNotCompletePlannedReboot(t *testing.T) {
	due := start.Add(12 * 24 * time.Hour)
	n := node("a", instance)
	n.Status.NodeInfo.BootID = "first"
	w := newWorld(t, recordOf(planned("h1", notice.ActionReboot, due)), n, pod("web-1"))
	w.settle(time.Second)
	w.settle(5 * 24 * time.Hour)
	w.boot("second")
	w.settle(due.Add(-time.Hour).Sub(w.now))
	w.stopped("web-1")
	w.settle(time.Minute)
	if !mutate.IsMarked(w.node(), mutate.MarkInterrupted) {
		t.Fatal("the node was restored 59 minutes before its reboot")
	}
	w.boot("third")
	w.settle(time.Hour)
	if mutate.IsMarked(w.node(), mutate.MarkInterrupted) {
		t.Error("the node was not restored after its reboot")
	}
}

// A kubelet that is dead never confirms that a pod has stopped.
func TestInstanceWithDeadKubeletIsTerminated(t *testing.T) {
	w := newWorld(t, recordOf(impaired()), node("a", instance), pod("web-1"), team(terminate))
	cloud := &fakeTerminator{world: w}
	w.loop.Cloud = cloud
	w.settle(time.Second)
	for range 40 {
		if len(cloud.asked) > 0 {
			break
		}
		w.settle(max(w.wake, time.Second))
	}
	if !slices.Equal(cloud.asked, []string{instance}) {
		t.Fatalf("terminated %v by %s: %+v", cloud.asked, w.now.Sub(start), w.record().Status)
	}
	if asked := w.asked["web-1"]; asked.IsZero() || w.now.Sub(start) < 2*time.Minute-15*time.Second {
		t.Errorf("terminated after %s, and the pod was asked to stop at %s", w.now.Sub(start), asked)
	}
	if !mutate.IsMarked(w.node(), mutate.MarkInterrupted) {
		t.Error("the node was restored")
	}
}

// A termination that was refused, and whose reason is over, does not end a later drain.
func TestEarlierTerminationDoesNotCompleteNextDrain(t *testing.T) {
	n := node("a", instance)
	n.Labels["karpenter.sh/nodepool"] = "spot"
	sick := impaired()
	sick.Subject = "system"
	w := newWorld(t, recordOf(rebalance(), sick), n, pod("web-1"), team(func(s *v1beta1.InterruptionPolicySpec) {
		s.Rules = []v1beta1.Rule{
			{Kinds: []string{notice.KindInstanceStatus}, Action: v1beta1.ActionTerminate},
			{Kinds: []string{notice.KindRebalanceRecommendation}, Action: v1beta1.ActionNotify},
			{Kinds: []string{"*"}, Action: v1beta1.ActionDrain},
		}
	}))
	w.loop.Cloud = &fakeTerminator{world: w, err: errors.New("OperationNotPermitted")}
	w.settle(time.Second)
	w.stopped("web-1")
	w.settle(10 * time.Second)
	if record.Drain(&w.record().Status).TerminationTime == nil {
		t.Fatalf("no termination was tried: %+v", w.record().Status)
	}
	well := sick
	well.ID, well.Withdrawn, well.Time, well.ReceivedTime = "well", true, metav1.NewTime(w.now), metav1.NewMicroTime(w.now)
	w.addNotices(well)
	w.settle(time.Second)
	w.settle(15 * time.Minute)
	if err := w.client.Create(t.Context(), pod("web-2")); err != nil {
		t.Fatal(err)
	}
	s := spot()
	s.ReceivedTime, s.Time = metav1.NewMicroTime(w.now), metav1.NewTime(w.now)
	s.Deadline = notice.At(w.now.Add(2*time.Minute), v1beta1.DeadlineHard)
	w.addNotices(s)
	w.settle(time.Second)
	w.settle(time.Second)
	if !slices.Contains(w.evictions, "web-2") {
		t.Errorf("the drain ended before it began: %+v", w.record().Status)
	}
}

// A hold holds what Lifeboat itself would do at a deadline that it set itself.
func TestHoldDelaysTermination(t *testing.T) {
	w := newWorld(t, recordOf(impaired()), node("a", instance), pod("web-1"), team(terminate))
	cloud := &fakeTerminator{world: w}
	w.loop.Cloud = cloud
	until := metav1.NewTime(start.Add(2 * time.Hour))
	w.setStatement(func(s *v1beta1.InterruptionSpec) {
		s.Hold = &v1beta1.UserAction{By: "dana", Time: metav1.NewMicroTime(start), Until: &until}
	})
	w.settle(time.Second)
	for range 10 {
		w.settle(time.Minute)
	}
	if len(w.evictions)+len(w.deletions)+len(cloud.asked) > 0 {
		t.Errorf("evicted %v, deleted %v, terminated %v past the hold", w.evictions, w.deletions, cloud.asked)
	}
	for range 60 {
		w.settle(max(time.Minute, 2*time.Hour/60))
		if len(cloud.asked) > 0 {
			break
		}
		if w.asked["web-1"].Before(w.now.Add(-time.Minute)) && !w.asked["web-1"].IsZero() && slices.Contains(w.evictions, "web-1") {
			w.stoppedOnce("web-1")
		}
	}
	if len(w.evictions) != 1 || len(w.deletions) > 0 || len(cloud.asked) == 0 {
		t.Errorf("after the hold: evicted %v, deleted %v, terminated %v", w.evictions, w.deletions, cloud.asked)
	}
}

// stoppedOnce is stopped for a pod that may be gone already.
func (w *world) stoppedOnce(name string) {
	w.t.Helper()
	pods, _, _ := w.Pods(w.t.Context(), "a")
	for _, p := range pods {
		if p.Name == name {
			w.stopped(name)
		}
	}
}

// The list of handled notices is bounded in the CRD. One beyond it would make the API
// server refuse every later status.
func TestHandledNoticesAreInSpec(t *testing.T) {
	in := recordOf(planned("h1", notice.ActionStop, start.Add(12*24*time.Hour)))
	for i := range 16 {
		recordtest.Handle(in, fmt.Sprint("old-", i))
	}
	w := newWorld(t, in, node("a", instance))
	w.settle(time.Second)
	if got := handledIn(w.record()); len(got) != 0 {
		t.Errorf("handled notices %v are not in the spec", got)
	}
}

// A person or a controller may delete a Node whose instance runs on. It registers again,
// and the planned change still stands.
func TestPlannedChangeSurvivesNodeDeletion(t *testing.T) {
	due := start.Add(5 * 24 * time.Hour)
	w := newWorld(t, recordOf(planned("h1", notice.ActionStop, due)), node("a", instance), pod("web-1"),
		team(func(s *v1beta1.InterruptionPolicySpec) {
			s.Rules[0].NotBefore = &metav1.Duration{Duration: 6 * 24 * time.Hour}
		}))
	w.settle(time.Second)
	w.stopped("web-1")
	w.settle(time.Minute)
	w.remove(w.node())
	w.settle(time.Minute)
	if w.record().Status.CompletionTime != nil {
		t.Fatalf("completed although the stop is five days away: %+v", w.record().Status)
	}
	if w.wake == 0 {
		t.Error("it waits for the node, and no time ends the wait")
	}
	again, p := node("a", instance), pod("web-2")
	if err := errors.Join(w.client.Create(t.Context(), again), w.client.Create(t.Context(), p)); err != nil {
		t.Fatal(err)
	}
	w.settle(due.Add(-30 * time.Minute).Sub(w.now))
	w.settle(time.Second)
	if !mutate.IsMarked(w.node(), mutate.MarkInterrupted) || !slices.Contains(w.evictions, "web-2") {
		t.Errorf("the node that registered again is not drained: %+v", w.record().Status)
	}
}

// A node that never comes back does not keep its Interruption beyond the date.
func TestPlannedChangeOfDeletedNodeCompletes(t *testing.T) {
	w := newWorld(t, recordOf(planned("h1", notice.ActionStop, start.Add(24*time.Hour))), node("a", instance))
	w.settle(time.Second)
	w.remove(w.node())
	w.settle(time.Hour)
	for range 10 {
		w.settle(max(w.wake, time.Minute))
		if w.record().Status.CompletionTime != nil {
			return
		}
	}
	t.Errorf("not finished at %s: %+v", w.now.Sub(start), w.record().Status)
}

// Clocks of other replicas do not order anything: ids tell which notices are handled.
func TestReplicaClockSkewDoesNotReopen(t *testing.T) {
	n := rebalance()
	n.ReceivedTime, n.Time = metav1.NewMicroTime(start.Add(10*time.Second)), metav1.NewTime(start.Add(-61*time.Minute))
	w := newWorld(t, recordOf(n), node("a", instance))
	w.settle(time.Second)
	in := w.record()
	if in.Status.CompletionTime == nil {
		t.Fatalf("a recommendation of an hour ago is not over: %+v", in.Status)
	}
	if slices.Contains(reasons(in.Status), v1beta1.ReasonReopened) {
		t.Error("the other clock reopened it")
	}
}

// A notice that joins in the moment of completion, with an earlier received time, counts.
func TestNoticeDuringCompletionIsKept(t *testing.T) {
	old := rebalance()
	old.Time = metav1.NewTime(start.Add(-61 * time.Minute))
	w := newWorld(t, recordOf(old), node("a", instance), pod("web-1"))
	w.settle(2 * time.Second)
	if w.record().Status.CompletionTime == nil {
		t.Fatal("not complete")
	}
	late := spot()
	late.ReceivedTime = metav1.NewMicroTime(start.Add(time.Second)) // before the completion
	w.addNotices(late)
	w.settle(time.Second)
	w.settle(time.Second)
	if !slices.Contains(w.evictions, "web-1") {
		t.Errorf("the notice is lost: %+v", w.record().Status)
	}
}

// staleNodes serves a node as it was when the test froze it.
type staleNodes struct {
	*world
	frozen *corev1.Node
}

func (s *staleNodes) NodeByInstance(ctx context.Context, id string) (*corev1.Node, error) {
	if s.frozen != nil && id == instance {
		return s.frozen.DeepCopy(), nil
	}
	return s.world.NodeByInstance(ctx, id)
}

// A stale cache may show the node as cordoned after this process has restored it. No pod
// is evicted from a node that is not cordoned.
func TestStaleNodeCacheIsNotCordon(t *testing.T) {
	w := newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"))
	nodes := &staleNodes{world: w}
	w.loop.Nodes = nodes
	w.settle(time.Second)
	nodes.frozen = w.node() // cordoned
	over := spot()
	over.ID, over.Withdrawn = "over", true
	in := w.record()
	in.Spec.Notices = []v1beta1.Notice{over}
	if err := w.client.Update(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	w.settle(time.Second)
	if mutate.IsMarked(w.node(), mutate.MarkInterrupted) {
		t.Fatal("the node is not restored")
	}
	again := spot()
	again.ID = "again"
	w.addNotices(again)
	if err := w.client.Create(t.Context(), pod("web-2")); err != nil {
		t.Fatal(err)
	}
	w.evictions = nil
	_ = w.pass(100 * time.Millisecond)
	if len(w.evictions) > 0 {
		t.Errorf("evicted %v from a node that is not cordoned", w.evictions)
	}
	nodes.frozen = nil
	w.settle(time.Second)
	if !mutate.IsMarked(w.node(), mutate.MarkInterrupted) {
		t.Errorf("not cordoned again: %+v", w.record().Status)
	}
}
