package intake

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/corroborate"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// join adds the notice to an existing record. The node may be gone, and the record may be
// completed: the controller reopens it for notices that count as received since.
func (r *Recorder) join(ctx context.Context, record *v1beta1.Interruption, n *notice.Notice) (Outcome, error) {
	// The optimistic lock below makes this safe: if the controller completes the record at
	// the same time, one of the two writes conflicts and is decided again.
	completed := notice.Completed(record.Status.History)
	added := n.Notice
	added.ReceivedTime = notice.ReceivedAfter(n.ReceivedTime, completed)
	notices, changed := notice.JoinSince(record.Spec.Notices, added, completed)
	if !changed {
		log.FromContext(ctx).V(1).Info("notice is already recorded", describe(n, "node", record.Spec.NodeName)...)
		return Repeated, nil
	}
	if hasLives(n) {
		node, _, err := r.nodeOf(ctx, n.InstanceID)
		if err != nil {
			return "", fmt.Errorf("finding the node: %w", err)
		}
		if isOfEarlierLife(n, node) {
			r.explainEarlier(ctx, n)
			return Stale, nil
		}
	}
	// The patch carries the whole list, so it must fail after any other write.
	patch := client.MergeFromWithOptions(record.DeepCopy(), client.MergeFromWithOptimisticLock{})
	record.Spec.Notices = notices
	err := r.client.Patch(ctx, record, patch)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return "", fmt.Errorf("%w: %w", errStaleRead, err)
	}
	if err != nil {
		return "", fmt.Errorf("joining the interruption: %w", err)
	}
	log.FromContext(ctx).Info("joined notice to interruption", describe(n, "node", record.Spec.NodeName)...)
	return Joined, nil
}

// nodeOf returns the node of an instance, and whether the cluster has one. It returns no node if
// several state the instance: the notice is recorded, and the controller acts on none of them.
func (r *Recorder) nodeOf(ctx context.Context, instanceID string) (node *corev1.Node, isKnown bool, err error) {
	node, err = r.nodes.NodeByInstance(ctx, instanceID)
	if conflict := (*corroborate.ConflictError)(nil); errors.As(err, &conflict) {
		return nil, true, nil
	}
	return node, node != nil, err
}
