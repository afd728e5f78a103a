//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
)

// TestImpostorTerminatesNoInstance has the Node of another machine state an instance. First the
// instance has a Ready Node too, then only the impostor is Ready. EC2 is not asked to terminate
// the instance in either case.
func TestImpostorTerminatesNoInstance(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	victim := r.launch(1)[0]
	r.apply(&v1beta1.InterruptionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: "terminate"},
		Spec:       v1beta1.InterruptionPolicySpec{Rules: []v1beta1.Rule{{Kinds: []string{"*"}, Action: v1beta1.ActionTerminate}}},
	})
	honest, err := r.node(t.Context(), victim)
	if err != nil {
		t.Fatal(err)
	}
	impostor := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "ip-10-9-9-9.ec2.internal"},
		Spec:       corev1.NodeSpec{ProviderID: honest.Spec.ProviderID},
	}
	r.apply(impostor)
	r.setReady(impostor.Name, corev1.ConditionTrue)
	r.send(envelope("evt-impostor", "EC2 Spot Instance Interruption Warning", r.AWS().Account(), r.AWS().Region(), time.Now(),
		map[string]string{"instance-id": victim.ID, "instance-action": "terminate"}))
	r.doubted(victim.ID, v1beta1.ReasonNodeConflict)

	if err := r.client.Delete(t.Context(), honest); err != nil {
		t.Fatal(err)
	}
	r.until("the impostor to be contradicted", time.Minute, func(ctx context.Context) (bool, error) {
		r.setReady(impostor.Name, corev1.ConditionTrue)
		return r.doubt(ctx, victim.ID) == v1beta1.ReasonContradicted, fmt.Errorf("doubt %q", r.doubt(ctx, victim.ID))
	})
	if in, _ := r.EC2().Instance(victim.ID); in.State != ec2.Running {
		t.Errorf("the instance is %s", in.State)
	}
}

// setReady sets the condition Ready of a node, as its kubelet does.
func (r *rig) setReady(name string, status corev1.ConditionStatus) {
	r.t.Helper()
	node := &corev1.Node{}
	if err := r.client.Get(r.t.Context(), types.NamespacedName{Name: name}, node); err != nil {
		r.t.Fatal(err)
	}
	node.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: status, LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now(), Reason: "KubeletReady",
	}}
	_ = r.client.Status().Update(r.t.Context(), node) // the node controller may write at the same time
}

// doubt is the reason of an Interruption's condition Corroborated, or "".
func (r *rig) doubt(ctx context.Context, id string) string {
	in, err := r.record(ctx, id)
	if err != nil || in == nil {
		return ""
	}
	if c := meta.FindStatusCondition(in.Status.Conditions, v1beta1.ConditionCorroborated); c != nil {
		return c.Reason
	}
	return ""
}

func (r *rig) doubted(id, reason string) {
	r.t.Helper()
	r.until("the condition Corroborated to be "+reason, time.Minute, func(ctx context.Context) (bool, error) {
		return r.doubt(ctx, id) == reason, fmt.Errorf("doubt %q", r.doubt(ctx, id))
	})
}
