package drain

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// settle is how long a pod's place is reckoned to take, after it has stopped,
// until its successor elsewhere is Ready and the budget lets the next one go.
// Nobody knows it beforehand; too short a guess costs a PodDisruptionBudget
// its say at last call, too long a one costs pods some seconds of their
// do-not-disrupt.
const settle = 10 * time.Second

// link moves forward the turns of pods that share a budget. Where it lets k go
// at a time and pods wait for something else than it (do-not-disrupt until
// last call, a gate, their place after others, a successor), the first have to
// leave early enough for the last to leave by its last call with the budget respected.
// pods are in the order to judge.
func (l *pdbState) link(pods []*podState) {
	sharing := map[*budget][]*podState{}
	for _, c := range pods {
		if c.lastCall.IsZero() || len(c.budgets) != 1 {
			continue
		}
		b := c.budgets[0]
		if b.atATime() == 0 || c.freeOfCharge() {
			continue
		}
		sharing[b] = append(sharing[b], c)
	}
	for b, members := range sharing {
		// Pods that nothing else holds go as soon as the budget allows, so
		// they go before those that wait. A gate holds all alike; those that
		// it alone holds go before those that would wait without it too.
		first := members[0].rank
		slices.SortStableFunc(members, func(a, b *podState) int { return waitsAnyway(a, first) - waitsAnyway(b, first) })
		b.schedule(members)
	}
}

// schedule reckons backwards from the last: each batch leaves so early that it
// has stopped and its successors have settled when the next one leaves.
func (b *budget) schedule(members []*podState) {
	size := b.atATime()
	var next time.Time
	for end := len(members); end > 0; end -= size {
		batch := members[max(0, end-size):end]
		for _, c := range batch {
			if after := len(members) - end; after > 0 {
				c.turn = earliest(c.turn, next.Add(-settle-c.grace))
				c.after = after
			}
		}
		next = batch[0].turn
		for _, c := range batch[1:] {
			next = earliest(next, c.turn)
		}
	}
}

// chain says why the pod's turn is earlier than its last call.
func (c *podState) chain() string {
	b := c.budgets[0]
	return fmt.Sprintf("%s lets %d go at a time and %d more leave after it", b.title(), b.atATime(), c.after)
}

// freeOfCharge reports whether the Eviction API lets the pod go without its
// budget paying.
func (c *podState) freeOfCharge() bool {
	if c.pod.Status.Phase == corev1.PodPending {
		return true
	}
	_, free := c.budgets[0].ignores(c.pod)
	return free
}

// waitsAnyway is 1 for pods that wait for something of their own: do-not-
// disrupt, or their place after those of the first rank.
func waitsAnyway(c *podState, first rank) int {
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
