package status

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// The status is replaced as a whole, and only if nothing has changed since it was read.
func TestStatusPatchUsesReadVersion(t *testing.T) {
	in := &v1beta1.Interruption{ObjectMeta: metav1.ObjectMeta{Name: "i-a"}, Status: v1beta1.InterruptionStatus{Kind: "SpotInterruption"}}
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(in).WithStatusSubresource(in).Build()
	w := Writer{Client: c}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(in), in); err != nil {
		t.Fatal(err)
	}
	version, err := w.patch(t.Context(), in, &v1beta1.InterruptionStatus{Phase: v1beta1.PhaseDraining})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.patch(t.Context(), in, &v1beta1.InterruptionStatus{Phase: v1beta1.PhaseDrained}); !apierrors.IsConflict(err) {
		t.Errorf("for a version that was replaced: %v, want a conflict", err)
	}
	var now v1beta1.Interruption
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(in), &now); err != nil {
		t.Fatal(err)
	}
	if now.ResourceVersion != version || now.Status.Phase != v1beta1.PhaseDraining || now.Status.Kind != "" {
		t.Errorf("version %s, want %s; status %+v", now.ResourceVersion, version, now.Status)
	}
}
