//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/chart"
)

// TestPodsStopAfterDeregistration drains a node that is a target of a load balancer. With the option,
// no pod is asked to stop before the balancer sends the node no new connections. Without it, pods are
// asked while it does.
func TestPodsStopAfterDeregistration(t *testing.T) {
	t.Parallel()
	t.Run("with the option", func(t *testing.T) {
		t.Parallel()
		b, node, pods := newBalanced(t, time.Hour)
		b.recommend(node)
		b.untilWaiting(node)
		if asked := pods.asked(node); len(asked) > 0 {
			t.Fatalf("asked to stop while the instance is a target: %+v", asked)
		}
		b.hold(false)
		b.reaches(node.ID, v1beta1.PhaseDrained, 2*time.Minute)
		b.mu.Lock()
		left := b.deregistered[node.ID]
		b.mu.Unlock()
		for _, q := range readAudit(t, b.audit)[chart.ControllerAccount] {
			if q.RequestReceivedTimestamp.Before(left) {
				t.Errorf("%s of %s at %s, before the instance was deregistered at %s", q, q.ObjectRef.Name, q.RequestReceivedTimestamp, left)
			}
		}
		if state := b.state(node); state != types.TargetHealthStateEnumDraining {
			t.Errorf("the instance is %q after the drain: pods need not wait for the whole deregistration delay", state)
		}
		b.wantEnd(node, v1beta1.ReasonDeregistered)
	})
	t.Run("twin", func(t *testing.T) {
		t.Parallel()
		b, node, pods := newBalanced(t, 0)
		b.recommend(node)
		b.until("a pod to be asked to stop", time.Minute, func(context.Context) (bool, error) { return len(pods.asked(node)) > 0, nil })
		if state := b.state(node); state != types.TargetHealthStateEnumHealthy {
			t.Errorf("the instance is %q", state)
		}
		b.wantEnd(node, "")
	})
}

// TestDeregistrationTimeIsOver kills lifeboatd while pods wait for a balancer that never deregisters
// the node. The limit counts from the cordon, not from the restart.
func TestDeregistrationTimeIsOver(t *testing.T) {
	t.Parallel()
	b, node, pods := newBalanced(t, 0)
	limit := time.Duration(float64(time.Minute) * b.slow).Round(time.Second)
	b.apply(waiting("late", limit, 1))
	b.recommend(node)
	begun := drainOf(b.untilWaiting(node)).StartTime.Time
	b.until("half of the limit to pass", limit, func(context.Context) (bool, error) { return time.Now().After(begun.Add(limit / 2)), nil })
	if asked := pods.asked(node); len(asked) > 0 {
		t.Fatalf("asked to stop before the limit: %+v", asked)
	}
	killed := time.Now()
	if err := b.KillLifeboat(); err != nil {
		t.Fatal(err)
	}
	record := b.reaches(node.ID, v1beta1.PhaseDrained, 2*limit)
	b.wantEnd(node, v1beta1.ReasonDeregistrationTimedOut)
	for _, e := range record.Status.Timeline {
		if e.Reason == v1beta1.ReasonDeregistrationTimedOut && (e.Time.Time.Before(begun.Add(limit)) || e.Time.Time.After(killed.Add(limit))) {
			t.Errorf("the wait of %s ended at %s: it began at %s, and lifeboatd was killed at %s", limit, e.Time, begun, killed)
		}
	}
	for _, q := range readAudit(t, b.audit)[chart.ControllerAccount] {
		if q.RequestReceivedTimestamp.Before(begun.Add(limit)) {
			t.Errorf("%s of %s at %s, before the limit", q, q.ObjectRef.Name, q.RequestReceivedTimestamp)
		}
	}
}

