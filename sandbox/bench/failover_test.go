package bench

import (
	"fmt"
	"slices"
	"time"
)

// failover is how another replica takes over from a leader that is killed.
type failover struct {
	// Replicas run before the kill.
	Replicas int `json:"replicas"`
	// Evicted is the time from the kill until the first eviction by another replica. The node gets
	// its notice right after the kill.
	Evicted float64 `json:"evictedSeconds"`
	// Standby is the memory of a replica that does not lead, in MiB.
	Standby memory `json:"standby"`
}

// kills is how many leaders failovers kills for these numbers of replicas.
func kills(replicas []int) int {
	sum := 0
	for _, n := range replicas {
		sum += n - 1
	}
	return sum
}

// failovers starts replicas, and kills the leader until one is left. The nodes from the given one
// on are interrupted.
func (r *rig) failovers(replicas, node int) []failover {
	r.Helper()
	r.ownQueue()
	var all []replica
	for range replicas {
		all = append(all, r.launchElected())
	}
	var out []failover
	for ; len(all) > 1; node++ {
		for _, p := range all {
			r.untilReady(p)
		}
		leader := r.leader(all)
		r.process = all[leader].Process
		r.untilIdle()
		dead := all[leader]
		all = slices.Delete(all, leader, leader+1)
		standby, err := memoryOf(all[0].PID())
		r.must(err)
		began := time.Now()
		dead.Kill9()
		r.fill(1, func(int) string { return spot(fmt.Sprint("failover-", node), instance(node)) })
		r.untilEvicted(node)
		out = append(out, failover{Replicas: len(all) + 1, Evicted: time.Since(began).Seconds(), Standby: standby})
	}
	r.process = all[0].Process
	r.stop()
	return out
}

// leader waits until one of the replicas leads, and returns its index.
func (r *rig) leader(all []replica) int {
	r.Helper()
	leader := -1
	r.until("a replica to lead", time.Minute, func() (bool, error) {
		leader = slices.IndexFunc(all, func(p replica) bool { return r.gauge(p, "leader_election_master_status") == 1 })
		return leader >= 0, nil
	})
	return leader
}
