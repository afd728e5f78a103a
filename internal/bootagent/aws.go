package bootagent

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/lifeboat-dev/lifeboat/internal/asg/lifecycle"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	cloudaws "github.com/lifeboat-dev/lifeboat/internal/cloud/aws"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
)

// requestTime is the time limit of one call; the SDK sets none.
const requestTime = 10 * time.Second

// NewAutoScaling returns the calls for a configuration. Each is made once; callers retry.
func NewAutoScaling(config aws.Config) AutoScaling {
	client := sdk.NewFromConfig(awshttp.WithTimeout(config, requestTime), func(o *sdk.Options) {
		o.Retryer = aws.NopRetryer{}
	})
	answers := cloudaws.NewLifecycle(config, nil)
	return AutoScaling{
		Describe: func(ctx context.Context, instance string) (State, error) {
			out, err := client.DescribeAutoScalingInstances(ctx, &sdk.DescribeAutoScalingInstancesInput{InstanceIds: []string{instance}})
			if err != nil {
				return State{}, sort("asking for the state of the machine", "DescribeAutoScalingInstances", err)
			}
			for _, i := range out.AutoScalingInstances {
				if aws.ToString(i.InstanceId) == instance {
					value := aws.ToString(i.LifecycleState)
					return State{Group: aws.ToString(i.AutoScalingGroupName), Value: value, Position: lifecycle.Read(value)}, nil
				}
			}
			return State{}, nil
		},
		Hooks: func(ctx context.Context, group string) ([]lifecycle.Hook, error) {
			out, err := client.DescribeLifecycleHooks(ctx, &sdk.DescribeLifecycleHooksInput{AutoScalingGroupName: &group})
			if err != nil {
				return nil, sort("asking for the hooks of group "+group, "DescribeLifecycleHooks", err)
			}
			return cloudaws.Hooks(out.LifecycleHooks), nil
		},
		Complete: answers.Complete, Heartbeat: answers.Heartbeat,
	}
}

// sort classifies an error for the retry.
func sort(doing, permit string, err error) error {
	switch {
	case awshttp.IsDenied(err):
		err = &cloud.DeniedError{Err: err, Fix: "allow autoscaling:" + permit + " in the role of the instances: `lifeboat aws iam --role boot` prints the policy"}
	case awshttp.IsBusy(err), awshttp.Code(err) == "ResourceContention":
		err = fmt.Errorf("%w: %w", cloud.ErrBusy, err)
	}
	return fmt.Errorf("%s: %w", doing, err)
}
