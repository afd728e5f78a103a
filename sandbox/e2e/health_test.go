//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/health"
	"github.com/lifeboat-dev/lifeboat/internal/kube/mutate"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/sandbox"
)

// visible returns the fields of a node that Lifeboat could change.
func (r *rig) visible(in ec2.Instance) map[string]any {
	r.t.Helper()
	node, err := r.node(r.t.Context(), in)
	if err != nil {
		r.t.Fatal(err)
	}
	return map[string]any{"uid": node.UID, "labels": node.Labels, "annotations": node.Annotations, "spec": node.Spec}
}

// settled returns the visible fields of a new node after Kubernetes' own controllers have finished
// with it.
func (r *rig) settled(in ec2.Instance) map[string]any {
	r.t.Helper()
	r.until("the node to settle", 30*time.Second, func(ctx context.Context) (bool, error) {
		node, err := r.node(ctx, in)
		return err == nil && len(node.Spec.Taints) == 0 && node.Labels["beta.kubernetes.io/os"] != "", err
	})
	return r.visible(in)
}

// waitRestored waits until a node has its former state. Kubernetes removes its own unschedulable
// taint a moment after the field.
func (r *rig) waitRestored(in ec2.Instance, before map[string]any) {
	r.t.Helper()
	r.until("the node to be as it was", 30*time.Second, func(context.Context) (bool, error) {
		diff := cmp.Diff(before, r.visible(in))
		return diff == "", errors.New(diff)
	})
}

// TestScheduledStopInTwelveDaysWaits checks that a stop due in twelve days changes nothing today,
// and that the record is cancelled when AWS closes the event.
func TestScheduledStopInTwelveDaysWaits(t *testing.T) {
	t.Parallel()
	r := newUnkindRig(t, sandbox.Options{})
	in := r.launch(1)[0]
	before := r.settled(in)
	at := time.Now().Add(12 * 24 * time.Hour).Truncate(time.Second)
	arn, err := r.AWS().States.Health.Schedule(health.Plan{InstanceIDs: []string{in.ID}, Code: "instance-stop", NotBefore: at})
	if err != nil {
		t.Fatal(err)
	}
	record := r.reaches(in.ID, v1beta1.PhaseScheduled, 30*time.Second)
	if d := record.Status.Deadline; d == nil || !d.Time.Time.Equal(at) || d.Type != v1beta1.DeadlineSoft {
		t.Errorf("deadline %+v, want %s", d, at)
	}
	if diff := cmp.Diff(before, r.visible(in)); diff != "" {
		t.Errorf("the node was changed twelve days before the stop:\n%s", diff)
	}
	if err := r.AWS().States.Health.Close(arn); err != nil {
		t.Fatal(err)
	}
	r.reaches(in.ID, v1beta1.PhaseCancelled, 2*time.Minute) // the other source notices within a minute
	r.waitRestored(in, before)
}

// TestStopCancelledDuringDrainRestoresNode cancels a scheduled stop during the drain.
func TestStopCancelledDuringDrainRestoresNode(t *testing.T) {
	t.Parallel()
	r := newUnkindRig(t, sandbox.Options{})
	in := r.launch(1)[0]
	before := r.settled(in)
	arn, err := r.AWS().States.Health.Schedule(health.Plan{
		InstanceIDs: []string{in.ID}, Code: "instance-stop", NotBefore: time.Now().Add(30 * time.Minute),
	})
	if err != nil {
		t.Fatal(err)
	}
	r.reaches(in.ID, v1beta1.PhaseDrained, 30*time.Second)
	if err := r.AWS().States.Health.Close(arn); err != nil {
		t.Fatal(err)
	}
	r.reaches(in.ID, v1beta1.PhaseCancelled, 2*time.Minute)
	r.waitRestored(in, before)
}

// TestReboot checks that the node is drained before its reboot, returns as the same node, and takes
// pods again.
func TestReboot(t *testing.T) {
	t.Parallel()
	r := newUnkindRig(t, sandbox.Options{})
	in := r.launch(1)[0]
	before := r.settled(in)
	node, err := r.node(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	boot := node.Status.NodeInfo.BootID
	if _, err := r.AWS().States.Health.Schedule(health.Plan{
		InstanceIDs: []string{in.ID}, Code: "system-reboot", NotBefore: time.Now().Add(15 * time.Second),
	}); err != nil {
		t.Fatal(err)
	}
	r.reaches(in.ID, v1beta1.PhaseDrained, 10*time.Second)
	if node, err := r.node(t.Context(), in); err != nil || !mutate.IsMarked(node, mutate.MarkInterrupted) {
		t.Errorf("not cordoned before the reboot: %v, error %v", node, err)
	}
	var after *corev1.Node
	r.until("the node to be back", time.Minute, func(ctx context.Context) (bool, error) {
		after, err = r.node(ctx, in)
		return err == nil && after.Status.NodeInfo.BootID != boot && nodeindex.Ready(after) && !after.Spec.Unschedulable,
			fmt.Errorf("%+v, %w", after.Spec, err)
	})
	r.waitRestored(in, before)
}
