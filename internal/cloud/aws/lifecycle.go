package aws

import (
	"context"
	"fmt"
	"slices"
	"strings"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	awsas "github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/lifeboat-dev/lifeboat/internal/asg/ratelimit"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
)

// The IAM actions that a Lifecycle needs.
const (
	PermitComplete  = "autoscaling:CompleteLifecycleAction"
	PermitHeartbeat = "autoscaling:RecordLifecycleActionHeartbeat"
	PermitDetach    = "autoscaling:DetachInstances"
	permitInstances = "autoscaling:DescribeAutoScalingInstances"
)

var _ cloud.Lifecycle = (*Lifecycle)(nil)

// Lifecycle completes the lifecycle actions of Auto Scaling groups. It stores
// function values instead of the SDK's client, like Cloud.
type Lifecycle struct {
	complete  func(context.Context, *awsas.CompleteLifecycleActionInput, ...func(*awsas.Options)) (*awsas.CompleteLifecycleActionOutput, error)
	heartbeat func(context.Context, *awsas.RecordLifecycleActionHeartbeatInput, ...func(*awsas.Options)) (*awsas.RecordLifecycleActionHeartbeatOutput, error)
	detach    func(context.Context, *awsas.DetachInstancesInput, ...func(*awsas.Options)) (*awsas.DetachInstancesOutput, error)
	instances func(context.Context, *awsas.DescribeAutoScalingInstancesInput, ...func(*awsas.Options)) (*awsas.DescribeAutoScalingInstancesOutput, error)
	limiter   *ratelimit.Limiter
}

// NewLifecycle returns the Lifecycle for a configuration. All callers of Auto
// Scaling share the limiter; nil: no limit. The SDK does not retry: a delayed
// repetition could complete the hook's next action.
func NewLifecycle(config awssdk.Config, q *ratelimit.Limiter) *Lifecycle {
	client := awsas.NewFromConfig(awshttp.WithTimeout(config, callTime), func(o *awsas.Options) { o.Retryer = awssdk.NopRetryer{} })
	return &Lifecycle{
		complete: client.CompleteLifecycleAction, heartbeat: client.RecordLifecycleActionHeartbeat,
		detach: client.DetachInstances, instances: client.DescribeAutoScalingInstances, limiter: q,
	}
}

// Complete implements cloud.Lifecycle. With an instance id, Auto Scaling
// completes whichever action of the hook is pending when the call arrives
// (Amazon EC2 Auto Scaling API Reference, CompleteLifecycleAction).
func (l *Lifecycle) Complete(ctx context.Context, a cloud.Action, r cloud.Result) error {
	in := &awsas.CompleteLifecycleActionInput{
		AutoScalingGroupName: &a.Group, LifecycleHookName: &a.Hook, LifecycleActionResult: awssdk.String(string(r)),
	}
	in.LifecycleActionToken, in.InstanceId = name(a)
	err := l.limited(ctx, ratelimit.Answer, func() error {
		_, err := l.complete(ctx, in)
		return err
	})
	if err != nil {
		return fmt.Errorf("answering %s to lifecycle hook %s for instance %s: %w", r, a.Hook, a.InstanceID, classifyLifecycle(err, PermitComplete, a.Group))
	}
	return nil
}

// Heartbeat implements cloud.Lifecycle.
func (l *Lifecycle) Heartbeat(ctx context.Context, a cloud.Action) error {
	in := &awsas.RecordLifecycleActionHeartbeatInput{AutoScalingGroupName: &a.Group, LifecycleHookName: &a.Hook}
	in.LifecycleActionToken, in.InstanceId = name(a)
	err := l.limited(ctx, ratelimit.Extend, func() error {
		_, err := l.heartbeat(ctx, in)
		return err
	})
	if err != nil {
		return fmt.Errorf("extending lifecycle hook %s for instance %s: %w", a.Hook, a.InstanceID, classifyLifecycle(err, PermitHeartbeat, a.Group))
	}
	return nil
}

// name returns the token of an action, or the instance id if there is none: the
// API accepts either.
func name(a cloud.Action) (token, instance *string) {
	if a.Token != "" {
		return &a.Token, nil
	}
	return nil, &a.InstanceID
}

// Detach implements cloud.Lifecycle. A rejected call counts as done only if the
// instance is in no group any more, or is being detached.
func (l *Lifecycle) Detach(ctx context.Context, group, instanceID string) error {
	err := l.limited(ctx, ratelimit.Answer, func() error {
		_, err := l.detach(ctx, &awsas.DetachInstancesInput{
			AutoScalingGroupName: &group, InstanceIds: []string{instanceID}, ShouldDecrementDesiredCapacity: awssdk.Bool(false),
		})
		return err
	})
	if err == nil || awshttp.Code(err) == validation && l.isDetached(ctx, instanceID) {
		return nil
	}
	return fmt.Errorf("detaching instance %s from Auto Scaling group %s: %w", instanceID, group, classifyLifecycle(err, PermitDetach, group))
}

// isDetached reports whether an instance is in no group or is being detached.
func (l *Lifecycle) isDetached(ctx context.Context, instanceID string) bool {
	var out *awsas.DescribeAutoScalingInstancesOutput
	err := l.limited(ctx, ratelimit.Answer, func() (err error) {
		out, err = l.instances(ctx, &awsas.DescribeAutoScalingInstancesInput{InstanceIds: []string{instanceID}})
		return err
	})
	if err != nil {
		return false
	}
	for i := range out.AutoScalingInstances {
		state := awssdk.ToString(out.AutoScalingInstances[i].LifecycleState)
		if !slices.Contains([]string{"Detaching", "Detached"}, state) {
			return false
		}
	}
	return true
}

// limited makes a call through the rate limiter. A wait that is too long counts
// as throttled.
func (l *Lifecycle) limited(ctx context.Context, p ratelimit.Priority, do func() error) error {
	bounded, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if err := l.limiter.Wait(bounded, p); err != nil {
		return fmt.Errorf("%w: %w", cloud.ErrBusy, err)
	}
	err := do()
	if awshttp.IsThrottled(err) {
		l.limiter.Throttled()
	} else if err == nil {
		l.limiter.Passed()
	}
	return err
}

// validation is Auto Scaling's code for all rejected requests.
const validation = "ValidationError"

// classifyLifecycle adds to an error whether a retry can help. For an action that is not pending, Auto
// Scaling has no error code of its own. It returns a ValidationError that begins "No active Lifecycle
// Action found" (Amazon EC2 Auto Scaling API Reference, "Common Errors").
func classifyLifecycle(err error, permission, group string) error {
	switch code := awshttp.Code(err); {
	case awshttp.IsDenied(err):
		return &cloud.DeniedError{Err: err, Fix: "allow " + permission + " for Auto Scaling group " + group +
			": `lifeboat aws iam` prints the policy; a group that a service such as EKS owns can be changed only through that service"}
	case code == validation && strings.Contains(strings.ToLower(err.Error()), "no active lifecycle action"):
		return fmt.Errorf("%w: %w", cloud.ErrNoAction, err)
	case code == "ResourceContention", code == "ScalingActivityInProgress", awshttp.IsBusy(err):
		return fmt.Errorf("%w: %w", cloud.ErrBusy, err)
	}
	return err
}
