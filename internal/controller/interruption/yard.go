package interruption

import (
	"sync"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

const (
	// placeLasts is for how long a place that was given counts although no
	// NodeClaim shows it yet.
	placeLasts = 10 * time.Second
	// roomLasts is for how long a node whose room pods are counted on to take is
	// not offered to those of another doomed node.
	roomLasts = 2 * time.Minute
)

// yard bounds how many replacements are ordered at the same time, and keeps two
// doomed nodes from counting on the same room. The NodeClaims tell who is there;
// what it remembers is what they do not show yet. Nothing hangs on it: who has
// forgotten orders one more, or finds the room taken.
type yard struct {
	mu     sync.Mutex
	placed map[string]time.Time // by instance; until when it counts
	taken  map[string]time.Time // by node; until when it counts
	// counted are the instances of groups that are counted on, by whom, and
	// detached when instances were last taken out of their groups, by instance.
	counted  map[string]counted
	detached map[string]time.Time
}

type counted struct {
	by    string
	until time.Time
}

// claim counts on an instance that a group has launched, unless it was counted on
// for another a moment ago. What is older, the records tell.
func (y *yard) claim(instanceID, launched string, now time.Time) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.counted == nil {
		y.counted = map[string]counted{}
	}
	if c, ok := y.counted[launched]; ok && c.by != instanceID && now.Before(c.until) {
		return false
	}
	y.counted[launched] = counted{instanceID, now.Add(claimLasts)}
	return true
}

// claimedBeside returns the instances that were counted on for others a moment ago.
func (y *yard) claimedBeside(instanceID string, now time.Time) map[string]bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	claimed := map[string]bool{}
	for launched, c := range y.counted {
		switch {
		case !now.Before(c.until):
			delete(y.counted, launched)
		case c.by != instanceID:
			claimed[launched] = true
		}
	}
	return claimed
}

// detaches reports whether an instance may be taken out of its group now: it was
// not tried a moment ago.
func (y *yard) detaches(instanceID string, now time.Time) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.detached == nil {
		y.detached = map[string]time.Time{}
	}
	for id, at := range y.detached {
		if now.Sub(at) > placeLasts {
			delete(y.detached, id)
		}
	}
	if _, lately := y.detached[instanceID]; lately {
		return false
	}
	y.detached[instanceID] = now
	return true
}

// place gives an instance a place, if there is one, and returns how many others
// there are.
func (y *yard) place(instanceID string, claims []*replacement.Claim, now time.Time) int {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.placed == nil {
		y.placed = map[string]time.Time{}
	}
	others := 0
	for _, c := range claims {
		if c.Replaces() == instanceID {
			continue
		}
		delete(y.placed, c.Replaces()) // it tells itself
		if !c.Launched && !c.Deleting {
			others++
		}
	}
	for other, until := range y.placed {
		if !now.Before(until) {
			delete(y.placed, other)
		} else if other != instanceID {
			others++
		}
	}
	if others < replacement.MostUnlaunched {
		y.placed[instanceID] = now.Add(placeLasts)
	}
	return others
}

// leave gives a place back.
func (y *yard) leave(instanceID string) {
	y.mu.Lock()
	defer y.mu.Unlock()
	delete(y.placed, instanceID)
}

// take notes that pods are counted on to go to nodes.
func (y *yard) take(nodes []string, now time.Time) {
	y.mu.Lock()
	defer y.mu.Unlock()
	if y.taken == nil {
		y.taken = map[string]time.Time{}
	}
	for _, node := range nodes {
		y.taken[node] = now.Add(roomLasts)
	}
}

// isTaken reports whether pods are counted on to go to a node.
func (y *yard) isTaken(node string, now time.Time) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	until, ok := y.taken[node]
	if ok && !now.Before(until) {
		delete(y.taken, node)
		return false
	}
	return ok
}
