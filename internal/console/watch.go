package console

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/internal/kube/reflector"
)

// watcher copies the objects of one kind into the state. It is the store of its reflector.
type watcher struct {
	what    string
	list    client.ObjectList
	object  client.Object
	set     func(object any, deleted bool)
	replace func(objects []any)
	state   *state
}

func (w watcher) run(ctx context.Context) {
	lw := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, _ := w.list.DeepCopyObject().(client.ObjectList)
			ctx, cancel := w.limit(ctx)
			defer cancel()
			err := w.state.o.Client.List(ctx, list, &client.ListOptions{Raw: &o, Limit: o.Limit, Continue: o.Continue})
			if err != nil {
				err = fmt.Errorf("listing %s: %w", w.what, err)
			}
			w.state.answered(w.what, err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			changes, err := w.state.o.Client.Watch(ctx, w.list, &client.ListOptions{Raw: &o})
			if err != nil {
				err = fmt.Errorf("watching %s: %w", w.what, err)
			}
			w.state.answered(w.what, err)
			return changes, err
		},
	}
	first := reflector.Persistent(reflector.ListFirst{ListWatch: lw})
	cache.NewReflectorWithOptions(first, w.object, w, cache.ReflectorOptions{Name: "console"}).RunWithContext(ctx)
}

func (w watcher) limit(ctx context.Context) (context.Context, context.CancelFunc) {
	if w.state.o.Timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, w.state.o.Timeout)
}

// Add implements cache.ReflectorStore.
func (w watcher) Add(object any) error { w.set(object, false); return nil }

// Update implements cache.ReflectorStore.
func (w watcher) Update(object any) error { w.set(object, false); return nil }

// Delete implements cache.ReflectorStore.
func (w watcher) Delete(object any) error { w.set(object, true); return nil }

// Replace implements cache.ReflectorStore.
func (w watcher) Replace(objects []any, _ string) error { w.replace(objects); return nil }

// Resync implements cache.ReflectorStore.
func (w watcher) Resync() error { return nil }
