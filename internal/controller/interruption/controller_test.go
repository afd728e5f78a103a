package interruption

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/evict"
	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/status"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

func TestPodsMoveAfterSpotNotice(t *testing.T) {
	w := newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"), pod("web-2"))

	w.settle(time.Second)
	if !mutate.IsMarked(w.node(), mutate.MarkInterrupted) {
		t.Error("the node is not cordoned")
	}
	if diff := cmp.Diff([]string{"web-1", "web-2"}, sorted(w.evictions)); diff != "" {
		t.Errorf("evictions (-want +got):\n%s", diff)
	}
	s := w.record().Status
	if s.Phase != v1beta1.PhaseDraining || record.Drain(&s).PodCounts != (v1beta1.PodCounts{Total: 2, Leaving: 2}) {
		t.Errorf("phase %s, pods %+v", s.Phase, record.Drain(&s).PodCounts)
	}

	w.stopped("web-1", "web-2")
	w.settle(20 * time.Second)
	s = w.record().Status
	if s.Phase != v1beta1.PhaseDrained || record.Drain(&s).PodCounts != (v1beta1.PodCounts{Total: 2, Moved: 2}) {
		t.Errorf("phase %s, pods %+v", s.Phase, record.Drain(&s).PodCounts)
	}

	w.remove(w.node())
	w.settle(2 * time.Minute)
	s = w.record().Status
	if s.Phase != v1beta1.PhaseCompleted || s.CompletionTime == nil {
		t.Errorf("phase %s, completed %v", s.Phase, s.CompletionTime)
	}
	want := []string{"NoticeReceived", "Decided", "Cordoned", "Evicted", "PodTerminated", "Drained", "Completed"}
	if diff := cmp.Diff(want, reasons(s)); diff != "" {
		t.Errorf("timeline (-want +got):\n%s", diff)
	}

	w.settle(2 * time.Hour)
	if w.record() != nil {
		t.Error("the finished record is never deleted")
	}
}

// See evict, which checks this for each pod.
func TestPodIsRecordedBeforeEviction(t *testing.T) {
	w := newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"))
	w.failPatch = errors.New("the API server is away")
	if err := w.pass(time.Second); err == nil {
		t.Error("the pass that could not write is no error")
	}
	if len(w.evictions) > 0 {
		t.Errorf("evicted %v, which are not written down", w.evictions)
	}
	if err := w.pass(time.Second); err != nil {
		t.Fatal(err)
	}
	if got := record.Pending(record.Drain(&w.record().Status)); len(w.evictions) != 1 || len(got) != 1 || got[0].EvictionTime == nil {
		t.Errorf("evicted %v, written down: %+v", w.evictions, got)
	}
}

func TestWithdrawnRebalanceHintRestoresNode(t *testing.T) {
	before := node("a", instance)
	w := newWorld(t, recordOf(rebalance()), before, pod("web-1"))
	w.settle(time.Second)
	if !mutate.IsMarked(w.node(), mutate.MarkAtRisk) || w.node().Spec.Unschedulable {
		t.Errorf("node: %+v", w.node().Spec)
	}
	if got := w.record().Status.Phase; got != v1beta1.PhaseNotified {
		t.Errorf("phase %s", got)
	}
	w.settle(time.Hour)
	if diff := cmp.Diff(before, w.node(), cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ResourceVersion"), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the node that lives is not as it was (-was +is):\n%s", diff)
	}
	if got := w.record().Status.Phase; got != v1beta1.PhaseCompleted {
		t.Errorf("phase %s", got)
	}
	if len(w.evictions)+len(w.deletions) > 0 {
		t.Errorf("pods were touched: %v %v", w.evictions, w.deletions)
	}
}

func TestSpotNoticeSupersedesRebalanceHint(t *testing.T) {
	w := newWorld(t, recordOf(rebalance()), node("a", instance), pod("web-1"))
	w.settle(time.Second)
	w.addNotices(spot())
	w.settle(time.Second)
	if !mutate.IsMarked(w.node(), mutate.MarkInterrupted) || !slices.Contains(w.evictions, "web-1") {
		t.Errorf("not drained: evictions %v, node %+v", w.evictions, w.node().Spec)
	}
	if got := w.record().Status.Kind; got != notice.KindSpotInterruption {
		t.Errorf("kind %s rules", got)
	}
}

