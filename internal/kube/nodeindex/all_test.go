package nodeindex

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// informers is a cache with an informer of nodes; nil: one that has no indexer.
type informers struct {
	cache.Informers
	nodes toolscache.Indexer
}

func (i informers) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	if i.nodes == nil {
		return nil, nil
	}
	return informer{indexer: i.nodes}, nil
}

type informer struct {
	cache.Informer
	indexer toolscache.Indexer
}

func (i informer) GetIndexer() toolscache.Indexer { return i.indexer }

func TestListCachedReturnsTheCachedObjects(t *testing.T) {
	store := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, nil)
	node := kept("a")
	if err := store.Add(node); err != nil {
		t.Fatal(err)
	}
	all, err := ListCached(informers{nodes: store})(t.Context())
	if err != nil || len(all) != 1 || all[0] != node {
		t.Errorf("got %v, error %v", all, err)
	}
	if _, err := ListCached(informers{})(t.Context()); err == nil {
		t.Error("an informer without an indexer gave no error")
	}
}

func TestListWith(t *testing.T) {
	c := fake.NewClientBuilder().WithObjects(&corev1.Node{}).Build()
	all, err := ListWith(c)(t.Context())
	if err != nil || len(all) != 1 {
		t.Errorf("got %v, error %v", all, err)
	}
}
