package interruption

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// A status is put in place whole, and only of the version that it was worked out from.
func TestAStatusIsWrittenOfTheVersionThatWasRead(t *testing.T) {
	in := &v1alpha1.Interruption{ObjectMeta: metav1.ObjectMeta{Name: "i-a"}, Status: v1alpha1.InterruptionStatus{Kind: "SpotInterruption"}}
	w := newWorld(t, in)
	c := w.client
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(in), in); err != nil {
		t.Fatal(err)
	}
	version, err := w.loop.patchStatus(t.Context(), in, &v1alpha1.InterruptionStatus{Phase: v1alpha1.PhaseDraining})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.loop.patchStatus(t.Context(), in, &v1alpha1.InterruptionStatus{Phase: v1alpha1.PhaseDrained}); !apierrors.IsConflict(err) {
		t.Errorf("of a version that is no more: %v, want a conflict", err)
	}
	var now v1alpha1.Interruption
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(in), &now); err != nil {
		t.Fatal(err)
	}
	if now.ResourceVersion != version || now.Status.Phase != v1alpha1.PhaseDraining || now.Status.Kind != "" {
		t.Errorf("version %s, want %s; status %+v", now.ResourceVersion, version, now.Status)
	}
}
