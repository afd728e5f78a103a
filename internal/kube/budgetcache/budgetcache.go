// Package budgetcache keeps what plans read of PodDisruptionBudgets. Tenants write them, and
// the cache has those of the whole cluster. So it keeps a bounded part of each, and parses a
// selector once per change instead of once per plan.
package budgetcache

import (
	"context"
	"fmt"

	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// Object is a PodDisruptionBudget in the cache: its names, and what plans read. It is not
// modified after it is cached, so copies share the budget.
type Object struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	Budget *drain.Budget
}

// DeepCopyObject implements runtime.Object.
func (o *Object) DeepCopyObject() runtime.Object {
	return &Object{ObjectMeta: *o.ObjectMeta.DeepCopy(), Budget: o.Budget}
}

// Parse is the cache's transform. It replaces a PodDisruptionBudget by an Object.
func Parse(object any) (any, error) {
	pdb, ok := object.(*policyv1.PodDisruptionBudget)
	if !ok {
		return object, nil // it is parsed, or a tombstone
	}
	return &Object{
		ObjectMeta: metav1.ObjectMeta{Namespace: pdb.Namespace, Name: pdb.Name, UID: pdb.UID, ResourceVersion: pdb.ResourceVersion},
		Budget:     drain.NewBudget(pdb),
	}, nil
}

// Lister returns the budgets of a namespace. Callers share them: do not change them.
type Lister func(ctx context.Context, namespace string) ([]*drain.Budget, error)

// ListWith returns a Lister that reads with a client.
func ListWith(reader client.Reader) Lister {
	return func(ctx context.Context, namespace string) ([]*drain.Budget, error) {
		var list policyv1.PodDisruptionBudgetList
		if err := reader.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("listing PodDisruptionBudgets of namespace %s: %w", namespace, err)
		}
		budgets := make([]*drain.Budget, 0, len(list.Items))
		for i := range list.Items {
			budgets = append(budgets, drain.NewBudget(&list.Items[i]))
		}
		return budgets, nil
	}
}

// ListCached returns a Lister of a cache whose transform is Parse. It copies nothing.
func ListCached(c cache.Informers) Lister {
	return func(ctx context.Context, namespace string) ([]*drain.Budget, error) {
		stored, err := indexer(ctx, c)
		if err != nil {
			return nil, err
		}
		objects, err := stored.ByIndex(toolscache.NamespaceIndex, namespace)
		if err != nil {
			return nil, fmt.Errorf("listing PodDisruptionBudgets of namespace %s: %w", namespace, err)
		}
		return budgets(objects), nil
	}
}

// Unread returns the number of budgets that are too large to be read, or too many in their
// namespace. They count as covering all pods of it.
func Unread(ctx context.Context, c cache.Informers) (int, error) {
	stored, err := indexer(ctx, c, cache.BlockUntilSynced(false))
	if err != nil {
		return 0, err
	}
	unread := 0
	for _, namespace := range stored.ListIndexFuncValues(toolscache.NamespaceIndex) {
		objects, err := stored.ByIndex(toolscache.NamespaceIndex, namespace)
		if err != nil {
			return 0, err
		}
		unread += drain.Unread(budgets(objects))
	}
	return unread, nil
}

func indexer(ctx context.Context, c cache.Informers, opts ...cache.InformerGetOption) (toolscache.Indexer, error) {
	informer, err := c.GetInformer(ctx, &policyv1.PodDisruptionBudget{}, opts...)
	if err != nil {
		return nil, fmt.Errorf("reading PodDisruptionBudgets: %w", err)
	}
	stored, ok := informer.(interface{ GetIndexer() toolscache.Indexer })
	if !ok {
		return nil, fmt.Errorf("reading PodDisruptionBudgets: the informer %T has no indexer", informer)
	}
	return stored.GetIndexer(), nil
}

func budgets(objects []any) []*drain.Budget {
	all := make([]*drain.Budget, 0, len(objects))
	for _, o := range objects {
		if b, ok := o.(*Object); ok {
			all = append(all, b.Budget)
		}
	}
	return all
}
