package chaos

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// hangingVolume is a volume that no driver knows.
const hangingVolume corev1.UniqueVolumeName = "kubernetes.io/csi/chaos.lifeboat.dev^hang"

// attaching says that a volume is attached to some nodes, as the attach-detach controller does for a driver
// that does not answer.
func attaching(ctx context.Context, b *broken) error {
	var nodes corev1.NodeList
	if err := b.kube.List(ctx, &nodes); err != nil {
		return fmt.Errorf("listing the nodes: %w", err)
	}
	for i := range nodes.Items {
		if b.rand.IntN(stuckOneIn) != 0 {
			continue
		}
		name := nodes.Items[i].Name
		b.onUndo(func(ctx context.Context) error { return b.attach(ctx, name, false) })
		if err := b.attach(ctx, name, true); err != nil {
			return err
		}
	}
	return nil
}

// attach adds the volume to a node that still exists, or removes it.
func (t *Target) attach(ctx context.Context, name string, attached bool) error {
	var node corev1.Node
	if err := t.kube.Get(ctx, types.NamespacedName{Name: name}, &node); err != nil {
		return client.IgnoreNotFound(err)
	}
	before := node.DeepCopy()
	node.Status.VolumesAttached = slices.DeleteFunc(node.Status.VolumesAttached, func(v corev1.AttachedVolume) bool { return v.Name == hangingVolume })
	if attached {
		node.Status.VolumesAttached = append(node.Status.VolumesAttached, corev1.AttachedVolume{Name: hangingVolume})
	}
	if err := client.IgnoreNotFound(t.kube.Status().Patch(ctx, &node, client.StrategicMergeFrom(before))); err != nil {
		return fmt.Errorf("changing the volumes of node %s: %w", name, err)
	}
	return nil
}
