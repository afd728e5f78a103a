package aws

import (
	"context"
	"fmt"
	"slices"
	"strings"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	awsas "github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/lifeboat-dev/lifeboat/internal/awshttp"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/quota"
)

// The IAM actions that a Lifecycle needs.
const (
	PermitComplete  = "autoscaling:CompleteLifecycleAction"
	PermitHeartbeat = "autoscaling:RecordLifecycleActionHeartbeat"
	PermitDetach    = "autoscaling:DetachInstances"
	permitInstances = "autoscaling:DescribeAutoScalingInstances"
)

var _ cloud.Lifecycle = (*Lifecycle)(nil)

// Lifecycle answers the lifecycle hooks of Auto Scaling groups. It holds
// functions and not the SDK's client, as Cloud does.
type Lifecycle struct {
	complete  func(context.Context, *awsas.CompleteLifecycleActionInput, ...func(*awsas.Options)) (*awsas.CompleteLifecycleActionOutput, error)
	heartbeat func(context.Context, *awsas.RecordLifecycleActionHeartbeatInput, ...func(*awsas.Options)) (*awsas.RecordLifecycleActionHeartbeatOutput, error)
	detach    func(context.Context, *awsas.DetachInstancesInput, ...func(*awsas.Options)) (*awsas.DetachInstancesOutput, error)
	instances func(context.Context, *awsas.DescribeAutoScalingInstancesInput, ...func(*awsas.Options)) (*awsas.DescribeAutoScalingInstancesOutput, error)
	quota     *quota.Quota
}

// NewLifecycle returns the Lifecycle that a configuration leads to, which shares
// the quota with all who call Auto Scaling; nil: it has none. Each call is made
// once, and so none is made late: an answer that the SDK repeated on its own could
// reach the next firing of a hook.
func NewLifecycle(config awssdk.Config, q *quota.Quota) *Lifecycle {
	client := awsas.NewFromConfig(awshttp.WithTimeout(config, callTime), func(o *awsas.Options) { o.Retryer = awssdk.NopRetryer{} })
	return &Lifecycle{
		complete: client.CompleteLifecycleAction, heartbeat: client.RecordLifecycleActionHeartbeat,
		detach: client.DetachInstances, instances: client.DescribeAutoScalingInstances, quota: q,
	}
}

// Complete implements cloud.Lifecycle. Which lifecycle action an instance id
// names is decided by Auto Scaling when it gets the call: whichever of the hook is
// pending then (Amazon EC2 Auto Scaling API Reference, CompleteLifecycleAction).
func (l *Lifecycle) Complete(ctx context.Context, a cloud.Action, r cloud.Result) error {
	in := &awsas.CompleteLifecycleActionInput{
		AutoScalingGroupName: &a.Group, LifecycleHookName: &a.Hook, LifecycleActionResult: awssdk.String(string(r)),
	}
	in.LifecycleActionToken, in.InstanceId = name(a)
	err := l.turn(ctx, quota.Answer, func() error {
		_, err := l.complete(ctx, in)
		return err
	})
	if err != nil {
		return fmt.Errorf("answering %s to lifecycle hook %s for instance %s: %w", r, a.Hook, a.InstanceID, sortLifecycle(err, PermitComplete, a.Group))
	}
	return nil
}

// Heartbeat implements cloud.Lifecycle.
func (l *Lifecycle) Heartbeat(ctx context.Context, a cloud.Action) error {
	in := &awsas.RecordLifecycleActionHeartbeatInput{AutoScalingGroupName: &a.Group, LifecycleHookName: &a.Hook}
	in.LifecycleActionToken, in.InstanceId = name(a)
	err := l.turn(ctx, quota.Extend, func() error {
		_, err := l.heartbeat(ctx, in)
		return err
	})
	if err != nil {
		return fmt.Errorf("extending lifecycle hook %s for instance %s: %w", a.Hook, a.InstanceID, sortLifecycle(err, PermitHeartbeat, a.Group))
	}
	return nil
}

// name returns the token of an action, or where there is none its instance: the
// API takes either.
func name(a cloud.Action) (token, instance *string) {
	if a.Token != "" {
		return &a.Token, nil
	}
	return nil, &a.InstanceID
}

// Detach implements cloud.Lifecycle. That Auto Scaling refuses to detach an
// instance says nothing by itself: only that it is in no group any more, or being
// detached, makes it done.
func (l *Lifecycle) Detach(ctx context.Context, group, instanceID string) error {
	err := l.turn(ctx, quota.Answer, func() error {
		_, err := l.detach(ctx, &awsas.DetachInstancesInput{
			AutoScalingGroupName: &group, InstanceIds: []string{instanceID}, ShouldDecrementDesiredCapacity: awssdk.Bool(false),
		})
		return err
	})
	if err == nil || awshttp.Code(err) == validation && l.isDetached(ctx, instanceID) {
		return nil
	}
	return fmt.Errorf("detaching instance %s from Auto Scaling group %s: %w", instanceID, group, sortLifecycle(err, PermitDetach, group))
}

// isDetached reports whether an instance is known to be in no group, or on its
// way out of one.
func (l *Lifecycle) isDetached(ctx context.Context, instanceID string) bool {
	var out *awsas.DescribeAutoScalingInstancesOutput
	err := l.turn(ctx, quota.Answer, func() (err error) {
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

// turn makes a call when it is its turn. What waits too long counts as throttled.
func (l *Lifecycle) turn(ctx context.Context, p quota.Priority, do func() error) error {
	bounded, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	if err := l.quota.Wait(bounded, p); err != nil {
		return fmt.Errorf("%w: %w", cloud.ErrBusy, err)
	}
	err := do()
	if awshttp.IsThrottled(err) {
		l.quota.Throttled()
	} else if err == nil {
		l.quota.Passed()
	}
	return err
}

// validation is the code of all that Auto Scaling refuses for what was asked.
const validation = "ValidationError"

// sortLifecycle tells what asking again is worth. Auto Scaling has no code of its
// own for an action that is not pending, only a ValidationError that begins "No
// active Lifecycle Action found" (Amazon EC2 Auto Scaling API Reference, "Common
// Errors").
func sortLifecycle(err error, permission, group string) error {
	switch code := awshttp.Code(err); {
	case awshttp.IsDenied(err):
		return &cloud.DeniedError{Err: err, Mend: "allow " + permission + " for Auto Scaling group " + group +
			": `lifeboat wire iam` prints the policy; a group that an operator such as EKS owns can be changed through it alone"}
	case code == validation && strings.Contains(strings.ToLower(err.Error()), "no active lifecycle action"):
		return fmt.Errorf("%w: %w", cloud.ErrNoAction, err)
	case code == "ResourceContention", code == "ScalingActivityInProgress", awshttp.IsBusy(err):
		return fmt.Errorf("%w: %w", cloud.ErrBusy, err)
	}
	return err
}
