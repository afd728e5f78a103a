// Package reflector retries watches quickly after the API server was
// unreachable. A client-go reflector backs off for up to a minute, which is
// half of a spot instance's notice. This package repeats failed requests about
// every second.
package reflector

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

// pause is the least time between two tries; up to the same time is added as
// jitter, so that many watches do not reconnect at once.
const pause = 500 * time.Millisecond

// Persistent returns a ListerWatcher that repeats requests without a response
// from a working API server. Responses, including errors, are passed on.
func Persistent(lw cache.ListerWatcher) cache.ListerWatcher {
	inner := cache.ToListerWatcherWithContext(lw)
	persistent := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return repeat(ctx, func() (runtime.Object, error) { return inner.ListWithContext(ctx, o) })
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return repeat(ctx, func() (watch.Interface, error) { return inner.WatchWithContext(ctx, o) })
		},
	}
	return cache.ToListWatcherWithWatchListSemantics(persistent, lw)
}

// NewInformer creates a persistent shared informer; it has the signature that
// controller-runtime's cache expects.
func NewInformer(lw cache.ListerWatcher, object runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(Persistent(lw), object, resync, indexers)
}

// ListFirst lists before it watches; the API server answers the list from its
// cache at once. A streaming list would cost up to 100 ms here: the API server
// first waits until its cache is as new as etcd (Kubernetes docs, "API
// concepts", streaming lists). The watch delivers what is newer than the list.
type ListFirst struct{ *cache.ListWatch }

// IsWatchListSemanticsUnSupported tells client-go to list first.
func (ListFirst) IsWatchListSemanticsUnSupported() bool { return true }

func repeat[T any](ctx context.Context, request func() (T, error)) (T, error) {
	for {
		answer, err := request()
		if err == nil || !Unanswered(err) {
			return answer, err
		}
		if !sleep.For(ctx, pause+rand.N(pause)) {
			return answer, err
		}
	}
}

// Unanswered reports whether no working API server answered: the connection
// failed, or a proxy or a starting or stopping server answered that it is
// unavailable.
func Unanswered(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return !errors.Is(err, context.Canceled)
	}
	return apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}
