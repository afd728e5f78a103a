package nodeclaims

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

const instance = "i-0a1b2c3d4e5f60718"

func claim(name, replaces string) *unstructured.Unstructured {
	u := claimObject()
	u.SetName(name)
	if replaces != "" {
		u.SetLabels(map[string]string{v1beta1.LabelReplacesInstance: replaces})
	}
	return u
}

// cluster is a cluster in which Karpenter can be installed later.
func cluster(t *testing.T, installed *atomic.Bool) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	scheme.AddKnownTypeWithName(replacement.KindNodeClaim, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(listKind(), &unstructured.UnstructuredList{})
	return fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if !installed.Load() {
				return &meta.NoKindMatchError{GroupKind: replacement.KindNodeClaim.GroupKind()}
			}
			return c.List(ctx, list, opts...)
		},
	}).Build()
}

func start(t *testing.T, c client.WithWatch) (*Watcher, <-chan string) {
	t.Helper()
	changed := make(chan string, 100)
	w := New(c, 10*time.Millisecond, func(instanceID string) { changed <- instanceID })
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = w.Start(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	return w, changed
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.After(10 * time.Second)
	for !holds() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}

func TestKarpenterInstalledLaterIsDetected(t *testing.T) {
	t.Parallel()
	var installed atomic.Bool
	c := cluster(t, &installed)
	w, changed := start(t, c)
	until(t, "it to be known that there is none", func() bool { is, known := w.Installed(); return known && !is })
	if err := c.Create(t.Context(), claim("a", instance)); err != nil {
		t.Fatal(err)
	}
	installed.Store(true)
	until(t, "it to be known that there is", func() bool { is, known := w.Installed(); return known && is })
	if got := <-changed; got != instance || len(w.Claims()) != 1 {
		t.Errorf("changed %q, claims %v", got, w.Claims())
	}
}

func TestOnlyReplacementsAreWatched(t *testing.T) {
	t.Parallel()
	var installed atomic.Bool
	installed.Store(true)
	c := cluster(t, &installed)
	ours := claim("ours", instance)
	for _, u := range []*unstructured.Unstructured{ours, claim("karpenters", "")} {
		if err := c.Create(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}
	w, changed := start(t, c)
	until(t, "the list", func() bool { _, known := w.Installed(); return known })
	if claims := w.Claims(); len(claims) != 1 || claims[0].Name != "ours" {
		t.Errorf("claims %v", claims)
	}
	<-changed
	if err := c.Delete(t.Context(), ours); err != nil {
		t.Fatal(err)
	}
	if got := <-changed; got != instance {
		t.Errorf("changed %q", got)
	}
	until(t, "it to be forgotten", func() bool { return len(w.Claims()) == 0 })
}
