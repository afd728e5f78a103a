package evict_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/internal/controller/interruption/evict"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// admission is a client whose evictions take as long as the webhook of the pod's namespace.
func admission(takes map[string]time.Duration) client.Client {
	return fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		SubResourceCreate: func(ctx context.Context, _ client.Client, _ string, o, _ client.Object, _ ...client.SubResourceCreateOption) error {
			select {
			case <-time.After(takes[o.GetNamespace()]):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		},
	}).Build()
}

// podsOf are requests to evict pods of a namespace.
func podsOf(namespace string, n int) []evict.Request {
	var requests []evict.Request
	for i := range n {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprint("pod-", i)}}
		requests = append(requests, evict.Request{Verdict: drain.Verdict{Pod: pod, Step: drain.StepEvict}})
	}
	return requests
}

// drainBeside returns how long a node takes to evict its pods while nodes of a tenant are
// drained whose webhook takes ten seconds.
func drainBeside(t *testing.T, tenantNodes int) time.Duration {
	t.Helper()
	var took time.Duration
	synctest.Test(t, func(t *testing.T) {
		e, c := evict.New(), admission(map[string]time.Duration{"tenant": 10 * time.Second, "shop": 20 * time.Millisecond})
		var tenant sync.WaitGroup
		for range tenantNodes {
			tenant.Go(func() { e.Send(t.Context(), c, time.Now(), podsOf("tenant", 30)) })
		}
		time.Sleep(time.Second) // the tenant's requests are in flight
		begun := time.Now()
		for _, r := range e.Send(t.Context(), c, begun, podsOf("shop", 30)) {
			if !r.Evicted {
				t.Errorf("%s: %s", r.Verdict.Pod.Name, r.Reason)
			}
		}
		took = time.Since(begun)
		tenant.Wait()
	})
	return took
}

func TestSlowAdmissionOfOneTenantDelaysNoOtherNode(t *testing.T) {
	alone := drainBeside(t, 0)
	for _, nodes := range []int{1, 20, 60, 300} {
		if took := drainBeside(t, nodes); took > alone+time.Second {
			t.Errorf("beside %d nodes of the tenant it took %s, alone %s", nodes, took, alone)
		}
	}
}
