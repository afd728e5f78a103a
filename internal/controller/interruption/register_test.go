package interruption

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// Ten thousand Interruptions of instances without a node must not delay the drain of a node.
func TestInterruptionWithoutNodeGoesLast(t *testing.T) {
	genuine, atRisk, gone := recordOf(spot()), recordOf(rebalance()), recordOf(spot())
	atRisk.Name, atRisk.Spec.InstanceID = "i-0000000000000000b", "i-0000000000000000b"
	gone.Name, gone.Spec.InstanceID = "i-0000000000000000c", "i-0000000000000000c"
	gone.Spec.Notices[0].Deadline.Time = metav1.NewTime(start.Add(time.Second))
	w := newWorld(t, genuine, atRisk, gone, node("a", instance), node("b", atRisk.Name), pod("web-1"))
	ctx := t.Context()

	for _, c := range []struct {
		why  string
		rank func(*v1beta1.Interruption) int
	}{
		{"an event about it", func(in *v1beta1.Interruption) int { return w.loop.itself(ctx, in)[in.Name] }},
		{"a change of a policy", func(in *v1beta1.Interruption) int { return w.loop.all(ctx, nil)[in.Name] }},
		{"a change of its hooks", func(in *v1beta1.Interruption) int { return w.loop.ofName(ctx, in.Name)[in.Name] }},
		{"a pass", func(in *v1beta1.Interruption) int { // the last: it can complete the record
			result, err := w.loop.Reconcile(ctx, in.DeepCopy())
			if err != nil || result.Priority == nil {
				t.Fatalf("%+v, %v", result, err)
			}
			return *result.Priority
		}},
	} {
		if near, none, nodeless := c.rank(genuine), c.rank(atRisk), c.rank(gone); near <= none || none <= nodeless {
			t.Errorf("%s: ranks %d, %d and %d of the nearest deadline, none, and one without a node", c.why, near, none, nodeless)
		}
	}
}

// There may be hundreds of policies, and each pass of each Interruption reads all of them.
func TestPassCopiesNoPolicies(t *testing.T) {
	w := newWorld(t, recordOf(spot()), node("a", instance), pod("web-1"))
	lists := 0
	w.loop.Client = interceptor.NewClient(w.client.(client.WithWatch), interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(*v1beta1.InterruptionPolicyList); ok {
				lists++
				o := (&client.ListOptions{}).ApplyOptions(opts)
				if o.UnsafeDisableDeepCopy == nil || !*o.UnsafeDisableDeepCopy {
					t.Error("a pass copies all policies")
				}
			}
			return c.List(ctx, list, opts...)
		},
	})
	w.settle(0)
	if lists == 0 {
		t.Error("no pass read the policies")
	}
}

// A drain whose node is gone has nothing to wait for: thousands of them would poll for the next node.
func TestDrainOfGoneNodePassesBarrier(t *testing.T) {
	other := recordOf(spot())
	other.Name, other.Spec.InstanceID, other.Spec.NodeName = "i-0000000000000000b", "i-0000000000000000b", "b"
	w := newWorld(t, recordOf(spot()), other, node("b", other.Name))
	w.settle(0)
	if w.record().Status.CompletionTime == nil {
		t.Errorf("it waits for node b: %+v", w.record().Status.Conditions)
	}
}
