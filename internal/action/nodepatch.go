package action

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// nodePatch is what differs between two versions of a node that Lifeboat marks, as a
// merge patch (RFC 7386), in which null takes away. It is put together field by field:
// where many nodes go at once, to compare whole nodes as JSON was a tenth of the time
// that lifeboatd needed until all were marked.
type nodePatch struct {
	Metadata struct {
		// ResourceVersion is that of the node as it was read: taints are a list that is
		// replaced whole, so another writer's taint would be lost without it.
		ResourceVersion string             `json:"resourceVersion"`
		Annotations     map[string]*string `json:"annotations,omitempty"`
		Labels          map[string]*string `json:"labels,omitempty"`
	} `json:"metadata"`
	Spec map[string]any `json:"spec,omitempty"`
}

// differing returns the patch that makes a node another, in all that Marked and Restored
// change, or nil where nothing differs.
func differing(from, to *corev1.Node) *nodePatch {
	p := &nodePatch{Spec: map[string]any{}}
	p.Metadata.ResourceVersion = from.ResourceVersion
	p.Metadata.Annotations = entry(from.Annotations, to.Annotations, v1alpha1.AnnotationBefore)
	p.Metadata.Labels = entry(from.Labels, to.Labels, v1alpha1.LabelExcludeBalancers)
	if from.Spec.Unschedulable != to.Spec.Unschedulable {
		p.Spec["unschedulable"] = nil
		if to.Spec.Unschedulable {
			p.Spec["unschedulable"] = true
		}
	}
	if !equality.Semantic.DeepEqual(from.Spec.Taints, to.Spec.Taints) {
		p.Spec["taints"] = to.Spec.Taints // null where none is left
	}
	if len(p.Metadata.Annotations) == 0 && len(p.Metadata.Labels) == 0 && len(p.Spec) == 0 {
		return nil
	}
	return p
}

// entry returns an entry of a map if it differs; nil as its value takes it away.
func entry(from, to map[string]string, key string) map[string]*string {
	was, had := from[key]
	is, has := to[key]
	switch {
	case was == is && had == has:
		return nil
	case has:
		return map[string]*string{key: &is}
	}
	return map[string]*string{key: nil}
}

// changeNode makes a node another, and reports whether it was not already. The API server is
// asked to answer with the node's metadata, and not to look for fields of the whole node
// that it does not know: a node is large.
func changeNode(ctx context.Context, c client.Client, from, to *corev1.Node) (bool, error) {
	patch := differing(from, to)
	if patch == nil {
		return false, nil
	}
	text, err := json.Marshal(patch)
	if err != nil {
		return false, fmt.Errorf("writing the patch: %w", err)
	}
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: from.Name}}
	answer.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Node"))
	if err := c.Patch(ctx, answer, client.RawPatch(types.MergePatchType, text), client.FieldValidation(metav1.FieldValidationIgnore)); err != nil {
		return false, err
	}
	return true, nil
}
