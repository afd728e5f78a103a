package interruption

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/corroborate"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// doubt is the reason of the condition Corroborated, or "".
func (w *world) doubt() string {
	w.t.Helper()
	c := meta.FindStatusCondition(w.record().Status.Conditions, v1beta1.ConditionCorroborated)
	if c == nil {
		return ""
	}
	return c.Reason
}

// A kubelet states the instance of another: EC2 gives that instance another name.
func TestImpostorDoesNotHaveAnotherInstanceTerminated(t *testing.T) {
	w := newWorld(t, recordOf(impaired()), node("a", instance), pod("web-1"), team(terminate))
	terminator := &fakeTerminator{world: w}
	w.loop.Cloud, w.loop.Live = terminator, w.client
	impostor := w.node()
	impostor.Name, impostor.ResourceVersion = "ip-10-0-0-9.ec2.internal", ""
	w.remove(w.node())
	if err := w.client.Create(t.Context(), impostor); err != nil {
		t.Fatal(err)
	}
	w.ec2 = map[string]cloud.Instance{instance: {DNSName: "ip-10-0-0-1.ec2.internal"}}
	w.settle(time.Second)
	for range 5 {
		w.settle(w.wake)
	}
	if len(terminator.asked) > 0 {
		t.Fatalf("terminated %v", terminator.asked)
	}
	if w.doubt() != v1beta1.ReasonContradicted || !slices.Contains(reasons(w.record().Status), v1beta1.ReasonContradicted) {
		t.Errorf("not reported: %+v", w.record().Status.Conditions)
	}
}

// EC2 does not answer: the termination waits, and is done once it does.
func TestTerminationWaitsUntilEC2Answers(t *testing.T) {
	w := newWorld(t, recordOf(impaired()), node("a", instance), team(terminate))
	terminator := &fakeTerminator{world: w}
	w.loop.Cloud = terminator
	w.undescribed = errors.New("RequestLimitExceeded")
	w.settle(time.Second)
	w.settle(time.Second)
	if len(terminator.asked) > 0 || w.doubt() != v1beta1.ReasonUnconfirmed || w.described > 1 {
		t.Fatalf("terminated %v, doubt %q, %d questions", terminator.asked, w.doubt(), w.described)
	}
	w.undescribed = nil
	w.settle(verdictTTL)
	if len(terminator.asked) != 1 || w.doubt() != "" {
		t.Errorf("terminated %v, doubt %q", terminator.asked, w.doubt())
	}
}

// Of two Ready nodes that state an instance, neither is changed, and the record says so. Once one
// is gone, the other is drained.
func TestNodesThatStateTheSameInstanceAreLeftAlone(t *testing.T) {
	impostor, victim := node("b", instance), node("a", instance)
	w := newWorld(t, recordOf(spot()), victim, impostor, pod("web-1"))
	w.settle(time.Second)
	for _, name := range []string{"a", "b"} {
		n := &corev1.Node{}
		if err := w.client.Get(t.Context(), types.NamespacedName{Name: name}, n); err != nil {
			t.Fatal(err)
		}
		if mutate.HasMark(n) {
			t.Errorf("node %s is marked", name)
		}
	}
	if len(w.evictions)+len(w.deletions) > 0 || w.doubt() != v1beta1.ReasonNodeConflict || w.record().Status.CompletionTime != nil {
		t.Fatalf("evicted %v, deleted %v, status %+v", w.evictions, w.deletions, w.record().Status)
	}
	if c := meta.FindStatusCondition(w.record().Status.Conditions, v1beta1.ConditionReady); c == nil || !strings.Contains(c.Message, "a and b") {
		t.Errorf("condition %+v", c)
	}
	w.remove(impostor)
	w.settle(time.Second)
	if len(w.evictions) != 1 || w.doubt() != "" {
		t.Errorf("evicted %v, doubt %q", w.evictions, w.doubt())
	}
}

