package nodegroup

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdkratelimit "github.com/aws/aws-sdk-go-v2/aws/ratelimit"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	sdk "github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/lifeboat-dev/lifeboat/internal/asg/ratelimit"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
)

// callTime is the timeout of one call; the SDK sets none.
const callTime = 10 * time.Second

type (
	options    = func(*sdk.Options)
	ec2Options = func(*ec2.Options)
)

// API are the AWS operations that the package uses. They are function values
// instead of the SDK's clients, so that the linker can drop the other
// operations.
type API struct {
	DescribeGroups    func(context.Context, *sdk.DescribeAutoScalingGroupsInput, ...options) (*sdk.DescribeAutoScalingGroupsOutput, error)
	DescribeHooks     func(context.Context, *sdk.DescribeLifecycleHooksInput, ...options) (*sdk.DescribeLifecycleHooksOutput, error)
	DescribePool      func(context.Context, *sdk.DescribeWarmPoolInput, ...options) (*sdk.DescribeWarmPoolOutput, error)
	DescribeTemplates func(context.Context, *ec2.DescribeLaunchTemplatesInput, ...ec2Options) (*ec2.DescribeLaunchTemplatesOutput, error)

	CreateGroup func(context.Context, *sdk.CreateAutoScalingGroupInput, ...options) (*sdk.CreateAutoScalingGroupOutput, error)
	UpdateGroup func(context.Context, *sdk.UpdateAutoScalingGroupInput, ...options) (*sdk.UpdateAutoScalingGroupOutput, error)
	DeleteGroup func(context.Context, *sdk.DeleteAutoScalingGroupInput, ...options) (*sdk.DeleteAutoScalingGroupOutput, error)
	PutTags     func(context.Context, *sdk.CreateOrUpdateTagsInput, ...options) (*sdk.CreateOrUpdateTagsOutput, error)
	PutHook     func(context.Context, *sdk.PutLifecycleHookInput, ...options) (*sdk.PutLifecycleHookOutput, error)
	DeleteHook  func(context.Context, *sdk.DeleteLifecycleHookInput, ...options) (*sdk.DeleteLifecycleHookOutput, error)
	PutPool     func(context.Context, *sdk.PutWarmPoolInput, ...options) (*sdk.PutWarmPoolOutput, error)
	DeletePool  func(context.Context, *sdk.DeleteWarmPoolInput, ...options) (*sdk.DeleteWarmPoolOutput, error)
}

// NewAPI returns the API for a configuration. AWS_ENDPOINT_URL_AUTO_SCALING and
// AWS_ENDPOINT_URL override the endpoint, as for every AWS SDK. The SDK does
// not retry: the reconcile loop does.
func NewAPI(config aws.Config) *API { return newAPI(config, aws.NopRetryer{}) }

// NewCommandAPI returns an API for a command that runs once, for any number of groups.
// All Auto Scaling calls of an account share one limit (see [ratelimit]), so a command
// keeps to the same rate as a controller. The SDK retries a throttled call with jitter
// and exponential backoff.
func NewCommandAPI(config aws.Config) *API {
	return newAPI(config, retry.NewStandard(func(o *retry.StandardOptions) {
		o.MaxAttempts, o.MaxBackoff = commandAttempts, commandBackoff
		o.RateLimiter = sdkratelimit.None // its quota of retries would end a long command
	})).Share(ratelimit.New(0, 0))
}

// The retries of a call by a command. With jitter they last 75 s on average, and 150 s at most.
const (
	commandAttempts = 12
	commandBackoff  = 20 * time.Second
)

