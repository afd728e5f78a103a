package capacity

import (
	"maps"
	"sync"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

const (
	// launchTTL is for how long a reserved launch counts although no NodeClaim shows
	// it yet, and for how long a detachment is not repeated.
	launchTTL = 10 * time.Second
	// instanceTTL is for how long a reserved instance counts although no status shows
	// it yet.
	instanceTTL = 30 * time.Second
	// roomTTL is for how long a node on which pods are expected is not offered to the
	// pods of another interrupted node.
	roomTTL = 2 * time.Minute
)

// Reservations bound how many replacements are ordered at the same time, and keep two
// interrupted nodes from using the same capacity. They cover the time until NodeClaims
// and statuses show it. Without them one replacement too many is ordered at worst.
type Reservations struct {
	mu       sync.Mutex
	launches map[string]time.Time // by interrupted instance; until when it counts
	nodes    map[string]time.Time // by node; until when it counts
	// instances of groups are reserved for interrupted instances.
	instances map[string]reservedInstance
	// detached is when an instance was last taken out of its group.
	detached map[string]time.Time
	// handovers is when a handover that failed is retried, by interrupted instance.
	handovers map[string]time.Time
}

// handoverRetry is when the handover of an instance is retried; zero: nothing is known to have failed.
func (r *Reservations) handoverRetry(instanceID string) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.handovers[instanceID]
}

func (r *Reservations) retryHandoverAt(instanceID string, at, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.handovers, func(_ string, at time.Time) bool { return at.Before(now) })
	if r.handovers == nil {
		r.handovers = map[string]time.Time{}
	}
	r.handovers[instanceID] = at
}

type reservedInstance struct {
	by    string
	until time.Time
}

// reserveInstance reserves an instance that a group launched, unless it is reserved for
// another. Older reservations show in the statuses.
func (r *Reservations) reserveInstance(instanceID, launched string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.instances == nil {
		r.instances = map[string]reservedInstance{}
	}
	if c, ok := r.instances[launched]; ok && c.by != instanceID && now.Before(c.until) {
		return false
	}
	r.instances[launched] = reservedInstance{instanceID, now.Add(instanceTTL)}
	return true
}

// ReservedByOthers returns the instances that are reserved for other interrupted
// instances.
func (r *Reservations) ReservedByOthers(instanceID string, now time.Time) map[string]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	reserved := map[string]bool{}
	for launched, c := range r.instances {
		switch {
		case !now.Before(c.until):
			delete(r.instances, launched)
		case c.by != instanceID:
			reserved[launched] = true
		}
	}
	return reserved
}

// startDetach reports whether an instance may be taken out of its group now: it was not
// tried in the last seconds.
func (r *Reservations) startDetach(instanceID string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.detached == nil {
		r.detached = map[string]time.Time{}
	}
	for id, at := range r.detached {
		if now.Sub(at) > launchTTL {
			delete(r.detached, id)
		}
	}
	if _, recent := r.detached[instanceID]; recent {
		return false
	}
	r.detached[instanceID] = now
	return true
}

// reserveLaunch reserves a launch for an instance, if one is free, and returns how many
// others there are.
func (r *Reservations) reserveLaunch(instanceID string, claims []*replacement.Claim, now time.Time) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.launches == nil {
		r.launches = map[string]time.Time{}
	}
	others := 0
	for _, c := range claims {
		if c.Replaces() == instanceID {
			continue
		}
		delete(r.launches, c.Replaces()) // the NodeClaim shows it
		if !c.Launched && !c.Deleting {
			others++
		}
	}
	for other, until := range r.launches {
		if !now.Before(until) {
			delete(r.launches, other)
		} else if other != instanceID {
			others++
		}
	}
	if others < replacement.MostUnlaunched {
		r.launches[instanceID] = now.Add(launchTTL)
	}
	return others
}

func (r *Reservations) releaseLaunch(instanceID string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.launches, instanceID)
}

// reserveNodes notes that pods are expected on nodes.
func (r *Reservations) reserveNodes(nodes []string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.nodes == nil {
		r.nodes = map[string]time.Time{}
	}
	for _, node := range nodes {
		r.nodes[node] = now.Add(roomTTL)
	}
}

// isNodeReserved reports whether pods are expected on a node.
func (r *Reservations) isNodeReserved(node string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	until, ok := r.nodes[node]
	if ok && !now.Before(until) {
		delete(r.nodes, node)
		return false
	}
	return ok
}
