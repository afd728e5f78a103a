package autoscaling

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awsas "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/lifeboat-dev/lifeboat/internal/awshttp"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
)

// The IAM actions for what is used of Auto Scaling.
const (
	permitGroups    = "autoscaling:DescribeAutoScalingGroups"
	permitInstances = "autoscaling:DescribeAutoScalingInstances"
	permitHooks     = "autoscaling:DescribeLifecycleHooks"
)

// The most that one call may name (Amazon EC2 Auto Scaling API Reference).
const (
	groupsAtOnce    = 100
	instancesAtOnce = 50
	maxPages        = 200
)

// callTime is what one call may take; the SDK sets no limit.
const callTime = 20 * time.Second

// API is what is used of Auto Scaling. It holds functions and not the SDK's
// client, so that the linker keeps these alone.
type API struct {
	Groups    func(context.Context, *awsas.DescribeAutoScalingGroupsInput, ...func(*awsas.Options)) (*awsas.DescribeAutoScalingGroupsOutput, error)
	Instances func(context.Context, *awsas.DescribeAutoScalingInstancesInput, ...func(*awsas.Options)) (*awsas.DescribeAutoScalingInstancesOutput, error)
	Hooks     func(context.Context, *awsas.DescribeLifecycleHooksInput, ...func(*awsas.Options)) (*awsas.DescribeLifecycleHooksOutput, error)
}

// NewAPI makes the real one. AWS_ENDPOINT_URL_AUTO_SCALING or AWS_ENDPOINT_URL
// say where Auto Scaling is, as for every AWS SDK.
func NewAPI(config aws.Config) API {
	client := awsas.NewFromConfig(awshttp.WithTimeout(config, callTime), func(o *awsas.Options) {
		o.Retryer = retry.NewStandard(func(r *retry.StandardOptions) {
			r.MaxAttempts, r.MaxBackoff = 3, 5*time.Second
		})
	})
	return API{Groups: client.DescribeAutoScalingGroups, Instances: client.DescribeAutoScalingInstances, Hooks: client.DescribeLifecycleHooks}
}

// groupsOf returns the group of each of these instances; one that is in none is
// left out, as the API does. There are at most instancesAtOnce of them.
func (a API) groupsOf(ctx context.Context, ids []string) (map[string]string, error) {
	groups := map[string]string{}
	in := &awsas.DescribeAutoScalingInstancesInput{InstanceIds: ids}
	for range maxPages {
		out, err := a.Instances(ctx, in)
		if err != nil {
			return groups, poll.Needs(permitInstances, fmt.Errorf("finding the Auto Scaling groups of %d instances: %w", len(ids), err))
		}
		for i := range out.AutoScalingInstances {
			row := &out.AutoScalingInstances[i]
			groups[aws.ToString(row.InstanceId)] = aws.ToString(row.AutoScalingGroupName)
		}
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			return groups, nil
		}
	}
	return groups, fmt.Errorf("finding the Auto Scaling groups of %d instances: more than %d pages", len(ids), maxPages)
}

// groups returns the groups of these names that exist; there are at most
// groupsAtOnce of them.
func (a API) groups(ctx context.Context, names []string) ([]types.AutoScalingGroup, error) {
	var rows []types.AutoScalingGroup
	in := &awsas.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: names, MaxRecords: aws.Int32(groupsAtOnce)}
	for range maxPages {
		out, err := a.Groups(ctx, in)
		if err != nil {
			return rows, fmt.Errorf("reading %d Auto Scaling groups: %w", len(names), err)
		}
		rows = append(rows, out.AutoScalingGroups...)
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			return rows, nil
		}
	}
	return rows, fmt.Errorf("reading %d Auto Scaling groups: more than %d pages", len(names), maxPages)
}

// hooks returns the lifecycle hooks of a group, of which there are at most 50.
func (a API) hooks(ctx context.Context, group string) ([]types.LifecycleHook, error) {
	out, err := a.Hooks(ctx, &awsas.DescribeLifecycleHooksInput{AutoScalingGroupName: &group})
	if err != nil {
		return nil, fmt.Errorf("reading the lifecycle hooks of Auto Scaling group %s: %w", group, err)
	}
	return out.LifecycleHooks, nil
}
