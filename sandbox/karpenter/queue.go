package karpenter

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	ebtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// rules are those with which Karpenter's own installation fills its queue
// (Karpenter, reference/cloudformation, Interruption Handling).
var rules = []struct{ name, source, detailType string }{
	{"ScheduledChangeRule", "aws.health", "AWS Health Event"},
	{"SpotInterruptionRule", "aws.ec2", "EC2 Spot Instance Interruption Warning"},
	{"RebalanceRule", "aws.ec2", "EC2 Instance Rebalance Recommendation"},
	{"InstanceStateChangeRule", "aws.ec2", "EC2 Instance State-change Notification"},
	{"CapacityReservationInterruptionRule", "aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"},
}

// MakeQueue creates an interruption queue for Karpenter, as its own installation does, and returns
// its URL. It receives messages only after MakeRules.
func MakeQueue(ctx context.Context, config aws.Config, name string) (url string, err error) {
	made, err := sqs.NewFromConfig(config).CreateQueue(ctx, &sqs.CreateQueueInput{
		QueueName: &name, Attributes: map[string]string{"MessageRetentionPeriod": "300"},
	})
	if err != nil {
		return "", fmt.Errorf("making Karpenter's queue: %w", err)
	}
	return aws.ToString(made.QueueUrl), nil
}

// MakeRules creates the EventBridge rules that fill the queue at url: from then on Karpenter
// receives interruptions itself.
func MakeRules(ctx context.Context, config aws.Config, url string) error {
	arn, err := openQueue(ctx, sqs.NewFromConfig(config), url)
	if err != nil {
		return err
	}
	events := eventbridge.NewFromConfig(config)
	for _, r := range rules {
		pattern, err := json.Marshal(map[string][]string{"source": {r.source}, "detail-type": {r.detailType}})
		if err != nil {
			return fmt.Errorf("encoding Karpenter's rules: %w", err)
		}
		name := arn[strings.LastIndex(arn, ":")+1:] + "-" + r.name
		if err := putRule(ctx, events, name, string(pattern), arn); err != nil {
			return fmt.Errorf("making Karpenter's rule %s: %w", name, err)
		}
	}
	return nil
}

// openQueue lets EventBridge send to a queue, and returns its ARN.
func openQueue(ctx context.Context, queues *sqs.Client, url string) (arn string, err error) {
	got, err := queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &url, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameQueueArn},
	})
	if err != nil {
		return "", fmt.Errorf("finding Karpenter's queue: %w", err)
	}
	arn = got.Attributes[string(sqstypes.QueueAttributeNameQueueArn)]
	policy, err := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": []any{map[string]any{
		"Effect": "Allow", "Principal": map[string]any{"Service": []string{"events.amazonaws.com", "sqs.amazonaws.com"}},
		"Action": "sqs:SendMessage", "Resource": arn,
	}}})
	if err != nil {
		return "", fmt.Errorf("encoding the policy of Karpenter's queue: %w", err)
	}
	_, err = queues.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{
		QueueUrl: &url, Attributes: map[string]string{string(sqstypes.QueueAttributeNamePolicy): string(policy)},
	})
	if err != nil {
		return "", fmt.Errorf("letting EventBridge send to Karpenter's queue: %w", err)
	}
	return arn, nil
}

func putRule(ctx context.Context, events *eventbridge.Client, name, pattern, queue string) error {
	if _, err := events.PutRule(ctx, &eventbridge.PutRuleInput{Name: &name, EventPattern: &pattern}); err != nil {
		return err
	}
	put, err := events.PutTargets(ctx, &eventbridge.PutTargetsInput{
		Rule: &name, Targets: []ebtypes.Target{{Id: aws.String("KarpenterInterruptionQueueTarget"), Arn: &queue}},
	})
	if err == nil && put.FailedEntryCount > 0 {
		err = fmt.Errorf("%s: %s", aws.ToString(put.FailedEntries[0].ErrorCode), aws.ToString(put.FailedEntries[0].ErrorMessage))
	}
	return err
}
