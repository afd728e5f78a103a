package interruption

import (
	"context"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/record"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

func TestReplacementIsReadyBeforePodsLeave(t *testing.T) {
	k := withKarpenter(t, recordOf(spot()), sized("web-1"), sized("web-2"))
	k.loop.Forward = func(_ context.Context, m string) error { k.forwarded = append(k.forwarded, m); return nil }
	k.settle(time.Second)
	if s := k.replaces(); s.Phase != v1beta1.ReplacementOrdered || s.UID == "" || k.claim(ourClaim) == nil {
		t.Fatalf("nothing is ordered: %+v", s)
	}
	k.launch()
	k.settle(2 * time.Second)
	if len(k.evictions) > 0 || k.replaces().Phase != v1beta1.ReplacementLaunched {
		t.Fatalf("evicted %v while the replacement is %s", k.evictions, k.replaces().Phase)
	}
	if left := record.Pending(record.Drain(&k.record().Status)); left[0].Message != "waits: replacement "+ourClaim+" is starting; until its last call at 08:15:22 UTC" {
		t.Errorf("reason %q", left[0].Message)
	}
	k.boot()
	k.settle(30 * time.Second)
	if len(k.evictions) != 2 || k.replaces().Phase != v1beta1.ReplacementReady {
		t.Fatalf("evicted %v, the replacement is %s", k.evictions, k.replaces().Phase)
	}
	if record.Drain(&k.record().Status).NodeClaimDeletion != nil || k.claim("web-x7k2p") == nil {
		t.Error("handed over while pods are leaving")
	}
	k.stopped("web-1", "web-2")
	k.settle(5 * time.Second)
	h := record.Drain(&k.record().Status).NodeClaimDeletion
	if h == nil || h.DeletedTime == nil || h.ForwardedTime == nil || k.claim("web-x7k2p") != nil || len(k.forwarded) != 1 {
		t.Fatalf("not handed over: %+v, sent %v", h, k.forwarded)
	}
	if !k.protected() {
		t.Error("released before the interrupted node is gone")
	}
	k.end()
	k.settle(10 * time.Second)
	if k.protected() {
		t.Error("its protection never ends")
	}
	want := []string{
		"NoticeReceived", "Decided", "Cordoned", "ReplacementOrdered", "ReplacementReady", "Evicted", "PodTerminated",
		"Drained", "NodeClaimDeleted", "ReplacementReleased", "Completed",
	}
	if got := reasons(k.record().Status); !slices.Equal(sorted(got), sorted(want)) {
		t.Errorf("timeline %v", got)
	}
}

// Anyone who may send to the queue can send a drill. So a drill must not make Karpenter delete the
// node, or avoid its offering.
func TestDrillDeletesNoNodeClaim(t *testing.T) {
	drill := spot()
	drill.Drill = true
	k := withKarpenter(t, recordOf(drill), sized("web-1"))
	k.loop.Forward = func(_ context.Context, m string) error { k.forwarded = append(k.forwarded, m); return nil }
	k.settle(time.Second)
	k.launch()
	k.boot()
	k.settle(30 * time.Second)
	if len(k.evictions) != 1 {
		t.Fatalf("evicted %v", k.evictions)
	}
	k.stopped("web-1")
	k.settle(5 * time.Second)
	for k.record().Status.CompletionTime == nil && k.now.Before(start.Add(time.Hour)) {
		k.settle(30 * time.Second)
	}
	if k.record().Status.CompletionTime == nil || k.node().Spec.Unschedulable {
		t.Errorf("phase %s, unschedulable %v", k.record().Status.Phase, k.node().Spec.Unschedulable)
	}
	if k.claim("web-x7k2p") == nil || len(k.forwarded) > 0 {
		t.Errorf("the NodeClaim is there: %v; sent %v", k.claim("web-x7k2p") != nil, k.forwarded)
	}
}

// sized is a pod that fits on no other node, because their allocatable resources are unknown.
func sized(name string) *corev1.Pod {
	p := pod(name)
	p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	return p
}

func TestWithoutCapacityPodsLeaveAtLastCall(t *testing.T) {
	k := withKarpenter(t, recordOf(spot()), sized("web-1"))
	k.settle(time.Second)
	at := func(second int) { k.settle(start.Add(time.Duration(second) * time.Second).Sub(k.now)) }
	for try, ordered := range []int{1, 12, 43} {
		at(ordered)
		if s := k.replaces(); s.Phase != v1beta1.ReplacementOrdered || s.Tries != int32(try+1) {
			t.Fatalf("try %d: %+v", try+1, s)
		}
		k.giveUp()
		at(ordered + 1)
		at(ordered + 9)
		if k.claim(ourClaim) != nil || len(k.evictions) > 0 {
			t.Fatalf("ordered again at once, or evicted: %v", k.evictions)
		}
	}
	if s := k.replaces(); s.Phase != v1beta1.ReplacementFailed || s.Reason != replacement.ReasonNoCapacity {
		t.Errorf("after all tries: %+v", s)
	}
	at(81)
	if !slices.Contains(k.evictions, "web-1") {
		t.Errorf("not evicted at its last call: %+v", record.Pending(record.Drain(&k.record().Status)))
	}
}

func TestSlowNodeClaimDeletionIsAwaited(t *testing.T) {
	k := withKarpenter(t, recordOf(spot()), sized("web-1"))
	k.settle(time.Second)
	c := k.claim(ourClaim)
	c.SetFinalizers([]string{"karpenter.sh/termination"})
	k.update(c, "x", "spec", "y")
	if err := k.client.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	k.settle(40 * time.Second)
	if s := k.replaces(); s.Phase != v1beta1.ReplacementRetrying || k.wake < time.Second {
		t.Errorf("replacement %+v, looked at again after %s", s, k.wake)
	}
	c = k.claim(ourClaim)
	c.SetFinalizers(nil)
	k.update(c, "z", "spec", "y") // which completes its deletion
	k.settle(2 * time.Second)
	if s := k.replaces(); s.Phase != v1beta1.ReplacementOrdered || s.Tries != 2 {
		t.Errorf("replacement %+v", s)
	}
}

// The test kills the process before each of its writes in turn and restarts it. There must be
// one replacement, it must be released, and the interrupted node must be handed over.
func TestControllerKilledAtEveryCall(t *testing.T) {
	t.Parallel()
	for n := range 40 {
		k := withKarpenter(t, recordOf(spot()), sized("web-1"))
		writes := n
		k.lives = &writes
		turn := func() {
			k.t.Helper()
			for range 15 {
				if err := k.pass(300 * time.Millisecond); err != nil && k.lives != nil && *k.lives < 0 {
					k.restart()
				} else if err != nil {
					t.Fatalf("killed before write %d: %v", n, err)
				}
				if len(k.Claims()) > 1 {
					t.Fatalf("killed before write %d: %d replacements", n, len(k.Claims()))
				}
			}
		}
		turn()
		k.withoutKills(func() { k.launch() })
		turn()
		k.withoutKills(func() { k.boot() })
		turn()
		if !slices.Contains(k.evictions, "web-1") {
			t.Fatalf("killed before write %d: not evicted; %+v", n, k.record().Status)
		}
		k.withoutKills(func() { k.stopped("web-1") })
		turn()
		if k.claim("web-x7k2p") != nil {
			t.Fatalf("killed before write %d: not handed over; %+v", n, record.Drain(&k.record().Status).NodeClaimDeletion)
		}
		k.withoutKills(func() { k.end() })
		turn()
		if s := k.record().Status; k.protected() || s.Phase != v1beta1.PhaseCompleted || record.Drain(&s).Replacement.Tries != 1 {
			t.Fatalf("killed before write %d: protected %v, phase %s, %+v", n, k.protected(), s.Phase, record.Drain(&s).Replacement)
		}
		if k.lives != nil && *k.lives > 0 {
			return // the process made fewer writes
		}
	}
	t.Error("the process makes more writes than the test kills")
}

// withoutKills runs do without the kill: others are not affected by it.
func (w *world) withoutKills(do func()) {
	lives := w.lives
	w.lives = nil
	do()
	w.lives = lives
}

func TestPodsLeaveAtOnceWithoutReplacement(t *testing.T) {
	static := func(k *karpenter) {
		p := nodePool()
		p.SetResourceVersion("")
		if err := k.client.Get(k.t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			k.t.Fatal(err)
		}
		k.update(p, int64(2), "spec", "replicas")
	}
	limited := func(k *karpenter) {
		p := nodePool()
		if err := k.client.Get(k.t.Context(), client.ObjectKeyFromObject(p), p); err != nil {
			k.t.Fatal(err)
		}
		k.update(p, "500m", "spec", "limits", "cpu")
	}
	for name, test := range map[string]struct {
		before func(*karpenter)
		reason string
	}{
		"Karpenter is not installed": {func(k *karpenter) { k.absent = true }, replacement.ReasonNoKarpenter},
		"a static NodePool":          {static, replacement.ReasonStatic},
		"a limit":                    {limited, replacement.ReasonLimits},
		"a NodeClaim on its own":     {func(k *karpenter) { c := k.claim("web-x7k2p"); c.SetLabels(nil); k.update(c, "x", "spec", "y") }, replacement.ReasonStandalone},
		"room on another node": {func(k *karpenter) {
			b := node("b", "i-b")
			b.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourcePods: resource.MustParse("10")}
			if err := k.client.Create(k.t.Context(), b); err != nil {
				k.t.Fatal(err)
			}
		}, replacement.ReasonRoom},
	} {
		t.Run(name, func(t *testing.T) {
			k := withKarpenter(t, recordOf(spot()), sized("web-1"))
			test.before(k)
			k.settle(time.Second)
			k.settle(time.Second)
			if s := k.replaces(); s.Phase != v1beta1.NoReplacement || s.Reason != test.reason || k.claim(ourClaim) != nil {
				t.Errorf("replacement %+v", s)
			}
			if !slices.Contains(k.evictions, "web-1") {
				t.Errorf("not evicted: %+v", record.Pending(record.Drain(&k.record().Status)))
			}
		})
	}
}

