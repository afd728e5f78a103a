//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsautoscaling "github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/lifeboat-dev/lifeboat/emulator/autoscaling"
	"github.com/lifeboat-dev/lifeboat/emulator/ec2"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// refuseAnswer makes a call, in the group of an instance, that completes no lifecycle action. AWS
// refuses it.
func (r *rig) refuseAnswer(group string, in ec2.Instance) {
	r.t.Helper()
	r.EC2().SetSystemTags(in.ID, map[string]string{"aws:autoscaling:groupName": group})
	_, err := awsautoscaling.NewFromConfig(r.AWSConfig()).CompleteLifecycleAction(r.t.Context(), &awsautoscaling.CompleteLifecycleActionInput{
		AutoScalingGroupName: &group, LifecycleHookName: aws.String("drain"), InstanceId: &in.ID, LifecycleActionResult: aws.String("CONTINUE"),
	})
	if err == nil {
		r.t.Fatal("completing an unknown lifecycle action must fail")
	}
}

// In an account without a trail no event tells of a refused answer to a lifecycle hook. Without the
// poll of the event history it stays unknown, while other notices arrive.
func TestRefusedAnswerWithoutTrail(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if err := r.AWS().States.AutoScaling.CreateGroup(autoscaling.Group{Name: "workers", Max: 5}); err != nil {
		t.Fatal(err)
	}
	in := r.launch(1)[0]
	r.AWS().States.CloudTrail.SetDelay(0)
	r.refuseAnswer("workers", in)
	by := func(kind, source string) func(context.Context) (bool, error) {
		return func(ctx context.Context) (bool, error) {
			record, err := r.record(ctx, in.ID)
			if err != nil || record == nil {
				return false, err
			}
			for _, n := range record.Spec.Notices {
				if n.Kind == kind && n.Source == source {
					return true, nil
				}
			}
			return false, fmt.Errorf("received %v", record.Spec.Notices)
		}
	}
	if err := r.EC2().Recommend([]string{in.ID}); err != nil {
		t.Fatal(err)
	}
	r.until("a later notice to be recorded", time.Minute, by(notice.KindRebalanceRecommendation, notice.SourceQueue))
	for _, source := range []string{notice.SourceQueue, notice.SourceCloudTrail} {
		if recorded, _ := by(notice.KindLifecycleActionFailure, source)(t.Context()); recorded {
			t.Errorf("the refused answer is recorded by %s without a trail and without the poll", source)
		}
	}
	if err := r.RestartLifeboat(t.Context(), "--cloudtrail-interval=2s"); err != nil {
		t.Fatal(err)
	}
	r.until("the refused answer to be recorded", time.Minute, by(notice.KindLifecycleActionFailure, notice.SourceCloudTrail))
}