// TestDeregistrationWaitEndsAtLastCall interrupts the node: pods get their whole grace although it is
// still a target.
func TestDeregistrationWaitEndsAtLastCall(t *testing.T) {
	t.Parallel()
	b, node, pods := newBalanced(t, time.Hour)
	b.reclaim(node)
	b.untilWaiting(node)
	b.until("a pod to be asked to stop", 3*time.Minute, func(context.Context) (bool, error) { return len(pods.asked(node)) > 0, nil })
	if state := b.state(node); state != types.TargetHealthStateEnumHealthy {
		t.Errorf("the instance is %q", state)
	}
	b.checkDrain(pods, node, 2, b.reaches(node.ID, v1beta1.PhaseDrained, 2*time.Minute))
	b.wantEnd(node, "")
}

// newBalanced is a sandbox with two pods on a node that is a healthy target. The balancer does not
// deregister it until hold. With a limit, policy waits.
func newBalanced(t *testing.T, limit time.Duration) (*balancer, ec2.Instance, *podRecords) {
	t.Helper()
	r := newRigWith(t, sandbox.Options{WaitForDeregistration: true, LimitRole: true})
	b, pods := r.balance(), r.watchPods()
	r.apply(waiting("all", limit, 0))
	node := r.launch(1)[0]
	r.apply(deployment("web", 2, time.Second))
	r.waitPods(node, 2)
	r.launch(1)
	r.until("the node to be a target", time.Minute, func(context.Context) (bool, error) {
		return b.state(node) == types.TargetHealthStateEnumHealthy, fmt.Errorf("it is %q", b.state(node))
	})
	return b, node, pods
}

// waiting is a policy that drains on each notice, and waits for load balancers with a limit.
func waiting(name string, limit time.Duration, priority int32) *v1beta1.InterruptionPolicy {
	p := &v1beta1.InterruptionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1beta1.InterruptionPolicySpec{
		Priority: priority,
		Rules:    []v1beta1.Rule{{Kinds: []string{"*"}, Action: v1beta1.ActionDrain, Strategy: v1beta1.StrategyEvict, Replacement: v1beta1.ReplacementNone}},
	}}
	if limit > 0 {
		p.Spec.WaitForDeregistration = &metav1.Duration{Duration: limit}
	}
	return p
}

// recommend has EC2 recommend a rebalance, which has no deadline.
func (b *balancer) recommend(in ec2.Instance) {
	b.t.Helper()
	if err := b.EC2().Recommend([]string{in.ID}); err != nil {
		b.t.Fatal(err)
	}
}

// untilWaiting waits until both pods wait for the target group, and returns the Interruption.
func (b *balancer) untilWaiting(in ec2.Instance) *v1beta1.Interruption {
	b.t.Helper()
	var found *v1beta1.Interruption
	b.until("both pods to wait for the target group", time.Minute, func(ctx context.Context) (bool, error) {
		record, err := b.record(ctx, in.ID)
		if err != nil || record == nil {
			return false, err
		}
		found = record
		n := 0
		for _, p := range drainOf(record).Pods {
			if strings.Contains(p.Message, "load balancers still send new connections to its instance (target group web)") {
				n++
			}
		}
		return n == 2, fmt.Errorf("%+v", drainOf(record).Pods)
	})
	return found
}

// state is the state of an instance in the target group.
func (b *balancer) state(in ec2.Instance) types.TargetHealthStateEnum {
	b.t.Helper()
	states, err := b.targets(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return states[in.ID]
}

// wantEnd checks how the wait ended, in the status and once in the timeline; empty: it did not.
func (b *balancer) wantEnd(in ec2.Instance, want string) {
	b.t.Helper()
	record, err := b.record(b.t.Context(), in.ID)
	if err != nil || record == nil {
		b.t.Fatalf("no record: %v", err)
	}
	entries := ""
	for _, e := range record.Status.Timeline {
		if strings.HasPrefix(e.Reason, v1beta1.ReasonDeregistered) || strings.HasPrefix(e.Reason, "Deregistration") {
			entries += e.Reason
		}
	}
	if got := drainOf(record).Deregistration; got != want || entries != want {
		b.t.Errorf("the wait ended with %q in the status and %q in the timeline, want %q", got, entries, want)
	}
}
