package concurrency

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
)

var noon = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// queue is Interruptions a, b, … that wait for a slot of the policy db, which selects some nodes.
type queue struct {
	*testing.T
	client client.Client
	limit  *Limit
	slots  Slots
	now    time.Time
}

func newQueue(t *testing.T, most intstr.IntOrString, nodes int) *queue {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	db := v1beta1.InterruptionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "db"}, Spec: v1beta1.InterruptionPolicySpec{
		Nodes: v1beta1.NodeSelector{NodePools: []string{"db"}}, Rules: []v1beta1.Rule{{Kinds: []string{"*"}, Action: v1beta1.ActionDrain}},
	}}
	q := &queue{T: t, now: noon, client: fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&v1beta1.Interruption{}).Build()}
	q.limit = Budget(&policy.Decision{Decision: v1beta1.Decision{EffectivePolicy: "db"}, Budget: &v1beta1.Budget{MaxConcurrent: most}}, []v1beta1.InterruptionPolicy{db})
	for _, name := range []string{"a", "b", "c"} {
		in := &v1beta1.Interruption{ObjectMeta: metav1.ObjectMeta{Name: name}}
		in.Status.Decision, in.Status.Phase = &v1beta1.Decision{EffectivePolicy: "db"}, v1beta1.PhaseQueued
		q.create(in)
	}
	for i := range nodes {
		q.join(fmt.Sprint("db-", i), "db")
	}
	q.join("web-0", "web") // the policy does not select it
	return q
}

func (q *queue) create(o client.Object) {
	q.Helper()
	if err := q.client.Create(q.Context(), o); err != nil {
		q.Fatal(err)
	}
}

func (q *queue) join(name, pool string) {
	q.Helper()
	q.create(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"karpenter.sh/nodepool": pool}}})
}

// gets reports whether an Interruption gets a slot.
func (q *queue) gets(name string) bool {
	q.Helper()
	var in v1beta1.Interruption
	if err := q.client.Get(q.Context(), client.ObjectKey{Name: name}, &in); err != nil {
		q.Fatal(err)
	}
	wait, err := q.slots.Acquire(q.Context(), q.client, q.limit, &in, q.now)
	if err != nil {
		q.Fatal(err)
	}
	return wait == ""
}

// write writes that the drain of an Interruption has begun, or is done.
func (q *queue) write(name string, done bool) {
	q.Helper()
	var in v1beta1.Interruption
	if err := q.client.Get(q.Context(), client.ObjectKey{Name: name}, &in); err != nil {
		q.Fatal(err)
	}
	at := metav1.NewMicroTime(q.now)
	in.Status.Phase, in.Status.Drain = v1beta1.PhaseDraining, &v1beta1.DrainStatus{StartTime: &at}
	if done {
		in.Status.Phase = v1beta1.PhaseDrained
		in.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionDrained, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(q.now)}}
	}
	if err := q.client.Status().Update(q.Context(), &in); err != nil {
		q.Fatal(err)
	}
}

// leave makes an Interruption wait for something else than a slot.
func (q *queue) leave(name string) {
	q.Helper()
	var in v1beta1.Interruption
	if err := q.client.Get(q.Context(), client.ObjectKey{Name: name}, &in); err != nil {
		q.Fatal(err)
	}
	in.Status.Phase = v1beta1.PhaseScheduled
	if err := q.client.Status().Update(q.Context(), &in); err != nil {
		q.Fatal(err)
	}
}

// A slot counts as used while its use is not written, and only for a while: the write may be refused.
func TestSlotWhoseUseIsNotWritten(t *testing.T) {
	q := newQueue(t, intstr.FromInt32(1), 0)
	for range 2 {
		if !q.gets("a") {
			t.Fatal("a got no slot, or lost it in the next pass")
		}
	}
	q.now = noon.Add(reservationTTL - time.Second)
	if q.gets("b") {
		t.Error("b got the slot of a before it expired")
	}
	if !q.gets("a") {
		t.Error("a lost its slot before it expired")
	}
	q.now = noon.Add(reservationTTL)
	if q.gets("b") {
		t.Error("b went ahead of a, which waits as well and comes first")
	}
	q.leave("a")
	if !q.gets("b") || q.gets("c") {
		t.Error("b did not get the slot that expired, or c got it as well")
	}
}

// A node that cannot be cordoned gives its slot back, before that expires.
func TestReleasedSlotIsFree(t *testing.T) {
	q := newQueue(t, intstr.FromInt32(1), 0)
	if !q.gets("a") {
		t.Fatal("a got no slot")
	}
	q.leave("a")
	q.slots.Release("b") // it has none
	if q.gets("b") {
		t.Fatal("b got the slot of a")
	}
	q.slots.Release("a")
	if !q.gets("b") {
		t.Error("b did not get the slot that a gave back")
	}
}

// The slot of a drain that its record shows is free once the record shows its end.
func TestWrittenSlotIsFreeAfterDrain(t *testing.T) {
	q := newQueue(t, intstr.FromInt32(1), 0)
	if !q.gets("a") {
		t.Fatal("a got no slot")
	}
	q.write("a", false)
	q.now = noon.Add(2 * reservationTTL)
	if q.gets("b") {
		t.Error("b got the slot of a, which is drained still")
	}
	q.write("a", true)
	if !q.gets("b") {
		t.Error("b did not get the slot after the drain")
	}
}

// A percentage is of the nodes that the policy selects. They are counted again after a while.
func TestPercentageIsOfSelectedNodes(t *testing.T) {
	for _, tc := range []struct {
		percent string
		nodes   int
		want    int
	}{{"25%", 4, 1}, {"50%", 4, 2}, {"10%", 3, 1}, {"100%", 2, 2}} {
		q := newQueue(t, intstr.FromString(tc.percent), tc.nodes)
		got := 0
		for _, name := range []string{"a", "b", "c"} {
			if q.gets(name) {
				got++
			}
		}
		if got != tc.want {
			t.Errorf("%s of %d nodes: %d slots, want %d", tc.percent, tc.nodes, got, tc.want)
		}
	}
	q := newQueue(t, intstr.FromString("50%"), 2)
	if !q.gets("a") || q.gets("b") {
		t.Fatal("half of two nodes is not one slot")
	}
	q.join("db-2", "db")
	q.join("db-3", "db")
	q.now = noon.Add(nodeCountTTL)
	if !q.gets("b") {
		t.Error("half of four nodes is not two slots")
	}
}
