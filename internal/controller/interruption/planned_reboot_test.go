package interruption

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// reboot gives the node of the instance another boot id.
func (w *world) reboot(bootID string) {
	w.t.Helper()
	n := w.node()
	n.Status.NodeInfo.BootID = bootID
	if err := w.client.Status().Update(w.t.Context(), n); err != nil {
		w.t.Fatal(err)
	}
}

// bootedNode is the node of the instance in its first boot.
func bootedNode() *corev1.Node {
	n := node("a", instance)
	n.Status.NodeInfo.BootID = "first"
	return n
}

// A process that dies between the restored node and the status must not begin the drain again: new
// pods may run on the node by then.
func TestRebootedNodeIsNotCordonedAgain(t *testing.T) {
	t.Parallel()
	before := bootedNode()
	w := newWorld(t, recordOf(planned("h1", notice.ActionReboot, start.Add(30*time.Minute))), before)
	w.settle(time.Second)
	if !mutate.IsMarked(w.node(), mutate.MarkInterrupted) {
		t.Fatal("not cordoned")
	}
	w.reboot("second")
	before.Status.NodeInfo.BootID = "second"
	w.failPatch = errKilled
	if err := w.pass(time.Minute); !errors.Is(err, errKilled) {
		t.Fatalf("error %v, want one of the status", err)
	}
	w.same(before)
	if err := w.client.Create(t.Context(), pod("web-1")); err != nil {
		t.Fatal(err)
	}
	marks := 0
	w.loop = New(w.loop.Options)
	for range 3 {
		if err := w.pass(time.Second); err != nil {
			t.Fatal(err)
		}
		if mutate.IsMarked(w.node(), mutate.MarkInterrupted) {
			marks++
		}
	}
	if marks > 0 || len(w.asked) > 0 {
		t.Errorf("cordoned after %d of 3 passes, pods %v asked", marks, w.asked)
	}
	w.same(before)
	if got := w.record().Status.Phase; got != v1beta1.PhaseCompleted {
		t.Errorf("phase %s", got)
	}
}

// What a reboot left on the node stays there.
func TestRebootEndsTheDrainOfPodsThatWait(t *testing.T) {
	t.Parallel()
	before := bootedNode()
	w := newWorld(t, recordOf(planned("h1", notice.ActionReboot, start.Add(30*time.Minute))), before, pod("web-1"), budget(0))
	w.settle(time.Second)
	w.reboot("second")
	before.Status.NodeInfo.BootID = "second"
	w.setBudget(1)
	w.settle(time.Minute)
	w.same(before)
	if got := w.record().Status; got.Phase != v1beta1.PhaseCompleted || len(w.asked) > 0 {
		t.Errorf("phase %s, pods %v asked", got.Phase, w.asked)
	}
}

// A reboot before the drain is not the planned one, although the node was marked as at risk then.
func TestRebootBeforeTheDrainDoesNotEndIt(t *testing.T) {
	t.Parallel()
	before := bootedNode()
	w := newWorld(t, recordOf(rebalance()), before)
	w.settle(time.Second)
	if !mutate.IsMarked(w.node(), mutate.MarkAtRisk) {
		t.Fatal("not marked as at risk")
	}
	w.addNotices(planned("h1", notice.ActionReboot, start.Add(90*time.Minute)))
	w.settle(time.Second)
	w.reboot("second")
	w.settle(35 * time.Minute)
	w.settle(time.Minute)
	if !mutate.IsMarked(w.node(), mutate.MarkInterrupted) {
		t.Error("not cordoned for the planned reboot")
	}
	w.reboot("third")
	before.Status.NodeInfo.BootID = "third"
	w.settle(time.Minute)
	w.same(before)
}
