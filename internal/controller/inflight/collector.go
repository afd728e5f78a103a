// Package inflight exports what is under way as gauges. It reads the cache when it is scraped, and
// keeps nothing. Only the leader exports them, so that sums over the replicas are right.
package inflight

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/metric"
	"github.com/lifeboat-dev/lifeboat/internal/policy"
	"github.com/lifeboat-dev/lifeboat/internal/record"
)

// readTimeout bounds how long a scrape waits for a cache that has not synced.
const readTimeout = 2 * time.Second

// Options configure the collector.
type Options struct {
	// Reader reads the cache.
	Reader client.Reader
	// Elected is closed when this replica is the leader.
	Elected <-chan struct{}
	Clock   func() time.Time
}

// collector implements prometheus.Collector.
type collector struct {
	o     Options
	descs map[string]*prometheus.Desc
	// leads is when this replica was first seen to lead.
	leads     time.Time
	leadsOnce sync.Once
}

// firstPasses is how long a new leader has to look at the records. Until then they may list pods that left
// while nothing led.
const firstPasses = 10 * time.Second

// Register registers the gauges.
func Register(registerer prometheus.Registerer, o Options) error {
	c := &collector{o: o, descs: map[string]*prometheus.Desc{}}
	for _, d := range Definitions() {
		c.descs[d.Name] = d.Desc()
	}
	return metric.Register(registerer, "what is under way", c)
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	select {
	case <-c.o.Elected:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	now := c.o.Clock()
	s, err := c.summary(ctx, now)
	if err != nil {
		log.Log.Info("cannot count what is under way", "error", err.Error())
		return
	}
	gauge := func(d metric.Definition, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(c.descs[d.Name], prometheus.GaugeValue, value, labels...)
	}
	total := 0
	for g, n := range bounded(s.Groups) {
		total += n
		gauge(interruptions, float64(n), cmp.Or(string(g.Phase), "Pending"), cmp.Or(string(g.Action), "None"), g.Pool)
	}
	gauge(underWay, float64(total))
	for typ, at := range s.NearestDeadlines {
		gauge(nearestDeadline, at.Sub(now).Seconds(), string(typ))
	}
	gauge(pendingPods, float64(s.PodsWaiting), "waiting")
	gauge(pendingPods, float64(s.PodsLeaving), "leaving")
	if c.leadsOnce.Do(func() { c.leads = now }); now.Sub(c.leads) >= firstPasses {
		for node, n := range boundedNodes(s.PastLastCall) {
			gauge(podsPastLastCall, float64(n), node)
		}
	}
	gauge(blockedDrains, float64(s.Blocked))
	gauge(blockedWait, age(s.OldestBlocked, now))
	gauge(awaitingApproval, float64(s.AwaitingApproval))
	gauge(approvalWait, age(s.OldestApproval, now))
	gauge(onHold, float64(s.OnHold))
	gauge(uncorroborated, float64(s.Uncorroborated))
	gauge(replacementsPending, float64(s.ReplacementsPending))
	gauge(replacementWait, age(s.OldestReplacement, now))
	gauge(hooks, float64(s.HooksRunning), "running")
	gauge(hooks, float64(s.HooksFailed), "failed")
	gauge(hookWait, age(s.OldestHook, now))
	gauge(lifecycleHooks, float64(s.LifecycleHooks))
	gauge(paused, float64(s.Paused))
	c.collectPauses(ctx, gauge, now)
	c.collectNodes(ctx, gauge)
}

// collectNodes exports how many nodes no notice can reach.
func (c *collector) collectNodes(ctx context.Context, gauge func(metric.Definition, float64, ...string)) {
	var list corev1.NodeList
	if err := c.o.Reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		log.Log.Info("cannot count the nodes without a provider id", "error", err.Error())
		return
	}
	gauge(unreachableNodes, float64(len(nodeindex.Unreachable(list.Items))))
}

// boundedNodes joins all nodes but those with the most pods.
func boundedNodes(pods map[string]int) map[string]int {
	nodes := slices.SortedFunc(maps.Keys(pods), func(a, b string) int { return cmp.Or(cmp.Compare(pods[b], pods[a]), cmp.Compare(a, b)) })
	out := map[string]int{}
	for i, node := range nodes {
		if i >= maxNodes {
			node = otherPools
		}
		out[node] += pods[nodes[i]]
	}
	return out
}

// collectPauses exports the pauses that are in force.
func (c *collector) collectPauses(ctx context.Context, gauge func(metric.Definition, float64, ...string), now time.Time) {
	var list v1beta1.PauseList
	if err := c.o.Reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		log.Log.Info("cannot count the pauses", "error", err.Error())
		return
	}
	everything, deferrable := record.CountPauses(list.Items, now)
	gauge(pauses, float64(everything), string(v1beta1.PauseEverything))
	gauge(pauses, float64(deferrable), string(v1beta1.PauseDeferrable))
	gauge(pauseAge, age(record.OldestPause(list.Items, now), now))
}

func (c *collector) summary(ctx context.Context, now time.Time) (record.Summary, error) {
	var list v1beta1.InterruptionList
	if err := c.o.Reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return record.Summary{}, err
	}
	return record.Summarize(list.Items, func(in *v1beta1.Interruption) string { return c.poolOf(ctx, in) }, now), nil
}

// poolOf returns the pool of a node, or noPool.
func (c *collector) poolOf(ctx context.Context, in *v1beta1.Interruption) string {
	name := cmp.Or(in.Status.NodeName, in.Spec.NodeName)
	if name == "" {
		return noPool
	}
	var node corev1.Node
	if err := c.o.Reader.Get(ctx, client.ObjectKey{Name: name}, &node, client.UnsafeDisableDeepCopy); err != nil {
		return noPool // it has gone
	}
	return cmp.Or(policy.Pool(&node), noPool)
}

// bounded joins all pools but the largest ones.
func bounded(groups map[record.Group]int) map[record.Group]int {
	sizes := map[string]int{}
	for g, n := range groups {
		sizes[g.Pool] += n
	}
	delete(sizes, noPool)
	var pools []string
	for pool := range sizes {
		pools = append(pools, pool)
	}
	slices.SortFunc(pools, func(a, b string) int { return cmp.Or(cmp.Compare(sizes[b], sizes[a]), cmp.Compare(a, b)) })
	kept := map[string]bool{noPool: true}
	for _, pool := range pools[:min(len(pools), maxPools)] {
		kept[pool] = true
	}
	out := map[record.Group]int{}
	for g, n := range groups {
		if !kept[g.Pool] {
			g.Pool = otherPools
		}
		out[g] += n
	}
	return out
}

func age(since, now time.Time) float64 {
	if since.IsZero() {
		return 0
	}
	return max(now.Sub(since), 0).Seconds()
}
