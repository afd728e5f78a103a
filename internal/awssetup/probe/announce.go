package probe

import (
	"context"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/internal/intake"
)

// retractTimeout bounds the removal of an announcement after the run.
const retractTimeout = 5 * time.Second

// announce writes the id of a run into the Lease. lifeboatd answers no other probes: everybody who
// can put events on the bus can send some. The first run creates the Lease.
func (p *Prober) announce(ctx context.Context, id string, until time.Time) error {
	write := func(lease *coordinationv1.Lease) { intake.Announce(lease, id, p.o.Clock(), until) }
	err := p.change(ctx, write)
	if !apierrors.IsNotFound(err) {
		return err
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: intake.ProbeNamespace, Name: intake.ProbeLease}}
	write(lease)
	if err = p.o.Kube.Create(ctx, lease); apierrors.IsAlreadyExists(err) {
		err = p.change(ctx, write)
	}
	return err
}

// retract removes the announcement. Best effort: a later run removes what has expired.
func (p *Prober) retract(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), retractTimeout)
	defer cancel()
	_ = p.change(ctx, func(lease *coordinationv1.Lease) { intake.Retract(lease, id) })
}

// change patches the annotations that write changes, and leaves those of other runs as they are.
func (p *Prober) change(ctx context.Context, write func(*coordinationv1.Lease)) error {
	var lease coordinationv1.Lease
	if err := p.o.Kube.Get(ctx, types.NamespacedName{Namespace: intake.ProbeNamespace, Name: intake.ProbeLease}, &lease); err != nil {
		return err
	}
	before := lease.DeepCopy()
	write(&lease)
	return p.o.Kube.Patch(ctx, &lease, client.MergeFrom(before))
}
