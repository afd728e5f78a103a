package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// +kubebuilder:rbac:groups=karpenter.sh,resources=nodeclaims,verbs=get;create;patch;delete

// ErrNameTaken says that a NodeClaim that is not Lifeboat's has the name that a
// replacement was to have.
var ErrNameTaken = errors.New("a NodeClaim of that name is there that is not Lifeboat's")

// Order has a replacement's NodeClaim made, and returns its UID. One that is there
// already is the same one, ordered before.
func Order(ctx context.Context, c client.Client, claim *unstructured.Unstructured) (types.UID, error) {
	made := claim.DeepCopy()
	err := c.Create(ctx, made)
	if err == nil {
		return made.GetUID(), nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return "", fmt.Errorf("ordering NodeClaim %s: %w", claim.GetName(), err)
	}
	stands, err := Claim(ctx, c, claim.GetName())
	switch {
	case err != nil:
		return "", err
	case stands == nil:
		return "", fmt.Errorf("ordering NodeClaim %s: it went as it was made", claim.GetName())
	case stands.Replaces() != claim.GetLabels()[v1alpha1.LabelReplaces]:
		return "", fmt.Errorf("ordering NodeClaim %s: %w", claim.GetName(), ErrNameTaken)
	}
	return stands.UID, nil
}

// Claim reads a NodeClaim; nil: there is none, or no Karpenter.
func Claim(ctx context.Context, c client.Reader, name string) (*replacement.Claim, error) {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(replacement.KindNodeClaim)
	if err := c.Get(ctx, client.ObjectKey{Name: name}, u); apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("reading NodeClaim %s: %w", name, err)
	}
	return replacement.ReadClaim(u)
}

// Tighten has Karpenter end a NodeClaim that is, or is about to be, deleted by a
// hard deadline. A deadline that stands and is no later stays.
func Tighten(ctx context.Context, c client.Client, claim *replacement.Claim, d *v1alpha1.Deadline) error {
	at, tighter := replacement.Tightened(claim, d)
	if !tighter {
		return nil
	}
	// With the version that was read: somebody else may set an earlier one.
	err := patchMeta(ctx, c, named(claim.Name), map[string]any{
		"resourceVersion": claim.ResourceVersion, "annotations": map[string]any{replacement.AnnotationTermination: at},
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("telling Karpenter the deadline of NodeClaim %s: %w", claim.Name, err)
	}
	return nil
}

// End deletes a NodeClaim, which has Karpenter end its node. One that is gone, or
// gone and come back under its name, is done with.
func End(ctx context.Context, c client.Client, claim *replacement.Claim) error {
	if claim.Deleting {
		return nil
	}
	err := c.Delete(ctx, named(claim.Name), &client.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(claim.UID))})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || meta.IsNoMatchError(err) {
		return nil
	}
	return fmt.Errorf("deleting NodeClaim %s: %w", claim.Name, err)
}

// Release makes a replacement a node like any other, which Karpenter may end when
// it is empty: the Node first, since only its annotation counts once it has
// registered, and the NodeClaim's label last, since it is what has one that was not
// released wholly looked at again. One that has no instance yet is of no use to
// anybody and is deleted.
func Release(ctx context.Context, c client.Client, claim *replacement.Claim) error {
	if claim.Deleting || claim.Replaces() == "" {
		return nil
	}
	if !claim.Launched {
		return End(ctx, c, claim)
	}
	if claim.NodeName != "" {
		if err := ReleaseNode(ctx, c, claim.NodeName); err != nil {
			return err
		}
	}
	// With the version that was read: it may be registering its node just now.
	released := unprotected()
	released["resourceVersion"] = claim.ResourceVersion
	if err := patchMeta(ctx, c, named(claim.Name), released); client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("releasing NodeClaim %s: %w", claim.Name, err)
	}
	return nil
}

// ReleaseNode takes the protection of a replacement off its Node.
func ReleaseNode(ctx context.Context, c client.Client, name string) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := patchMeta(ctx, c, node, unprotected()); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("releasing node %s: %w", name, err)
	}
	return nil
}

func unprotected() map[string]any {
	return map[string]any{
		"annotations": map[string]any{replacement.AnnotationDoNotDisrupt: nil},
		"labels":      map[string]any{v1alpha1.LabelReplaces: nil},
	}
}

func named(claim string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(replacement.KindNodeClaim)
	u.SetName(claim)
	return u
}

func patchMeta(ctx context.Context, c client.Client, o client.Object, metadata map[string]any) error {
	text, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return err
	}
	return c.Patch(ctx, o, client.RawPatch(types.MergePatchType, text))
}
