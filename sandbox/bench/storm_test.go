package bench

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

const (
	// podsPerNode is the number of pods on each node, and stormReplicas of each Deployment.
	podsPerNode, stormReplicas = 10, 10
	// quiet is the time without writes from lifeboatd after which a storm is over, patience the
	// limit for that wait.
	quiet, patience = 5 * time.Second, 150 * time.Second
)

// stormCase is a storm: its nodes, and the percentage of them whose agents also record the notice.
type stormCase struct {
	name          string
	nodes, agents int
}

var stormCases = []stormCase{{"200", 200, 0}, {"200-agents", 200, 50}, {"1000", 1000, 0}, {"1000-agents", 1000, 50}}

// BenchmarkStorm warns all nodes of a cluster at once. It measures the time until all nodes are
// cordoned and all pods are evicted, and the requests for that. The floor runs before and after it.
func BenchmarkStorm(b *testing.B) {
	r := newRig(b)
	inFlight := 0
	for _, c := range stormCases {
		b.Run(c.name, func(b *testing.B) {
			r := r.in(b)
			if inFlight == 0 {
				r.world.nodes, r.world.podsPerNode, r.world.replicas = 200, podsPerNode, stormReplicas
				inFlight = r.fastestInFlight()
			}
			r.world.nodes, r.world.podsPerNode, r.world.replicas = c.nodes, podsPerNode, stormReplicas
			for range b.N {
				report := stormReport{Case: c.name, Nodes: c.nodes, Pods: r.world.pods(), AgentPercent: c.agents, FloorInFlight: inFlight}
				report.Fsync = fsyncTime(b, r.dir).Seconds() * 1000
				report.Floors = append(report.Floors, r.measureFloor(inFlight))
				report.Storm = r.storm(c)
				report.Floors = append(report.Floors, r.measureFloor(inFlight))
				report.publish(b)
			}
		})
	}
}

// stormResult is the result of one storm. Times are in seconds since the first notice entered the
// queue.
type stormResult struct {
	Cordoned     float64 `json:"cordonedSeconds"`
	FirstEvicted float64 `json:"firstEvictedSeconds"`
	Evicted      float64 `json:"evictedSeconds"`
	// Recorded is when every Interruption accounted for all its pods. LastStatus is when the last
	// status patch completed: it can be one for a deleted NodeClaim. Complete is false if some pods
	// were not recorded within the patience.
	Recorded   float64 `json:"recordedSeconds"`
	LastStatus float64 `json:"lastStatusSeconds"`
	LastWrite  float64 `json:"lastWriteSeconds"`
	Complete   bool    `json:"complete"`
	// Early counts pods that were evicted before the last node was cordoned, ShortGrace those that
	// got less than their full grace before the deadline.
	Early      int `json:"evictedBeforeLastCordon"`
	ShortGrace int `json:"podsWithShortGrace"`
	// Processor time and requests of lifeboatd until all pods were evicted, until lifeboatd graceLost
	// written nothing for five seconds, and afterwards while the pods left.
	EvictedCPU      cpu      `json:"evictedCPU"`
	QuietCPU        cpu      `json:"quietCPU"`
	EvictedRequests requests `json:"evictedRequests"`
	QuietRequests   requests `json:"quietRequests"`
	LeavingRequests requests `json:"leavingRequests"`

	Memory memoryPeak `json:"memoryMiB"`
}

// storm warns all nodes of a new world.
func (r *rig) storm(c stormCase) stormResult {
	r.Helper()
	r.rebuild(c.nodes, r.world.podsPerNode, c.nodes, r.world.replicas)
	r.start()
	r.warmUp()
	seen := r.observe()
	defer seen.stop()
	r.untilIdle()
	log, samples := r.audit(), r.sampleMemory()

	before, began := r.cpu(), time.Now()
	deadline := began.Add(2 * time.Minute)
	r.fill(c.nodes, func(i int) string { return spot(fmt.Sprintf("storm-%d-%d", r.world.starts, i), instance(i)) })
	agents := r.agents(c, deadline)
	r.until("all pods to be evicted", 10*time.Minute, func() (bool, error) {
		cordoned, evicted := seen.counts()
		return cordoned >= c.nodes && evicted == r.world.pods(), fmt.Errorf("%d nodes are cordoned, %d pods evicted", cordoned, evicted)
	})
	result := stormResult{EvictedCPU: r.cpu().minus(before)}
	r.must(agents())
	lastCordon := seen.lastCordon()
	first, last := seen.evictions()
	since := func(t time.Time) float64 { return max(0, t.Sub(began).Seconds()) }
	result.Cordoned, result.FirstEvicted, result.Evicted = since(lastCordon.at), since(first), since(last)
	result.Early, result.ShortGrace = seen.evictedBefore(lastCordon.version), seen.shortGrace(deadline)

	result.Complete = r.untilAccounted(c.nodes)
	result.Recorded = since(time.Now())
	r.untilQuiet(log)
	end := time.Now()
	result.QuietCPU = r.cpu().minus(before)
	result.LastStatus, result.LastWrite = since(log.last("patch interruptions/status", "update interruptions/status")), since(log.lastWrite())
	result.EvictedRequests, result.QuietRequests = log.between(began, last), log.between(began, end)
	result.Memory = samples.stop()

	r.removePods()
	r.untilQuiet(log)
	result.LeavingRequests = log.between(end, time.Now())
	r.stop()
	return result
}

