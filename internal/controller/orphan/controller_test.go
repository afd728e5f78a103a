package orphan

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
	"github.com/lifeboat-dev/lifeboat/internal/action"
)

const instance = "i-0a1b2c3d4e5f60718"

func TestNodesWithoutARecordArePutBack(t *testing.T) {
	plain := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.NodeSpec{ProviderID: "aws:///z/" + instance}}
	doomed := action.Marked(plain, action.MarkDoomed, "SpotInterruption")
	record := &v1alpha1.Interruption{ObjectMeta: metav1.ObjectMeta{Name: instance}}
	done := metav1.NewMicroTime(time.Date(2026, 5, 11, 8, 14, 2, 0, time.UTC))
	finished := record.DeepCopy()
	finished.Status.CompletionTime = &done
	reopened := finished.DeepCopy()
	reopened.Spec.Notices = []v1alpha1.Notice{{ID: "a", ReceivedTime: metav1.NewMicroTime(done.Add(time.Second))}}
	tests := map[string]struct {
		objects   []client.Object
		putBack   bool
		forgotten []string
	}{
		"a marked node whose record is there stays marked":   {objects: []client.Object{doomed, record}},
		"a marked node whose record is gone is put back":     {objects: []client.Object{doomed}, putBack: true, forgotten: []string{"a"}},
		"a marked node whose record is finished is put back": {objects: []client.Object{doomed, finished}, putBack: true, forgotten: []string{"a"}},
		"a marked node whose record was opened again stays":  {objects: []client.Object{doomed, reopened}},
		"a node that was never marked is left alone":         {objects: []client.Object{plain}, putBack: true},
		"the pods of a node that is gone too are of no more": {forgotten: []string{"a"}, putBack: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.objects...).Build()
			var forgotten []string
			loop := New(c, func(node string) { forgotten = append(forgotten, node) })
			request := reconcile.Request{NamespacedName: types.NamespacedName{Name: "a"}}
			if _, err := loop.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			node := &corev1.Node{}
			if err := c.Get(t.Context(), request.NamespacedName, node); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			if action.IsMarked(node, action.MarkDoomed) == tc.putBack {
				t.Errorf("node %+v", node.Spec)
			}
			if len(forgotten) != len(tc.forgotten) {
				t.Errorf("forgot %v, want %v", forgotten, tc.forgotten)
			}
		})
	}
}
