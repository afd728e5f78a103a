package chaos

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

// leaderTime is how long a replica may lead in a ping-pong: more than client-go's RetryPeriod of 2 s, and
// less than its RenewDeadline of 10 s.
const leaderTime = 4 * time.Second

// leases are faults of leader election.
func leases() []Fault {
	return []Fault{
		{Name: "steal-lease", Text: "another process takes the leader's Lease, and releases it afterwards", Lasts: true, Part: PartStandby, apply: stealing},
		{Name: "ping-pong-lease", Text: "the leader's Lease expires every " + leaderTime.String() + ", and either replica takes it", Lasts: true, Part: PartStandby, apply: pingPong},
	}
}

// stealing takes the Lease, so that the leader ends, and releases it.
func stealing(ctx context.Context, b *broken) error {
	holder := fmt.Sprintf("chaos-%d", b.rand.Int32())
	if err := b.holdLease(ctx, "", holder); err != nil {
		return err
	}
	b.onUndo(func(ctx context.Context) error { return b.holdLease(ctx, holder, "") })
	return nil
}

// holdLease gives the Lease to a holder, if it is held by from; "": by anyone.
func (t *Target) holdLease(ctx context.Context, from, to string) error {
	var lease coordinationv1.Lease
	if err := t.kube.Get(ctx, types.NamespacedName{Namespace: "lifeboat-system", Name: "lifeboat-controller"}, &lease); err != nil {
		return fmt.Errorf("reading the leader's Lease: %w", err)
	}
	if from != "" && ptr.Deref(lease.Spec.HolderIdentity, "") != from {
		return nil // a replica has taken it
	}
	now := metav1.NowMicro()
	lease.Spec.HolderIdentity, lease.Spec.RenewTime, lease.Spec.AcquireTime = &to, &now, &now
	if to == "" {
		lease.Spec.LeaseDurationSeconds = ptr.To[int32](1)
	}
	if err := t.kube.Update(ctx, &lease); err != nil {
		return fmt.Errorf("taking the leader's Lease: %w", err)
	}
	return nil
}

// pingPong takes the Lease again and again, and lets it expire at once. The leader before may not know for a
// while that it does not lead.
func pingPong(ctx context.Context, b *broken) error {
	holder := fmt.Sprintf("chaos-%d", b.rand.Int32())
	take := func(ctx context.Context) error {
		if err := b.holdLease(ctx, "", holder); err != nil {
			return err
		}
		return b.holdLease(ctx, holder, "")
	}
	if err := take(ctx); err != nil {
		return err
	}
	b.onUndo(func(ctx context.Context) error { return b.holdLease(ctx, holder, "") })
	b.background(func(ctx context.Context) {
		for sleep.For(ctx, leaderTime) {
			_ = take(ctx) // a replica has written it meanwhile: it is tried again
		}
	})
	return nil
}