// One message says that an instance is terminated. No pod is deleted with a grace of 0 before EC2
// says the same. A kubelet that is silent for a moment proves nothing while EC2 says that the
// instance runs.
func TestOneMessageDoesNotKillThePodsOfANodeThatLives(t *testing.T) {
	w := newWorld(t, recordOf(stateChange(notice.StateTerminated, start)), node("a", instance), pod("web-1"))
	contradicted := func() {
		t.Helper()
		w.settle(time.Second)
		w.settle(time.Minute)
		if len(w.evictions)+len(w.deletions) > 0 || w.doubt() != v1beta1.ReasonContradicted || mutate.HasMark(w.node()) {
			t.Fatalf("evicted %v, deleted %v, doubt %q", w.evictions, w.deletions, w.doubt())
		}
	}
	contradicted()
	w.silence()
	contradicted()
	w.ec2 = map[string]cloud.Instance{instance: {State: "terminated"}}
	w.settle(verdictTTL)
	if grace, ok := w.deletions["web-1"]; !ok || grace != 0 || w.doubt() != "" {
		t.Errorf("deleted %v, doubt %q", w.deletions, w.doubt())
	}
}

// A live kubelet states a stopped instance, for example because its machine has a copy of that
// instance's disk. The pods that it runs get no grace of 0: EC2 gives the instance another name.
func TestStoppedInstanceOfAnotherNameDoesNotKillPods(t *testing.T) {
	const name = "ip-10-0-0-9.ec2.internal"
	p := pod("web-1")
	p.Spec.NodeName = name
	w := newWorld(t, recordOf(stateChange("stopped", start)), node(name, instance), p)
	w.ec2 = map[string]cloud.Instance{instance: {State: "stopped", DNSName: "ip-10-0-0-1.ec2.internal"}}
	w.settle(time.Second)
	w.settle(time.Minute)
	if len(w.evictions)+len(w.deletions) > 0 || w.doubt() != v1beta1.ReasonContradicted {
		t.Fatalf("evicted %v, deleted %v, doubt %q", w.evictions, w.deletions, w.doubt())
	}
	w.ec2 = map[string]cloud.Instance{instance: {State: "stopped", DNSName: name}}
	w.settle(verdictTTL)
	if grace, ok := w.deletions["web-1"]; !ok || grace != 0 || w.doubt() != "" {
		t.Errorf("deleted %v, doubt %q", w.deletions, w.doubt())
	}
}

// Without an answer of EC2, a message and a silent kubelet are enough.
func TestMessageAndSilentKubeletAreEnoughWithoutEC2(t *testing.T) {
	w := newWorld(t, recordOf(stateChange(notice.StateTerminated, start)), node("a", instance), pod("web-1"))
	w.loop.Cloud = nil
	w.settle(time.Second)
	if len(w.deletions) > 0 {
		t.Fatalf("deleted %v while the kubelet is Ready", w.deletions)
	}
	w.silence()
	w.settle(verdictTTL)
	if grace, ok := w.deletions["web-1"]; !ok || grace != 0 {
		t.Errorf("deleted %v, doubt %q", w.deletions, w.doubt())
	}
}

// silence has the kubelet of the node send no heartbeats.
func (w *world) silence() {
	w.t.Helper()
	silent := w.node()
	silent.Status.Conditions[0].Status = corev1.ConditionUnknown
	if err := w.client.Status().Update(w.t.Context(), silent); err != nil {
		w.t.Fatal(err)
	}
}

// The notice that EC2 contradicts does not hold up what another says.
func TestContradictedNoticeDelaysNoOther(t *testing.T) {
	w := newWorld(t, recordOf(spot(), stateChange(notice.StateTerminated, start)), node("a", instance), pod("web-1"))
	w.settle(time.Second)
	if len(w.evictions) != 1 || len(w.deletions) > 0 {
		t.Errorf("evicted %v, deleted %v", w.evictions, w.deletions)
	}
}

