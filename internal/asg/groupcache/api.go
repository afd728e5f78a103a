package groupcache

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsas "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"

	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
	"github.com/lifeboat-dev/lifeboat/internal/intake/poll"
)

// The IAM actions of the calls.
const (
	PermitGroups    = "autoscaling:DescribeAutoScalingGroups"
	PermitInstances = "autoscaling:DescribeAutoScalingInstances"
	PermitHooks     = "autoscaling:DescribeLifecycleHooks"
	PermitPool      = "autoscaling:DescribeWarmPool"
)

// Limits of one call: names in a request and pages of a response (Amazon EC2
// Auto Scaling API Reference).
const (
	groupsAtOnce    = 100
	instancesAtOnce = 50
	maxPages        = 200
)

// callTime is the timeout of one call; the SDK sets none.
const callTime = 20 * time.Second

// API are the operations of Auto Scaling that the Watcher uses. They are
// function values instead of the SDK's client, so that the linker can drop the
// other operations.
type API struct {
	Groups    func(context.Context, *awsas.DescribeAutoScalingGroupsInput, ...func(*awsas.Options)) (*awsas.DescribeAutoScalingGroupsOutput, error)
	Instances func(context.Context, *awsas.DescribeAutoScalingInstancesInput, ...func(*awsas.Options)) (*awsas.DescribeAutoScalingInstancesOutput, error)
	Hooks     func(context.Context, *awsas.DescribeLifecycleHooksInput, ...func(*awsas.Options)) (*awsas.DescribeLifecycleHooksOutput, error)
	Pool      func(context.Context, *awsas.DescribeWarmPoolInput, ...func(*awsas.Options)) (*awsas.DescribeWarmPoolOutput, error)
}

// NewAPI returns the real API. AWS_ENDPOINT_URL_AUTO_SCALING or
// AWS_ENDPOINT_URL override the endpoint, as for every AWS SDK. The SDK does
// not retry: the next poll does.
func NewAPI(config aws.Config) API {
	client := awsas.NewFromConfig(awshttp.WithTimeout(config, callTime), func(o *awsas.Options) { o.Retryer = aws.NopRetryer{} })
	return API{
		Groups: client.DescribeAutoScalingGroups, Instances: client.DescribeAutoScalingInstances,
		Hooks: client.DescribeLifecycleHooks, Pool: client.DescribeWarmPool,
	}
}

// groupsOf returns the group of each instance; instances without a group are
// left out. It takes at most instancesAtOnce ids.
func (w *Watcher) groupsOf(ctx context.Context, ids []string) (map[string]string, error) {
	groups := map[string]string{}
	in := &awsas.DescribeAutoScalingInstancesInput{InstanceIds: ids}
	err := paged(func() (*string, error) {
		out, err := call(ctx, w, "DescribeAutoScalingInstances", w.o.API.Instances, in)
		if err != nil {
			return nil, err
		}
		for i := range out.AutoScalingInstances {
			row := &out.AutoScalingInstances[i]
			groups[aws.ToString(row.InstanceId)] = aws.ToString(row.AutoScalingGroupName)
		}
		in.NextToken = out.NextToken
		return out.NextToken, nil
	})
	if err != nil {
		err = poll.Needs(PermitInstances, fmt.Errorf("finding the Auto Scaling groups of %d instances: %w", len(ids), err))
	}
	return groups, err
}

// rows returns the existing groups of these names, at most groupsAtOnce.
func (w *Watcher) rows(ctx context.Context, names []string) ([]types.AutoScalingGroup, error) {
	var rows []types.AutoScalingGroup
	in := &awsas.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: names, MaxRecords: aws.Int32(groupsAtOnce)}
	err := paged(func() (*string, error) {
		out, err := call(ctx, w, "DescribeAutoScalingGroups", w.o.API.Groups, in)
		if err != nil {
			return nil, err
		}
		rows = append(rows, out.AutoScalingGroups...)
		in.NextToken = out.NextToken
		return out.NextToken, nil
	})
	if err != nil {
		err = poll.Needs(PermitGroups, fmt.Errorf("reading %d Auto Scaling groups: %w", len(names), err))
	}
	return rows, err
}

// pool returns the instances in a group's warm pool, which the group's own list
// omits.
func (w *Watcher) pool(ctx context.Context, group string) ([]types.Instance, error) {
	var rows []types.Instance
	in := &awsas.DescribeWarmPoolInput{AutoScalingGroupName: &group}
	err := paged(func() (*string, error) {
		out, err := call(ctx, w, "DescribeWarmPool", w.o.API.Pool, in)
		if err != nil {
			return nil, err
		}
		rows = append(rows, out.Instances...)
		in.NextToken = out.NextToken
		return out.NextToken, nil
	})
	if err != nil {
		err = poll.Needs(PermitPool, fmt.Errorf("reading the warm pool of Auto Scaling group %s: %w", group, err))
	}
	return rows, err
}

// hooksOf returns the lifecycle hooks of a group; AWS allows at most 50.
func (w *Watcher) hooksOf(ctx context.Context, group string) ([]types.LifecycleHook, error) {
	out, err := call(ctx, w, "DescribeLifecycleHooks", w.o.API.Hooks, &awsas.DescribeLifecycleHooksInput{AutoScalingGroupName: &group})
	if err != nil {
		return nil, poll.Needs(PermitHooks, fmt.Errorf("reading the lifecycle hooks of Auto Scaling group %s: %w", group, err))
	}
	return out.LifecycleHooks, nil
}

var errPages = errors.New("the response has too many pages")

// paged requests pages until one has no token.
func paged(page func() (*string, error)) error {
	for range maxPages {
		if token, err := page(); err != nil || aws.ToString(token) == "" {
			return err
		}
	}
	return errPages
}
