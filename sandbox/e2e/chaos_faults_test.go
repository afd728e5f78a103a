//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/sandbox"
	"github.com/lifeboat-dev/lifeboat/sandbox/chaos"
)

// begin applies a fault of the menu until the returned function is called.
func (r *rig) begin(name string) (undo func()) {
	r.t.Helper()
	target, err := chaos.Open(r.State().Dir)
	if err != nil {
		r.t.Fatal(err)
	}
	f, err := chaos.Find(name)
	if err != nil {
		r.t.Fatal(err)
	}
	end, err := chaos.Start(r.t.Context(), target, f, time.Hour, 1)
	if err != nil {
		r.t.Fatal(err)
	}
	return func() {
		r.t.Helper()
		if err := end(); err != nil {
			r.t.Error(err)
		}
	}
}

// TestFullEtcd: while etcd stores nothing, the message with a notice stays in the queue. Afterwards its node
// is drained.
func TestFullEtcd(t *testing.T) {
	t.Parallel()
	r := newRigWith(t, sandbox.Options{Chaos: true})
	in := r.launch(1)[0]
	r.apply(deployment("web", 2, time.Second))
	r.waitPods(in, 2)
	undo := r.begin("full-etcd")
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: "probe-"}}
	if err := r.client.Create(t.Context(), probe.DeepCopy()); err == nil || !strings.Contains(err.Error(), "database space exceeded") {
		t.Fatalf("a write to a full etcd: %v", err)
	}
	r.say("full", spotWarning, in, map[string]string{"instance-action": "terminate"})
	r.until("the message to be handed back twice", 2*time.Minute, func(context.Context) (bool, error) {
		n := r.metric("lifeboat_received_messages_total", `outcome="failed"`)
		return n >= 2, fmt.Errorf("%v failed", n)
	})
	undo()
	r.reaches(in.ID, v1beta1.PhaseDrained, 2*time.Minute)
	if err := r.client.Create(t.Context(), probe); err != nil {
		t.Errorf("a write after the fault: %v", err)
	}
}

// TestStoredBytesAreOfNow changes an object ten times: etcd keeps each, and only the last counts.
func TestStoredBytesAreOfNow(t *testing.T) {
	t.Parallel()
	r := newRigWith(t, sandbox.Options{Chaos: true, NoLifeboat: true})
	target, err := chaos.Open(r.State().Dir)
	if err != nil {
		t.Fatal(err)
	}
	stored := func() int64 {
		n, err := target.StoredBytes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	const size = 512 << 10
	before := stored()
	big := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "big"}}
	if err := r.client.Create(t.Context(), big); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		big.Data = map[string]string{"text": strings.Repeat(strconv.Itoa(i), size)}
		if err := r.client.Update(t.Context(), big); err != nil {
			t.Fatal(err)
		}
	}
	if grown := stored() - before; grown < size || grown > 4*size {
		t.Errorf("an object of %d bytes that changed ten times takes %d", size, grown)
	}
}

// TestLeaderPingPong: a node is drained while the Lease goes from replica to replica.
func TestLeaderPingPong(t *testing.T) {
	t.Parallel()
	r := newRigWith(t, sandbox.Options{Chaos: true, Replicas: 2})
	records := r.watchPods()
	interrupted, pods := r.stage()
	transitions := func(ctx context.Context) (int32, error) {
		var lease coordinationv1.Lease
		err := r.client.Get(ctx, types.NamespacedName{Namespace: "lifeboat-system", Name: "lifeboat-controller"}, &lease)
		return ptr.Deref(lease.Spec.LeaseTransitions, 0), err
	}
	first, err := transitions(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	undo := r.begin("ping-pong-lease")
	changes := func(n int32) {
		r.until(fmt.Sprintf("%d changes of the leader", n), 2*time.Minute, func(ctx context.Context) (bool, error) {
			now, err := transitions(ctx)
			return now >= first+n, err
		})
	}
	changes(1)
	r.reclaim(interrupted)
	changes(3)
	undo()
	record := r.reaches(interrupted.ID, v1beta1.PhaseDrained, 90*time.Second)
	r.checkDrain(records, interrupted, pods, record)
}
