package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// load is a number of messages on the queue.
type load struct {
	name     string
	messages int
	body     func(round, i, nodes int) string
	nodes    int // number of nodes that the messages are about, in turn
	records  int // number of resulting Interruptions
	// kept is the number of messages that stay in the queue because their instances may still
	// register as nodes. They do not count as done.
	kept int
}

func loads() []load {
	return []load{
		newLoad("mixed-1000", 1000, 1000, 1000, mixed),
		newLoad("mixed-5000", 5000, 5000, 5000, mixed),
		newLoad("joined-15000", 15000, 15000, 5000, mixed), // three about each node
		newLoad("noise95-15000", 15000, 750, 5000, noisy),
	}
}

func newLoad(name string, messages, relevant, nodes int, body func(round, i, nodes int) string) load {
	l := load{name: name, messages: messages, body: body, nodes: nodes, records: min(relevant, nodes)}
	for i := range messages {
		if relevant < messages && i%20 != 0 && staysQueued(i) {
			l.kept++
		}
	}
	return l
}

// BenchmarkIntake records a load on a replica that does not lead. The floors create as many
// Interruptions, and as many small ConfigMaps. The difference is the cost of one object with a
// schema per instance.
func BenchmarkIntake(b *testing.B) {
	r := newRig(b)
	for _, l := range loads() {
		b.Run(l.name, func(b *testing.B) {
			r := r.in(b)
			r.rebuild(l.nodes, 0, 0, 1)
			var floor, small, took float64
			var used cpu
			for round := range b.N {
				floor += r.createInterruptions(l.records)
				small += r.createSmall(l.records)
				seconds, spent := r.takeIn(l, round)
				took += seconds
				used.APIServer, used.Etcd, used.Lifeboatd = used.APIServer+spent.APIServer, used.Etcd+spent.Etcd, used.Lifeboatd+spent.Lifeboatd
			}
			done := float64((l.messages - l.kept) * b.N)
			b.ReportMetric(done/took, "messages/s")
			b.ReportMetric(float64(l.records*b.N)/took, "records/s")
			b.ReportMetric(float64(l.records*b.N)/floor, "floor-records/s")
			b.ReportMetric(float64(l.records*b.N)/small, "floor-configmaps/s")
			b.ReportMetric(1000*used.APIServer/done, "apiserver-cpu-ms/message")
			b.ReportMetric(1000*used.Etcd/done, "etcd-cpu-ms/message")
			b.ReportMetric(1000*used.Lifeboatd/done, "lifeboatd-cpu-ms/message")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// takeIn lets lifeboatd record a load.
func (r *rig) takeIn(l load, round int) (seconds float64, used cpu) {
	r.Helper()
	r.startIntake()
	seconds, used = r.timed(func() {
		r.fill(l.messages, func(i int) string { return l.body(round, i, l.nodes) })
		r.untilDeleted(l.kept)
	})
	var list v1beta1.InterruptionList
	r.must(r.admin.List(r.Context(), &list))
	if len(list.Items) != l.records {
		r.Fatalf("%d Interruptions, want %d", len(list.Items), l.records)
	}
	r.stop()
	r.deleteInterruptions()
	return seconds, used
}

// createInterruptions is a floor of intake: n Interruptions as intake writes them.
func (r *rig) createInterruptions(n int) float64 {
	r.Helper()
	now := time.Now()
	seconds, _ := r.timed(func() {
		r.each(n, floorIntake, func(ctx context.Context, i int) error {
			return r.floor[i%len(r.floor)].Create(ctx, interruption(i, v1beta1.Notice{
				ID: fmt.Sprintf("floor-%d", i), Kind: "SpotInterruption", Source: "sqs", Time: metav1.NewTime(now), ReceivedTime: metav1.NewMicroTime(now),
				Deadline:       &v1beta1.Deadline{Time: metav1.NewTime(now.Add(2 * time.Minute)), Type: v1beta1.DeadlineHard},
				InstanceAction: "terminate", Description: "EC2 takes the spot instance back at " + stamp(now.Add(2*time.Minute)) + " (terminate)",
			}))
		})
	})
	r.deleteInterruptions()
	return seconds
}

// createSmall is the other floor: n small objects of a built-in type.
func (r *rig) createSmall(n int) float64 {
	r.Helper()
	seconds, _ := r.timed(func() {
		r.each(n, floorIntake, func(ctx context.Context, i int) error {
			// The controller's account may not create ConfigMaps.
			return r.admin.Create(ctx, &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: instance(i)}, Data: map[string]string{"node": nodeName(i)},
			})
		})
	})
	r.must(r.admin.DeleteAllOf(r.Context(), &corev1.ConfigMap{}, client.InNamespace("default")))
	return seconds
}

// BenchmarkSpotBehindNoise sends ten thousand messages about no node, then a spot warning. It
// measures the time from the warning until its node is cordoned.
func BenchmarkSpotBehindNoise(b *testing.B) {
	r := newRig(b)
	r.rebuild(100, 0, 0, 1)
	var took time.Duration
	for round := range b.N {
		took += r.spotBehindNoise(round, 10_000)
	}
	b.ReportMetric(took.Seconds()/float64(b.N), "s/warning")
	b.ReportMetric(0, "ns/op")
}

func (r *rig) spotBehindNoise(round, before int) time.Duration {
	r.Helper()
	r.start()
	began := time.Now()
	r.fill(before, func(i int) string { return noise(round, i) })
	r.fill(1, func(int) string { return spot("the-one", instance(round)) })
	r.until("the node to be cordoned", time.Minute, func() (bool, error) {
		var n corev1.Node
		err := r.admin.Get(r.Context(), client.ObjectKey{Name: nodeName(round)}, &n)
		return n.Spec.Unschedulable, err
	})
	took := time.Since(began)
	r.stop()
	return took
}
