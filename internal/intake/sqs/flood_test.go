package sqs_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	coordinationv1 "k8s.io/api/coordination/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/intake"
	"github.com/lifeboat-dev/lifeboat/internal/intake/sqs"
)

// flood is a queue of forged probes, each with 200 KiB, and then a spot warning. It measures the heap.
type flood struct {
	*fakeQueue
	probes int

	mu       sync.Mutex
	sent     int
	receives int
	deleted  int
	heap     uint64
}

func (f *flood) DeleteMessageBatch(_ context.Context, in *awssqs.DeleteMessageBatchInput, _ ...func(*awssqs.Options)) (*awssqs.DeleteMessageBatchOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.deleted += len(in.Entries)
	return &awssqs.DeleteMessageBatchOutput{}, nil
}

func (f *flood) ReceiveMessage(ctx context.Context, in *awssqs.ReceiveMessageInput, o ...func(*awssqs.Options)) (*awssqs.ReceiveMessageOutput, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := &awssqs.ReceiveMessageOutput{}
	for ; f.sent <= f.probes && len(out.Messages) < int(in.MaxNumberOfMessages); f.sent++ {
		body := spot("warning", instance).String()
		if f.sent < f.probes {
			rule := "health"
			if f.sent%2 == 0 {
				rule = fmt.Sprint("rule-", f.sent)
			}
			body = fmt.Sprintf(`{"id":"p","detail-type":"AWS Health Event","source":"lifeboat.dev","account":%q,"time":"2026-05-11T08:14:02Z","region":%q,`+
				`"detail":{"lifeboat-probe":{"id":"p-%d","rule":%q},"padding":%q}}`, account, region, f.sent, rule, strings.Repeat("x", 200<<10))
		}
		out.Messages = append(out.Messages, types.Message{Body: &body, ReceiptHandle: aws.String(fmt.Sprint("handle", f.sent))})
	}
	if len(out.Messages) == 0 {
		f.mu.Unlock()
		defer f.mu.Lock()
		return f.fakeQueue.ReceiveMessage(ctx, in, o...)
	}
	if f.receives++; f.receives%250 == 0 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		f.heap = max(f.heap, m.HeapAlloc)
	}
	return out, nil
}

// Forged probes must neither fill the memory nor hold up a spot warning. While the API server takes
// a second for each read, all of them together cost a few.
func TestForgedProbesDoNotDelaySpotWarning(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		scheme := apiruntime.NewScheme()
		_, _ = v1beta1.AddToScheme(scheme), coordinationv1.AddToScheme(scheme) // only add known types
		leases := 0
		kube := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
				if _, ok := o.(*coordinationv1.Lease); ok {
					leases++
					time.Sleep(time.Second)
				}
				return c.Get(ctx, key, o, opts...)
			},
		}).Build()
		w := &world{t: t, queue: "http://queue/0/lifeboat", calls: &calls{}, log: &lines{}, kube: kube, nodes: &nodes{}}
		w.nodes.add(instance)
		var before runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		queue := &flood{fakeQueue: newFakeQueue(), probes: 3000}
		if testing.Short() {
			queue.probes = 600
		}
		recorder := intake.NewRecorder(kube, w.nodes, intake.Options{Account: account, Region: region, Rules: []string{"health"}})
		began := time.Now()
		stop := w.run(queue, recorder, sqs.Options{})
		for len(w.records()) == 0 {
			time.Sleep(10 * time.Millisecond)
		}
		took := time.Since(began)
		time.Sleep(time.Minute) // on synctest's clock
		synctest.Wait()
		stop()
		held := (max(queue.heap, before.HeapAlloc) - before.HeapAlloc) >> 20
		t.Logf("recorded after %s and %d receives, %d reads of the Lease; %d MiB held", took, queue.receives, leases, held)
		if took > 5*time.Second || queue.receives > queue.probes || leases > 20 || leases == 0 || held > 100 {
			t.Errorf("recorded after %s and %d receives, %d reads of the Lease; %d MiB held", took, queue.receives, leases, held)
		}
		if queue.deleted != queue.probes+1 {
			t.Errorf("deleted %d of %d messages", queue.deleted, queue.probes+1)
		}
	})
}
