package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

const (
	finalizer = "chaos.lifeboat.dev/hang"
	ownPrefix = "lifeboat.dev/"
	// stuckOneIn is the share of pods that stuck-pods selects, and of nodes that stuck-volumes selects.
	stuckOneIn = 3
	fieldOwner = "chaos"
)

// objects are faults of what is in the cluster.
func objects() []Fault {
	return []Fault{
		{Name: "stuck-pods", Text: "a finalizer keeps a third of all pods when they have stopped", Lasts: true, apply: sticking},
		{Name: "vanish-node", Text: "one Node is deleted, and its kubelet registers it again afterwards", Lasts: true, apply: vanishing},
		{Name: "delete-policies", Text: "all InterruptionPolicies are deleted, and created again afterwards", Lasts: true, apply: deletingPolicies},
		{Name: "edit-policies", Text: "all InterruptionPolicies get another priority, and back", Lasts: true, apply: editingPolicies},
		{Name: "apply-crds", Text: "the schemas of all CRDs of Lifeboat change, as in an upgrade, and change back", Lasts: true, apply: applyingCRDs},
		{Name: "stuck-volumes", Text: "a volume stays attached to a third of all nodes", Lasts: true, apply: attaching},
	}
}

// sticking adds a finalizer to pods. Its undo removes it from all pods that have it.
func sticking(ctx context.Context, b *broken) error {
	var pods corev1.PodList
	if err := b.kube.List(ctx, &pods); err != nil {
		return fmt.Errorf("listing the pods: %w", err)
	}
	b.onUndo(func(ctx context.Context) error { return b.unstick(ctx) })
	for i := range pods.Items {
		pod := &pods.Items[i]
		if b.rand.IntN(stuckOneIn) != 0 || pod.DeletionTimestamp != nil {
			continue
		}
		before := pod.DeepCopy()
		controllerutil.AddFinalizer(pod, finalizer)
		if err := client.IgnoreNotFound(b.kube.Patch(ctx, pod, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))); err != nil && !apierrors.IsConflict(err) {
			return fmt.Errorf("adding a finalizer: %w", err)
		}
	}
	return nil
}

func (t *Target) unstick(ctx context.Context) error {
	var pods corev1.PodList
	if err := t.kube.List(ctx, &pods); err != nil {
		return fmt.Errorf("listing the pods: %w", err)
	}
	var errs []error
	for i := range pods.Items {
		if controllerutil.ContainsFinalizer(&pods.Items[i], finalizer) {
			errs = append(errs, t.removeFinalizer(ctx, client.ObjectKeyFromObject(&pods.Items[i])))
		}
	}
	return errors.Join(errs...)
}

// removeFinalizer reads the pod again: while many are released, those that were listed change.
func (t *Target) removeFinalizer(ctx context.Context, key client.ObjectKey) error {
	var pod corev1.Pod
	if err := t.kube.Get(ctx, key, &pod); err != nil {
		return client.IgnoreNotFound(err)
	}
	before := pod.DeepCopy()
	if !controllerutil.RemoveFinalizer(&pod, finalizer) {
		return nil
	}
	return client.IgnoreNotFound(t.kube.Patch(ctx, &pod, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})))
}

// vanishing deletes a Node. Its undo registers it as a kubelet does, without what others have added.
func vanishing(ctx context.Context, b *broken) error {
	var nodes corev1.NodeList
	if err := b.kube.List(ctx, &nodes); err != nil {
		return fmt.Errorf("listing the nodes: %w", err)
	}
	if len(nodes.Items) == 0 {
		return errors.New("there is no node")
	}
	gone := &nodes.Items[b.rand.IntN(len(nodes.Items))]
	if err := b.kube.Delete(ctx, gone, client.Preconditions{UID: &gone.UID}); err != nil {
		return fmt.Errorf("deleting a node: %w", err)
	}
	b.onUndo(func(ctx context.Context) error {
		return client.IgnoreAlreadyExists(b.kube.Create(ctx, registered(gone)))
	})
	return nil
}

// registered is a Node as its kubelet registers it.
func registered(was *corev1.Node) *corev1.Node {
	own := func(k string) bool { return strings.HasPrefix(k, ownPrefix) }
	labels, annotations := maps.Clone(was.Labels), maps.Clone(was.Annotations)
	maps.DeleteFunc(labels, func(k, _ string) bool { return own(k) || k == corev1.LabelNodeExcludeBalancers })
	maps.DeleteFunc(annotations, func(k, _ string) bool { return own(k) })
	taints := slices.DeleteFunc(slices.Clone(was.Spec.Taints), func(t corev1.Taint) bool {
		return own(t.Key) || strings.HasPrefix(t.Key, "node.kubernetes.io/")
	})
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: was.Name, Labels: labels, Annotations: annotations},
		Spec:       corev1.NodeSpec{ProviderID: was.Spec.ProviderID, Taints: taints},
		Status: corev1.NodeStatus{
			Capacity: was.Status.Capacity, Allocatable: was.Status.Allocatable, Addresses: was.Status.Addresses, NodeInfo: was.Status.NodeInfo,
		},
	}
}

func (t *Target) policies(ctx context.Context) ([]v1beta1.InterruptionPolicy, error) {
	var list v1beta1.InterruptionPolicyList
	if err := t.kube.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing the policies: %w", err)
	}
	return list.Items, nil
}

func deletingPolicies(ctx context.Context, b *broken) error {
	all, err := b.policies(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		again := &v1beta1.InterruptionPolicy{
			ObjectMeta: metav1.ObjectMeta{Name: all[i].Name, Labels: all[i].Labels, Annotations: all[i].Annotations}, Spec: all[i].Spec,
		}
		b.onUndo(func(ctx context.Context) error {
			return client.IgnoreAlreadyExists(b.kube.Create(ctx, again.DeepCopy()))
		})
		if err := client.IgnoreNotFound(b.kube.Delete(ctx, &all[i])); err != nil {
			return fmt.Errorf("deleting the policy %s: %w", again.Name, err)
		}
	}
	return nil
}

func editingPolicies(ctx context.Context, b *broken) error {
	all, err := b.policies(ctx)
	if err != nil {
		return err
	}
	for i := range all {
		was := all[i].DeepCopy()
		b.onUndo(func(ctx context.Context) error { return b.prioritize(ctx, was.Name, was.Spec.Priority) })
		if err := b.prioritize(ctx, was.Name, was.Spec.Priority+1+b.rand.Int32N(3)); err != nil {
			return err
		}
	}
	return nil
}

// prioritize sets the priority of a policy that still exists.
func (t *Target) prioritize(ctx context.Context, name string, priority int32) error {
	patch := fmt.Appendf(nil, `{"spec":{"priority":%d}}`, priority)
	policy := &v1beta1.InterruptionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := client.IgnoreNotFound(t.kube.Patch(ctx, policy, client.RawPatch(types.MergePatchType, patch))); err != nil {
		return fmt.Errorf("changing the policy %s: %w", name, err)
	}
	return nil
}
