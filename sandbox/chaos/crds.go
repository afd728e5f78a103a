package chaos

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// upgraded is added to the descriptions of the schemas.
const upgraded = " (changed by lifeboat sandbox chaos)"

// applyingCRDs changes the schemas: for a change of anything else, the API server does not make its handlers
// and their storage again (updateCustomResourceDefinition in apiextensions-apiserver).
func applyingCRDs(ctx context.Context, b *broken) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList"})
	if err := b.kube.List(ctx, list); err != nil {
		return fmt.Errorf("listing the CRDs: %w", err)
	}
	for i := range list.Items {
		crd := &list.Items[i]
		if group, _, _ := unstructured.NestedString(crd.Object, "spec", "group"); group != v1beta1.GroupVersion.Group {
			continue
		}
		b.onUndo(func(ctx context.Context) error { return b.describe(ctx, crd, "") })
		if err := b.describe(ctx, crd, upgraded); err != nil {
			return err
		}
	}
	return nil
}

// describe writes the versions of a CRD as they were, with an addition to the descriptions of their schemas.
func (t *Target) describe(ctx context.Context, was *unstructured.Unstructured, addition string) error {
	old, _, err := unstructured.NestedSlice(was.Object, "spec", "versions")
	if err != nil {
		return fmt.Errorf("reading the CRD %s: %w", was.GetName(), err)
	}
	path := []string{"schema", "openAPIV3Schema", "description"}
	for _, one := range old {
		version, ok := one.(map[string]any)
		if !ok {
			return fmt.Errorf("reading the CRD %s: a version is no object", was.GetName())
		}
		text, _, err := unstructured.NestedString(version, path...)
		if err := errors.Join(err, unstructured.SetNestedField(version, text+addition, path...)); err != nil {
			return fmt.Errorf("reading the CRD %s: %w", was.GetName(), err)
		}
	}
	now := was.DeepCopy()
	now.SetResourceVersion("")
	if err := unstructured.SetNestedSlice(now.Object, old, "spec", "versions"); err != nil {
		return fmt.Errorf("changing the CRD %s: %w", was.GetName(), err)
	}
	// A merge patch replaces a list as a whole.
	base := now.DeepCopy()
	unstructured.RemoveNestedField(base.Object, "spec", "versions")
	if err := client.IgnoreNotFound(t.kube.Patch(ctx, now, client.MergeFrom(base), client.FieldOwner(fieldOwner))); err != nil {
		return fmt.Errorf("changing the CRD %s: %w", was.GetName(), err)
	}
	return nil
}