func TestDeletingNodeClaimGetsTerminationTime(t *testing.T) {
	k := withKarpenter(t, recordOf(spot()), sized("web-1"))
	c := k.claim("web-x7k2p")
	c.SetFinalizers([]string{"karpenter.sh/termination"})
	k.update(c, "x", "spec", "y")
	if err := k.client.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	k.settle(time.Second)
	k.settle(time.Second)
	if got := k.claim("web-x7k2p").GetAnnotations()[replacement.AnnotationTermination]; got != "2026-05-11T08:16:02Z" {
		t.Errorf("deadline %q", got)
	}
	if s := k.replaces(); s.Reason != replacement.ReasonDeleting || !slices.Contains(k.evictions, "web-1") {
		t.Errorf("replacement %+v, evicted %v", s, k.evictions)
	}
}

func TestNodeDeletedByKarpenterGetsTerminationTime(t *testing.T) {
	k := withKarpenter(t, recordOf(spot()), sized("web-1"))
	k.settle(time.Second)
	c := k.claim("web-x7k2p")
	c.SetFinalizers([]string{"karpenter.sh/termination"})
	k.update(c, "x", "spec", "y")
	if err := k.client.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	n := k.node()
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "karpenter.sh/disrupted", Effect: corev1.TaintEffectNoSchedule})
	if err := k.client.Update(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	k.settle(time.Second)
	if got := k.claim("web-x7k2p").GetAnnotations()[replacement.AnnotationTermination]; got != "2026-05-11T08:16:02Z" {
		t.Errorf("deadline %q", got)
	}
	if h := record.Drain(&k.record().Status).NodeClaimDeletion; h == nil || h.DeletedTime == nil {
		t.Errorf("handover %+v", h)
	}
}

