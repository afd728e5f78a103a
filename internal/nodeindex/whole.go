package nodeindex

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/internal/nodelabel"
)

// Whole returns a cache whose nodes have all of their labels when they are read: of
// those that Slim has made, that of the host's name is put back. What is read with
// client.UnsafeDisableDeepCopy, by a Lister, or by who handles an informer's events, is
// what the cache itself has: see package nodelabel.
func Whole(c cache.Cache) cache.Cache { return whole{c} }

type whole struct{ cache.Cache }

// Get implements client.Reader.
func (w whole) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	err := w.Cache.Get(ctx, key, into, opts...)
	if node, ok := into.(*corev1.Node); ok && err == nil {
		nodelabel.PutBack(node)
	}
	return err
}

// List implements client.Reader.
func (w whole) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	err := w.Cache.List(ctx, into, opts...)
	nodes, ok := into.(*corev1.NodeList)
	if !ok || err != nil {
		return err
	}
	var asked client.ListOptions
	if asked.ApplyOptions(opts); asked.UnsafeDisableDeepCopy != nil && *asked.UnsafeDisableDeepCopy {
		return nil
	}
	for i := range nodes.Items {
		nodelabel.PutBack(&nodes.Items[i])
	}
	return nil
}
