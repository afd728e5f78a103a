package nodecleanup

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

func ourClaim(providerID string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"providerID": providerID, "nodeName": "new"}}}
	if providerID == "" {
		delete(u.Object, "status")
	}
	u.SetGroupVersionKind(replacement.KindNodeClaim)
	u.SetName("web-lb-1")
	u.SetUID("1")
	u.SetLabels(map[string]string{v1beta1.LabelReplacesInstance: instance})
	u.SetAnnotations(map[string]string{v1beta1.AnnotationKarpenterDoNotDisrupt: "true", v1beta1.AnnotationInterruption: instance})
	return u
}

func TestReplacementsWithoutRecordAreReleased(t *testing.T) {
	t.Parallel()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: "new", Labels: map[string]string{v1beta1.LabelReplacesInstance: instance}, Annotations: map[string]string{v1beta1.AnnotationKarpenterDoNotDisrupt: "true"},
	}}
	record := &v1beta1.Interruption{ObjectMeta: metav1.ObjectMeta{Name: instance}}
	finished := record.DeepCopy()
	done := metav1.NewMicroTime(time.Date(2026, 5, 11, 8, 14, 2, 0, time.UTC))
	finished.Status.CompletionTime = &done
	launched := ourClaim("aws:///us-east-1b/i-new")
	for name, test := range map[string]struct {
		objects            []client.Object
		claim, node, there bool // the claim is protected, the node is, the claim is there
	}{
		"a record in work":      {[]client.Object{record, launched, node}, true, true, true},
		"no record":             {[]client.Object{launched, node}, false, false, true},
		"a record that is over": {[]client.Object{finished, launched, node}, false, false, true},
		"a replacement that never had its instance":  {[]client.Object{ourClaim("")}, false, false, false},
		"a node that registered after it was let go": {[]client.Object{node}, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var objects []client.Object
			for _, o := range test.objects {
				copied, _ := o.DeepCopyObject().(client.Object)
				objects = append(objects, copied)
			}
			c := cluster(t, interceptor.Funcs{}, objects...)
			loop := &Claims{Client: c, All: func() []*replacement.Claim { return claims(t, c) }}
			for range 2 { // it is looked at again
				if _, err := loop.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: instance}}); err != nil {
					t.Fatal(err)
				}
			}
			u := ourClaim("")
			there := c.Get(t.Context(), client.ObjectKeyFromObject(u), u) == nil
			if there != test.there || there && isProtected(u) != test.claim {
				t.Errorf("there %v: %v %v", there, u.GetLabels(), u.GetAnnotations())
			}
			var n corev1.Node
			if err := c.Get(t.Context(), client.ObjectKey{Name: "new"}, &n); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			if isProtected(&n) != test.node {
				t.Errorf("node: %v %v", n.Labels, n.Annotations)
			}
		})
	}
}

// A new leader looks at every finished Interruption. Each of them must not compare every node.
func TestNodesOfReplacementsAreFoundByIndex(t *testing.T) {
	t.Parallel()
	lists := 0
	c := cluster(t, interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		var o client.ListOptions
		o.ApplyOptions(opts)
		if _, ok := list.(*corev1.NodeList); ok {
			lists++
			if o.FieldSelector == nil || o.FieldSelector.String() != byReplaced+"="+instance {
				t.Errorf("nodes are listed with the options %+v", o)
			}
		}
		return c.List(ctx, list, opts...)
	}})
	loop := &Claims{Client: c, All: func() []*replacement.Claim { return nil }}
	if _, err := loop.Reconcile(t.Context(), reconcile.Request{NamespacedName: types.NamespacedName{Name: instance}}); err != nil {
		t.Fatal(err)
	}
	if lists != 1 {
		t.Errorf("%d lists of nodes, want 1", lists)
	}
}

func isProtected(o client.Object) bool {
	return o.GetLabels()[v1beta1.LabelReplacesInstance] != "" || o.GetAnnotations()[v1beta1.AnnotationKarpenterDoNotDisrupt] != ""
}

// claims are the NodeClaims of the watch.
func claims(t *testing.T, c client.Client) []*replacement.Claim {
	t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(replacement.KindNodeClaim.GroupVersion().WithKind("NodeClaimList"))
	if err := c.List(t.Context(), list, client.HasLabels{v1beta1.LabelReplacesInstance}); err != nil {
		t.Fatal(err)
	}
	var claims []*replacement.Claim
	for i := range list.Items {
		claim, err := replacement.ReadClaim(&list.Items[i])
		if err != nil {
			t.Fatal(err)
		}
		claims = append(claims, claim)
	}
	return claims
}
