package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/internal/intake"
)

// permitTime is for how long a message of a drill is accepted after it was due: it may wait in the
// queue while no replica runs.
const permitTime = 15 * time.Minute

// permit permits the drill in the cluster. Lifeboat ignores messages of any other drill, because
// permission to send to the queue is not permission to drain the cluster's nodes.
func (s *session) permit(ctx context.Context, it *drilling) error {
	c, err := s.connect(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := c.limit(ctx)
	defer cancel()
	now := s.now()
	lease := &coordinationv1.Lease{}
	err = c.Get(ctx, client.ObjectKey{Namespace: intake.DrillNamespace, Name: intake.DrillLease}, lease)
	found := err == nil
	if err == nil || apierrors.IsNotFound(err) {
		err = writePermits(ctx, c, lease, found, it.permits(now), now)
	}
	if err != nil {
		return fmt.Errorf("permitting the drill in Lease %s/%s (the ClusterRole lifeboat-operator allows it): %w", intake.DrillNamespace, intake.DrillLease, err)
	}
	return nil
}

// writePermits adds permits and removes those that are over.
func writePermits(ctx context.Context, c client.Client, lease *coordinationv1.Lease, found bool, permits map[string]intake.DrillPermit, now time.Time) error {
	annotations := map[string]any{}
	for id, p := range intake.DrillPermits(lease) {
		if now.After(p.Expires) {
			annotations[intake.DrillAnnotation(id)] = nil
		}
	}
	created := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: intake.DrillNamespace, Name: intake.DrillLease}}
	for id, p := range permits {
		value, err := intake.DrillValue(p)
		if err != nil {
			return err
		}
		annotations[intake.DrillAnnotation(id)] = value
		metav1.SetMetaDataAnnotation(&created.ObjectMeta, intake.DrillAnnotation(id), value)
	}
	if !found {
		if err := c.Create(ctx, created.DeepCopy()); !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": annotations}})
	if err != nil {
		return err
	}
	return c.Patch(ctx, created, client.RawPatch(types.MergePatchType, patch))
}

// permits are the permits of the notices, by drill.
func (it *drilling) permits(now time.Time) map[string]intake.DrillPermit {
	permits := map[string]intake.DrillPermit{}
	for _, n := range it.notices {
		p := permits[n.Drill]
		p.Expires, p.EndInstance = now.Add(it.flags.delay+permitTime).UTC().Truncate(time.Second), it.flags.endInstance
		p.Instances = append(p.Instances, n.Target.InstanceID)
		if n.Target.Reservation != "" { // one message covers the whole block
			for _, t := range it.targets {
				if t.Reservation == n.Target.Reservation && t.InstanceID != n.Target.InstanceID {
					p.Instances = append(p.Instances, t.InstanceID)
				}
			}
		}
		permits[n.Drill] = p
	}
	return permits
}
