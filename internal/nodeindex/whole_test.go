package nodeindex

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/internal/nodelabel"
)

// held is a cache that holds nodes as Slim makes them.
type held struct {
	informertest.FakeInformers
	indexer toolscache.Indexer
}

func newHeld(t *testing.T, names ...string) *held {
	t.Helper()
	h := &held{indexer: toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, nil)}
	slim := Slim()
	for _, name := range names {
		node, err := slim(kept(name))
		if err != nil {
			t.Fatal(err)
		}
		if err := h.indexer.Add(node); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func (h *held) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	object, _, err := h.indexer.GetByKey(key.Name)
	held, _ := object.(*corev1.Node)
	node, _ := into.(*corev1.Node)
	held.DeepCopyInto(node)
	return err
}

func (h *held) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	list, ok := into.(*corev1.NodeList)
	if !ok {
		return nil
	}
	for _, object := range h.indexer.List() {
		held, _ := object.(*corev1.Node)
		list.Items = append(list.Items, *held)
	}
	return nil
}

// informer is one whose objects can be listed.
type informer struct {
	cache.Informer
	indexer toolscache.Indexer
}

func (i informer) GetIndexer() toolscache.Indexer { return i.indexer }

func (h *held) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return informer{indexer: h.indexer}, nil
}

func TestNodesAreWholeWhenTheyAreRead(t *testing.T) {
	h := newHeld(t, "a", "b")
	c := Whole(h)
	var node corev1.Node
	if err := c.Get(t.Context(), client.ObjectKey{Name: "a"}, &node); err != nil {
		t.Fatal(err)
	}
	if got := node.Labels[corev1.LabelHostname]; got != "a" {
		t.Errorf("host %q", got)
	}
	var list corev1.NodeList
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if n := &list.Items[i]; n.Labels[corev1.LabelHostname] != n.Name {
			t.Errorf("host %q of node %s", n.Labels[corev1.LabelHostname], n.Name)
		}
	}
	if err := c.List(t.Context(), &corev1.PodList{}); err != nil {
		t.Error(err)
	}
	all, err := ListCached(c)(t.Context())
	if err != nil || len(all) != 2 {
		t.Fatalf("%d nodes, error %v", len(all), err)
	}
	for _, n := range all {
		if n.Labels[corev1.LabelHostname] != nodelabel.AsNamed || nodelabel.Of(n, corev1.LabelHostname) != n.Name {
			t.Errorf("node %s of the cache was changed: %v", n.Name, n.Labels)
		}
	}
}

func TestWhatIsReadWithoutACopyIsLeftAsItIs(t *testing.T) {
	c := Whole(newHeld(t, "a"))
	all, err := ListWith(c)(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("%d nodes, error %v", len(all), err)
	}
	if all[0].Labels[corev1.LabelHostname] != nodelabel.AsNamed {
		t.Errorf("labels %v", all[0].Labels)
	}
}

func TestACacheThatCannotBeListedIsAnError(t *testing.T) {
	if _, err := ListCached(unlisted{})(t.Context()); err == nil {
		t.Error("no error")
	}
}

type unlisted struct{ cache.Informers }

func (unlisted) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return nil, nil
}
