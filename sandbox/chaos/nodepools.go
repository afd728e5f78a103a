package chaos

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// nodePools are faults of Karpenter's NodePools.
func nodePools() []Fault {
	return []Fault{
		{Name: "full-nodepools", Text: "the NodePools get a limit of 0 CPUs, and back", Lasts: true, Part: PartKarpenter, apply: editingNodePools(limited)},
		{Name: "edit-nodepools", Text: "the NodePools get another template, and back; no node may be replaced for that", Lasts: true, Part: PartKarpenter, apply: editingNodePools(drifted)},
	}
}

func limited(pool map[string]any) error {
	return unstructured.SetNestedField(pool, "0", "spec", "limits", "cpu")
}

// drifted changes a template. A budget of 0 keeps Karpenter from replacing the nodes of the earlier one.
func drifted(pool map[string]any) error {
	if err := unstructured.SetNestedField(pool, "true", "spec", "template", "metadata", "labels", "chaos.lifeboat.dev/edited"); err != nil {
		return err
	}
	return unstructured.SetNestedSlice(pool, []any{map[string]any{"nodes": "0"}}, "spec", "disruption", "budgets")
}

func editingNodePools(edit func(pool map[string]any) error) func(context.Context, *broken) error {
	return func(ctx context.Context, b *broken) error {
		return b.editing(ctx, schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodePool"}, edit)
	}
}