// warmUp sends a notice about an extra node without pods, and waits until that node is cordoned:
// lifeboatd reports ready shortly before its loops run.
func (r *rig) warmUp() {
	r.Helper()
	i := r.world.nodes
	r.must(r.createNode(r.Context(), i))
	r.fill(1, func(int) string { return spot(fmt.Sprint("warm-up-", r.world.starts), instance(i)) })
	r.until("the first node to be cordoned", time.Minute, func() (bool, error) {
		var n corev1.Node
		err := r.admin.Get(r.Context(), client.ObjectKey{Name: nodeName(i)}, &n)
		return n.Spec.Unschedulable, err
	})
	r.must(r.admin.Delete(r.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i)}}))
}

// untilAccounted waits until the Interruptions of that many nodes account for all their pods. It
// reports whether they did within the patience.
func (r *rig) untilAccounted(nodes int) bool {
	r.Helper()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < patience; <-tick.C {
		if r.recorded() >= nodes {
			return true
		}
	}
	return false
}

// untilQuiet waits until lifeboatd has written nothing for a while, up to the patience.
func (r *rig) untilQuiet(log *auditReader) {
	r.Helper()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < patience; <-tick.C {
		r.must(log.read())
		if time.Since(began) >= quiet && time.Since(log.lastWrite()) >= quiet {
			return
		}
	}
}

// recorded counts the Interruptions that account for all pods of their nodes.
func (r *rig) recorded() int {
	r.Helper()
	var list v1beta1.InterruptionList
	r.must(r.admin.List(r.Context(), &list))
	n := 0
	for i := range list.Items {
		d := list.Items[i].Status.Drain
		if d == nil {
			continue
		}
		p := d.PodCounts
		if int(p.Total) == r.world.podsPerNode && p.Leaving+p.Moved+p.Lost == p.Total {
			n++
		}
	}
	return n
}

// agents writes the NodeNotices of a share of the nodes as their agents would, which poll instance
// metadata every two seconds. The returned function waits for them.
func (r *rig) agents(c stormCase, deadline time.Time) (wait func() error) {
	n := c.nodes * c.agents / 100
	done := make(chan error, n)
	for k := range n {
		i := k * c.nodes / n
		go func() {
			// The agents' polls are spread evenly over their interval.
			timer := time.NewTimer(2 * time.Second * time.Duration(k) / time.Duration(n))
			defer timer.Stop()
			select {
			case <-r.Context().Done():
				done <- r.Context().Err()
			case <-timer.C:
				done <- r.writeAsAgent(r.Context(), i, deadline)
			}
		}()
	}
	return func() error {
		var err error
		for range n {
			err = errors.Join(err, <-done)
		}
		return err
	}
}

// writeAsAgent creates the NodeNotice of a node.
func (r *rig) writeAsAgent(ctx context.Context, i int, deadline time.Time) error {
	at := metav1.NewTime(deadline)
	return r.admin.Create(ctx, &v1beta1.NodeNotice{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName(i)},
		Spec: v1beta1.NodeNoticeSpec{InstanceID: instance(i), NodeUID: string(r.world.nodeUIDs[i]), Notices: []v1beta1.MetadataNotice{{
			ID: "imds/SpotInterruption/terminate/" + stamp(deadline), Kind: notice.KindSpotInterruption, Subject: "spot/instance-action",
			InstanceAction: notice.ActionTerminate, Deadline: &at,
			Description: "EC2 takes the spot instance back at " + stamp(deadline) + " (terminate)",
		}}},
	})
}

// interruption is the record of a notice, as intake writes it.
func interruption(i int, n v1beta1.Notice) *v1beta1.Interruption {
	return &v1beta1.Interruption{
		ObjectMeta: metav1.ObjectMeta{Name: instance(i)},
		Spec:       v1beta1.InterruptionSpec{InstanceID: instance(i), NodeName: nodeName(i), Notices: []v1beta1.Notice{n}},
	}
}
