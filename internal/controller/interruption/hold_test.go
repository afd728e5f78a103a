package interruption

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// heldUntil has a person hold the drain from now on.
func (w *world) heldUntil(until time.Time) {
	w.t.Helper()
	w.setStatement(func(s *v1beta1.InterruptionSpec) {
		s.Hold = &v1beta1.UserAction{By: "dana", Time: metav1.NewMicroTime(w.now), Until: &metav1.Time{Time: until}}
	})
}

// An operator wants the core dump of a node whose pods have left.
func TestHoldKeepsNodeClaim(t *testing.T) {
	t.Parallel()
	k := withKarpenter(t, recordOf(impaired()), team(terminate))
	terminator := &fakeTerminator{world: k.world}
	k.loop.Cloud = terminator
	end := start.Add(2 * time.Hour)
	k.heldUntil(end)
	for k.now.Before(end.Add(-10 * time.Minute)) {
		k.settle(5 * time.Minute)
	}
	if h := record.Drain(&k.record().Status).NodeClaimDeletion; h != nil || k.claim("web-x7k2p") == nil || len(terminator.asked) > 0 {
		t.Fatalf("during the hold: handed over %+v, terminated %v", h, terminator.asked)
	}
	if said := record.Message(k.record()); !strings.Contains(said, "dana holds it until") {
		t.Errorf("the status does not say that it is held: %q", said)
	}
	k.settle(10 * time.Minute)
	if h := record.Drain(&k.record().Status).NodeClaimDeletion; h == nil || k.claim("web-x7k2p") != nil {
		t.Errorf("after the hold: handed over %+v", h)
	}
}

// EC2 ends a spot instance in any case: Karpenter learns it before that.
func TestHoldEndsBeforeHardDeadline(t *testing.T) {
	t.Parallel()
	k := withKarpenter(t, recordOf(spot()))
	k.heldUntil(start.Add(time.Hour))
	k.settle(time.Minute)
	if k.claim("web-x7k2p") == nil {
		t.Fatal("the NodeClaim is deleted a minute before the deadline")
	}
	k.settle(time.Minute)
	if k.claim("web-x7k2p") != nil {
		t.Error("the NodeClaim is not deleted at the deadline")
	}
}

func TestHoldKeepsLifecycleHook(t *testing.T) {
	t.Parallel()
	g := withGroup(t, recordOf(terminating(notice.SourceQueue)))
	g.hold("Terminating:Wait")
	g.look()
	g.heldUntil(start.Add(10 * time.Minute))
	g.run(9*time.Minute, nil)
	if len(g.completed) > 0 || len(g.beats) == 0 {
		t.Fatalf("during the hold: answered %v, extended %v", g.completed, g.beats)
	}
	g.run(2*time.Minute, nil)
	if len(g.completed) != 1 {
		t.Errorf("after the hold: answered %v", g.completed)
	}
}

// The instance was taken out of its group, so only Lifeboat ends it. It is not forgotten either.
func TestHoldKeepsDetachedInstance(t *testing.T) {
	t.Parallel()
	change := rebalance()
	change.Source = notice.SourceEC2 // EC2 itself says so
	g := withGroup(t, recordOf(change), pod("web-1"), team(func(s *v1beta1.InterruptionPolicySpec) {
		s.Rules[0].Replacement = v1beta1.ReplacementBefore
	}))
	g.run(5*time.Second, nil)
	if len(g.detached) != 1 {
		t.Fatalf("not detached: %+v", g.replaces())
	}
	g.gone("web-1")
	g.heldUntil(g.now.Add(2 * time.Hour))
	g.run(100*time.Minute, nil)
	if len(g.ended) > 0 || g.record().Status.CompletionTime != nil {
		t.Fatalf("during the hold: terminated %v, completed at %v", g.ended, g.record().Status.CompletionTime)
	}
	g.run(30*time.Minute, nil)
	if len(g.ended) == 0 {
		t.Error("after the hold, the instance runs on without a group")
	}
}
