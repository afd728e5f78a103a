package emulator_test

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/fis"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
)

// Each service's SDK reads the service's own errors.
func TestSDKsParseErrors(t *testing.T) {
	t.Parallel()
	server, url := emulatortest.Serve(t, emulator.Options{})
	if err := server.States.SQS.Create("q", nil, nil); err != nil {
		t.Fatal(err)
	}
	cfg := aws.Config{
		Region: server.Region(), BaseEndpoint: &url, RetryMaxAttempts: 1, HTTPClient: emulatortest.HTTPClient(t),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIATEST", SecretAccessKey: "secret"}, nil
		}),
	}
	queue := url + "/123456789012/q"
	notAllowed := func(action, on string) string {
		return "User: arn:aws:iam::123456789012:user/lifeboat is not authorized to perform: " + action + on +
			" because no identity-based policy allows the " + action + " action"
	}
	for _, tc := range []struct {
		service, action string
		call            func(ctx context.Context) error
		denied, message string
		throttled       string
	}{
		{"sqs", "ReceiveMessage", func(ctx context.Context) error {
			_, err := sqs.NewFromConfig(cfg).ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &queue})
			return err
		}, "AccessDenied", notAllowed("sqs:ReceiveMessage", " on resource: arn:aws:sqs:us-east-1:123456789012:q"), "RequestThrottled"},
		{"sqs", "GetQueueUrl", func(ctx context.Context) error {
			_, err := sqs.NewFromConfig(cfg).GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String("q")})
			return err
		}, "AccessDenied", notAllowed("sqs:GetQueueUrl", " on resource: arn:aws:sqs:us-east-1:123456789012:q"), "RequestThrottled"},
		{"ec2", "DescribeInstanceStatus", func(ctx context.Context) error {
			_, err := ec2.NewFromConfig(cfg).DescribeInstanceStatus(ctx, &ec2.DescribeInstanceStatusInput{DryRun: aws.Bool(false)})
			return err
		}, "UnauthorizedOperation", "You are not authorized to perform this operation. " + notAllowed("ec2:DescribeInstanceStatus", ""), "RequestLimitExceeded"},
		{"autoscaling", "DescribeAutoScalingInstances", func(ctx context.Context) error {
			_, err := autoscaling.NewFromConfig(cfg).DescribeAutoScalingInstances(ctx, &autoscaling.DescribeAutoScalingInstancesInput{})
			return err
		}, "AccessDenied", notAllowed("autoscaling:DescribeAutoScalingInstances", ""), "Throttling"},
		{"events", "ListRules", func(ctx context.Context) error {
			_, err := eventbridge.NewFromConfig(cfg).ListRules(ctx, &eventbridge.ListRulesInput{})
			return err
		}, "AccessDeniedException", notAllowed("events:ListRules", " on resource: arn:aws:events:us-east-1:123456789012:rule/*"), "ThrottlingException"},
		{"fis", "ListActions", func(ctx context.Context) error {
			_, err := fis.NewFromConfig(cfg).ListActions(ctx, &fis.ListActionsInput{})
			return err
		}, "AccessDeniedException", notAllowed("fis:ListActions", ""), "ThrottlingException"},
		{"sts", "GetCallerIdentity", func(ctx context.Context) error {
			_, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
			return err
		}, "AccessDenied", notAllowed("sts:GetCallerIdentity", ""), "Throttling"},
	} {
		t.Run(tc.action, func(t *testing.T) {
			var e smithy.APIError
			server.Gate.Deny(tc.service, tc.action)
			if err := tc.call(t.Context()); !errors.As(err, &e) || e.ErrorCode() != tc.denied || e.ErrorMessage() != tc.message {
				t.Errorf("denied: %v, want %s: %s", err, tc.denied, tc.message)
			}
			server.Gate.Throttle(tc.service, tc.action, 1)
			if err := tc.call(t.Context()); !errors.As(err, &e) || e.ErrorCode() != tc.throttled {
				t.Errorf("throttled: %v, want %s", err, tc.throttled)
			}
			if err := tc.call(t.Context()); err != nil {
				t.Errorf("after the one: %v", err)
			}
			server.Gate.Fail(tc.service, wire.AnyAction)
			var response interface{ HTTPStatusCode() int }
			if err := tc.call(t.Context()); !errors.As(err, &response) || response.HTTPStatusCode() != 503 {
				t.Errorf("down: %v, want status 503", err)
			}
			server.Gate.LiftAll()
		})
	}
}
