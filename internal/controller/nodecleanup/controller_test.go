package nodecleanup

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

const instance = "i-0a1b2c3d4e5f60718"

// cluster is an API server that supports the field selector of pods by node.
func cluster(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	list := replacement.KindNodeClaim
	list.Kind += "List"
	scheme.AddKnownTypeWithName(replacement.KindNodeClaim, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(list, &unstructured.UnstructuredList{})
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(funcs).
		WithIndex(&corev1.Node{}, byReplaced, replacedOf).
		WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string {
			pod, _ := o.(*corev1.Pod)
			return []string{pod.Spec.NodeName}
		}).Build()
}

func TestNodesWithoutRecordAreRestored(t *testing.T) {
	plain := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.NodeSpec{ProviderID: "aws:///z/" + instance}}
	interrupted := mutate.Marked(plain, mutate.MarkInterrupted, "SpotInterruption")
	record := &v1beta1.Interruption{ObjectMeta: metav1.ObjectMeta{Name: instance}}
	done := metav1.NewMicroTime(time.Date(2026, 5, 11, 8, 14, 2, 0, time.UTC))
	finished := record.DeepCopy()
	finished.Status.CompletionTime = &done
	reopened := finished.DeepCopy()
	reopened.Spec.Notices = []v1beta1.Notice{{ID: "a", ReceivedTime: metav1.NewMicroTime(done.Add(time.Second))}}
	tests := map[string]struct {
		objects   []client.Object
		putBack   bool
		forgotten []string
	}{
		"a marked node whose record is there stays marked":   {objects: []client.Object{interrupted, record}},
		"a marked node whose record is gone is put back":     {objects: []client.Object{interrupted}, putBack: true, forgotten: []string{"a"}},
		"a marked node whose record is finished is put back": {objects: []client.Object{interrupted, finished}, putBack: true, forgotten: []string{"a"}},
		"a marked node whose record was opened again stays":  {objects: []client.Object{interrupted, reopened}},
		"a node that was never marked is left alone":         {objects: []client.Object{plain}, putBack: true, forgotten: []string{"a"}},
		"the pods of a node that is gone too are of no more": {forgotten: []string{"a"}, putBack: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := cluster(t, interceptor.Funcs{}, tc.objects...)
			var forgotten []string
			loop := New(Options{Client: c, Pods: c, Forget: func(node string) { forgotten = append(forgotten, node) }})
			request := reconcile.Request{NamespacedName: types.NamespacedName{Name: "a"}}
			if _, err := loop.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			node := &corev1.Node{}
			if err := c.Get(t.Context(), request.NamespacedName, node); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			if mutate.IsMarked(node, mutate.MarkInterrupted) == tc.putBack {
				t.Errorf("node %+v", node.Spec)
			}
			if len(forgotten) != len(tc.forgotten) {
				t.Errorf("forgot %v, want %v", forgotten, tc.forgotten)
			}
		})
	}
}

// A crash between the two writes leaves the mark, which triggers the next
// attempt.
func TestTaintStaysUntilSurgesAreReverted(t *testing.T) {
	interrupted := mutate.Marked(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, mutate.MarkInterrupted, "SpotInterruption")
	set := &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-5d4f", UID: "set"},
		Spec:       appsv1.ReplicaSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"pod-template-hash": "5d4f"}}},
	}
	surged := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-5d4f-x", UID: "pod",
			Labels: map[string]string{v1beta1.LabelSurged: set.Name},
			Annotations: map[string]string{
				v1beta1.AnnotationSurgeOrigin: drain.Origin{ReplicaSet: set.Name, UID: set.UID, Hash: "5d4f"}.String(),
			}},
		Spec: corev1.PodSpec{NodeName: "a"},
	}
	var fails error
	c := cluster(t, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			if _, ok := o.(*corev1.Pod); ok && fails != nil {
				return fails
			}
			return c.Patch(ctx, o, p, opts...)
		},
	}, interrupted, set, surged)
	loop := New(Options{Client: c, Pods: c, Forget: func(string) {}})
	state := func() (isMarked, isSurged bool) {
		node, pod := &corev1.Node{}, &corev1.Pod{}
		if err := errors.Join(c.Get(t.Context(), client.ObjectKeyFromObject(interrupted), node),
			c.Get(t.Context(), client.ObjectKeyFromObject(surged), pod)); err != nil {
			t.Fatal(err)
		}
		return mutate.IsMarked(node, mutate.MarkInterrupted), pod.Labels[appsv1.DefaultDeploymentUniqueLabelKey] == ""
	}
	request := reconcile.Request{NamespacedName: types.NamespacedName{Name: "a"}}
	fails = errors.New("the API server is away")
	if _, err := loop.Reconcile(t.Context(), request); err == nil {
		t.Error("no one looks again")
	}
	if isMarked, isSurged := state(); !isMarked || !isSurged {
		t.Fatalf("marked %t, surged %t", isMarked, isSurged)
	}
	fails = nil
	if _, err := loop.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if isMarked, isSurged := state(); isMarked || isSurged {
		t.Errorf("marked %t, surged %t", isMarked, isSurged)
	}
}

// The node of a record may have been unknown when the record was created.
func TestDeletedRecordRestoresBothNodes(t *testing.T) {
	names := func(spec, status string) (names []string) {
		in := &v1beta1.Interruption{Spec: v1beta1.InterruptionSpec{NodeName: spec}, Status: v1beta1.InterruptionStatus{NodeName: status}}
		for _, r := range nodesOf(t.Context(), in) {
			names = append(names, r.Name)
		}
		return names
	}
	for _, test := range []struct {
		spec, status string
		want         []string
	}{{"", "", nil}, {"a", "", []string{"a"}}, {"a", "a", []string{"a"}}, {"", "b", []string{"b"}}, {"a", "b", []string{"a", "b"}}} {
		if got := names(test.spec, test.status); !slices.Equal(got, test.want) {
			t.Errorf("spec %q, status %q: %v, want %v", test.spec, test.status, got, test.want)
		}
	}
}