func TestNodeIsRestoredIfInstanceOutlivesDeadline(t *testing.T) {
	before := node("a", instance)
	w := newWorld(t, recordOf(spot()), before)
	w.settle(time.Second)
	w.settle(5 * time.Minute)
	if got := w.record().Status.Phase; got != v1beta1.PhaseDrained {
		t.Errorf("phase %s five minutes after the notice", got)
	}
	w.settle(10 * time.Minute)
	if got := w.record().Status.Phase; got != v1beta1.PhaseCancelled {
		t.Errorf("phase %s", got)
	}
	if diff := cmp.Diff(before, w.node(), cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ResourceVersion"), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the node that lives is not as it was (-was +is):\n%s", diff)
	}
}

func TestPodsOfTerminatedInstanceCountAsLost(t *testing.T) {
	w := newWorld(t, recordOf(stateChange(notice.StateTerminated, start)), node("a", instance), pod("web-1"))
	w.ec2 = map[string]cloud.Instance{instance: {State: "terminated"}}
	w.settle(time.Second)
	if grace, ok := w.deletions["web-1"]; !ok || grace != 0 {
		t.Errorf("deletions %v", w.deletions)
	}
	if got := record.Drain(&w.record().Status).PodCounts; got != (v1beta1.PodCounts{Total: 1, Lost: 1}) {
		t.Errorf("pods %+v", got)
	}
	w.stopped("web-1")
	w.remove(w.node())
	w.settle(time.Second)
	s := w.record().Status
	if s.Phase != v1beta1.PhaseCompleted || record.Drain(&s).PodCounts != (v1beta1.PodCounts{Total: 1, Lost: 1}) {
		t.Errorf("phase %s, pods %+v: counted twice?", s.Phase, record.Drain(&s).PodCounts)
	}
}

func TestFinishedPodCountsAsMoved(t *testing.T) {
	w := newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"))
	w.settle(time.Second)
	w.finish("web-1", corev1.PodSucceeded) // kubelets report this before they remove it
	w.settle(time.Second)
	s := w.record().Status
	if s.Phase != v1beta1.PhaseDrained || record.Drain(&s).PodCounts != (v1beta1.PodCounts{Total: 1, Moved: 1}) {
		t.Errorf("phase %s, pods %+v", s.Phase, record.Drain(&s).PodCounts)
	}
	w.stopped("web-1")
	w.settle(time.Second)
	if got := record.Drain(&w.record().Status).PodCounts; got != (v1beta1.PodCounts{Total: 1, Moved: 1}) {
		t.Errorf("pods %+v once it is removed: counted twice?", got)
	}
}

func TestPodGoneAfterDeadlineCountsAsLost(t *testing.T) {
	w := newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"), pod("web-2"), budget(1))
	w.settle(time.Second) // web-1 is evicted; web-2 waits for the budget
	if len(w.evictions) != 1 {
		t.Fatalf("evictions %v", w.evictions)
	}
	w.stopped("web-1", "web-2")
	w.settle(5 * time.Minute) // the controller was down meanwhile
	// web-1's grace had ended long before the deadline; web-2 was never asked.
	if got := record.Drain(&w.record().Status).PodCounts; got != (v1beta1.PodCounts{Total: 2, Moved: 1, Lost: 1}) {
		t.Errorf("pods %+v", got)
	}
}

func TestNewNoticeReopensCompletedRecord(t *testing.T) {
	w := newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"))
	w.settle(time.Second)
	w.stopped("web-1")
	w.settle(20 * time.Minute)
	if w.record().Status.CompletionTime == nil {
		t.Fatalf("not finished: %+v", w.record().Status)
	}
	again := spot()
	again.ID, again.ReceivedTime, again.Time = "spot-2", metav1.NewMicroTime(w.now.Add(time.Second)), metav1.NewTime(w.now)
	again.Deadline = notice.At(w.now.Add(2*time.Minute), v1beta1.DeadlineHard)
	w.addNotices(again)
	w.settle(2 * time.Second)
	s := w.record().Status
	if s.CompletionTime != nil || len(s.History) != 1 || !s.Deadline.Time.Equal(&again.Deadline.Time) {
		t.Errorf("status %+v", s)
	}
	if !mutate.IsMarked(w.node(), mutate.MarkInterrupted) {
		t.Error("the node is not cordoned again")
	}
}

