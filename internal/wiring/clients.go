package wiring

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// QueueReader is what Observe needs of SQS; *sqs.Client has it.
type QueueReader interface {
	GetQueueUrl(context.Context, *sqs.GetQueueUrlInput, ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
	ListQueueTags(context.Context, *sqs.ListQueueTagsInput, ...func(*sqs.Options)) (*sqs.ListQueueTagsOutput, error)
}

// QueueWriter is what Apply needs of SQS besides; *sqs.Client has it.
type QueueWriter interface {
	CreateQueue(context.Context, *sqs.CreateQueueInput, ...func(*sqs.Options)) (*sqs.CreateQueueOutput, error)
	SetQueueAttributes(context.Context, *sqs.SetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.SetQueueAttributesOutput, error)
	TagQueue(context.Context, *sqs.TagQueueInput, ...func(*sqs.Options)) (*sqs.TagQueueOutput, error)
	DeleteQueue(context.Context, *sqs.DeleteQueueInput, ...func(*sqs.Options)) (*sqs.DeleteQueueOutput, error)
}

// RuleReader is what Observe needs of EventBridge; *eventbridge.Client has it.
type RuleReader interface {
	ListRules(context.Context, *eventbridge.ListRulesInput, ...func(*eventbridge.Options)) (*eventbridge.ListRulesOutput, error)
	ListTargetsByRule(context.Context, *eventbridge.ListTargetsByRuleInput, ...func(*eventbridge.Options)) (*eventbridge.ListTargetsByRuleOutput, error)
	ListTagsForResource(context.Context, *eventbridge.ListTagsForResourceInput, ...func(*eventbridge.Options)) (*eventbridge.ListTagsForResourceOutput, error)
}

// RuleRemover is what takes rules away; *eventbridge.Client has it.
type RuleRemover interface {
	RemoveTargets(context.Context, *eventbridge.RemoveTargetsInput, ...func(*eventbridge.Options)) (*eventbridge.RemoveTargetsOutput, error)
	DeleteRule(context.Context, *eventbridge.DeleteRuleInput, ...func(*eventbridge.Options)) (*eventbridge.DeleteRuleOutput, error)
}

// RuleWriter is what Apply needs of EventBridge besides; *eventbridge.Client has
// it.
type RuleWriter interface {
	RuleRemover
	PutRule(context.Context, *eventbridge.PutRuleInput, ...func(*eventbridge.Options)) (*eventbridge.PutRuleOutput, error)
	PutTargets(context.Context, *eventbridge.PutTargetsInput, ...func(*eventbridge.Options)) (*eventbridge.PutTargetsOutput, error)
	TagResource(context.Context, *eventbridge.TagResourceInput, ...func(*eventbridge.Options)) (*eventbridge.TagResourceOutput, error)
}

// Queues is what is needed of SQS; *sqs.Client has it.
type Queues interface {
	QueueReader
	QueueWriter
}

// Rules is what is needed of EventBridge; *eventbridge.Client has it.
type Rules interface {
	RuleReader
	RuleWriter
}

// Clients are the AWS clients that Observe and Apply need.
type Clients struct {
	SQS    Queues
	Events Rules
}

// CallError is a call to AWS that failed.
type CallError struct {
	// Doing is what was tried, such as "creating it".
	Doing string
	// Permission is the IAM action that the call needs, such as sqs:CreateQueue.
	Permission string
	Err        error
}

// Error says what was tried, and the cause.
func (e *CallError) Error() string { return fmt.Sprintf("%s: %v", e.Doing, e.Err) }

// Unwrap returns the cause.
func (e *CallError) Unwrap() error { return e.Err }

// called wraps the error of a call, if there is one.
func called(doing, permission string, err error) error {
	if err == nil {
		return nil
	}
	return &CallError{Doing: doing, Permission: permission, Err: err}
}
