package mutate

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// DeleteNode deletes the Node of an instance that returns to a warm pool. The UID is a
// precondition: a Node that the instance registers later is not deleted.
func DeleteNode(ctx context.Context, c client.Client, node *corev1.Node) error {
	err := c.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name}}, &client.DeleteOptions{
		Preconditions: metav1.NewUIDPreconditions(string(node.UID)),
	})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("deleting node %s: %w", node.Name, err)
}
