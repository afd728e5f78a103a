//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/emulator/health"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/sandbox"
)

// TestEveryNoticeKindArrives makes AWS send every kind of notice about nodes, and waits until each
// arrives through EventBridge, its rule and the queue.
func TestEveryNoticeKindArrives(t *testing.T) {
	t.Parallel()
	r := newUnkindRig(t, sandbox.Options{LifeboatdArgs: []string{"--status-interval=5s"}})
	states := r.AWS().States
	states.CloudTrail.StartLogging()
	group := autoscaling.Group{Name: "workers", Max: 5, Desired: 2}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(states.AutoScaling.CreateGroup(group))
	must(states.AutoScaling.PutHook(autoscaling.Hook{Name: "drain", Group: "workers", Transition: autoscaling.Leaving, Heartbeat: time.Hour}))

	for kind, do := range map[string]func(ec2.Instance) error{
		notice.KindSpotInterruption: func(in ec2.Instance) error {
			return r.EC2().Interrupt([]string{in.ID}, ec2.InterruptOptions{})
		},
		notice.KindRebalanceRecommendation: func(in ec2.Instance) error { return r.EC2().Recommend([]string{in.ID}) },
		notice.KindScheduledChange: func(in ec2.Instance) error {
			_, err := states.Health.Schedule(health.Plan{
				InstanceIDs: []string{in.ID}, Code: "instance-retirement", NotBefore: time.Now().Add(240 * time.Hour),
				Form: health.Form{BareIDs: true, NoResources: true},
			})
			return err
		},
		notice.KindHealthIssue: func(in ec2.Instance) error {
			states.Health.Open(health.Event{
				Service: "EC2", Code: "AWS_EC2_INSTANCE_STORE_DRIVE_PERFORMANCE_DEGRADED", Category: health.Issue,
				Entities: []health.Entity{{ID: in.ID}},
			})
			return nil
		},
		notice.KindInstanceStateChange: func(in ec2.Instance) error {
			_, err := r.EC2().Stop([]string{in.ID})
			return err
		},
		notice.KindInstanceStatus: func(in ec2.Instance) error {
			return r.EC2().SetHealth(in.ID, ec2.Health{System: "impaired", ImpairedSince: time.Now().Add(-time.Hour)})
		},
		notice.KindCapacityReservationInterruption: func(in ec2.Instance) error {
			return r.EC2().Reclaim([]string{in.ID}, ec2.ReclaimOptions{ScalarResources: true})
		},
		notice.KindCapacityBlockExpiration: func(in ec2.Instance) error {
			r.EC2().ExpireBlock(in.CapacityReservationID, 10*time.Minute)
			return nil
		},
		notice.KindAutoScalingTermination: func(in ec2.Instance) error {
			if err := states.AutoScaling.Attach("workers", in.ID, autoscaling.InService); err != nil {
				return err
			}
			return states.AutoScaling.Send(in.ID, autoscaling.ScaleIn, "the group shrinks")
		},
		notice.KindLifecycleActionFailure: func(in ec2.Instance) error {
			r.refuseAnswer("workers", in) // a refused call counts only in the instance's own group
			return nil
		},
	} {
		in := r.launchFor(kind)
		must(do(in))
		r.until(kind+" to be recorded", 90*time.Second, func(ctx context.Context) (bool, error) {
			record, err := r.record(ctx, in.ID)
			if err != nil || record == nil {
				return false, err
			}
			var kinds []string
			for _, n := range record.Spec.Notices {
				kinds = append(kinds, n.Kind+" by "+n.Source)
			}
			source := notice.SourceQueue
			if kind == notice.KindInstanceStatus {
				source = notice.SourceEC2 // EventBridge sends no events for status checks
			}
			return slices.Contains(kinds, kind+" by "+source), fmt.Errorf("received %v", kinds)
		})
	}
}

// launchFor launches an instance that can get a notice of the kind.
func (r *rig) launchFor(kind string) ec2.Instance {
	r.t.Helper()
	input := ec2.LaunchInput{ImageID: "ami-0123456789abcdef0", Type: "m5.xlarge", Min: 1, Max: 1}
	switch kind {
	case notice.KindSpotInterruption, notice.KindRebalanceRecommendation:
		return r.launch(1)[0]
	case notice.KindCapacityReservationInterruption:
		input.Market, input.CapacityReservationID = ec2.InterruptibleReservation, "cr-0a1b2c3d4e5f60718"
	case notice.KindCapacityBlockExpiration:
		input.Market, input.CapacityReservationID = ec2.CapacityBlock, "cr-0bb2c3d4e5f607182"
	}
	return r.launchAll(input)[0]
}

// TestVolumeAndAccountNoticesTouchNoNode sends a notice about a volume, which affects its claim and
// pods, and one about the account, which affects the cluster.
func TestVolumeAndAccountNoticesTouchNoNode(t *testing.T) {
	t.Parallel()
	r := newUnkindRig(t, sandbox.Options{})
	node := r.launch(1)[0]
	before := r.settled(node)
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			ClaimRef:    &corev1.ObjectReference{Namespace: "default", Name: "data"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: "ebs.csi.aws.com", VolumeHandle: "vol-0a1b2c3d4e5f60718"}},
		},
	}
	r.apply(volume)
	open := func(service, code string, entities ...health.Entity) {
		r.AWS().States.Health.Open(health.Event{Service: service, Code: code, Category: health.Issue, Entities: entities})
	}
	open("EBS", "AWS_EBS_VOLUME_LOST", health.Entity{ID: "vol-0a1b2c3d4e5f60718"})
	open("EC2", "AWS_EC2_OPERATIONAL_ISSUE")
	for _, want := range []string{"PersistentVolumeClaim data AWS_EBS_VOLUME_LOST", "Namespace kube-system AWS_EC2_OPERATIONAL_ISSUE"} {
		words := strings.Fields(want)
		r.until("an event about "+want, 30*time.Second, func(ctx context.Context) (bool, error) {
			var list eventsv1.EventList
			if err := r.client.List(ctx, &list, client.MatchingFields{"regarding.kind": words[0]}); err != nil {
				return false, err
			}
			return slices.ContainsFunc(list.Items, func(e eventsv1.Event) bool {
				return e.Regarding.Name == words[1] && strings.Contains(e.Note, words[2])
			}), nil
		})
	}
	r.waitRestored(node, before)
	if in, err := r.record(t.Context(), node.ID); err != nil || in != nil {
		t.Errorf("the node has a record: %v, error %v", in, err)
	}
}
