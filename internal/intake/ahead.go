package intake

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Ahead says that the notice is about to be recorded, and reports whether anything was done
// about it already (Options.Ahead). That is asked only where Record would make a new record;
// what is done is to be safe to do for a notice that is never recorded. It writes nothing
// itself, and what it cannot find out it leaves to Record.
func (r *Recorder) Ahead(ctx context.Context, n notice.Notice) bool {
	now := r.o.Clock()
	if r.o.Ahead == nil || n.Withdrawn || isStale(&n, now) || r.isElsewhere(&n) {
		return false
	}
	n.ReceivedTime = receivedAt(&n, now)
	key := client.ObjectKey{Name: n.InstanceID}
	if err := r.client.Get(ctx, key, &v1alpha1.Interruption{}); !apierrors.IsNotFound(err) {
		return false
	}
	node, err := r.nodes.NodeByInstance(ctx, n.InstanceID)
	if err != nil || node == nil || isOfEarlierLife(&n, node) {
		return false
	}
	return r.o.Ahead(ctx, newRecord(node, &n), node)
}
