// Package listwatch keeps watches from falling asleep while the API server is
// away. A client-go reflector backs off for up to a minute, which is half of a
// spot instance's notice; here a request that did not get through is repeated
// every second or so until it does.
package listwatch

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

// pause is the least time between two tries; up to as much again is added at
// random, so that many watches do not come back as one.
const pause = 500 * time.Millisecond

// Persistent returns a ListerWatcher that repeats requests which did not get
// through to an API server that works. Answers, errors included, are passed on.
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

// NewInformer makes a shared informer that is persistent; it has the shape that
// controller-runtime's cache takes.
func NewInformer(lw cache.ListerWatcher, object runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(Persistent(lw), object, resync, indexers)
}

// ListFirst lists before it watches, which a cache of the API server answers at
// once. To have the list come as the beginning of a watch would cost up to a
// tenth of a second here: the API server then waits until its cache is known to
// be as new as etcd (Kubernetes docs, "API concepts", streaming lists). What is
// too new for the list is told of by the watch.
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

// Unanswered reports whether a request did not reach an API server that works:
// the connection failed, or something on the way, or the server as it starts or
// stops, said that it is unavailable.
func Unanswered(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return !errors.Is(err, context.Canceled)
	}
	return apierrors.IsServiceUnavailable(err) || apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err)
}
