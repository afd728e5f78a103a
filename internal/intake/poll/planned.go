package poll

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/corroborate"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// isPlanned reports whether a notice is of a planned change that is still ahead.
func isPlanned(n *notice.Notice, now time.Time) bool {
	return !n.Withdrawn && n.Deadline != nil && n.Deadline.Type == v1beta1.DeadlineSoft && n.Deadline.Time.After(now)
}

// isSameNews reports whether the recorded notice says what n says. The id tells, except for
// a planned change that was recorded again: the source does not know that id.
func isSameNews(on *v1beta1.Notice, n *notice.Notice) bool {
	return on.ID == n.ID || strings.HasPrefix(on.ID, againPrefix(n)) && on.Withdrawn == n.Withdrawn &&
		on.EventTypeCode == n.EventTypeCode && on.InstanceAction == n.InstanceAction &&
		apiequality.Semantic.DeepEqual(on.Deadline, n.Deadline) && apiequality.Semantic.DeepEqual(on.EndTime, n.EndTime)
}

func againPrefix(n *notice.Notice) string { return n.Source + "/again/" }

// againID is the id of a planned change that is recorded again for a Node object.
func againID(n *notice.Notice, node types.UID) string {
	sum := sha256.Sum256([]byte(n.ID + " " + string(node)))
	return againPrefix(n) + hex.EncodeToString(sum[:])
}

// isForgotten reports whether a planned change that was made durable must be
// recorded again: its record was completed because the Node object was deleted,
// and the Node has registered since. The id of n becomes specific to this Node
// object, so each registration is recorded once, also after a restart. The same
// holds if the record has expired.
func (l *Deduper) isForgotten(ctx context.Context, record *v1beta1.Interruption, n *notice.Notice) (bool, error) {
	if l.o.Nodes == nil || !isPlanned(n, l.o.Clock()) || record != nil && !notice.Finished(record) {
		return false, nil
	}
	node, err := l.o.Nodes.NodeByInstance(ctx, n.InstanceID)
	if err := corroborate.IgnoreConflict(err); err != nil {
		return false, OfCluster(err)
	}
	if node == nil || !node.CreationTimestamp.After(l.doneAt(record, n)) {
		return false, nil
	}
	n.ID = againID(n, node.UID)
	return true, nil
}

// doneAt is when the record of n was completed, or, if it no longer exists, when n was made
// durable.
func (l *Deduper) doneAt(record *v1beta1.Interruption, n *notice.Notice) time.Time {
	if record != nil {
		return notice.Completed(record.Status.History)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.settled[keyOf(n)].settled
}
