package drain

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// successorSettleTime is the estimated time between the stop of a pod and the moment when its successor is
// Ready and another eviction is allowed. If the estimate is too short, a
// PodDisruptionBudget is overridden at the last call. If it is too long, pods lose some seconds
// of do-not-disrupt.
const successorSettleTime = 10 * time.Second

// scheduleSharedBudgets makes the turns of pods that share a budget earlier. A budget lets k pods go at a time,
// but pods may also wait for do-not-disrupt, a gate or the order of pods. The first
// pods must leave early enough for the last to leave by its last call without overriding the
// budget. The pods are sorted in evaluation order. Pods that may surge use no disruption, so they
// wait for their successors whatever the budget allows. Pods of a gang leave at once.
func (s *planContext) scheduleSharedBudgets() {
	sharing := map[*budget][]*podState{}
	for _, c := range s.pods {
		if c.lastCall.IsZero() || len(c.budgets) != 1 {
			continue
		}
		b := c.budgets[0]
		if b.atATime() == 0 || c.needsNoDisruption() || s.maySurge(c) || c.gang != nil {
			continue
		}
		sharing[b] = append(sharing[b], c)
	}
	for b, members := range sharing {
		// Pods that only the budget holds leave first. A gate holds all pods equally; pods
		// that only a gate holds leave before pods that would wait without it too.
		first := members[0].rank
		slices.SortStableFunc(members, func(a, b *podState) int { return hasOtherWait(a, first) - hasOtherWait(b, first) })
		b.schedule(members, s.facts.CapacityAt)
	}
}

// schedule works backwards from the last pod: each batch leaves early enough that it has
// stopped, and its successors have settled, when the next batch leaves. capacity is when
// successors have a node; zero: they have one now.
func (b *budget) schedule(members []*podState, capacity time.Time) {
	size := b.atATime()
	var next, lastCall time.Time // of the next batch, and the latest of all later ones
	for end := len(members); end > 0; end -= size {
		batch := members[max(0, end-size):end]
		for _, c := range batch {
			if after := len(members) - end; after > 0 {
				c.turn = c.turnBefore(next, lastCall, capacity)
				c.after = after
			}
		}
		next = batch[0].turn
		for _, c := range batch {
			next = earliest(next, c.turn)
			if c.lastCall.After(lastCall) {
				lastCall = c.lastCall
			}
		}
	}
}

// turnBefore returns the turn of a pod that must be replaced when the next pods have their turn. The
// next pods leave once the successor of this one is Ready, which has no node before capacity. So
// this pod stops no earlier than that. If even then there is no time for all, it does so only if
// more of the others leave by the latest of their last calls than if it left with capacity.
func (c *podState) turnBefore(next, lastCall, capacity time.Time) time.Time {
	turn, stopsWithCapacity := next.Add(-successorSettleTime-c.grace), capacity.Add(-c.grace)
	switch {
	case capacity.IsZero(), !turn.Before(stopsWithCapacity):
		return earliest(c.lastCall, turn)
	case 1+fit(lastCall.Sub(capacity)-successorSettleTime, c.grace) > max(1, fit(lastCall.Sub(capacity), c.grace)):
		return earliest(c.lastCall, stopsWithCapacity)
	}
	return c.lastCall
}

// fit returns how many batches have a turn in a time: the first at its beginning, and each other
// once the successors of the one before have settled.
func fit(room, grace time.Duration) int {
	if room < 0 {
		return 0
	}
	return 1 + int(room/(grace+successorSettleTime))
}

// whyEarlier explains why the pod's turn is earlier than its last call.
func (c *podState) whyEarlier() string {
	b := c.budgets[0]
	return fmt.Sprintf("%s lets %d go at a time and %d more leave after it", b.title(), b.atATime(), c.after)
}

// needsNoDisruption reports whether the Eviction API lets the pod go without using a disruption of
// its budget.
func (c *podState) needsNoDisruption() bool {
	if c.pod.Status.Phase == corev1.PodPending {
		return true
	}
	_, free := c.budgets[0].ignores(c.pod)
	return free
}

// hasOtherWait is 1 for pods that also wait for do-not-disrupt or for pods of a lower rank.
func hasOtherWait(c *podState, first rank) int {
	if c.hold.active() || c.rank > first {
		return 1
	}
	return 0
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// atATime returns how many pods may be away at once while all others are healthy.
func (b *budget) atATime() int {
	if b.Unread != "" {
		return 0
	}
	return int(max(int64(b.ExpectedPods)-int64(b.DesiredHealthy), int64(b.DisruptionsAllowed), 0))
}
