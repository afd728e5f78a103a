//go:build e2e

package e2e

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/sandbox"
)

func TestDrainSurvivesAPIServerOutage(t *testing.T) {
	t.Parallel()
	r := newUnkindRig(t, sandbox.Options{})
	records := r.watchPods()
	interrupted, pods := r.stage()
	r.reclaim(interrupted)
	r.reaches(interrupted.ID, v1beta1.PhaseDraining, 30*time.Second)

	records.blind = true
	r.StopAPIServer()
	outage(t, 20*time.Second)
	if err := r.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	record := r.reaches(interrupted.ID, v1beta1.PhaseDrained, 80*time.Second)
	r.checkDrain(records, interrupted, pods, record)
}

func TestNoticeSurvivesSQSOutage(t *testing.T) {
	t.Parallel()
	r := newUnkindRig(t, sandbox.Options{})
	records := r.watchPods()
	interrupted, pods := r.stage()

	r.StopAWS()
	r.reclaim(interrupted)
	outage(t, 20*time.Second)
	if up := r.metric("lifeboat_source_up", `source="sqs"`); up != 0 {
		t.Errorf("source_up is %v while SQS is down", up)
	}
	r.StartAWS()
	record := r.reaches(interrupted.ID, v1beta1.PhaseDrained, 80*time.Second)
	r.checkDrain(records, interrupted, pods, record)
	if up := r.metric("lifeboat_source_up", `source="sqs"`); up != 1 {
		t.Errorf("source_up is %v after SQS came back", up)
	}
}

// outage waits for the duration of the outage, not for a condition.
func outage(t *testing.T, span time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), span)
	defer cancel()
	<-ctx.Done()
}

func TestAtRiskNodeKeepsItsPods(t *testing.T) {
	t.Parallel()
	r := newUnkindRig(t, sandbox.Options{})
	in := r.launch(1)[0]
	r.apply(deployment("web", 2, time.Second))
	r.waitPods(in, 2)
	if err := r.EC2().Recommend([]string{in.ID}); err != nil {
		t.Fatal(err)
	}
	record := r.reaches(in.ID, v1beta1.PhaseNotified, 30*time.Second)
	node, err := r.node(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if !mutate.IsMarked(node, mutate.MarkAtRisk) || node.Spec.Unschedulable {
		t.Errorf("node: %+v", node.Spec)
	}
	// A user cancels it by deleting the record: the node gets its former state back.
	if err := r.client.Delete(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	r.until("the node to be put back", 30*time.Second, func(ctx context.Context) (bool, error) {
		node, err := r.node(ctx, in)
		return err == nil && len(node.Spec.Taints) == 0 && node.Annotations[v1beta1.AnnotationOriginalState] == "", err
	})
	for _, pod := range r.podsOn(in) {
		if pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
			t.Errorf("pod %s was touched", pod.Name)
		}
	}
}
