//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/sandbox"
)

// TestReplacementIsReadyBeforeEviction interrupts a node that Karpenter launched. One replacement
// must be Ready before the first eviction. Then Karpenter terminates the interrupted node, and
// Lifeboat releases the replacement.
func TestReplacementIsReadyBeforeEviction(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]bool{"undisturbed": false, "lifeboatd is killed again and again": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			// A slow boot leaves time between the instance's launch and its node's registration.
			newKarpenterRig(t, sandbox.Options{BootDelay: 4 * time.Second}).replacesFirst(kill)
		})
	}
}

func (r *rig) replacesFirst(kill bool) {
	t := r.t
	records := r.watchPods()
	interrupted := r.busyNode()
	if err := r.EC2().Interrupt([]string{interrupted.ID}, ec2.InterruptOptions{}); err != nil {
		t.Fatal(err)
	}
	if kill {
		r.killAfterEachStep(kills{least: 2, most: 5, steps: 7}, func(ctx context.Context) (int, error) {
			n, err := r.replaced(ctx, interrupted)
			return n + len(records.asked(interrupted)), err
		})
	}
	in := r.reaches(interrupted.ID, v1beta1.PhaseCompleted, 2*time.Minute)
	s := in.Status
	if s.Drain == nil || s.Drain.Replacement == nil || s.Drain.Replacement.ReadyTime == nil || s.Drain.PodCounts.Lost > 0 || s.Drain.PodCounts.Moved != 2 {
		t.Fatalf("replacement %+v, pods %+v, timeline %+v", s.Drain.Replacement, s.Drain.Pods, s.Timeline)
	}
	for _, e := range s.Timeline {
		if e.Reason == v1beta1.ReasonEvicted && e.Time.Before(s.Drain.Replacement.ReadyTime) {
			t.Errorf("%s at %s, and the replacement is Ready at %s", e.Message, e.Time, s.Drain.Replacement.ReadyTime)
		}
	}
	for _, a := range records.asked(interrupted) {
		if a.grace != 30 {
			t.Errorf("%s got a grace period of %d s, want 30", a.name, a.grace)
		}
	}
	for name, n := range r.removals() {
		if n.accepted > 1 {
			t.Errorf("lifeboatd must evict %s once: %+v", name, n)
		}
	}
	if s.Drain == nil || s.Drain.NodeClaimDeletion == nil || s.Drain.NodeClaimDeletion.DeletedTime == nil {
		t.Errorf("NodeClaim deletion %+v", s.Drain.NodeClaimDeletion)
	}
	if n := len(r.EC2().Instances()); n != 2 {
		t.Errorf("%d instances were launched, want the interrupted one and its replacement", n)
	}
	r.until("the replacement to be released", 30*time.Second, func(ctx context.Context) (bool, error) {
		var node corev1.Node
		if err := r.client.Get(ctx, client.ObjectKey{Name: s.Drain.Replacement.NodeName}, &node); err != nil {
			return false, err
		}
		_, protected := node.Annotations[v1beta1.AnnotationKarpenterDoNotDisrupt]
		_, labelled := node.Labels[v1beta1.LabelReplacesInstance]
		return !protected && !labelled, fmt.Errorf("annotations %v", node.Annotations)
	})
	r.untilRunning("web", 2)
	for _, e := range s.Timeline {
		t.Logf("%s %-20s %s", e.Time.Format("15:04:05.000"), e.Reason, e.Message)
	}
}

// replaced counts the completed steps of a replacement: a NodeClaim, an instance, a node, beside
// the steps of every interruption.
func (r *rig) replaced(ctx context.Context, interrupted ec2.Instance) (steps int, err error) {
	steps, err = r.begun(ctx, interrupted)
	if err != nil {
		return 0, err
	}
	var nodes corev1.NodeList
	if err := r.client.List(ctx, &nodes); err != nil {
		return 0, err
	}
	for _, n := range []int{len(r.list(ctx, "NodeClaim")), len(r.EC2().Instances()), len(nodes.Items)} {
		if n > 1 {
			steps++
		}
	}
	return steps, nil
}

