package chaos

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

const (
	finalizer = "chaos.lifeboat.dev/hang"
	ownPrefix = "lifeboat.dev/"
	// stuckOneIn is the share of pods that stuck-pods selects.
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
		{Name: "apply-crds", Text: "all CRDs of Lifeboat are written again, as an upgrade does", apply: applyingCRDs},
		{Name: "steal-lease", Text: "another process takes the leader's Lease, and releases it afterwards", Lasts: true, Part: PartStandby, apply: stealing},
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
		pod := &pods.Items[i]
		before := pod.DeepCopy()
		if controllerutil.RemoveFinalizer(pod, finalizer) {
			errs = append(errs, client.IgnoreNotFound(t.kube.Patch(ctx, pod, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))))
		}
	}
	return errors.Join(errs...)
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

func applyingCRDs(ctx context.Context, b *broken) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinitionList"})
	if err := b.kube.List(ctx, list); err != nil {
		return fmt.Errorf("listing the CRDs: %w", err)
	}
	for i := range list.Items {
		crd := &list.Items[i]
		if group, _, _ := unstructured.NestedString(crd.Object, "spec", "group"); group != v1beta1.GroupVersion.Group {
			continue
		}
		// A change of the schema makes the API server install the handlers again.
		patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"chaos.lifeboat.dev/applied":"%d"}}}`, time.Now().UnixNano())
		if err := b.kube.Patch(ctx, crd, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(fieldOwner)); err != nil {
			return fmt.Errorf("writing the CRD %s: %w", crd.GetName(), err)
		}
	}
	return nil
}

// stealing takes the Lease, so that the leader ends, and releases it.
func stealing(ctx context.Context, b *broken) error {
	holder := fmt.Sprintf("chaos-%d", b.rand.Int32())
	if err := b.holdLease(ctx, "", holder); err != nil {
		return err
	}
	b.onUndo(func(ctx context.Context) error { return b.holdLease(ctx, holder, "") })
	return nil
}

// holdLease gives the Lease to a holder, if it is held by from; "": by anyone.
func (t *Target) holdLease(ctx context.Context, from, to string) error {
	var lease coordinationv1.Lease
	if err := t.kube.Get(ctx, types.NamespacedName{Namespace: "lifeboat-system", Name: "lifeboat-controller"}, &lease); err != nil {
		return fmt.Errorf("reading the leader's Lease: %w", err)
	}
	if from != "" && ptr.Deref(lease.Spec.HolderIdentity, "") != from {
		return nil // a replica has taken it
	}
	now := metav1.NowMicro()
	lease.Spec.HolderIdentity, lease.Spec.RenewTime, lease.Spec.AcquireTime = &to, &now, &now
	if to == "" {
		lease.Spec.LeaseDurationSeconds = ptr.To[int32](1)
	}
	if err := t.kube.Update(ctx, &lease); err != nil {
		return fmt.Errorf("taking the leader's Lease: %w", err)
	}
	return nil
}
