package notice

import (
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// Missing is a kind of notice that the queue should have brought.
type Missing struct {
	// Kind is what was not heard.
	Kind string
	// Source is who brought it in the queue's stead, and ReceivedTime when.
	Source       string
	ReceivedTime time.Time
	// Due is when the queue should have brought it at the latest.
	Due time.Time
}

// grace is how long the queue may be behind the other sources with a kind, and
// whether EventBridge has messages of the kind at all. EventBridge delivers
// within seconds; AWS Health takes longer to speak of what EC2 has planned.
func grace(kind string) (time.Duration, bool) {
	switch kind {
	case KindSpotInterruption:
		return 15 * time.Second, true
	case KindRebalanceRecommendation, KindAutoScalingTermination:
		return time.Minute, true
	case KindScheduledChange:
		return time.Hour, true
	}
	return 0, false
}

// isSent reports whether EventBridge has a message about what the notice says. Of what a
// group does it has one when a hook begins to wait: none while load balancers let the
// instance go, and none where there is no hook. Of hooks only the group's state tells.
func isSent(n *v1alpha1.Notice) bool {
	return n.Kind != KindAutoScalingTermination ||
		n.Source == SourceAutoScaling && strings.HasSuffix(n.EventTypeCode, ":Wait")
}

// Unheard returns the first kind that another source brought after since, and
// the queue has not; false where there is none. The caller compares Due with
// the time.
func Unheard(notices []v1alpha1.Notice, since time.Time) (Missing, bool) {
	var first Missing
	for i := range notices {
		n := &notices[i]
		late, sent := grace(n.Kind)
		if !sent || !isSent(n) || Heard(notices, since, n.Kind) || n.Source == SourceQueue || !counts(n, since) {
			continue
		}
		if due := n.ReceivedTime.Add(late); first.Kind == "" || due.Before(first.Due) {
			first = Missing{Kind: n.Kind, Source: n.Source, ReceivedTime: n.ReceivedTime.Time, Due: due}
		}
	}
	return first, first.Kind != ""
}

// Heard reports whether the queue has brought a kind after since, taken back or not.
func Heard(notices []v1alpha1.Notice, since time.Time, kind string) bool {
	return slices.ContainsFunc(notices, func(n v1alpha1.Notice) bool {
		return n.Source == SourceQueue && n.Kind == kind && isLater(&n, since)
	})
}
