package notice

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// Join is JoinSince for a record of which no interruption was completed yet.
func Join(recorded []v1beta1.Notice, n v1beta1.Notice) ([]v1beta1.Notice, bool) {
	return JoinSince(recorded, n, time.Time{})
}

// JoinSince adds a notice to those recorded about the instance. Notices with the same
// subject replace each other: the newer one wins. It reports false if nothing changed,
// because the notice is a repeat or is older than what is recorded of its subject.
//
// since is when the latest interruption of the instance was completed, or zero. If the
// record is full, the notices that were received until then are dropped first, then
// withdrawn ones, then the oldest. The notice that rules is kept.
func JoinSince(recorded []v1beta1.Notice, n v1beta1.Notice, since time.Time) ([]v1beta1.Notice, bool) {
	for i := range recorded {
		if recorded[i].ID == n.ID || (sameSubject(&recorded[i], &n) && isOlder(&n, &recorded[i])) {
			return recorded, false
		}
	}
	joined := slices.DeleteFunc(slices.Clone(recorded), func(r v1beta1.Notice) bool { return sameSubject(&r, &n) })
	takeBack(joined, &n)
	joined = append(joined, n)
	return dropExcess(joined, since), true
}

func isFromAgent(n *v1beta1.Notice) bool { return n.Source == SourceIMDS }

// dropExcess drops one notice if the added one, which is the last, has made its writers
// exceed their share of the record. It keeps the added one and the one that rules.
func dropExcess(joined []v1beta1.Notice, since time.Time) []v1beta1.Notice {
	added := &joined[len(joined)-1]
	limit := MaxPerInstance - MaxFromAgent
	if isFromAgent(added) {
		limit = MaxFromAgent
	}
	ruling, _ := Ruling(slices.DeleteFunc(slices.Clone(joined), func(n v1beta1.Notice) bool { return !isLater(&n, since) }))
	count, victim := 1, -1
	for i := range joined[:len(joined)-1] {
		if isFromAgent(&joined[i]) != isFromAgent(added) {
			continue
		}
		count++
		if joined[i].ID == ruling.ID {
			continue
		}
		if victim < 0 || keepRank(&joined[i], since) < keepRank(&joined[victim], since) {
			victim = i
		}
	}
	if count <= limit || victim < 0 {
		return joined
	}
	return slices.Delete(joined, victim, victim+1)
}

// keepRank orders notices by how much a full record needs them.
func keepRank(n *v1beta1.Notice, since time.Time) int {
	switch {
	case !isLater(n, since):
		return 0
	case n.Withdrawn:
		return 1
	}
	return 2
}

// sameSubject reports whether a and b are about the same thing.
func sameSubject(a, b *v1beta1.Notice) bool {
	return a.Subject != "" && a.Subject == b.Subject && a.Kind == b.Kind && a.Source == b.Source
}

// isOlder reports whether a notice is older than what is recorded of its subject. The queue keeps no
// order and its times have whole seconds: of one second, the withdrawal is the last.
func isOlder(n, recorded *v1beta1.Notice) bool {
	return n.Time.Before(&recorded.Time) ||
		n.Source == SourceQueue && n.Time.Equal(&recorded.Time) && recorded.Withdrawn && !n.Withdrawn
}

// takeBack withdraws what n contradicts.
func takeBack(recorded []v1beta1.Notice, n *v1beta1.Notice) {
	for i := range recorded {
		if TakesBack(n, &recorded[i]) {
			recorded[i].Withdrawn = true
		}
	}
}

// TakesBack reports whether n contradicts a notice of another source: an instance that its
// Auto Scaling group lists as in service is not being terminated by the group, whatever an
// event said. Drills are not the group's doing.
func TakesBack(n, earlier *v1beta1.Notice) bool {
	return n.Withdrawn && n.Kind == KindAutoScalingTermination && n.Source == SourceAutoScaling &&
		earlier.Kind == n.Kind && !earlier.Drill
}

// ReceivedAfter returns the received time of a notice that is added to a record whose
// latest interruption was completed at since: received, but always after since. The times
// come from the clocks of different machines, so a notice that is added after a completion
// can carry an earlier time. It would then count as handled, although no pass has seen it.
func ReceivedAfter(received metav1.MicroTime, since time.Time) metav1.MicroTime {
	if received.After(since) {
		return received
	}
	return metav1.NewMicroTime(since.Add(time.Microsecond)) // the resolution of MicroTime in JSON
}

const (
	// MaxPerInstance is how many notices an Interruption holds; the CRD has the same bound.
	MaxPerInstance = 32
	// MaxFromAgent is how many of them can come from the node's agent; all other sources
	// share the rest. An agent that reports new ones without end then removes only its own.
	MaxFromAgent = 8
)

// Completed returns when nothing was left to do about an instance for the last time, or zero.
func Completed(history []v1beta1.HistoryEntry) time.Time {
	for _, e := range slices.Backward(history) {
		if EndsAll(e.Outcome) {
			return e.EndTime.Time
		}
	}
	return time.Time{}
}
