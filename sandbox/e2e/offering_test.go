//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/sandbox"
)

// oneType leaves one instance type: an offering is then a zone.
const oneType = `{"spec": {"template": {"spec": {"requirements": [
	{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]},
	{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.xlarge"]}]}}}}`

// TestKarpenterAvoidsForwardedOffering scales up after a spot interruption. Karpenter launches in
// the cheapest zone, which is that of the reclaimed instance. Only the message that Lifeboat
// forwards to Karpenter's queue keeps it from that.
func TestKarpenterAvoidsForwardedOffering(t *testing.T) {
	t.Parallel()
	for name, forwarded := range map[string]bool{"forwarded": true, "not forwarded": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newKarpenterRig(t, sandbox.Options{KarpenterQueue: "karpenter"})
			url := "" // the sandbox forwards otherwise
			if forwarded {
				url = r.State().KarpenterQueueURL
			}
			if err := r.RestartLifeboat(t.Context(), "--karpenter-queue-url="+url); err != nil {
				t.Fatal(err)
			}
			interrupted, next := r.launchesAfterReclaim(forwarded)
			if again := next.Zone == interrupted.Zone; again == forwarded {
				t.Errorf("EC2 reclaimed an m5.xlarge in %s, and Karpenter launched the next in %s", interrupted.Zone, next.Zone)
			}
		})
	}
}

// launchesAfterReclaim returns the interrupted instance, and the one that Karpenter launches when
// more pods come after the handover.
func (r *rig) launchesAfterReclaim(forwarded bool) (interrupted, next ec2.Instance) {
	t := r.t
	pool := &unstructured.Unstructured{}
	pool.SetAPIVersion("karpenter.sh/v1")
	pool.SetKind("NodePool")
	pool.SetName("default")
	if err := r.client.Patch(t.Context(), pool, client.RawPatch("application/merge-patch+json", []byte(oneType))); err != nil {
		t.Fatal(err)
	}
	interrupted = r.busyNode()
	if err := r.EC2().Interrupt([]string{interrupted.ID}, ec2.InterruptOptions{}); err != nil {
		t.Fatal(err)
	}
	r.until("Lifeboat to hand the node over", 2*time.Minute, func(ctx context.Context) (bool, error) {
		var in v1beta1.Interruption
		if err := r.client.Get(ctx, client.ObjectKey{Name: interrupted.ID}, &in); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		h := drainOf(&in).NodeClaimDeletion
		return h != nil && h.DeletedTime != nil && (h.ForwardedTime != nil) == forwarded, fmt.Errorf("NodeClaim deletion %+v", h)
	})
	if forwarded {
		r.until("Karpenter to read the message", 30*time.Second, func(context.Context) (bool, error) {
			n := r.metricOf("karpenter", "karpenter_interruption_received_messages_total", `message_type="spot_interrupted"`)
			return n >= 1, fmt.Errorf("Karpenter counted %v messages", n)
		})
	}
	before := map[string]bool{}
	for _, in := range r.EC2().Instances() {
		before[in.ID] = true
	}
	r.scale("web", 8)
	r.until("Karpenter to launch for more pods", time.Minute, func(context.Context) (bool, error) {
		for _, in := range r.EC2().Instances() {
			if !before[in.ID] {
				next = in
				return true, nil
			}
		}
		return false, errors.New("no new instance")
	})
	return interrupted, next
}
