package chaos

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// upgraded is added to the descriptions of the schemas.
const upgraded = " (changed by lifeboat sandbox chaos)"

func applyingCRDs(ctx context.Context, b *broken) error {
	return b.editing(ctx, schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}, upgrade)
}

// upgrade changes the schemas of a CRD of Lifeboat: for a change of anything else, the API server does not make
// its handlers and their storage again (updateCustomResourceDefinition in apiextensions-apiserver).
func upgrade(crd map[string]any) error {
	if group, _, _ := unstructured.NestedString(crd, "spec", "group"); group != v1beta1.GroupVersion.Group {
		return nil
	}
	versions, _, err := unstructured.NestedSlice(crd, "spec", "versions")
	if err != nil {
		return err
	}
	path := []string{"schema", "openAPIV3Schema", "description"}
	for _, one := range versions {
		version, ok := one.(map[string]any)
		if !ok {
			return errors.New("a version is no object")
		}
		text, _, err := unstructured.NestedString(version, path...)
		if err := errors.Join(err, unstructured.SetNestedField(version, text+upgraded, path...)); err != nil {
			return err
		}
	}
	return unstructured.SetNestedSlice(crd, versions, "spec", "versions")
}
