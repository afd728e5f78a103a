// Package nodeclaims watches only the replacement NodeClaims, by label, so
// memory grows with the interrupted nodes and not with the cluster. If
// Karpenter's API is not served, it reports that and starts the watch when
// Karpenter is installed, without a restart.
package nodeclaims

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/kube/reflector"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
	"github.com/lifeboat-dev/lifeboat/internal/sleep"
)

// +kubebuilder:rbac:groups=karpenter.sh,resources=nodeclaims,verbs=get;list;watch

// Interval is how often to check whether Karpenter's API is served.
const Interval = 10 * time.Second

// Watcher caches the replacement NodeClaims.
type Watcher struct {
	client   client.WithWatch
	changed  func(instanceID string)
	interval time.Duration

	mu        sync.Mutex
	known     bool // installed is valid
	installed bool
	listed    bool
	claims    map[string]*replacement.Claim // by name
}

// New returns a Watcher that calls changed, from any goroutine, with the
// instance whose replacement has changed. It checks for Karpenter's API at the
// interval.
func New(c client.WithWatch, interval time.Duration, changed func(instanceID string)) *Watcher {
	return &Watcher{client: c, changed: changed, interval: interval, claims: map[string]*replacement.Claim{}}
}

// Installed reports whether Karpenter's API is served, and whether that is
// known.
func (w *Watcher) Installed() (installed, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.installed, w.known && (w.listed || !w.installed)
}

// Claims returns the replacement NodeClaims in no particular order. They are
// shared: do not change them.
func (w *Watcher) Claims() []*replacement.Claim {
	w.mu.Lock()
	defer w.mu.Unlock()
	claims := make([]*replacement.Claim, 0, len(w.claims))
	for _, c := range w.claims {
		claims = append(claims, c)
	}
	return claims
}

// Start watches until ctx ends. It is a manager's Runnable.
func (w *Watcher) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		err := w.client.List(ctx, claimList(), client.Limit(1), client.HasLabels{v1beta1.LabelReplacesInstance})
		pause := w.interval
		switch {
		case err == nil:
			w.state(true, false)
			lw := reflector.Persistent(reflector.ListFirst{ListWatch: w.listWatch()})
			cache.NewReflectorWithOptions(lw, claimObject(), w, cache.ReflectorOptions{Name: "claimwatch"}).RunWithContext(ctx)
			return nil
		case meta.IsNoMatchError(err), apierrors.IsNotFound(err):
			w.state(false, false)
		case apierrors.IsForbidden(err):
			w.state(true, true) // creating a NodeClaim reports the denial
		default:
			pause = min(pause, time.Second)
		}
		sleep.For(ctx, pause)
	}
	return nil
}

func (w *Watcher) state(installed, listed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known, w.installed, w.listed = true, installed, listed
}

func (w *Watcher) listWatch() *cache.ListWatch {
	options := func(o metav1.ListOptions) *client.ListOptions {
		return &client.ListOptions{Raw: &o}
	}
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list := claimList()
			return list, w.client.List(ctx, list, client.HasLabels{v1beta1.LabelReplacesInstance}, options(o))
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return w.client.Watch(ctx, claimList(), client.HasLabels{v1beta1.LabelReplacesInstance}, options(o))
		},
	}
}

func claimObject() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(replacement.KindNodeClaim)
	return u
}

func claimList() *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(listKind())
	return list
}

func listKind() schema.GroupVersionKind {
	kind := replacement.KindNodeClaim
	kind.Kind += "List"
	return kind
}

// Add implements cache.ReflectorStore.
func (w *Watcher) Add(object any) error { return w.put(object) }

// Update implements cache.ReflectorStore.
func (w *Watcher) Update(object any) error { return w.put(object) }

func (w *Watcher) put(object any) error {
	c, err := read(object)
	if err != nil {
		return err
	}
	w.mu.Lock()
	w.claims[c.Name] = c
	w.mu.Unlock()
	w.changed(c.Replaces())
	return nil
}

// Delete implements cache.ReflectorStore.
func (w *Watcher) Delete(object any) error {
	c, err := read(object)
	if err != nil {
		return err
	}
	w.mu.Lock()
	delete(w.claims, c.Name)
	w.mu.Unlock()
	w.changed(c.Replaces())
	return nil
}

// Replace implements cache.ReflectorStore: it stores the result of a list.
func (w *Watcher) Replace(objects []any, _ string) error {
	claims := make(map[string]*replacement.Claim, len(objects))
	concerned := map[string]bool{}
	for _, object := range objects {
		c, err := read(object)
		if err != nil {
			continue // an invalid object must not hide the others
		}
		claims[c.Name], concerned[c.Replaces()] = c, true
	}
	w.mu.Lock()
	for _, c := range w.claims {
		concerned[c.Replaces()] = true
	}
	w.claims, w.listed = claims, true
	w.mu.Unlock()
	for instanceID := range concerned {
		w.changed(instanceID)
	}
	return nil
}

// Resync implements cache.ReflectorStore.
func (w *Watcher) Resync() error { return nil }

func read(object any) (*replacement.Claim, error) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("watching NodeClaims: got %T", object)
	}
	return replacement.ReadClaim(u)
}
