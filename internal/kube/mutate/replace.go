package mutate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// +kubebuilder:rbac:groups=karpenter.sh,resources=nodeclaims,verbs=get;create;patch;delete

// ErrNameTaken is returned if another NodeClaim, not created by Lifeboat, has the name of the
// replacement.
var ErrNameTaken = errors.New("another NodeClaim has the name, and Lifeboat did not create it")

// Order creates a replacement's NodeClaim, and returns its UID. An existing one is the same,
// created earlier.
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
		return "", fmt.Errorf("ordering NodeClaim %s: it was deleted during the creation", claim.GetName())
	case stands.Replaces() != claim.GetLabels()[v1beta1.LabelReplacesInstance]:
		return "", fmt.Errorf("ordering NodeClaim %s: %w", claim.GetName(), ErrNameTaken)
	}
	return stands.UID, nil
}

// Claim reads a NodeClaim; nil if it does not exist or Karpenter is not installed.
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

// Tighten sets a hard deadline for a NodeClaim that is deleted, or will be. An existing deadline
// that is not later stays.
func Tighten(ctx context.Context, c client.Client, claim *replacement.Claim, d *v1beta1.Deadline, now time.Time) error {
	at, tighter := replacement.Tightened(claim, d, now)
	if !tighter {
		return nil
	}
	// With the version that was read: others may set an earlier deadline.
	err := patchMeta(ctx, c, named(claim.Name), map[string]any{
		"resourceVersion": claim.ResourceVersion, "annotations": map[string]any{replacement.AnnotationTermination: at},
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("telling Karpenter the deadline of NodeClaim %s: %w", claim.Name, err)
	}
	return nil
}

// End deletes a NodeClaim, so that Karpenter ends its node. It succeeds if the NodeClaim is
// gone, or was recreated under the same name.
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

// Release makes a replacement an ordinary node, which Karpenter may remove when it is empty. The
// Node is first, because after registration only its annotation counts. The NodeClaim's label is
// last, because it causes another try if the release was incomplete. A NodeClaim without an
// instance is not needed and is deleted.
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
	// With the version that was read: it may be registering its node now.
	released := unprotected()
	released["resourceVersion"] = claim.ResourceVersion
	if err := patchMeta(ctx, c, named(claim.Name), released); client.IgnoreNotFound(err) != nil && !meta.IsNoMatchError(err) {
		return fmt.Errorf("releasing NodeClaim %s: %w", claim.Name, err)
	}
	return nil
}

// ReleaseNode removes the protection of a replacement from its Node.
func ReleaseNode(ctx context.Context, c client.Client, name string) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := patchMeta(ctx, c, node, unprotected()); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("releasing node %s: %w", name, err)
	}
	return nil
}

func unprotected() map[string]any {
	return map[string]any{
		"annotations": map[string]any{v1beta1.AnnotationKarpenterDoNotDisrupt: nil},
		"labels":      map[string]any{v1beta1.LabelReplacesInstance: nil},
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