func TestAllNodesAreCordonedBeforeFirstEviction(t *testing.T) {
	other := recordOf(spot())
	other.Name, other.Spec.InstanceID, other.Spec.NodeName = "i-0000000000000000b", "i-0000000000000000b", "b"
	w := newWorld(t, recordOf(spot()), other, node("a", instance), node("b", other.Name), pod("web-1"))
	w.settle(time.Second)
	if len(w.evictions) > 0 {
		t.Errorf("evicted %v while node b still takes pods", w.evictions)
	}
	if w.wake > time.Second {
		t.Errorf("looks again only after %s", w.wake)
	}
	w.settle(barrierTimeout)
	if len(w.evictions) != 1 {
		t.Errorf("evictions %v although the wait is over", w.evictions)
	}
}

func TestPodIsEvictedOnceWithStaleCache(t *testing.T) {
	w := newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"))
	w.lagging = true
	w.settle(time.Second)
	if len(w.evictions) != 1 {
		t.Errorf("asked %d times", len(w.evictions))
	}
	if got := record.Drain(&w.record().Status).PodCounts; got.Leaving != 1 {
		t.Errorf("pods %+v", got)
	}
	w.settle(status.EvictionCacheLag / 2)
	if len(w.evictions) != 1 {
		t.Errorf("asked %d times, although the record says that it was asked", len(w.evictions))
	}
	// The request may be lost: the process may have died before sending it.
	w.loop = New(w.loop.Options)
	w.settle(2 * status.EvictionCacheLag)
	if len(w.evictions) != 2 {
		t.Errorf("asked %d times in all", len(w.evictions))
	}
}

func TestRejectedEvictionIsReportedAndRetried(t *testing.T) {
	w := newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"))
	w.refuse = refusal()
	w.settle(time.Second)
	left := record.Pending(record.Drain(&w.record().Status))
	if len(left) != 1 || left[0].State != v1beta1.PodRefused || left[0].EvictionTime != nil {
		t.Errorf("pods left: %+v", left)
	}
	if w.wake == 0 || w.wake > evict.RetryRefused {
		t.Errorf("looks again after %s", w.wake)
	}
	w.refuse = nil
	w.settle(evict.RetryRefused)
	if len(w.evictions) != 1 || record.Pending(record.Drain(&w.record().Status))[0].EvictionTime == nil {
		t.Errorf("evictions %v", w.evictions)
	}
}

func TestStatusConflictLosesNothing(t *testing.T) {
	w := newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"))
	for range 4 {
		w.failPatch = apierrors.NewConflict(schema.GroupResource{}, instance, errors.New("written meanwhile"))
		if err := w.pass(time.Second); err != nil && !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
		w.failPatch = nil
		w.settle(0)
	}
	w.stopped("web-1")
	w.settle(time.Second)
	if got := record.Drain(&w.record().Status).PodCounts; got != (v1beta1.PodCounts{Total: 1, Moved: 1}) {
		t.Errorf("pods %+v", got)
	}
	if n := len(slices.DeleteFunc(reasons(w.record().Status), func(r string) bool { return r != "NoticeReceived" })); n != 1 {
		t.Errorf("the notice is in the timeline %d times", n)
	}
}

func TestIgnoredNoticeIsReported(t *testing.T) {
	p := &v1beta1.InterruptionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "batch"}}
	p.Spec.Rules = []v1beta1.Rule{{Kinds: []string{"*"}, Action: v1beta1.ActionIgnore}}
	before := node("a", instance)
	w := newWorld(t, recordOf(spot()), before, pod("web-1"), p)
	w.settle(time.Second)
	s := w.record().Status
	if s.Phase != v1beta1.PhaseIgnored || s.Decision.Policy != "batch" || s.CompletionTime != nil {
		t.Errorf("status %+v", s)
	}
	if len(w.evictions)+len(w.deletions) > 0 || len(w.node().Spec.Taints) > 0 {
		t.Error("something was done")
	}
}

