package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// scaleCase is a size of BenchmarkScale.
type scaleCase struct {
	name              string
	nodes, podsOnNode int
	// interrupted is the number of nodes that are interrupted at once.
	interrupted int
	// policies and records are added for the second half: InterruptionPolicies, and finished
	// Interruptions of earlier nodes.
	policies, records int
	// replicas are the numbers of replicas for which a failover is measured.
	replicas []int
	idle     time.Duration
}

// scaleReplicas is the number of pods of each Deployment.
const scaleReplicas = 100

// scaleCases are the sizes. Policies and records are measured with the smallest size only: their cost does
// not depend on the number of nodes. The case failover kills leaders, with many records.
var scaleCases = []scaleCase{
	{name: "1000", nodes: 1000, podsOnNode: 10, interrupted: 100, policies: 100, records: 10_000, idle: time.Minute},
	{name: "5000", nodes: 5000, podsOnNode: 10, interrupted: 100, idle: time.Minute},
	{name: "10000", nodes: 10_000, podsOnNode: 10, interrupted: 100, replicas: []int{2}, idle: time.Minute},
	{name: "failover", nodes: 1000, podsOnNode: 10, interrupted: 1, records: 10_000, replicas: []int{2, 3}, idle: time.Second},
}

// scaleResult is the result of one size.
type scaleResult struct {
	Case        string  `json:"case"`
	Date        string  `json:"date"`
	Load        string  `json:"load"`
	Nodes       int     `json:"nodes"`
	PodsPerNode int     `json:"podsPerNode"`
	Interrupted int     `json:"interrupted"`
	Policies    int     `json:"policies"`
	Records     int     `json:"records"`
	Created     float64 `json:"createdSeconds"`
	// Ready is the time from the start of the process until its caches have synced. FirstEviction
	// is that until the API server has accepted an eviction, for a notice that waits on the queue.
	Ready         float64 `json:"readySeconds"`
	FirstEviction float64 `json:"firstEvictionSeconds"`
	// The stages in their order. Start ends with the first eviction. In Idle the nodes send
	// heartbeats. WithPolicies and WithRecords follow a new start each.
	Start        stage `json:"start"`
	Idle         stage `json:"idle"`
	Interruption stage `json:"interruption"`
	WithPolicies stage `json:"withPolicies"`
	WithRecords  stage `json:"withRecords"`
	// RestartReady is Ready with the policies and the records.
	RestartReady float64 `json:"restartReadySeconds"`
	// Complete is false if some pods were not recorded in time.
	Complete  bool       `json:"complete"`
	Failovers []failover `json:"failovers"`
}

// BenchmarkScale measures what lifeboatd needs in clusters of different sizes: at the start, idle,
// while nodes are interrupted, and when its leader dies.
func BenchmarkScale(b *testing.B) {
	for _, c := range scaleCases {
		b.Run(c.name, func(b *testing.B) {
			result := newRig(b).scale(c)
			text, err := json.Marshal(result)
			must(b, err)
			fmt.Printf("JSON %s\n", text)
			if dir := os.Getenv("LIFEBOAT_BENCH_DIR"); dir != "" {
				must(b, os.WriteFile(filepath.Join(dir, "scale-"+c.name+".json"), append(text, '\n'), 0o600))
			}
			b.ReportMetric(result.Idle.Settled.Anonymous, "idle-anonymous-MiB")
			b.ReportMetric(result.Ready, "ready-s")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// The first nodes of the world have these parts.
const (
	coldNode     = 0 // its notice is on the queue before lifeboatd starts
	failoverNode = 1 // the first of those that are warned when a leader dies
)

// scale measures one size in a new world.
func (r *rig) scale(c scaleCase) scaleResult {
	r.Helper()
	out := scaleResult{
		Case: c.name, Date: time.Now().UTC().Format(time.DateOnly), Load: loadAverage(r),
		Nodes: c.nodes, PodsPerNode: c.podsOnNode, Interrupted: c.interrupted, Policies: c.policies, Records: c.records,
	}
	storm := failoverNode + kills(c.replicas) // the first of the nodes that are interrupted
	began := time.Now()
	r.rebuildLarge(c.nodes, c.podsOnNode, storm+c.interrupted, scaleReplicas)
	out.Created = time.Since(began).Seconds()
	r.untilIdle()

	r.freeLease()
	r.ownQueue()
	r.fill(1, func(int) string { return spot("cold", instance(coldNode)) })
	began = time.Now()
	p := r.launchElected()
	out.Start = r.stage(p, func() {
		r.untilReady(p)
		out.Ready = time.Since(began).Seconds()
		r.untilEvicted(coldNode)
		out.FirstEviction = time.Since(began).Seconds()
	})
	r.process = p.Process
	r.untilIdle()
	out.Idle = r.stage(p, func() { r.heartbeats(c.idle) })
	log := r.audit()
	out.Interruption = r.stage(p, func() {
		r.fill(c.interrupted, func(i int) string { return spot(fmt.Sprint("scale-", i), instance(storm+i)) })
		out.Complete = r.untilAccounted(c.interrupted + 1)
		r.untilQuiet(log)
	})
	r.stop()
	r.deleteInterruptions()

	if c.policies > 0 {
		r.createPolicies(c.policies)
		_, out.WithPolicies = r.restarted(c.idle)
	}
	if c.records > 0 {
		r.createRecords(c.records)
		out.RestartReady, out.WithRecords = r.restarted(c.idle)
	}
	node := failoverNode
	for _, n := range c.replicas {
		out.Failovers = append(out.Failovers, r.failovers(n, node)...)
		node += n - 1
	}
	return out
}

// restarted measures a new lifeboatd in the same world while it is idle.
func (r *rig) restarted(idle time.Duration) (ready float64, s stage) {
	r.Helper()
	r.ownQueue()
	began := time.Now()
	p := r.launchElected()
	r.untilReady(p)
	ready = time.Since(began).Seconds()
	r.process = p.Process
	r.untilIdle()
	s = r.stage(p, func() { r.heartbeats(idle) })
	r.stop()
	return ready, s
}

// loadAverage returns the load of the machine in the last 1, 5 and 15 minutes.
func loadAverage(r *rig) string {
	r.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	r.must(err)
	var one, five, fifteen string
	_, err = fmt.Sscan(string(text), &one, &five, &fifteen)
	r.must(err)
	return one + " " + five + " " + fifteen
}