// EC2 is asked again although another notice decides, and the status says so if that lasts.
func TestContradictedNoticeIsAskedAgain(t *testing.T) {
	w := newWorld(t, recordOf(spot(), stateChange(notice.StateTerminated, start)), node("a", instance), pod("web-1"))
	w.settle(time.Second)
	if w.wake == 0 || w.wake > firstRetry || w.doubt() != "" {
		t.Fatalf("asks again in %s, doubt %q", w.wake, w.doubt())
	}
	for range 5 {
		w.settle(w.wake)
	}
	if w.doubt() != v1beta1.ReasonContradicted {
		t.Errorf("doubt %q", w.doubt())
	}
	w.silence()
	w.ec2 = map[string]cloud.Instance{instance: {State: "terminated"}}
	w.settle(w.wake)
	if _, ok := w.deletions["web-1"]; !ok || w.doubt() != "" {
		t.Errorf("deleted %v, doubt %q", w.deletions, w.doubt())
	}
}

// Neither an agent nor the queue can have a node deleted: only the group's state shows that its
// instance returns to the warm pool.
func TestUnconfirmedNoticeReturnsNoInstance(t *testing.T) {
	for _, source := range []string{notice.SourceIMDS, notice.SourceQueue} {
		for _, state := range []string{"", "InService", "Terminating:Wait"} {
			n := terminating(source)
			n.InstanceAction, n.LifecycleHook = notice.ActionReturn, nil
			g := withGroup(t, recordOf(n))
			if delete(g.states, instance); state != "" {
				g.states[instance] = state
			}
			g.look()
			g.settle(time.Second)
			for range 3 {
				g.settle(time.Minute)
				g.look()
			}
			if g.node() == nil {
				t.Errorf("a notice by %s had the node deleted, in state %q", source, state)
			}
		}
	}
}

// The kubelet of another node names the owner of this NodeClaim, which knows better.
func TestNodeClaimOfAnotherNodeIsNotDeleted(t *testing.T) {
	k := withKarpenter(t, recordOf(spot()))
	claim := k.claim("web-x7k2p")
	claim.Object["status"] = map[string]any{"providerID": "aws:///us-east-1a/" + instance, "nodeName": "b"}
	if err := k.client.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	k.settle(time.Second)
	for range 5 {
		k.settle(k.wake)
	}
	if k.claim("web-x7k2p") == nil || k.doubt() != v1beta1.ReasonContradicted {
		t.Errorf("claim %v, doubt %q", k.claim("web-x7k2p"), k.doubt())
	}
}

// A policy asks for the termination.
func TestControlPlaneInstanceIsNotTerminated(t *testing.T) {
	n := node("a", instance)
	n.Labels = map[string]string{"node-role.kubernetes.io/control-plane": ""}
	w := newWorld(t, recordOf(impaired()), n, pod("web-1"), team(terminate))
	terminator := &fakeTerminator{world: w}
	w.loop.Cloud, w.loop.Live = terminator, w.client
	w.ec2 = map[string]cloud.Instance{instance: {DNSName: "ip-10-0-0-1.ec2.internal"}}
	w.settle(time.Second)
	for range 5 {
		w.settle(w.wake)
	}
	if len(terminator.asked) > 0 {
		t.Errorf("terminated %v", terminator.asked)
	}
}

// A description can lag behind its own notice: EC2 is asked again after two seconds, and while it
// does not agree, each wait is twice as long, up to verdictTTL.
func TestVerdictIsRetriedSoon(t *testing.T) {
	var v verdicts
	var asked []time.Duration
	for second := range 40 {
		now := start.Add(time.Duration(second) * time.Second)
		v.get(instance, now, func() corroborate.Verdict {
			asked = append(asked, now.Sub(start))
			if second >= 24 {
				return corroborate.Verdict{Answer: corroborate.Agree}
			}
			return corroborate.Verdict{Answer: corroborate.Differ, Why: "the status of its spot request is fulfilled"}
		})
	}
	want := []time.Duration{0, 2 * time.Second, 6 * time.Second, 14 * time.Second, 24 * time.Second, 34 * time.Second}
	if !slices.Equal(asked, want) {
		t.Errorf("asked after %v, want %v", asked, want)
	}
}