func TestDrainContinuesAfterWindow(t *testing.T) {
	p := &v1beta1.InterruptionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "nightly"}}
	p.Spec.Rules = []v1beta1.Rule{{
		Kinds: []string{notice.KindRebalanceRecommendation}, Action: v1beta1.ActionDrain,
		Window: &v1beta1.Window{Schedule: "30 8 * * *", Duration: metav1.Duration{Duration: 5 * time.Minute}},
	}}
	w := newWorld(t, recordOf(rebalance()), node("a", instance), pod("web-1"), pod("web-2"), budget(1), p)
	w.settle(time.Second) // 08:14
	if s := w.record().Status; s.Phase != v1beta1.PhaseScheduled || w.node().Spec.Unschedulable {
		t.Errorf("before the window: phase %s, node %+v", s.Phase, w.node().Spec)
	}
	w.settle(16 * time.Minute) // 08:30
	if len(w.evictions) != 1 {
		t.Errorf("in the window: evictions %v", w.evictions)
	}
	w.stopped("web-1")
	w.setBudget(1)
	w.settle(8 * time.Minute) // 08:38
	if len(w.evictions) != 2 {
		t.Errorf("after the window: evictions %v", w.evictions)
	}
	w.stopped("web-2")
	w.settle(50 * time.Minute)
	if !w.node().Spec.Unschedulable {
		t.Error("put back within an hour of being drained")
	}
	w.settle(10 * time.Minute)
	if w.node().Spec.Unschedulable || w.record().Status.CompletionTime == nil {
		t.Errorf("not put back: %+v", w.record().Status.Conditions)
	}
}

func TestUnknownPodsDoNotCompleteDrain(t *testing.T) {
	w := newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"))
	w.unknown = true
	w.settle(time.Second)
	if got := w.record().Status; got.Phase == v1beta1.PhaseDrained || got.CompletionTime != nil || w.wake == 0 || w.wake > podListRequeue {
		t.Errorf("phase %s before the list of pods has come; looks again in %s", got.Phase, w.wake)
	}
	w.unknown = false
	w.settle(w.wake)
	if got := w.record().Status.Phase; got != v1beta1.PhaseDraining || len(w.evictions) != 1 {
		t.Errorf("phase %s once it has", got)
	}
}

// A pod may have been bound between the list and the cordon.
func TestStalePodListDoesNotCompleteDrain(t *testing.T) {
	w := newWorld(t, recordOf(spot()), node("a", instance))
	w.stale = true
	w.settle(time.Second)
	if got := w.record().Status; got.Phase == v1beta1.PhaseDrained || w.wake == 0 || w.wake > podListRequeue {
		t.Errorf("phase %s before the watch is open; looks again in %s", got.Phase, w.wake)
	}
	if err := w.client.Create(t.Context(), pod("web-1")); err != nil {
		t.Fatal(err)
	}
	w.stale = false
	w.settle(w.wake)
	if got := w.record().Status.Phase; got != v1beta1.PhaseDraining || len(w.evictions) != 1 {
		t.Errorf("phase %s, evictions %v", got, w.evictions)
	}
}

// An instance without a node has no pods to watch.
func TestInstanceWithoutNodeCompletes(t *testing.T) {
	in := recordOf(spot())
	in.Spec.NodeName = ""
	w := newWorld(t, in)
	w.settle(time.Second)
	if got := w.record().Status; strings.Contains(fmt.Sprint(got.Conditions), "waits for the watch") {
		t.Errorf("phase %s: %+v", got.Phase, got.Conditions)
	}
}

func refusal() error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", 0)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: "DisruptionBudget"}}
	return err
}

func reasons(s v1beta1.InterruptionStatus) []string {
	var all []string
	for _, h := range s.Timeline {
		all = append(all, h.Reason)
	}
	return all
}

func sorted(names []string) []string {
	s := slices.Clone(names)
	slices.Sort(s)
	return s
}
