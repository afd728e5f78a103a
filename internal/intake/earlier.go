package intake

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// hasLives reports whether a start of the instance makes the notice obsolete: a state
// change, or an event about a termination by its group. A poll of the group reports the
// present, so it cannot be obsolete.
func hasLives(n *notice.Notice) bool {
	return n.Kind == notice.KindInstanceStateChange ||
		n.Kind == notice.KindAutoScalingTermination && n.Source == notice.SourceQueue
}

// isOfEarlierLife reports whether the instance was started since the notice was issued. An
// instance from a warm pool registers a new Node. One that was stopped and started keeps
// its Node, and its kubelet reports since.
func isOfEarlierLife(n *notice.Notice, node *corev1.Node) bool {
	if node == nil || !hasLives(n) {
		return false
	}
	return n.Time.Time.Before(node.CreationTimestamp.Time) || notice.Outlived(&n.Notice, node)
}

// saysGone reports whether the notice says that the instance no longer runs.
func saysGone(n *notice.Notice) bool {
	return notice.InstanceGone([]v1beta1.Notice{n.Notice})
}

// maxFuture is how far in the future a notice can be issued: clocks differ by seconds. A notice
// from later would count until then.
const maxFuture = 5 * time.Minute

// issuedAt returns when a notice was issued. An agent's notice is never of the future, because the
// clock of its node may be slow.
func issuedAt(n *notice.Notice, now time.Time) metav1.Time {
	if n.Source == notice.SourceIMDS && n.Time.After(now) {
		return metav1.NewTime(now)
	}
	return n.Time
}

// ownDeadline returns the deadline of a notice by this machine's clock. A notice from the future proves
// that this clock is behind its source's, at least by the difference. The instance ends by the source's
// clock, so a firm deadline is that much earlier here. It never moves later, nor into the past.
func ownDeadline(n *notice.Notice, now time.Time) *v1beta1.Deadline {
	behind := n.Time.Sub(now)
	if behind <= 0 || !notice.IsFirm(n.Deadline) || !n.Deadline.Time.After(now) {
		return n.Deadline
	}
	at := n.Deadline.Time.Add(-behind)
	if at.Before(now) {
		at = now
	}
	return notice.At(at, n.Deadline.Type)
}

// isImplausible reports whether no source can have issued the notice at the time that it states.
func isImplausible(n *notice.Notice, now time.Time) bool { return n.Time.After(now.Add(maxFuture)) }

// isStale reports whether the notice is too old to act on: its firm deadline passed long
// ago, or it is a rebalance recommendation from before the time for which a node counts as
// at risk. EC2 never withdraws those, and the instance metadata repeats them without end.
func isStale(n *notice.Notice, now time.Time) bool {
	if n.Kind == notice.KindRebalanceRecommendation && !n.Withdrawn && !n.Time.IsZero() && now.Sub(n.Time.Time) > notice.AtRiskFor {
		return true
	}
	return notice.IsFirm(n.Deadline) && now.Sub(n.Deadline.Time.Time) > StaleAfter
}
