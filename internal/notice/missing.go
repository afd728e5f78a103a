package notice

import (
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// Missing is a kind of notice that the queue should have brought.
type Missing struct {
	// Kind is the missing kind.
	Kind string
	// Source is the other source that reported it, and ReceivedTime when.
	Source       string
	ReceivedTime time.Time
	// Due is when the queue should have delivered it at the latest.
	Due time.Time
}

// grace is how long the queue may be later than other sources for a kind, and whether
// EventBridge has messages of that kind. EventBridge delivers within seconds; AWS Health reports
// later what EC2 has planned.
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

// isSent reports whether EventBridge has a message for the notice. For a termination by a group
// it has one when a hook starts to wait. It has none while load balancers deregister the
// instance, and none without a hook. Only the group's state shows hooks.
func isSent(n *v1beta1.Notice) bool {
	return n.Kind != KindAutoScalingTermination ||
		n.Source == SourceAutoScaling && strings.HasSuffix(n.EventTypeCode, ":Wait")
}

// MissedByQueue returns the first kind that another source reported after since and the queue has not;
// false if there is none. The caller compares Due with the time.
func MissedByQueue(notices []v1beta1.Notice, since time.Time) (Missing, bool) {
	var first Missing
	for i := range notices {
		n := &notices[i]
		late, sent := grace(n.Kind)
		if !sent || !isSent(n) || ReceivedByQueue(notices, since, n.Kind) || n.Source == SourceQueue || n.Withdrawn || !isLater(n, since) {
			continue
		}
		if due := n.ReceivedTime.Add(late); first.Kind == "" || due.Before(first.Due) {
			first = Missing{Kind: n.Kind, Source: n.Source, ReceivedTime: n.ReceivedTime.Time, Due: due}
		}
	}
	return first, first.Kind != ""
}

// ReceivedByQueue reports whether the queue has delivered a kind after since, withdrawn or not.
func ReceivedByQueue(notices []v1beta1.Notice, since time.Time, kind string) bool {
	return slices.ContainsFunc(notices, func(n v1beta1.Notice) bool {
		return n.Source == SourceQueue && n.Kind == kind && isLater(&n, since)
	})
}
