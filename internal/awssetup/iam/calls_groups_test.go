package iam_test

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/iam"
)

func readingGroupCalls() map[string]call {
	return map[string]call{
		"autoscaling:DescribeAutoScalingInstances": func(s session, _ iam.Statement) error {
			_, err := s.groups.DescribeAutoScalingInstances(s.ctx, &autoscaling.DescribeAutoScalingInstancesInput{})
			return err
		},
		"autoscaling:DescribeAutoScalingGroups": func(s session, _ iam.Statement) error {
			_, err := s.groups.DescribeAutoScalingGroups(s.ctx, &autoscaling.DescribeAutoScalingGroupsInput{})
			return err
		},
		"autoscaling:DescribeLifecycleHooks": func(s session, st iam.Statement) error {
			_, err := s.groups.DescribeLifecycleHooks(s.ctx, &autoscaling.DescribeLifecycleHooksInput{AutoScalingGroupName: groupOf(st)})
			return err
		},
		"autoscaling:DescribeWarmPool": func(s session, st iam.Statement) error {
			_, err := s.groups.DescribeWarmPool(s.ctx, &autoscaling.DescribeWarmPoolInput{AutoScalingGroupName: groupOf(st)})
			return err
		},
	}
}

func groupCalls() map[string]call {
	hook := aws.String("lifeboat")
	create := func(s session, _ iam.Statement) error { return createGroup(s, "prod-new", s.template) }
	return map[string]call{
		"autoscaling:CompleteLifecycleAction": func(s session, st iam.Statement) error { return completeHook(s, *groupOf(st)) },
		"autoscaling:RecordLifecycleActionHeartbeat": func(s session, st iam.Statement) error {
			_, err := s.groups.RecordLifecycleActionHeartbeat(s.ctx, &autoscaling.RecordLifecycleActionHeartbeatInput{
				AutoScalingGroupName: groupOf(st), LifecycleHookName: hook, InstanceId: aws.String("i-1"),
			})
			return err
		},
		"autoscaling:DetachInstances": func(s session, st iam.Statement) error { return detach(s, *groupOf(st)) },
		"autoscaling:UpdateAutoScalingGroup": func(s session, st iam.Statement) error {
			_, err := s.groups.UpdateAutoScalingGroup(s.ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: groupOf(st), MaxSize: aws.Int32(3)})
			return err
		},
		"autoscaling:DeleteAutoScalingGroup": func(s session, _ iam.Statement) error {
			_, err := s.groups.DeleteAutoScalingGroup(s.ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: aws.String("prod-new")})
			return err
		},
		"autoscaling:PutLifecycleHook": func(s session, st iam.Statement) error {
			_, err := s.groups.PutLifecycleHook(s.ctx, &autoscaling.PutLifecycleHookInput{
				AutoScalingGroupName: groupOf(st), LifecycleHookName: hook, LifecycleTransition: aws.String("autoscaling:EC2_INSTANCE_LAUNCHING"),
			})
			return err
		},
		"autoscaling:DeleteLifecycleHook": func(s session, st iam.Statement) error {
			_, err := s.groups.DeleteLifecycleHook(s.ctx, &autoscaling.DeleteLifecycleHookInput{AutoScalingGroupName: groupOf(st), LifecycleHookName: hook})
			return err
		},
		"autoscaling:PutWarmPool": func(s session, st iam.Statement) error {
			_, err := s.groups.PutWarmPool(s.ctx, &autoscaling.PutWarmPoolInput{AutoScalingGroupName: groupOf(st)})
			return err
		},
		"autoscaling:DeleteWarmPool": func(s session, st iam.Statement) error {
			_, err := s.groups.DeleteWarmPool(s.ctx, &autoscaling.DeleteWarmPoolInput{AutoScalingGroupName: groupOf(st)})
			return err
		},
		"autoscaling:CreateOrUpdateTags":     func(s session, st iam.Statement) error { return tagGroup(s, groupTag(*groupOf(st), "team", "a")) },
		"autoscaling:CreateAutoScalingGroup": create,
	}
}

func tagGroup(s session, tags ...astypes.Tag) error {
	_, err := s.groups.CreateOrUpdateTags(s.ctx, &autoscaling.CreateOrUpdateTagsInput{Tags: tags})
	return err
}

func completeHook(s session, group string) error {
	_, err := s.groups.CompleteLifecycleAction(s.ctx, &autoscaling.CompleteLifecycleActionInput{
		AutoScalingGroupName: &group, LifecycleHookName: aws.String("lifeboat"), InstanceId: aws.String("i-1"), LifecycleActionResult: aws.String("CONTINUE"),
	})
	return err
}

func detach(s session, group string) error {
	_, err := s.groups.DetachInstances(s.ctx, &autoscaling.DetachInstancesInput{
		AutoScalingGroupName: &group, InstanceIds: []string{"i-1"}, ShouldDecrementDesiredCapacity: aws.Bool(false),
	})
	return err
}
