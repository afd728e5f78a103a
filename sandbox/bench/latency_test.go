package bench

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// BenchmarkLatency sends one spot warning to an idle cluster, and waits until the node is
// cordoned and the first of its pods is evicted. The pods run and have PodDisruptionBudgets.
// One b.N is one warning. Before each, the floor does the same on another node.
func BenchmarkLatency(b *testing.B) {
	r := newRig(b)
	r.rebuild(2*b.N, podsPerNode, 2*b.N, stormReplicas)
	r.start()
	r.warmUp()
	report := r.latencies(b.N)
	for name, times := range report {
		b.ReportMetric(quantile(times, 0.5), name+"-p50-ms")
		b.ReportMetric(quantile(times, 0.95), name+"-p95-ms")
	}
	text, err := json.Marshal(report)
	must(b, err)
	fmt.Printf("JSON %s\n", text)
	b.ReportMetric(0, "ns/op")
}

// latencies measures n warnings, on the nodes with even numbers, in milliseconds.
func (r *rig) latencies(n int) map[string][]float64 {
	r.Helper()
	seen := r.observe()
	defer seen.stop()
	url := r.newQueue("floor")
	report := map[string][]float64{}
	add := func(name string, began time.Time, at time.Time) {
		report[name] = append(report[name], float64(at.Sub(began).Microseconds())/1000)
	}
	for i := range n {
		r.rest()
		began := r.floorNotice(url, 2*i+1)
		c, e := r.untilSeen(seen, 2*i+1)
		add("floor-cordoned", began, c)
		add("floor-evicted", began, e)

		began = time.Now()
		r.send(r.queueURL, spot(fmt.Sprint("notice-", i), instance(2*i)))
		c, e = r.untilSeen(seen, 2*i)
		add("cordoned", began, c)
		add("evicted", began, e)
		r.untilRecorded(2 * i)
	}
	return report
}

// warningInterval is the time between two warnings. Lifeboat treats notices within half a second as one
// burst, and waits for more.
const warningInterval = time.Second

// rest waits for the last burst to end, so that the next warning reaches an idle cluster.
func (r *rig) rest() {
	r.Helper()
	select {
	case <-r.Context().Done():
		r.Fatal(r.Context().Err())
	case <-time.After(warningInterval):
	}
}

// untilSeen waits until the watch has shown the i-th node as cordoned and one of its pods as
// evicted.
func (r *rig) untilSeen(seen *observer, i int) (cordoned, evicted time.Time) {
	r.Helper()
	r.until("a node to be cordoned and a pod evicted", time.Minute, func() (bool, error) {
		cordoned, evicted = seen.of(nodeName(i), r.podNames(i))
		return !cordoned.IsZero() && !evicted.IsZero(), fmt.Errorf("cordoned %s, evicted %s", cordoned, evicted)
	})
	return cordoned, evicted
}

// podNames returns the names of the pods on the i-th node.
func (r *rig) podNames(i int) []string {
	names := make([]string, r.world.podsPerNode)
	for k := range names {
		names[k] = podName(i, k)
	}
	return names
}

// floorNotice makes the fewest calls with the same effect: it receives a message, cordons a known
// node and evicts one pod. It returns when the message was sent.
func (r *rig) floorNotice(url string, i int) time.Time {
	r.Helper()
	done := make(chan error, 1)
	polls := r.cloud.Gate.Calls("sqs", "ReceiveMessage")
	go func() {
		out, err := r.aws.ReceiveMessage(r.Context(), &awssqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10, WaitTimeSeconds: 20})
		if err == nil && len(out.Messages) != 1 {
			err = fmt.Errorf("received %d messages, want 1", len(out.Messages))
		}
		if err == nil {
			err = r.cordon(r.Context(), i)
		}
		if err == nil {
			err = r.evict(r.Context(), i*r.world.podsPerNode)
		}
		if err == nil { // otherwise a later round would receive it again
			_, err = r.aws.DeleteMessage(r.Context(), &awssqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: out.Messages[0].ReceiptHandle})
		}
		done <- err
	}()
	r.until("the poll to be open, as lifeboatd's is", time.Minute, func() (bool, error) { return r.cloud.Gate.Calls("sqs", "ReceiveMessage") > polls, nil })
	began := time.Now()
	r.send(url, spot("floor", instance(i)))
	r.must(<-done)
	return began
}

// untilRecorded waits until lifeboatd has evicted all pods of a node and recorded that in its
// Interruption.
func (r *rig) untilRecorded(i int) {
	r.Helper()
	r.until("the Interruption to record all evictions", 2*time.Minute, func() (bool, error) {
		var in v1beta1.Interruption
		if err := r.admin.Get(r.Context(), client.ObjectKey{Name: instance(i)}, &in); err != nil {
			return false, err
		}
		return in.Status.Drain != nil && int(in.Status.Drain.PodCounts.Leaving) == r.world.podsPerNode, fmt.Errorf("drain %+v", in.Status.Drain)
	})
}

func quantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[int(q*float64(len(sorted)-1))]
}
