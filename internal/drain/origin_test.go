package drain_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/drain"
)

// A surged pod has no owner reference. The record still names its ReplicaSet, and when it was surged.
func TestOwnerOf(t *testing.T) {
	at := time.Date(2026, 11, 22, 3, 0, 0, 0, time.UTC)
	controller := true
	owned := metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: "StatefulSet", Name: "db", Controller: &controller}}}
	surged := metav1.ObjectMeta{Annotations: map[string]string{v1beta1.AnnotationSurgeOrigin: drain.Origin{ReplicaSet: "web-5d4", Time: at}.String()}}
	for name, tc := range map[string]struct {
		pod    metav1.ObjectMeta
		owner  string
		surged time.Time
	}{
		"owned":     {owned, "StatefulSet/db", time.Time{}},
		"bare":      {metav1.ObjectMeta{}, "", time.Time{}},
		"surged":    {surged, "ReplicaSet/web-5d4", at},
		"forged":    {metav1.ObjectMeta{Annotations: map[string]string{v1beta1.AnnotationSurgeOrigin: "{"}}, "", time.Time{}},
		"only used": {metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: "Node", Name: "a"}}}, "", time.Time{}},
	} {
		owner, when := drain.OwnerOf(&corev1.Pod{ObjectMeta: tc.pod})
		if owner != tc.owner || (when == nil) != tc.surged.IsZero() || when != nil && !when.Time.Equal(tc.surged) {
			t.Errorf("%s: %s, surged at %v", name, owner, when)
		}
	}
}