func newAPI(config aws.Config, retryer aws.Retryer) *API {
	config = awshttp.WithTimeout(config, callTime)
	groups := sdk.NewFromConfig(config, func(o *sdk.Options) { o.Retryer = retryer })
	instances := ec2.NewFromConfig(config, func(o *ec2.Options) { o.Retryer = retryer })
	return &API{
		DescribeGroups: groups.DescribeAutoScalingGroups, DescribeHooks: groups.DescribeLifecycleHooks,
		DescribePool: groups.DescribeWarmPool, DescribeTemplates: instances.DescribeLaunchTemplates,
		CreateGroup: groups.CreateAutoScalingGroup, UpdateGroup: groups.UpdateAutoScalingGroup,
		DeleteGroup: groups.DeleteAutoScalingGroup, PutTags: groups.CreateOrUpdateTags,
		PutHook: groups.PutLifecycleHook, DeleteHook: groups.DeleteLifecycleHook,
		PutPool: groups.PutWarmPool, DeletePool: groups.DeleteWarmPool,
	}
}

// failed wraps the error of a call, so that cloud.IsDenied and cloud.IsBusy
// tell whether a retry can help. It returns nil for nil.
func failed(doing, permission string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, classify(permission, awshttp.Stable(err)))
}

// classify says whether a retry can help (EC2 Auto Scaling API Reference,
// "Common errors", and the errors of each call).
func classify(permission string, err error) error {
	if awshttp.IsDenied(err) {
		prints := "`lifeboat aws iam --manage-groups`"
		if strings.Contains(permission, ":Describe") {
			prints = "`lifeboat aws iam`"
		}
		return &cloud.DeniedError{Err: err, Fix: "allow " + permission + ": " + prints + " prints the policy"}
	}
	switch awshttp.Code(err) {
	case "ScalingActivityInProgress", "ResourceInUse", "ResourceContention", "InstanceRefreshInProgress":
		return fmt.Errorf("%w: %w", cloud.ErrBusy, err)
	case "LimitExceeded":
		return &cloud.DeniedError{Err: err, Fix: "a quota of Auto Scaling is used up (groups, or hooks of a group): delete what is not needed, or request a higher quota"}
	case "ValidationError":
		return &cloud.DeniedError{Err: err, Fix: "correct the NodeGroup as the AWS message says"}
	}
	if awshttp.IsBusy(err) {
		return fmt.Errorf("%w: %w", cloud.ErrBusy, err)
	}
	return err
}

// isNotFound reports whether the group, hook or pool does not exist. AWS has no
// own error code for that, only a ValidationError with a text.
func isNotFound(err error) bool {
	text := ""
	if err != nil {
		text = strings.ToLower(err.Error())
	}
	return awshttp.Code(err) == "ValidationError" && (strings.Contains(text, "not found") || strings.Contains(text, "no warm pool found"))
}

// Share returns an API whose Auto Scaling calls go through Lifeboat's common
// rate limiter. Changes have priority over reads.
func (a *API) Share(q *ratelimit.Limiter) *API {
	return &API{
		DescribeGroups: shared(q, ratelimit.Ask, a.DescribeGroups), DescribeHooks: shared(q, ratelimit.Ask, a.DescribeHooks),
		DescribePool: shared(q, ratelimit.Ask, a.DescribePool), DescribeTemplates: a.DescribeTemplates,
		CreateGroup: shared(q, ratelimit.Extend, a.CreateGroup), UpdateGroup: shared(q, ratelimit.Extend, a.UpdateGroup),
		DeleteGroup: shared(q, ratelimit.Extend, a.DeleteGroup), PutTags: shared(q, ratelimit.Extend, a.PutTags),
		PutHook: shared(q, ratelimit.Extend, a.PutHook), DeleteHook: shared(q, ratelimit.Extend, a.DeleteHook),
		PutPool: shared(q, ratelimit.Extend, a.PutPool), DeletePool: shared(q, ratelimit.Extend, a.DeletePool),
	}
}

func shared[I, O any](q *ratelimit.Limiter, p ratelimit.Priority, f func(context.Context, *I, ...options) (*O, error)) func(context.Context, *I, ...options) (*O, error) {
	return func(ctx context.Context, in *I, o ...options) (*O, error) {
		if err := q.Wait(ctx, p); err != nil {
			return nil, err
		}
		out, err := f(ctx, in, o...)
		if awshttp.IsThrottled(err) {
			q.Throttled()
		} else {
			q.Passed()
		}
		return out, err
	}
}
