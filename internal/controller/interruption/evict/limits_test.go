package evict

import (
	"context"
	"testing"

	"golang.org/x/sync/semaphore"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

func TestLimitsForgetNamespacesWithoutRequests(t *testing.T) {
	l, node := newLimits(), semaphore.NewWeighted(2)
	request := func(namespace string) Request {
		return Request{Verdict: drain.Verdict{Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace}}}}
	}
	first, err := l.acquire(t.Context(), node, request("shop"))
	if err != nil {
		t.Fatal(err)
	}
	second, err := l.acquire(t.Context(), node, request("shop"))
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.acquire(ended, node, request("tenant")); err == nil {
		t.Error("a node with two slots gave three")
	}
	first()
	if len(l.namespaces) != 1 || l.namespaces["shop"].requests != 1 {
		t.Errorf("%d namespaces are kept, want the one with a request in flight", len(l.namespaces))
	}
	second()
	if len(l.namespaces) != 0 || !l.all.TryAcquire(maxInFlight) || !node.TryAcquire(2) {
		t.Errorf("%d namespaces are kept, or slots are not free", len(l.namespaces))
	}
}
