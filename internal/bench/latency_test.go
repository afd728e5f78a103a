package bench

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// podsPerNode run on the node that is reclaimed.
const podsPerNode = 10

// BenchmarkLatency sends one spot warning to an idle cluster, and waits until
// the node is tainted and the first of its pods was asked to stop. One b.N is
// one warning.
func BenchmarkLatency(b *testing.B) {
	r := newRig(b)
	r.nodes(2 * b.N)
	r.each(b.N, 8, func(ctx context.Context, i int) error { return r.createPods(ctx, 2*i, podsPerNode) })
	r.start()
	seen := r.watchWorld()
	url := r.newQueue("floor")
	var floor, taint, eviction []time.Duration
	for i := range b.N {
		floor = append(floor, r.receiveAndPatch(url, 2*i+1, seen))
		began := time.Now()
		r.sendTo(r.queueURL, spot(fmt.Sprint("notice-", i), instance(2*i)))
		taint = append(taint, (<-seen.taints).Sub(began))
		eviction = append(eviction, (<-seen.evictions).Sub(began))
		r.settled(2 * i)
	}
	for _, part := range []struct {
		name  string
		times []time.Duration
	}{{"floor", floor}, {"taint", taint}, {"eviction", eviction}} {
		b.ReportMetric(quantile(part.times, 0.5), part.name+"-p50-ms")
		b.ReportMetric(quantile(part.times, 0.99), part.name+"-p99-ms")
	}
	b.ReportMetric(quantile(taint, 0.5)/quantile(floor, 0.5), "taint-ratio")
	b.ReportMetric(quantile(eviction, 0.5)/quantile(floor, 0.5), "eviction-ratio")
	b.ReportMetric(0, "ns/op")
}

func quantile(times []time.Duration, q float64) float64 {
	sorted := slices.Sorted(slices.Values(times))
	return float64(sorted[int(q*float64(len(sorted)-1))].Microseconds()) / 1000
}

// receiveAndPatch is the least that anybody could do: it waits for a message and
// taints the node that it knows already. It returns the time from the sending
// until the taint is seen.
func (r *rig) receiveAndPatch(url string, i int, seen *sight) time.Duration {
	r.Helper()
	received := make(chan error, 1)
	polls := r.cloud.Gate.Calls("sqs", "ReceiveMessage")
	go func() {
		out, err := r.aws.ReceiveMessage(r.Context(), &awssqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10, WaitTimeSeconds: 20})
		if err == nil && len(out.Messages) != 1 {
			err = fmt.Errorf("%d messages", len(out.Messages))
		}
		if err == nil {
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i)}}
			patch := `{"spec":{"unschedulable":true,"taints":[{"key":"lifeboat.dev/interrupted","value":"SpotInterruption","effect":"NoSchedule"}]}}`
			err = r.peer.Patch(r.Context(), n, client.RawPatch("application/merge-patch+json", []byte(patch)))
		}
		received <- err
	}()
	r.until("the poll to be open, as lifeboatd's is", time.Minute, func() (bool, error) { return r.cloud.Gate.Calls("sqs", "ReceiveMessage") > polls, nil })
	began := time.Now()
	r.sendTo(url, spot("floor", instance(i)))
	at := <-seen.taints
	r.must(<-received)
	return at.Sub(began)
}

func (r *rig) sendTo(url, body string) {
	r.Helper()
	_, err := r.aws.SendMessage(r.Context(), &awssqs.SendMessageInput{QueueUrl: &url, MessageBody: &body})
	r.must(err)
}

// sight is what the benchmark sees of the cluster, with the time of it.
type sight struct {
	taints, evictions chan time.Time
}

// watchWorld watches for nodes that get tainted, and for the first pod of a node
// that is asked to stop.
func (r *rig) watchWorld() *sight {
	r.Helper()
	s := &sight{taints: make(chan time.Time, mostNodes), evictions: make(chan time.Time, mostNodes)}
	tainted := r.watchTaints()
	go func() {
		for range tainted {
			s.taints <- time.Now()
		}
	}()
	pods, err := r.admin.Watch(r.Context(), &corev1.PodList{})
	r.must(err)
	r.Cleanup(pods.Stop)
	go func() {
		leaving := map[string]bool{}
		for e := range pods.ResultChan() {
			if pod, ok := e.Object.(*corev1.Pod); ok && pod.DeletionTimestamp != nil && !leaving[pod.Spec.NodeName] {
				leaving[pod.Spec.NodeName] = true
				s.evictions <- time.Now()
			}
		}
	}()
	return s
}

// settled waits until lifeboatd has finished with a node for now: all of its
// pods were asked to stop, and the record says so.
func (r *rig) settled(i int) {
	r.Helper()
	r.until("all pods to be asked to stop", time.Minute, func() (bool, error) {
		var in v1alpha1.Interruption
		if err := r.admin.Get(r.Context(), client.ObjectKey{Name: instance(i)}, &in); err != nil {
			return false, err
		}
		return leavingPods(in) == podsPerNode, fmt.Errorf("drain %+v", in.Status.Drain)
	})
}

// evicted waits until so many pods are leaving.
func (r *rig) evicted(want int) {
	r.Helper()
	r.until("pods to be asked to stop", 5*time.Minute, func() (bool, error) {
		var all v1alpha1.InterruptionList
		if err := r.admin.List(r.Context(), &all); err != nil {
			return false, err
		}
		leaving := 0
		for i := range all.Items {
			leaving += int(leavingPods(&all.Items[i]))
		}
		return leaving == want, fmt.Errorf("%d are", leaving)
	})
}

// leavingPods is how many pods the status reports as leaving.
func leavingPods(in *v1alpha1.Interruption) int32 {
	if in.Status.Drain == nil {
		return 0
	}
	return in.Status.Drain.Pods.Leaving
}
