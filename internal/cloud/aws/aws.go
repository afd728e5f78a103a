// Package aws answers AWS: it has EC2 terminate instances.
package aws

import (
	"context"
	"fmt"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/lifeboat-dev/lifeboat/internal/awshttp"
	"github.com/lifeboat-dev/lifeboat/internal/cloud"
)

const (
	// permitTerminate is the IAM action that Terminate needs.
	permitTerminate = "ec2:TerminateInstances"
	// callTime is what one call may take; the SDK sets no limit.
	callTime = 10 * time.Second
)

var _ cloud.Cloud = (*Cloud)(nil)

// Cloud tells AWS. It holds functions and not the SDK's client: where a client
// of EC2 is held in an interface, the linker keeps all of its several hundred
// methods, which are 30 MB.
type Cloud struct {
	terminate func(context.Context, *awsec2.TerminateInstancesInput, ...func(*awsec2.Options)) (*awsec2.TerminateInstancesOutput, error)
}

// New returns the Cloud that a configuration leads to. AWS_ENDPOINT_URL_EC2 or
// AWS_ENDPOINT_URL say where EC2 is, as for every AWS SDK. Each call is made
// once: whoever calls from a control loop asks again by itself, and a loop does
// not wait meanwhile.
func New(config awssdk.Config) *Cloud {
	client := awsec2.NewFromConfig(awshttp.WithTimeout(config, callTime), func(o *awsec2.Options) {
		o.Retryer = awssdk.NopRetryer{}
	})
	return &Cloud{terminate: client.TerminateInstances}
}

// Terminate has EC2 terminate an instance. EC2 does it again without an error
// for one that is terminated, and forgets it within about an hour, whereupon it
// is not found (EC2 User Guide, "Terminate Amazon EC2 instances").
func (c *Cloud) Terminate(ctx context.Context, instanceID string) error {
	_, err := c.terminate(ctx, &awsec2.TerminateInstancesInput{InstanceIds: []string{instanceID}})
	if err == nil || awshttp.Code(err) == "InvalidInstanceID.NotFound" {
		return nil
	}
	return fmt.Errorf("terminating instance %s: %w", instanceID, sort(err))
}

// MayTerminate asks EC2 whether it would terminate the instance (EC2 API Reference,
// TerminateInstances: with DryRun it says DryRunOperation if it would).
func (c *Cloud) MayTerminate(ctx context.Context, instanceID string) error {
	_, err := c.terminate(ctx, &awsec2.TerminateInstancesInput{InstanceIds: []string{instanceID}, DryRun: new(true)})
	if err == nil || awshttp.Code(err) == "DryRunOperation" {
		return nil
	}
	return fmt.Errorf("asking whether instance %s may be terminated: %w", instanceID, sort(err))
}

// sort tells what asking again is worth (EC2 API Reference, "Error codes").
func sort(err error) error {
	if awshttp.IsDenied(err) {
		return &cloud.DeniedError{Err: err, Mend: "allow " + permitTerminate + " for this instance: `lifeboat wire iam` prints " +
			"the policy, which reaches the instances that have the tag kubernetes.io/cluster/NAME or eks:cluster-name of the cluster"}
	}
	switch awshttp.Code(err) {
	case "OperationNotPermitted":
		return &cloud.DeniedError{Err: err, Mend: "take its termination protection off (disableApiTermination), or terminate it by hand"}
	case "InvalidInstanceID.Malformed":
		return &cloud.DeniedError{Err: err, Mend: "only EC2 instances can be terminated: have a policy Drain such nodes instead"}
	}
	if awshttp.IsBusy(err) {
		return fmt.Errorf("%w: %w", cloud.ErrBusy, err)
	}
	return err
}
