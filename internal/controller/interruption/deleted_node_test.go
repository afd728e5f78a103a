package interruption

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// A node that others delete registers again: a drain for another notice must not end the record of
// a planned change.
func TestDeletedNodeIsDrainedForItsPlannedChange(t *testing.T) {
	t.Parallel()
	for name, due := range map[string]time.Time{
		"in twelve days":    start.Add(12 * 24 * time.Hour),
		"in the last hour":  start.Add(50 * time.Minute),
		"in the next hours": start.Add(3 * time.Hour),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change := planned("h1", notice.ActionStop, due)
			w := newWorld(t, recordOf(rebalance()), node("a", instance), pod("web-1"), team(func(*v1beta1.InterruptionPolicySpec) {}))
			w.settle(time.Second)
			if !mutate.IsMarked(w.node(), mutate.MarkInterrupted) {
				t.Fatal("not cordoned")
			}
			w.addNotices(change)
			w.settle(time.Second)
			w.remove(w.node())
			w.stopped("web-1")
			w.settle(time.Minute)
			w.settle(time.Minute)
			if s := w.record().Status; s.CompletionTime != nil {
				t.Fatalf("phase %s, handled %v", s.Phase, s.History)
			}
			if err := w.client.Create(t.Context(), node("a", instance)); err != nil {
				t.Fatal(err)
			}
			w.settle(due.Add(-45 * time.Minute).Sub(w.now))
			if !mutate.IsMarked(w.node(), mutate.MarkInterrupted) {
				t.Errorf("not cordoned for the change: phase %s", w.record().Status.Phase)
			}
		})
	}
}

// A node that is gone because its instance ends does not wait for a planned change.
func TestEndedNodeDoesNotAwaitItsPlannedChange(t *testing.T) {
	t.Parallel()
	sick := rebalance()
	sick.ID, sick.Kind, sick.Source = "sick", notice.KindInstanceStatus, notice.SourceEC2
	terminate := team(func(s *v1beta1.InterruptionPolicySpec) {
		s.Rules = []v1beta1.Rule{{Kinds: []string{notice.KindInstanceStatus}, Action: v1beta1.ActionTerminate}}
	})
	for name, first := range map[string]v1beta1.Notice{"reclaimed": spot(), "terminated": sick} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := node("a", instance)
			n.Labels["karpenter.sh/nodepool"] = "pool"
			w := newWorld(t, recordOf(first, planned("h1", notice.ActionStop, start.Add(12*24*time.Hour))), n, terminate.DeepCopy())
			w.settle(time.Second)
			w.settle(time.Second)
			w.remove(w.node())
			w.settle(time.Minute)
			if s := w.record().Status; s.CompletionTime == nil {
				t.Errorf("phase %s: %+v", s.Phase, s.Conditions)
			}
		})
	}
}

// A pod whose Node was deleted is not lost if the Node registers again: its last call is reported, and
// it is not counted twice.
func TestPodsOfReturnedNodeAreNotLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, recordOf(spot()), node("a", instance), pod("db-0"), budget(0))
	w.settle(time.Second)
	w.remove(w.node())
	w.settle(time.Second)
	if lost := w.record().Status.Drain.PodCounts.Lost; lost != 1 {
		t.Fatalf("without its Node %d pods are lost, want 1", lost)
	}
	if err := w.client.Create(t.Context(), node("a", instance)); err != nil {
		t.Fatal(err)
	}
	w.settle(time.Second)
	if pods := w.record().Status.Drain.PodCounts; pods.Lost != 0 || pods.Waiting != 1 || pods.Total != 1 {
		t.Errorf("the node is back, and the counts are %+v", pods)
	}
	w.settle(2 * time.Minute)
	if got := reasons(w.record().Status); !slices.Contains(got, v1beta1.ReasonProtectionOverridden) {
		t.Errorf("the override at its last call is not in the timeline: %v", got)
	}
}

// noNodes is a cache without nodes.
type noNodes struct{}

func (noNodes) NodeByInstance(context.Context, string) (*corev1.Node, error) { return nil, nil }

// The replica that recorded the notice knows a new node, which the cache of the leader lacks.
func TestNewNodeThatTheCacheLacks(t *testing.T) {
	t.Parallel()
	in := recordOf(spot())
	in.CreationTimestamp, in.Spec.NodeUID = metav1.NewTime(start), "uid-a"
	a := node("a", instance)
	a.UID = "uid-a"
	w := newWorld(t, in, a)
	w.loop.Live = w.client
	w.loop.Nodes = noNodes{}
	w.settle(time.Second)
	if w.record().Status.CompletionTime != nil || w.wake == 0 {
		t.Fatalf("completed as that of a node that is gone: %+v", w.record().Status)
	}
	w.remove(w.node())
	w.settle(time.Second)
	if w.record().Status.CompletionTime == nil {
		t.Errorf("not completed although the node is gone: %+v", w.record().Status)
	}
}