// TestPodsLeaveAtLastCallWithoutCapacity lets EC2 reject every launch, so Karpenter deletes each
// NodeClaim that Lifeboat creates.
func TestPodsLeaveAtLastCallWithoutCapacity(t *testing.T) {
	t.Parallel()
	r := newKarpenterRig(t, sandbox.Options{})
	interrupted := r.busyNode()
	r.EC2().SetCapacity(ec2.Offering{}, 0)
	if err := r.EC2().Interrupt([]string{interrupted.ID}, ec2.InterruptOptions{}); err != nil {
		t.Fatal(err)
	}
	s := r.reaches(interrupted.ID, v1beta1.PhaseCompleted, 4*time.Minute).Status
	if s.Drain == nil || s.Drain.Replacement == nil || s.Drain.Replacement.ReadyTime != nil || s.Drain.Replacement.Tries < 2 || s.Drain.PodCounts.Lost > 0 {
		t.Errorf("replacement %+v, pods %+v", s.Drain.Replacement, s.Drain.Pods)
	}
	lastCall := s.Deadline.Time.Add(-40 * time.Second) // a grace period of 30 s, and the margin
	for _, e := range s.Timeline {
		t.Logf("%s %-20s %s", e.Time.Format("15:04:05.000"), e.Reason, e.Message)
		if e.Reason == v1beta1.ReasonEvicted && e.Time.Time.Before(lastCall.Add(-time.Second)) {
			t.Errorf("evicted before its last call at %s", lastCall)
		}
	}
	r.until("no replacement to be left", 30*time.Second, func(ctx context.Context) (bool, error) {
		for _, claim := range r.list(ctx, "NodeClaim") {
			if claim.GetLabels()[v1beta1.LabelReplacesInstance] != "" {
				return false, fmt.Errorf("%s exists", claim.GetName())
			}
		}
		return true, nil
	})
}

// TestKarpenterReceivesForwardedMessage checks the forwarded message in Karpenter's queue, which
// has no other sender.
func TestKarpenterReceivesForwardedMessage(t *testing.T) {
	t.Parallel()
	r := newKarpenterRig(t, sandbox.Options{KarpenterQueue: "karpenter"})
	if err := r.RestartLifeboat(t.Context(), "--karpenter-queue-url="+r.State().KarpenterQueueURL); err != nil {
		t.Fatal(err)
	}
	interrupted := r.busyNode()
	if err := r.EC2().Interrupt([]string{interrupted.ID}, ec2.InterruptOptions{}); err != nil {
		t.Fatal(err)
	}
	s := r.reaches(interrupted.ID, v1beta1.PhaseCompleted, 2*time.Minute).Status
	if s.Drain == nil || s.Drain.Replacement == nil || s.Drain.Replacement.ReadyTime == nil || s.Drain.NodeClaimDeletion == nil || s.Drain.NodeClaimDeletion.ForwardedTime == nil || s.Drain.NodeClaimDeletion.Tries > 0 {
		t.Errorf("replacement %+v, NodeClaim deletion %+v", s.Drain.Replacement, s.Drain.NodeClaimDeletion)
	}
	r.until("Karpenter to have received the message", 30*time.Second, func(context.Context) (bool, error) {
		n := r.metricOf("karpenter", "karpenter_interruption_received_messages_total", `message_type="spot_interrupted"`)
		return n >= 1, fmt.Errorf("Karpenter counted %v messages", n)
	})
}

// busyNode returns the instance that Karpenter launched for two pods, once both run on it.
func (r *rig) busyNode() ec2.Instance {
	r.t.Helper()
	web := deployment("web", 2, 30*time.Second)
	web.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}
	r.apply(web)
	r.untilRunning("web", 2)
	interrupted := r.EC2().Instances()[0]
	r.until("the node to be initialised", time.Minute, func(ctx context.Context) (bool, error) { return r.initialised(ctx, interrupted) })
	return interrupted
}
