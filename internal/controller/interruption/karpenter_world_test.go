package interruption

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/record"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

var errKilled = errors.New("the process was killed")

// ourClaim is the name of the replacement's NodeClaim.
const ourClaim = "web-lb-0a1b2c3d4e5f60718"

// knowKarpenter adds Karpenter's kinds to a scheme, unstructured.
func knowKarpenter(scheme *runtime.Scheme) {
	for _, kind := range []schema.GroupVersionKind{replacement.KindNodeClaim, replacement.KindNodePool, replacement.KindEC2NodeClass} {
		scheme.AddKnownTypeWithName(kind, &unstructured.Unstructured{})
		kind.Kind += "List"
		scheme.AddKnownTypeWithName(kind, &unstructured.UnstructuredList{})
	}
}

func nodeOfPod(o client.Object) []string {
	pod, _ := o.(*corev1.Pod)
	return []string{pod.Spec.NodeName}
}

func (w *world) create(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
	if err := w.dies(); err != nil {
		return err
	}
	if err := w.refuses.of("create", o); err != nil {
		return err
	}
	if o.GetUID() == "" {
		o.SetUID(types.UID("uid-" + o.GetName()))
	}
	return c.Create(ctx, o, opts...)
}

func (w *world) change(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	if err := w.dies(); err != nil {
		return err
	}
	if err := w.refuses.of("patch", o); err != nil {
		return err
	}
	return c.Patch(ctx, o, p, opts...)
}

func (w *world) list(ctx context.Context, c client.WithWatch, l client.ObjectList, opts ...client.ListOption) error {
	if err := w.refuses.of("list", l); err != nil {
		return err
	}
	return c.List(ctx, l, opts...)
}

// karpenter is a fake Karpenter for a world: the test launches, registers and deletes.
type karpenter struct {
	*world
	absent    bool
	forwarded []string
}

// withKarpenter is a world with node a, which Karpenter launched for NodePool web.
func withKarpenter(t *testing.T, objects ...client.Object) *karpenter {
	t.Helper()
	a := node("a", instance)
	a.Labels[replacement.LabelNodePool], a.Labels[corev1.LabelTopologyZone], a.Labels[corev1.LabelInstanceTypeStable] = "web", "us-east-1a", "m5.large"
	a.OwnerReferences = []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: "web-x7k2p", UID: "interrupted"}}
	objects = append(objects, a, nodePool(), nodeClass(), interruptedClaim())
	k := &karpenter{world: newWorld(t, objects...)}
	k.restart()
	return k
}

// restart replaces the controller with a new one that has no memory.
func (k *karpenter) restart() {
	o := k.loop.Options
	o.Claims, o.Live, o.Place = k, k.client, replacement.Place{Account: "111122223333", Region: "us-east-1"}
	k.loop, k.lives = New(o), nil
}

func (k *karpenter) Installed() (bool, bool) { return !k.absent, true }

func (k *karpenter) Claims() []*replacement.Claim {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(replacement.KindNodeClaim.GroupVersion().WithKind("NodeClaimList"))
	if err := k.client.List(k.t.Context(), list, client.HasLabels{v1beta1.LabelReplacesInstance}); err != nil {
		k.t.Fatal(err)
	}
	var claims []*replacement.Claim
	for i := range list.Items {
		c, err := replacement.ReadClaim(&list.Items[i])
		if err != nil {
			k.t.Fatal(err)
		}
		claims = append(claims, c)
	}
	return claims
}

func object(kind schema.GroupVersionKind, name string, fields map[string]any) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(kind)
	u.SetName(name)
	u.SetUID(types.UID("uid-" + name))
	return u
}

func ready() map[string]any {
	return map[string]any{"conditions": []any{map[string]any{
		"type": "Ready", "status": "True", "reason": "Ready", "message": "", "lastTransitionTime": "2026-05-11T08:00:00Z",
	}}}
}

func nodePool() *unstructured.Unstructured {
	return object(replacement.KindNodePool, "web", map[string]any{
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"nodeClassRef": map[string]any{"group": replacement.GroupAWS, "kind": replacement.KindAWS, "name": "default"},
			"requirements": []any{map[string]any{"key": "karpenter.sh/capacity-type", "operator": "In", "values": []any{"spot"}}},
		}}},
		"status": ready(),
	})
}

