package doctor

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
)

// Queues has the SQS calls that read queues. *sqs.Client implements it.
type Queues interface {
	GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
	ListQueueTags(context.Context, *sqs.ListQueueTagsInput, ...func(*sqs.Options)) (*sqs.ListQueueTagsOutput, error)
}

// Messages has the SQS calls that test a reader's permissions. *sqs.Client implements
// it.
type Messages interface {
	DeleteMessage(context.Context, *sqs.DeleteMessageInput, ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error)
	ChangeMessageVisibility(context.Context, *sqs.ChangeMessageVisibilityInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error)
}

// Rules has the EventBridge calls that read rules. *eventbridge.Client implements it.
type Rules interface {
	ListEventBuses(context.Context, *eventbridge.ListEventBusesInput, ...func(*eventbridge.Options)) (*eventbridge.ListEventBusesOutput, error)
	ListRules(context.Context, *eventbridge.ListRulesInput, ...func(*eventbridge.Options)) (*eventbridge.ListRulesOutput, error)
	ListRuleNamesByTarget(context.Context, *eventbridge.ListRuleNamesByTargetInput, ...func(*eventbridge.Options)) (*eventbridge.ListRuleNamesByTargetOutput, error)
	ListTargetsByRule(context.Context, *eventbridge.ListTargetsByRuleInput, ...func(*eventbridge.Options)) (*eventbridge.ListTargetsByRuleOutput, error)
}

// Engine is EventBridge's own pattern test. *eventbridge.Client implements it.
type Engine interface {
	TestEventPattern(context.Context, *eventbridge.TestEventPatternInput, ...func(*eventbridge.Options)) (*eventbridge.TestEventPatternOutput, error)
}

// Topics has the SNS calls that read topics. *sns.Client implements it.
type Topics interface {
	GetTopicAttributes(context.Context, *sns.GetTopicAttributesInput, ...func(*sns.Options)) (*sns.GetTopicAttributesOutput, error)
	ListSubscriptionsByTopic(context.Context, *sns.ListSubscriptionsByTopicInput, ...func(*sns.Options)) (*sns.ListSubscriptionsByTopicOutput, error)
	GetSubscriptionAttributes(context.Context, *sns.GetSubscriptionAttributesInput, ...func(*sns.Options)) (*sns.GetSubscriptionAttributesOutput, error)
}

// Clients are the AWS clients that ReadAccount needs.
type Clients struct {
	Queues Queues
	Rules  Rules
	// Topics may be nil. ReadAccount then does not read shared topics.
	Topics Topics
	// Messages and Engine may be nil. ReadAccount then does not test permissions or
	// patterns.
	Messages Messages
	Engine   Engine
}

// NewClients uses the two clients for all calls about queues and rules.
func NewClients(queues *sqs.Client, rules *eventbridge.Client) Clients {
	return Clients{Queues: queues, Rules: rules, Messages: queues, Engine: rules}
}

// ClientsFor makes clients for an AWS configuration.
func ClientsFor(cfg aws.Config) Clients {
	c := NewClients(sqs.NewFromConfig(cfg), eventbridge.NewFromConfig(cfg))
	c.Topics = sns.NewFromConfig(cfg)
	return c
}

// Target is the wiring to check.
type Target struct {
	// Desired is the wiring that Lifeboat would create.
	Desired awssetup.Wiring
	// QueueURL is the queue, if its name differs from that in Desired.
	QueueURL string
	// Caller is the ARN of the credentials; empty if unknown.
	Caller string
	// Step receives the current step of the check; it may be nil.
	Step func(what string)
}

func (t Target) report(what string) {
	if t.Step != nil {
		t.Step(what)
	}
}