func TestRestoredNodeReleasesReplacement(t *testing.T) {
	change := spot()
	change.Kind, change.Subject = "ScheduledChange", "arn:1"
	for name, booted := range map[string]bool{"with its node": true, "without an instance": false} {
		t.Run(name, func(t *testing.T) {
			k := withKarpenter(t, recordOf(change), sized("web-1"))
			k.settle(time.Second)
			if k.claim(ourClaim) == nil {
				t.Fatalf("nothing is ordered: %+v", k.replaces())
			}
			if booted {
				k.launch()
				k.boot()
			}
			back := change
			back.ID, back.Withdrawn, back.Deadline = "back", true, nil
			back.Time, back.ReceivedTime = metav1.NewTime(k.now.Add(time.Second)), metav1.NewMicroTime(k.now.Add(time.Second))
			k.addNotices(back)
			k.settle(2 * time.Second)
			if k.protected() || (k.claim(ourClaim) != nil) != booted {
				t.Errorf("protected %v, there %v", k.protected(), k.claim(ourClaim) != nil)
			}
			if k.claim("web-x7k2p") == nil || k.node().Spec.Unschedulable {
				t.Error("the node that lives is handed over or cordoned")
			}
		})
	}
}

func TestAtMostThreeNodeClaimsArePending(t *testing.T) {
	k := withKarpenter(t, recordOf(spot()), sized("web-1"))
	for _, other := range []string{"i-1", "i-2", "i-3"} {
		c := object(replacement.KindNodeClaim, "web-lb-"+other, map[string]any{"spec": map[string]any{}})
		c.SetLabels(map[string]string{replacement.LabelNodePool: "web", v1beta1.LabelReplacesInstance: other})
		if err := k.client.Create(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	k.settle(time.Second)
	if s := k.replaces(); s.Phase != v1beta1.ReplacementQueued || k.claim(ourClaim) != nil || len(k.evictions) > 0 {
		t.Fatalf("replacement %+v, evicted %v", s, k.evictions)
	}
	k.update(k.claim("web-lb-i-1"), "aws:///us-east-1b/i-11", "status", "providerID")
	k.settle(time.Second)
	if s := k.replaces(); s.Phase != v1beta1.ReplacementOrdered || k.claim(ourClaim) == nil {
		t.Errorf("replacement %+v", s)
	}
}

func TestSecondInterruptionOrdersSecondReplacement(t *testing.T) {
	k := withKarpenter(t, recordOf(spot()), sized("web-1"))
	served := object(replacement.KindNodeClaim, ourClaim, map[string]any{"spec": map[string]any{}})
	served.SetAnnotations(map[string]string{v1beta1.AnnotationInterruption: instance})
	if err := k.client.Create(t.Context(), served); err != nil {
		t.Fatal(err)
	}
	k.settle(time.Second)
	if s := k.replaces(); s.Name != ourClaim+"-2" || k.claim(ourClaim+"-2") == nil {
		t.Errorf("replacement %+v", s)
	}
}
