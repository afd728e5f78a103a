package nodeindex

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Lister returns all nodes. Callers share them: do not change them.
type Lister func(ctx context.Context) ([]*corev1.Node, error)

// ListWith returns a Lister that reads from a client.
func ListWith(reader client.Reader) Lister {
	return func(ctx context.Context) ([]*corev1.Node, error) {
		var list corev1.NodeList
		if err := reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing nodes: %w", err)
		}
		nodes := make([]*corev1.Node, 0, len(list.Items))
		for i := range list.Items {
			nodes = append(nodes, &list.Items[i])
		}
		return nodes, nil
	}
}

// ListCached returns a Lister of the objects in a cache, without any copy. Even with
// client.UnsafeDisableDeepCopy, a client copies most of a KiB per node; for loops that list
// all nodes several times a minute, that is most of the garbage of an idle process.
func ListCached(c cache.Informers) Lister {
	return func(ctx context.Context) ([]*corev1.Node, error) {
		informer, err := c.GetInformer(ctx, &corev1.Node{})
		if err != nil {
			return nil, fmt.Errorf("listing nodes: %w", err)
		}
		stored, ok := informer.(interface{ GetIndexer() toolscache.Indexer })
		if !ok {
			return nil, fmt.Errorf("listing nodes: the informer %T has no indexer", informer)
		}
		all := stored.GetIndexer().List()
		nodes := make([]*corev1.Node, 0, len(all))
		for _, object := range all {
			if node, ok := object.(*corev1.Node); ok {
				nodes = append(nodes, node)
			}
		}
		return nodes, nil
	}
}
