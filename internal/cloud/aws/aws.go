// Package aws implements package cloud for AWS: it describes and terminates EC2
// instances and completes lifecycle actions.
package aws

import (
	"context"
	"fmt"
	"time"

	awssdk "github.com/aws/aws-sdk-go-v2/aws"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/lifeboat-dev/lifeboat/internal/cloud"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
)

const (
	// permitTerminate is the IAM action that Terminate needs.
	permitTerminate = "ec2:TerminateInstances"
	// callTime is the timeout of one call; the SDK sets none.
	callTime = 10 * time.Second
)

var _ cloud.Cloud = (*Cloud)(nil)

// Cloud calls EC2. It stores function values instead of the SDK's client: with
// a client in an interface the linker keeps several hundred methods (30 MB).
type Cloud struct {
	terminate func(context.Context, *awsec2.TerminateInstancesInput, ...func(*awsec2.Options)) (*awsec2.TerminateInstancesOutput, error)
	describe  func(context.Context, *awsec2.DescribeInstancesInput, ...func(*awsec2.Options)) (*awsec2.DescribeInstancesOutput, error)
	requests  func(context.Context, *awsec2.DescribeSpotInstanceRequestsInput, ...func(*awsec2.Options)) (*awsec2.DescribeSpotInstanceRequestsOutput, error)
	batches   batcher
}

// New returns the Cloud for a configuration. AWS_ENDPOINT_URL_EC2 or
// AWS_ENDPOINT_URL override the endpoint, as for every AWS SDK. The SDK does
// not retry: the reconcile loop requeues instead of waiting.
func New(config awssdk.Config) *Cloud {
	client := awsec2.NewFromConfig(awshttp.WithTimeout(config, callTime), func(o *awsec2.Options) {
		o.Retryer = awssdk.NopRetryer{}
	})
	return &Cloud{terminate: client.TerminateInstances, describe: client.DescribeInstances, requests: client.DescribeSpotInstanceRequests}
}

// Terminate terminates an instance. It is idempotent: EC2 accepts a repeated
// call, and after about an hour it reports the instance as not found (EC2 User
// Guide, "Terminate Amazon EC2 instances").
func (c *Cloud) Terminate(ctx context.Context, instanceID string) error {
	_, err := c.terminate(ctx, &awsec2.TerminateInstancesInput{InstanceIds: []string{instanceID}})
	if err == nil || awshttp.Code(err) == "InvalidInstanceID.NotFound" {
		return nil
	}
	return fmt.Errorf("terminating instance %s: %w", instanceID, classify(err))
}

// MayTerminate checks with a dry run whether EC2 would terminate the instance
// (EC2 API Reference, TerminateInstances: DryRunOperation means yes).
func (c *Cloud) MayTerminate(ctx context.Context, instanceID string) error {
	_, err := c.terminate(ctx, &awsec2.TerminateInstancesInput{InstanceIds: []string{instanceID}, DryRun: new(true)})
	if err == nil || awshttp.Code(err) == "DryRunOperation" {
		return nil
	}
	return fmt.Errorf("checking whether instance %s may be terminated: %w", instanceID, classify(err))
}

// classify says whether a retry can help (EC2 API Reference, "Error codes").
func classify(err error) error {
	if awshttp.IsDenied(err) {
		return &cloud.DeniedError{Err: err, Fix: "allow " + permitTerminate + " for this instance: `lifeboat aws iam` prints " +
			"the policy, which covers instances with the tag kubernetes.io/cluster/NAME or eks:cluster-name of the cluster"}
	}
	switch awshttp.Code(err) {
	case "OperationNotPermitted":
		return &cloud.DeniedError{Err: err, Fix: "disable its termination protection (disableApiTermination), or terminate it by hand"}
	case "InvalidInstanceID.Malformed":
		return &cloud.DeniedError{Err: err, Fix: "only EC2 instances can be terminated: use a policy with the action Drain for such nodes"}
	}
	if awshttp.IsBusy(err) {
		return fmt.Errorf("%w: %w", cloud.ErrBusy, err)
	}
	return err
}
