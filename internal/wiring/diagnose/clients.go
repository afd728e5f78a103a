package diagnose

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lifeboat-dev/lifeboat/internal/wiring"
)

// Queues is what is needed of SQS to look at queues; *sqs.Client has it.
type Queues interface {
	GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
	ListQueueTags(context.Context, *sqs.ListQueueTagsInput, ...func(*sqs.Options)) (*sqs.ListQueueTagsOutput, error)
}

// Messages is what is needed of SQS to find out what a reader may do; *sqs.Client
// has it.
type Messages interface {
	DeleteMessage(context.Context, *sqs.DeleteMessageInput, ...func(*sqs.Options)) (*sqs.DeleteMessageOutput, error)
	ChangeMessageVisibility(context.Context, *sqs.ChangeMessageVisibilityInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error)
}

// Rules is what is needed of EventBridge; *eventbridge.Client has it.
type Rules interface {
	ListEventBuses(context.Context, *eventbridge.ListEventBusesInput, ...func(*eventbridge.Options)) (*eventbridge.ListEventBusesOutput, error)
	ListRules(context.Context, *eventbridge.ListRulesInput, ...func(*eventbridge.Options)) (*eventbridge.ListRulesOutput, error)
	ListRuleNamesByTarget(context.Context, *eventbridge.ListRuleNamesByTargetInput, ...func(*eventbridge.Options)) (*eventbridge.ListRuleNamesByTargetOutput, error)
	ListTargetsByRule(context.Context, *eventbridge.ListTargetsByRuleInput, ...func(*eventbridge.Options)) (*eventbridge.ListTargetsByRuleOutput, error)
}

// Engine is EventBridge's own pattern engine; *eventbridge.Client has it.
type Engine interface {
	TestEventPattern(context.Context, *eventbridge.TestEventPatternInput, ...func(*eventbridge.Options)) (*eventbridge.TestEventPatternOutput, error)
}

// Clients are the AWS clients that Look needs.
type Clients struct {
	Queues Queues
	Rules  Rules
	// Messages and Engine may be nil: permissions are not tried then, and
	// EventBridge is not asked about patterns.
	Messages Messages
	Engine   Engine
}

// NewClients takes everything from the two clients.
func NewClients(queues *sqs.Client, rules *eventbridge.Client) Clients {
	return Clients{Queues: queues, Rules: rules, Messages: queues, Engine: rules}
}

// Target is the wiring to look at.
type Target struct {
	// Want is the wiring that Lifeboat would make.
	Want wiring.Wiring
	// QueueURL is the queue, where it has another name than Want says.
	QueueURL string
	// Caller is the ARN of who looks; empty if not known.
	Caller string
	// Step is told what is being looked at; it may be nil.
	Step func(what string)
}

func (t Target) step(what string) {
	if t.Step != nil {
		t.Step(what)
	}
}
