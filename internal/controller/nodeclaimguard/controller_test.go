package nodeclaimguard

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/replacement"
)

// world is a cluster with one NodeClaim, whose UID is that of the nodes' owner.
type world struct {
	t       *testing.T
	client  client.WithWatch
	loop    *Controller
	now     time.Time
	patches int
	absent  bool // Karpenter is not installed
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(corev1.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	scheme.AddKnownTypeWithName(replacement.KindNodeClaim, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(replacement.KindNodeClaim.GroupVersion().WithKind("NodeClaimList"), &unstructured.UnstructuredList{})
	claim := claimObject()
	claim.SetUID("uid-x")
	w := &world{t: t, now: now}
	w.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(objects, claim)...).WithInterceptorFuncs(interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if _, ok := list.(*metav1.PartialObjectMetadataList); ok && w.absent {
				return &meta.NoKindMatchError{GroupKind: replacement.KindNodeClaim.GroupKind()}
			}
			return c.List(ctx, list, opts...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
			w.patches++
			return c.Patch(ctx, o, patch, opts...)
		},
	}).Build()
	w.loop = New(Options{Client: w.client, Live: w.client, Limit: 30 * time.Minute, Clock: func() time.Time { return w.now }})
	return w
}

func claimObject() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(replacement.KindNodeClaim)
	u.SetName("databases-x")
	return u
}

// pass runs one pass and returns the mark, and when the next pass is.
func (w *world) pass() (mark string, next time.Duration) {
	w.t.Helper()
	result, err := w.loop.Reconcile(w.t.Context(), reconcile.Request{})
	if err != nil {
		w.t.Fatal(err)
	}
	u := claimObject()
	if err := w.client.Get(w.t.Context(), client.ObjectKeyFromObject(u), u); err != nil {
		w.t.Fatal(err)
	}
	return u.GetAnnotations()[v1beta1.AnnotationGuardedUntil], result.RequeueAfter
}

func TestMarkFollowsPolicy(t *testing.T) {
	t.Parallel()
	policy := ignoring("databases")[0]
	w := newWorld(t, nodeOf("databases", corev1.ConditionTrue, time.Hour), &policy)
	mark, next := w.pass()
	if mark != "2026-05-11T08:44:00Z" || next != 5*time.Minute || w.patches != 1 {
		t.Fatalf("marked until %q, next pass after %s, %d patches", mark, next, w.patches)
	}
	w.now = now.Add(next)
	if _, _ = w.pass(); w.patches != 1 {
		t.Errorf("written again after %s", next)
	}
	w.now = now.Add(10 * time.Minute)
	if mark, _ := w.pass(); mark != "2026-05-11T08:54:00Z" {
		t.Errorf("not renewed: %q", mark)
	}
	if err := w.client.Delete(t.Context(), &policy); err != nil {
		t.Fatal(err)
	}
	if mark, _ := w.pass(); mark != "" {
		t.Errorf("still marked until %q without the policy", mark)
	}
}

func TestHoldMarksNode(t *testing.T) {
	t.Parallel()
	record := &v1beta1.Interruption{ObjectMeta: metav1.ObjectMeta{Name: "i-0a1b2c3d4e5f60718"}, Spec: v1beta1.InterruptionSpec{
		InstanceID: "i-0a1b2c3d4e5f60718",
		Hold:       &v1beta1.UserAction{By: "dana", Time: metav1.NewMicroTime(now), Until: &metav1.Time{Time: now.Add(time.Hour)}},
	}}
	w := newWorld(t, nodeOf("databases", corev1.ConditionTrue, time.Hour), record)
	if mark, _ := w.pass(); mark == "" {
		t.Error("not marked while a person holds the drain")
	}
	w.now = now.Add(time.Hour)
	if mark, _ := w.pass(); mark != "" {
		t.Errorf("marked until %q after the hold", mark)
	}
	w.now = now
	done := metav1.NewMicroTime(now)
	record.Status.CompletionTime = &done
	if err := w.client.Update(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	if mark, _ := w.pass(); mark != "" {
		t.Errorf("marked until %q after the Interruption is completed", mark)
	}
}

func TestClusterWithoutKarpenterIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.absent = true
	if _, next := w.pass(); next != time.Minute || w.patches > 0 {
		t.Errorf("next pass after %s, %d patches", next, w.patches)
	}
}

func TestEventsThatStartPass(t *testing.T) {
	t.Parallel()
	node := nodeOf("databases", corev1.ConditionTrue, 0)
	bare := node.DeepCopy()
	bare.OwnerReferences = nil
	other := node.DeepCopy()
	other.Labels["team"] = "a"
	going := node.DeepCopy()
	going.DeletionTimestamp = &metav1.Time{Time: now}
	for name, test := range map[string]struct {
		before, after *corev1.Node
		want          bool
	}{
		"a heartbeat":      {node, node.DeepCopy(), false},
		"its registration": {bare, node, true},
		"another label":    {node, other, true},
		"its deletion":     {node, going, true},
		"no NodeClaim":     {bare, bare.DeepCopy(), false},
	} {
		if got := nodes.Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after}); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
