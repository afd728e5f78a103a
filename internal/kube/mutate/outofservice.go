package mutate

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// outOfServiceValue is the value that the Kubernetes documentation gives the taint ("Node
// Shutdowns", "Non-graceful node shutdown handling"). Kubernetes reads only the key.
const outOfServiceValue = "nodeshutdown"

// IsOutOfService reports whether Lifeboat has set the out-of-service taint, and for which instance.
// A taint without the annotation is a person's.
func IsOutOfService(node *corev1.Node) (instanceID string, ok bool) {
	instanceID, ok = node.Annotations[v1beta1.AnnotationOutOfService]
	return instanceID, ok
}

// HasOutOfServiceTaint reports whether the node has the taint, from Lifeboat or from a person.
func HasOutOfServiceTaint(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, isOutOfServiceTaint)
}

// SetOutOfService sets the taint and the annotation in one patch, so that neither exists without
// the other. A conflict with another writer is an error.
func SetOutOfService(ctx context.Context, c client.Client, node *corev1.Node, instanceID string) error {
	n := node.DeepCopy()
	metav1.SetMetaDataAnnotation(&n.ObjectMeta, v1beta1.AnnotationOutOfService, instanceID)
	n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{
		Key: corev1.TaintNodeOutOfService, Value: outOfServiceValue, Effect: corev1.TaintEffectNoExecute,
	})
	if _, err := changeNode(ctx, c, node, n); err != nil {
		return fmt.Errorf("tainting node %s as out of service: %w", node.Name, err)
	}
	return nil
}

// ClearOutOfService removes the taint and the annotation. A Node that is gone is no error.
func ClearOutOfService(ctx context.Context, c client.Client, node *corev1.Node) error {
	n := node.DeepCopy()
	delete(n.Annotations, v1beta1.AnnotationOutOfService)
	n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, isOutOfServiceTaint)
	if _, err := changeNode(ctx, c, node, n); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("removing the out-of-service taint of node %s: %w", node.Name, err)
	}
	return nil
}

func isOutOfServiceTaint(t corev1.Taint) bool { return t.Key == corev1.TaintNodeOutOfService }