func nodeClass() *unstructured.Unstructured {
	return object(replacement.KindEC2NodeClass, "default", map[string]any{"status": ready()})
}

func interruptedClaim() *unstructured.Unstructured {
	u := object(replacement.KindNodeClaim, "web-x7k2p", map[string]any{
		"spec": map[string]any{}, "status": map[string]any{"providerID": "aws:///us-east-1a/" + instance, "nodeName": "a"},
	})
	u.SetLabels(map[string]string{replacement.LabelNodePool: "web", corev1.LabelInstanceTypeStable: "m5.large"})
	u.SetUID("interrupted")
	return u
}

// claim returns a NodeClaim, or nil.
func (k *karpenter) claim(name string) *unstructured.Unstructured {
	k.t.Helper()
	u := object(replacement.KindNodeClaim, name, map[string]any{})
	if err := k.client.Get(k.t.Context(), client.ObjectKey{Name: name}, u); client.IgnoreNotFound(err) != nil {
		k.t.Fatal(err)
	} else if err != nil {
		return nil
	}
	return u
}

func (k *karpenter) update(u *unstructured.Unstructured, value any, path ...string) {
	k.t.Helper()
	if err := unstructured.SetNestedField(u.Object, value, path...); err != nil {
		k.t.Fatal(err)
	}
	if err := k.client.Update(k.t.Context(), u); err != nil {
		k.t.Fatal(err)
	}
}

// launch gives the replacement an instance.
func (k *karpenter) launch() {
	k.t.Helper()
	k.update(k.claim(ourClaim), "aws:///us-east-1b/i-new", "status", "providerID")
}

// boot creates the replacement's node from its NodeClaim.
func (k *karpenter) boot() {
	k.t.Helper()
	u := k.claim(ourClaim)
	n := node("new", "i-new")
	n.Annotations = u.GetAnnotations()
	for key, value := range u.GetLabels() {
		n.Labels[key] = value
	}
	if err := k.client.Create(k.t.Context(), n); err != nil {
		k.t.Fatal(err)
	}
	u.Object["status"] = map[string]any{
		"providerID": "aws:///us-east-1b/i-new", "nodeName": "new",
		"conditions": []any{map[string]any{"type": "Initialized", "status": "True", "reason": "Initialized", "message": "", "lastTransitionTime": "2026-05-11T08:14:40Z"}},
	}
	if err := k.client.Update(k.t.Context(), u); err != nil {
		k.t.Fatal(err)
	}
}

// giveUp deletes the replacement, as Karpenter does without capacity.
func (k *karpenter) giveUp() {
	k.t.Helper()
	k.remove(k.claim(ourClaim))
}

// end ends the node of a deleted NodeClaim, as Karpenter does.
func (k *karpenter) end() {
	k.t.Helper()
	if k.claim("web-x7k2p") == nil {
		k.remove(k.node())
	}
}

func (k *karpenter) replaces() v1beta1.ReplacementStatus {
	k.t.Helper()
	if s := record.Drain(&k.record().Status).Replacement; s != nil {
		return *s
	}
	return v1beta1.ReplacementStatus{}
}

// protected reports whether the replacement's NodeClaim or Node has do-not-disrupt.
func (k *karpenter) protected() bool {
	k.t.Helper()
	var n corev1.Node
	err := k.client.Get(k.t.Context(), client.ObjectKey{Name: "new"}, &n)
	if client.IgnoreNotFound(err) != nil {
		k.t.Fatal(err)
	}
	u := k.claim(ourClaim)
	return n.Annotations[v1beta1.AnnotationKarpenterDoNotDisrupt] != "" || n.Labels[v1beta1.LabelReplacesInstance] != "" ||
		u != nil && (u.GetAnnotations()[v1beta1.AnnotationKarpenterDoNotDisrupt] != "" || u.GetLabels()[v1beta1.LabelReplacesInstance] != "")
}
