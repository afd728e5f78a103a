package kwok

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// resyncAnnotation on a pod is the time of its last resync.
const resyncAnnotation = "sandbox.lifeboat.dev/resynced"

// resyncPoll is the polling interval of the Leases.
const resyncPoll = 500 * time.Millisecond

// Holders returns the holder of each simulated node's Lease, by the node's name: every start of
// kwok has a new holder.
func Holders(ctx context.Context, client kubernetes.Interface) (map[string]string, error) {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: ManagedLabel + "=" + ManagedValue})
	if err != nil {
		return nil, fmt.Errorf("listing the simulated nodes: %w", err)
	}
	leases, err := client.CoordinationV1().Leases(corev1.NamespaceNodeLease).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the nodes' Leases: %w", err)
	}
	holders := map[string]string{}
	for i := range nodes.Items {
		holders[nodes.Items[i].Name] = ""
	}
	for i := range leases.Items {
		l := &leases.Items[i]
		if _, played := holders[l.Name]; played && l.Spec.HolderIdentity != nil {
			holders[l.Name] = *l.Spec.HolderIdentity
		}
	}
	return holders, nil
}

// Resync is for a kwok that was killed and restarted. It waits until the new process holds the Leases
// of the old one, and then makes it process the pods of those nodes again. When
// kwok 0.8.0 gets a Lease, it processes the pods of the node. It skips them if its watch does not show
// the Lease yet. Without Resync, a pod without further changes, such as a stopping one, would never end.
func Resync(ctx context.Context, client kubernetes.Interface, before map[string]string) error {
	taken := map[string]bool{}
	err := wait.PollUntilContextCancel(ctx, resyncPoll, true, func(ctx context.Context) (bool, error) {
		now, err := Holders(ctx, client)
		if err != nil {
			return false, nil // polled again until ctx ends
		}
		left := 0
		for node, was := range before {
			is, there := now[node]
			switch {
			case !there: // the node is deleted, or has no power
			case is == was || is == "":
				left++
			case !taken[node]:
				taken[node] = true // kwok's watch shows it by the next poll
				left++
			default:
				if err := resyncPods(ctx, client, node); err != nil {
					left++
					continue
				}
				delete(before, node)
			}
		}
		return left == 0, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for kwok to take over its nodes: %w", err)
	}
	return nil
}

func resyncPods(ctx context.Context, client kubernetes.Interface, node string) error {
	pods, err := client.CoreV1().Pods(corev1.NamespaceAll).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("spec.nodeName", node).String(),
	})
	if err != nil {
		return fmt.Errorf("listing the pods of node %s: %w", node, err)
	}
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, resyncAnnotation, time.Now().UTC().Format(time.RFC3339Nano))
	for i := range pods.Items {
		p := &pods.Items[i]
		_, err := client.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("resyncing pod %s/%s: %w", p.Namespace, p.Name, err)
		}
	}
	return nil
}
