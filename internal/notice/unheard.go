package notice

import (
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

// Unheard returns the first kind that another source brought after since, and
// the queue has not; false where there is none. The caller compares Due with
// the time.
func Unheard(notices []v1alpha1.Notice, since time.Time) (Missing, bool) {
	var first Missing
	heard := map[string]bool{}
	for i := range notices {
		if notices[i].Source == SourceQueue && isLater(&notices[i], since) {
			heard[notices[i].Kind] = true
		}
	}
	for i := range notices {
		n := &notices[i]
		late, sent := grace(n.Kind)
		if !sent || heard[n.Kind] || n.Source == SourceQueue || !counts(n, since) {
			continue
		}
		if due := n.ReceivedTime.Add(late); first.Kind == "" || due.Before(first.Due) {
			first = Missing{Kind: n.Kind, Source: n.Source, ReceivedTime: n.ReceivedTime.Time, Due: due}
		}
	}
	return first, first.Kind != ""
}
