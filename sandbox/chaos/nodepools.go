package chaos

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// nodePools are faults of Karpenter's NodePools.
func nodePools() []Fault {
	return []Fault{
		{Name: "full-nodepools", Text: "the NodePools get a limit of 0 CPUs, and back", Lasts: true, Part: PartKarpenter, apply: editingNodePools(map[string]any{"limits": map[string]any{"cpu": "0"}})},
		{Name: "edit-nodepools", Text: "the NodePools get another template, and back; no node may be replaced for that", Lasts: true, Part: PartKarpenter, apply: editingNodePools(drifted)},
	}
}

// drifted changes a template. A budget of 0 keeps Karpenter from replacing the nodes of the earlier one.
var drifted = map[string]any{
	"template":   map[string]any{"metadata": map[string]any{"labels": map[string]any{"chaos.lifeboat.dev/edited": "true"}}},
	"disruption": map[string]any{"budgets": []any{map[string]any{"nodes": "0"}}},
}

// editingNodePools applies a merge patch to each spec. Its undo replaces the fields that the patch changes.
func editingNodePools(change map[string]any) func(context.Context, *broken) error {
	return func(ctx context.Context, b *broken) error {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(schema.GroupVersionKind{Group: "karpenter.sh", Version: "v1", Kind: "NodePoolList"})
		if err := b.kube.List(ctx, list); err != nil {
			return fmt.Errorf("listing the NodePools: %w", err)
		}
		for i := range list.Items {
			pool := &list.Items[i]
			spec, _, err := unstructured.NestedMap(pool.Object, "spec")
			if err != nil {
				return fmt.Errorf("reading the NodePool %s: %w", pool.GetName(), err)
			}
			var back []operation
			for field := range change {
				back = append(back, operation{Op: "add", Path: "/spec/" + field, Value: spec[field]})
				if spec[field] == nil {
					back[len(back)-1] = operation{Op: "remove", Path: "/spec/" + field}
				}
			}
			b.onUndo(func(ctx context.Context) error { return b.patchPool(ctx, pool, types.JSONPatchType, back) })
			if err := b.patchPool(ctx, pool, types.MergePatchType, map[string]any{"spec": change}); err != nil {
				return err
			}
		}
		return nil
	}
}

// operation is one of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

func (t *Target) patchPool(ctx context.Context, pool *unstructured.Unstructured, kind types.PatchType, patch any) error {
	text, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encoding a change of the NodePool %s: %w", pool.GetName(), err)
	}
	if err := client.IgnoreNotFound(t.kube.Patch(ctx, pool.DeepCopy(), client.RawPatch(kind, text))); err != nil {
		return fmt.Errorf("changing the NodePool %s: %w", pool.GetName(), err)
	}
	return nil
}
