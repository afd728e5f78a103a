package awssetup

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// QueueReader has the SQS calls that Observe makes. *sqs.Client implements it.
type QueueReader interface {
	GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
	ListQueueTags(context.Context, *sqs.ListQueueTagsInput, ...func(*sqs.Options)) (*sqs.ListQueueTagsOutput, error)
}

// QueueWriter has the other SQS calls that Apply makes. *sqs.Client implements it.
type QueueWriter interface {
	CreateQueue(context.Context, *sqs.CreateQueueInput, ...func(*sqs.Options)) (*sqs.CreateQueueOutput, error)
	SetQueueAttributes(context.Context, *sqs.SetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.SetQueueAttributesOutput, error)
	TagQueue(context.Context, *sqs.TagQueueInput, ...func(*sqs.Options)) (*sqs.TagQueueOutput, error)
	DeleteQueue(context.Context, *sqs.DeleteQueueInput, ...func(*sqs.Options)) (*sqs.DeleteQueueOutput, error)
}

// RuleReader has the EventBridge calls that Observe makes. *eventbridge.Client
// implements it.
type RuleReader interface {
	ListRules(context.Context, *eventbridge.ListRulesInput, ...func(*eventbridge.Options)) (*eventbridge.ListRulesOutput, error)
	ListTargetsByRule(context.Context, *eventbridge.ListTargetsByRuleInput, ...func(*eventbridge.Options)) (*eventbridge.ListTargetsByRuleOutput, error)
	ListTagsForResource(context.Context, *eventbridge.ListTagsForResourceInput, ...func(*eventbridge.Options)) (*eventbridge.ListTagsForResourceOutput, error)
}

// RuleRemover has the EventBridge calls that delete rules. *eventbridge.Client
// implements it.
type RuleRemover interface {
	RemoveTargets(context.Context, *eventbridge.RemoveTargetsInput, ...func(*eventbridge.Options)) (*eventbridge.RemoveTargetsOutput, error)
	DeleteRule(context.Context, *eventbridge.DeleteRuleInput, ...func(*eventbridge.Options)) (*eventbridge.DeleteRuleOutput, error)
}

// RuleWriter has the other EventBridge calls that Apply makes. *eventbridge.Client
// implements it.
type RuleWriter interface {
	RuleRemover
	PutRule(context.Context, *eventbridge.PutRuleInput, ...func(*eventbridge.Options)) (*eventbridge.PutRuleOutput, error)
	PutTargets(context.Context, *eventbridge.PutTargetsInput, ...func(*eventbridge.Options)) (*eventbridge.PutTargetsOutput, error)
	TagResource(context.Context, *eventbridge.TagResourceInput, ...func(*eventbridge.Options)) (*eventbridge.TagResourceOutput, error)
}

// Queues has all SQS calls of this package. *sqs.Client implements it.
type Queues interface {
	QueueReader
	QueueWriter
}

// Rules has all EventBridge calls of this package. *eventbridge.Client implements it.
type Rules interface {
	RuleReader
	RuleWriter
}

// TopicReader has the SNS calls that Observe makes. *sns.Client implements it.
type TopicReader interface {
	GetTopicAttributes(context.Context, *sns.GetTopicAttributesInput, ...func(*sns.Options)) (*sns.GetTopicAttributesOutput, error)
	ListTagsForResource(context.Context, *sns.ListTagsForResourceInput, ...func(*sns.Options)) (*sns.ListTagsForResourceOutput, error)
	ListSubscriptionsByTopic(context.Context, *sns.ListSubscriptionsByTopicInput, ...func(*sns.Options)) (*sns.ListSubscriptionsByTopicOutput, error)
	GetSubscriptionAttributes(context.Context, *sns.GetSubscriptionAttributesInput, ...func(*sns.Options)) (*sns.GetSubscriptionAttributesOutput, error)
}

// TopicChanger has the SNS calls that change topics. *sns.Client implements it.
type TopicChanger interface {
	CreateTopic(context.Context, *sns.CreateTopicInput, ...func(*sns.Options)) (*sns.CreateTopicOutput, error)
	SetTopicAttributes(context.Context, *sns.SetTopicAttributesInput, ...func(*sns.Options)) (*sns.SetTopicAttributesOutput, error)
	TagResource(context.Context, *sns.TagResourceInput, ...func(*sns.Options)) (*sns.TagResourceOutput, error)
	DeleteTopic(context.Context, *sns.DeleteTopicInput, ...func(*sns.Options)) (*sns.DeleteTopicOutput, error)
}

// TopicWriter has all SNS calls that Apply makes. *sns.Client implements it.
type TopicWriter interface {
	TopicChanger
	Subscribe(context.Context, *sns.SubscribeInput, ...func(*sns.Options)) (*sns.SubscribeOutput, error)
	SetSubscriptionAttributes(context.Context, *sns.SetSubscriptionAttributesInput, ...func(*sns.Options)) (*sns.SetSubscriptionAttributesOutput, error)
	Unsubscribe(context.Context, *sns.UnsubscribeInput, ...func(*sns.Options)) (*sns.UnsubscribeOutput, error)
}

// Topics has all SNS calls of this package. *sns.Client implements it.
type Topics interface {
	TopicReader
	TopicWriter
}

// Clients are the AWS clients that Observe and Apply need.
type Clients struct {
	SQS    Queues
	Events Rules
	SNS    Topics
}

// NewClients makes clients for an AWS configuration.
func NewClients(cfg aws.Config) Clients {
	return Clients{SQS: sqs.NewFromConfig(cfg), Events: eventbridge.NewFromConfig(cfg), SNS: sns.NewFromConfig(cfg)}
}

// CallError is a failed AWS call.
type CallError struct {
	// Doing describes the call, for example "creating the queue".
	Doing string
	// Permission is the IAM action that the call needs, for example sqs:CreateQueue.
	Permission string
	Err        error
}

// Error returns the description of the call and the cause.
func (e *CallError) Error() string { return fmt.Sprintf("%s: %v", e.Doing, e.Err) }

// Unwrap returns the cause.
func (e *CallError) Unwrap() error { return e.Err }

// callError wraps the error of a call. It returns nil if err is nil.
func callError(doing, permission string, err error) error {
	if err == nil {
		return nil
	}
	return &CallError{Doing: doing, Permission: permission, Err: err}
}
