package chaos

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// cluster is a target with objects, and without processes.
func cluster(t *testing.T, objects ...client.Object) *Target {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	kube := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&corev1.Node{}).Build()
	return &Target{dir: t.TempDir(), kube: kube}
}

// startOn applies a fault of a part that need not run here.
func startOn(t *testing.T, target *Target, name string, seed uint64) (undo func() error) {
	t.Helper()
	f := fault(t, name)
	f.Part = ""
	undo, err := Start(t.Context(), target, f, time.Minute, seed)
	if err != nil {
		t.Fatal(err)
	}
	return undo
}

// current reads an object of no type.
func current(t *testing.T, target *Target, was *unstructured.Unstructured) map[string]any {
	t.Helper()
	now := &unstructured.Unstructured{}
	now.SetGroupVersionKind(was.GroupVersionKind())
	if err := target.kube.Get(t.Context(), client.ObjectKeyFromObject(was), now); err != nil {
		t.Fatal(err)
	}
	return now.Object["spec"].(map[string]any)
}

// TestStuckPodsAreReleasedWhileTheyChange changes all pods after they were listed.
func TestStuckPodsAreReleasedWhileTheyChange(t *testing.T) {
	t.Parallel()
	var pods []client.Object
	for i := range 20 {
		pods = append(pods, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("p", i)}})
	}
	target := cluster(t, pods...)
	undo := startOn(t, target, "stuck-pods", 1)
	stuck := 0
	kube := target.kube.(client.WithWatch)
	target.kube = interceptor.NewClient(kube, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if err := c.List(ctx, list, options...); err != nil {
				return err
			}
			for _, pod := range list.(*corev1.PodList).Items {
				stuck += len(pod.Finalizers)
				pod.Labels = map[string]string{"changed": "true"}
				if err := c.Update(ctx, &pod); err != nil {
					return err
				}
			}
			return nil
		},
	})
	if err := undo(); err != nil {
		t.Fatal(err)
	}
	var left corev1.PodList
	if err := kube.List(t.Context(), &left); err != nil {
		t.Fatal(err)
	}
	for _, pod := range left.Items {
		if len(pod.Finalizers) > 0 {
			t.Errorf("pod %s has finalizers %v", pod.Name, pod.Finalizers)
		}
	}
	if stuck == 0 {
		t.Error("no pod was stuck")
	}
}

func TestSpecsChangeAndComeBack(t *testing.T) {
	t.Parallel()
	pool := map[string]any{
		"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": map[string]any{"name": "default"},
		"spec": map[string]any{
			"template": map[string]any{"metadata": map[string]any{"labels": map[string]any{"team": "web"}}, "spec": map[string]any{"expireAfter": "Never"}},
			"disruption": map[string]any{
				"consolidateAfter": "1h",
				"budgets":          []any{map[string]any{"nodes": "10%"}},
			},
		},
	}
	crd := func(group string) map[string]any {
		return map[string]any{
			"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "things." + group},
			"spec": map[string]any{"group": group, "versions": []any{
				map[string]any{"name": "v1", "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "description": "A thing."}}},
				map[string]any{"name": "v2", "schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "description": "A newer one."}}},
			}},
		}
	}
	for _, c := range []struct {
		fault   string
		object  map[string]any
		changes bool
	}{
		{"full-nodepools", pool, true},
		{"edit-nodepools", pool, true},
		{"apply-crds", crd("lifeboat.dev"), true},
		{"apply-crds", crd("example.com"), false},
	} {
		t.Run(c.fault, func(t *testing.T) {
			t.Parallel()
			object := &unstructured.Unstructured{Object: runtime.DeepCopyJSON(c.object)}
			target := cluster(t, object)
			want := jsonOf(t, c.object["spec"])
			undo := startOn(t, target, c.fault, 1)
			during := current(t, target, object)
			if changed := jsonOf(t, during) != want; changed != c.changes {
				t.Errorf("the spec is %s, changed: %t, want %t", jsonOf(t, during), changed, c.changes)
			}
			if after, _, _ := unstructured.NestedString(during, "disruption", "consolidateAfter"); c.object["kind"] == "NodePool" && after != "1h" {
				t.Error("a field that the fault does not name has changed")
			}
			if err := undo(); err != nil {
				t.Fatal(err)
			}
			if got := jsonOf(t, current(t, target, object)); got != want {
				t.Errorf("afterwards the spec is %s, want %s", got, want)
			}
		})
	}
}

func TestVolumesStayAttached(t *testing.T) {
	t.Parallel()
	others := corev1.AttachedVolume{Name: "kubernetes.io/csi/ebs.csi.aws.com^vol-1"}
	var nodes []client.Object
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		nodes = append(nodes, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{VolumesAttached: []corev1.AttachedVolume{others}},
		})
	}
	target := cluster(t, nodes...)
	count := func() (hanging int) {
		var list corev1.NodeList
		if err := target.kube.List(context.Background(), &list); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			volumes := list.Items[i].Status.VolumesAttached
			if !slices.Contains(volumes, others) {
				t.Errorf("node %s has lost a volume", list.Items[i].Name)
			}
			hanging += len(volumes) - 1
		}
		return hanging
	}
	undo := startOn(t, target, "stuck-volumes", 3)
	if n := count(); n == 0 || n == len(nodes) {
		t.Errorf("%d of %d nodes have the volume", n, len(nodes))
	}
	if err := undo(); err != nil {
		t.Fatal(err)
	}
	if n := count(); n != 0 {
		t.Errorf("%d nodes still have the volume", n)
	}
}
