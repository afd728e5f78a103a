package chaos

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// editing edits all objects of a kind, and writes the fields that differ. Its undo writes them as they were.
func (b *broken) editing(ctx context.Context, kind schema.GroupVersionKind, edit func(object map[string]any) error) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := b.kube.List(ctx, list); err != nil {
		return fmt.Errorf("listing objects of the kind %s: %w", kind.Kind, err)
	}
	for i := range list.Items {
		was := &list.Items[i]
		edited := was.DeepCopy()
		if err := edit(edited.Object); err != nil {
			return fmt.Errorf("changing the %s %s: %w", kind.Kind, was.GetName(), err)
		}
		b.onUndo(func(ctx context.Context) error { return b.write(ctx, edited, was) })
		if err := b.write(ctx, was, edited); err != nil {
			return err
		}
	}
	return nil
}

// write writes the difference between two versions of an object, as a merge patch. It may have been deleted.
func (t *Target) write(ctx context.Context, from, to *unstructured.Unstructured) error {
	err := t.kube.Patch(ctx, to.DeepCopy(), client.MergeFrom(from), client.FieldOwner(fieldOwner))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("changing the %s %s: %w", to.GetKind(), to.GetName(), err)
	}
	return nil
}
