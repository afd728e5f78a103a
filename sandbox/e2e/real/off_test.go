//go:build e2e

package real

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// shortNotice is for reclaims without Lifeboat: no drain needs the full two minutes.
const shortNotice = 15 * time.Second

// TestWithoutLifeboat is the twin of TestReclaim, TestTerminatedInstance and TestVolumes: the same
// interruptions without a running controller.
func TestWithoutLifeboat(t *testing.T) {
	s := needWorld(t)
	if err := s.StopLifeboat(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.StartLifeboat(context.Background()); err != nil {
			t.Error(err)
		}
	})
	t.Run("group", func(t *testing.T) { // its parallel tests end before Lifeboat is started again
		t.Run("requests fail", func(t *testing.T) {
			t.Parallel()
			w := web{Name: "orphans", Replicas: 2, PreStop: hook}
			requireFailures(t, underLoad(t, w, "", reclaimed{}))
		})
		t.Run("Karpenter alone: requests fail", karpenterAlone)
		t.Run("hooks do not run, or are interrupted", heldPodsAlone)
		t.Run("terminated instance: the successor starts after SIGTERM", terminatedAlone)
		t.Run("terminated instance: its volume stays attached", volumeStays)
	})
}

// heldPodsAlone is heldPods without Lifeboat. The test deletes one pod itself, with a grace period
// that is longer than the notice.
func heldPodsAlone(t *testing.T) {
	t.Parallel()
	s := needWorld(t)
	const pool = "alone-held"
	interrupted := s.interrupted(pool)
	quiet := s.place(web{
		Name: "alone-quiet", Pool: pool, Replicas: 1, PreStop: hook,
		Annotations: map[string]string{v1beta1.AnnotationDoNotDisrupt: "true"},
	}, interrupted)
	budgeted := s.place(web{Name: "alone-budgeted", Pool: pool, Replicas: 1, PreStop: hook, MinAvailable: 1}, interrupted)
	patient := s.place(web{Name: "alone-patient", Pool: pool, Replicas: 1, PreStop: 5 * time.Minute, Grace: 600}, interrupted)

	s.reclaim(interrupted, shortNotice)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: patient[0]}}
	if err := s.client.Delete(t.Context(), pod, &client.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	s.waitPowerOff(interrupted, time.Minute)
	s.sleep(2 * time.Second) // a late SIGTERM would still show

	for _, l := range append(s.readJournals(quiet), s.readJournals(budgeted)...) {
		s.check(l.unasked())
	}
	for _, l := range s.readJournals(patient) {
		s.check(l.cutHook())
	}
}
