package wiring

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	ebtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Queues is what is needed of SQS; *sqs.Client has it.
type Queues interface {
	GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
	CreateQueue(context.Context, *sqs.CreateQueueInput, ...func(*sqs.Options)) (*sqs.CreateQueueOutput, error)
	SetQueueAttributes(context.Context, *sqs.SetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.SetQueueAttributesOutput, error)
}

// Rules is what is needed of EventBridge; *eventbridge.Client has it.
type Rules interface {
	PutRule(context.Context, *eventbridge.PutRuleInput, ...func(*eventbridge.Options)) (*eventbridge.PutRuleOutput, error)
	PutTargets(context.Context, *eventbridge.PutTargetsInput, ...func(*eventbridge.Options)) (*eventbridge.PutTargetsOutput, error)
	RemoveTargets(context.Context, *eventbridge.RemoveTargetsInput, ...func(*eventbridge.Options)) (*eventbridge.RemoveTargetsOutput, error)
	DeleteRule(context.Context, *eventbridge.DeleteRuleInput, ...func(*eventbridge.Options)) (*eventbridge.DeleteRuleOutput, error)
}

// Clients are the AWS clients that Apply needs.
type Clients struct {
	SQS    Queues
	Events Rules
}

// Applied is what the wiring came to.
type Applied struct {
	QueueURL      string
	DeadLetterURL string
}

// targetID names the queue among the targets of each rule.
const targetID = "lifeboat-queue"

// Apply makes the account as w wants it. It may be run again: what is there
// already is corrected where it differs and otherwise left alone.
func Apply(ctx context.Context, clients Clients, w Wiring) (Applied, error) {
	deadLetter, err := ensureQueue(ctx, clients.SQS, w, w.DeadLetter, w.DeadLetterARN())
	if err != nil {
		return Applied{}, err
	}
	queue, err := ensureQueue(ctx, clients.SQS, w, w.Queue, w.QueueARN())
	if err != nil {
		return Applied{}, err
	}
	for _, r := range w.Rules {
		if err := applyRule(ctx, clients.Events, w, r); err != nil {
			return Applied{}, fmt.Errorf("rule %s: %w", r.Name, err)
		}
	}
	return Applied{QueueURL: queue, DeadLetterURL: deadLetter}, nil
}

// RemoveRules takes rules and their targets away; those that are not there are
// fine.
func RemoveRules(ctx context.Context, events Rules, rules []Rule) error {
	for _, r := range rules {
		_, err := events.RemoveTargets(ctx, &eventbridge.RemoveTargetsInput{Rule: &r.Name, Ids: []string{targetID}})
		if isNoSuchRule(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("rule %s: removing its target: %w", r.Name, err)
		}
		if _, err := events.DeleteRule(ctx, &eventbridge.DeleteRuleInput{Name: &r.Name}); err != nil && !isNoSuchRule(err) {
			return fmt.Errorf("rule %s: deleting it: %w", r.Name, err)
		}
	}
	return nil
}

func isNoSuchRule(err error) bool {
	var missing *ebtypes.ResourceNotFoundException
	return errors.As(err, &missing)
}

// ensureQueue makes a queue with its attributes and returns its URL. Creating and
// setting are two calls because CreateQueue refuses to change a queue that is
// there with other attributes.
func ensureQueue(ctx context.Context, client Queues, w Wiring, q Queue, arn string) (string, error) {
	url, err := queueURL(ctx, client, q.Name)
	if err != nil {
		return "", fmt.Errorf("queue %s: %w", q.Name, err)
	}
	attributes, err := w.attributes(q, arn)
	if err != nil {
		return "", fmt.Errorf("queue %s: %w", q.Name, err)
	}
	if _, err := client.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: attributes}); err != nil {
		return "", fmt.Errorf("queue %s: setting its attributes: %w", q.Name, err)
	}
	return url, nil
}

func queueURL(ctx context.Context, client Queues, name string) (string, error) {
	got, err := client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name})
	if err == nil {
		return aws.ToString(got.QueueUrl), nil
	}
	var missing *sqstypes.QueueDoesNotExist
	if !errors.As(err, &missing) {
		return "", fmt.Errorf("looking it up: %w", err)
	}
	made, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name})
	if err != nil {
		return "", fmt.Errorf("creating it: %w", err)
	}
	return aws.ToString(made.QueueUrl), nil
}

func (w Wiring) attributes(q Queue, arn string) (map[string]string, error) {
	policy, err := w.queuePolicy(arn)
	if err != nil {
		return nil, err
	}
	out := map[string]string{
		string(sqstypes.QueueAttributeNamePolicy): policy,
		// With keys of SQS' own. The AWS managed KMS key cannot work: its policy
		// does not let EventBridge use it (EventBridge User Guide, Encrypting SQS
		// targets).
		string(sqstypes.QueueAttributeNameSqsManagedSseEnabled): "true",
	}
	seconds := func(attribute sqstypes.QueueAttributeName, d time.Duration) {
		if d > 0 {
			out[string(attribute)] = strconv.Itoa(int(d / time.Second))
		}
	}
	seconds(sqstypes.QueueAttributeNameMessageRetentionPeriod, q.Retention)
	seconds(sqstypes.QueueAttributeNameVisibilityTimeout, q.Visibility)
	seconds(sqstypes.QueueAttributeNameReceiveMessageWaitTimeSeconds, q.Wait)
	if q.MaxReceives > 0 {
		redrive, err := json.Marshal(map[string]any{"deadLetterTargetArn": w.DeadLetterARN(), "maxReceiveCount": q.MaxReceives})
		if err != nil {
			return nil, fmt.Errorf("encoding the redrive policy: %w", err)
		}
		out[string(sqstypes.QueueAttributeNameRedrivePolicy)] = string(redrive)
	}
	return out, nil
}

func applyRule(ctx context.Context, events Rules, w Wiring, r Rule) error {
	_, err := events.PutRule(ctx, &eventbridge.PutRuleInput{
		Name: &r.Name, Description: &r.Description, EventPattern: &r.Pattern, State: ebtypes.RuleStateEnabled,
	})
	if err != nil {
		return fmt.Errorf("putting it: %w", err)
	}
	out, err := events.PutTargets(ctx, &eventbridge.PutTargetsInput{
		Rule: &r.Name,
		Targets: []ebtypes.Target{{
			Id: aws.String(targetID), Arn: aws.String(w.QueueARN()),
			// What cannot be delivered is kept where a person can see it.
			DeadLetterConfig: &ebtypes.DeadLetterConfig{Arn: aws.String(w.DeadLetterARN())},
		}},
	})
	if err != nil {
		return fmt.Errorf("putting its target: %w", err)
	}
	if out.FailedEntryCount > 0 && len(out.FailedEntries) > 0 {
		failed := out.FailedEntries[0]
		return fmt.Errorf("putting its target: %s: %s", aws.ToString(failed.ErrorCode), aws.ToString(failed.ErrorMessage))
	}
	return nil
}
