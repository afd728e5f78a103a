package reflector

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// server fails lists and watches with err until it is back.
type server struct {
	err   error
	back  time.Time
	tries int
}

func (s *server) listWatch() cache.ListerWatcher {
	answer := func() error {
		s.tries++
		if time.Now().Before(s.back) {
			return s.err
		}
		return nil
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &corev1.PodList{}, answer()
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return watch.NewFake(), answer()
		},
	}
}

func TestRequestsAreRetriedDuringOutage(t *testing.T) {
	away := map[string]error{
		"no one listens":      errors.New("dial tcp 127.0.0.1:6443: connect: connection refused"),
		"the server starts":   apierrors.NewServiceUnavailable("starting"),
		"something timed out": apierrors.NewTimeoutError("gateway", 1),
	}
	for name, err := range away {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const outage = 20 * time.Second
				s := &server{err: err, back: time.Now().Add(outage)}
				start, lw := time.Now(), cache.ToListerWatcherWithContext(Persistent(s.listWatch()))
				if _, err := lw.ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
					t.Fatal(err)
				}
				if late := time.Since(start) - outage; late > 2*pause {
					t.Errorf("back %s after the server is", late)
				}
				if s.tries > int(outage/pause)+1 {
					t.Errorf("tried %d times in %s", s.tries, outage)
				}
				if _, err := lw.WatchWithContext(t.Context(), metav1.ListOptions{}); err != nil {
					t.Fatal(err)
				}
			})
		})
	}
}

func TestResponsesArePassedThrough(t *testing.T) {
	resource := schema.GroupResource{Resource: "pods"}
	for _, err := range []error{
		apierrors.NewForbidden(resource, "", errors.New("rbac")),
		apierrors.NewResourceExpired("too old"),
		apierrors.NewTooManyRequests("busy", 1),
		context.Canceled,
	} {
		s := &server{err: err, back: time.Now().Add(time.Hour)}
		_, got := cache.ToListerWatcherWithContext(Persistent(s.listWatch())).WatchWithContext(t.Context(), metav1.ListOptions{})
		if !errors.Is(got, err) || s.tries != 1 {
			t.Errorf("%v: got %v after %d tries", err, got, s.tries)
		}
	}
}

func TestRetryEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{err: errors.New("connection refused"), back: time.Now().Add(time.Hour)}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := cache.ToListerWatcherWithContext(Persistent(s.listWatch())).ListWithContext(ctx, metav1.ListOptions{}); err == nil {
			t.Error("no error although the server never came back")
		}
		if ctx.Err() == nil {
			t.Error("gave up before its context ended")
		}
	})
}
