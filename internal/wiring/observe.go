package wiring

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	ebtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Observed is what there is of a cluster's wiring.
type Observed struct {
	Queue      ObservedQueue `json:"queue"`
	DeadLetter ObservedQueue `json:"deadLetter"`
	// Rules are those on the default bus that have a wanted name or the cluster's
	// tag, by name.
	Rules []ObservedRule `json:"rules"`
}

// ObservedQueue is a queue as it is. Without URL it is not there.
type ObservedQueue struct {
	URL string `json:"url,omitempty"`
	// Attributes are as SQS names and writes them.
	Attributes map[string]string `json:"attributes,omitempty"`
	Tags       map[string]string `json:"tags,omitempty"`
}

// Exists reports whether the queue is there.
func (q ObservedQueue) Exists() bool { return q.URL != "" }

// Messages is about how many messages are in the queue, in flight and delayed ones
// among them.
func (q ObservedQueue) Messages() int {
	total := 0
	for _, name := range []sqstypes.QueueAttributeName{
		sqstypes.QueueAttributeNameApproximateNumberOfMessages,
		sqstypes.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
		sqstypes.QueueAttributeNameApproximateNumberOfMessagesDelayed,
	} {
		n, err := strconv.Atoi(q.Attributes[string(name)])
		if err == nil {
			total += n
		}
	}
	return total
}

// ObservedRule is a rule as it is.
type ObservedRule struct {
	Name        string            `json:"name"`
	ARN         string            `json:"arn"`
	Description string            `json:"description,omitempty"`
	Pattern     string            `json:"pattern,omitempty"`
	Schedule    string            `json:"schedule,omitempty"`
	State       string            `json:"state"`
	Targets     []Target          `json:"targets,omitempty"`
	Tags        map[string]string `json:"tags,omitempty"`
}

// Target is a target of a rule, as it is or is wanted.
type Target struct {
	ID            string `json:"id"`
	ARN           string `json:"arn"`
	DeadLetterARN string `json:"deadLetterARN,omitempty"`
	// Input, InputPath and InputTemplate replace the event by something else.
	Input         string `json:"input,omitempty"`
	InputPath     string `json:"inputPath,omitempty"`
	InputTemplate string `json:"inputTemplate,omitempty"`
	// Retry describes a retry policy of its own; empty is EventBridge's.
	Retry string `json:"retry,omitempty"`
}

// Observe reads what there is of the wiring. It changes nothing. Errors wrap a
// [CallError].
func Observe(ctx context.Context, queues QueueReader, rules RuleReader, w Wiring) (Observed, error) {
	var o Observed
	var err error
	if o.Queue, err = observeQueue(ctx, queues, w.Queue.Name); err != nil {
		return Observed{}, fmt.Errorf("queue %s: %w", w.Queue.Name, err)
	}
	if o.DeadLetter, err = observeQueue(ctx, queues, w.DeadLetter.Name); err != nil {
		return Observed{}, fmt.Errorf("queue %s: %w", w.DeadLetter.Name, err)
	}
	if o.Rules, err = observeRules(ctx, rules, w); err != nil {
		return Observed{}, err
	}
	return o, nil
}

func observeQueue(ctx context.Context, client QueueReader, name string) (ObservedQueue, error) {
	found, err := client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &name})
	if isNoSuchQueue(err) {
		return ObservedQueue{}, nil
	}
	if err != nil {
		return ObservedQueue{}, called("looking it up", "sqs:GetQueueUrl", err)
	}
	q := ObservedQueue{URL: aws.ToString(found.QueueUrl)}
	attributes, err := client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &q.URL, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameAll},
	})
	if isNoSuchQueue(err) {
		return ObservedQueue{}, nil // deleted a moment ago
	}
	if err != nil {
		return ObservedQueue{}, called("reading its attributes", "sqs:GetQueueAttributes", err)
	}
	tags, err := client.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: &q.URL})
	if err != nil {
		return ObservedQueue{}, called("reading its tags", "sqs:ListQueueTags", err)
	}
	q.Attributes, q.Tags = attributes.Attributes, tags.Tags
	return q, nil
}

func isNoSuchQueue(err error) bool {
	var missing *sqstypes.QueueDoesNotExist
	return errors.As(err, &missing)
}

func isNoSuchRule(err error) bool {
	var missing *ebtypes.ResourceNotFoundException
	return errors.As(err, &missing)
}

// observeRules reads the wanted rules, and those of the cluster that are not
// wanted any more. Other clusters' rules may begin alike; their tags tell.
func observeRules(ctx context.Context, client RuleReader, w Wiring) ([]ObservedRule, error) {
	wanted := map[string]bool{}
	for _, r := range w.Rules {
		wanted[r.Name] = true
	}
	listed, err := listRules(ctx, client, RulePrefix(w.Cluster))
	if err != nil {
		return nil, err
	}
	var out []ObservedRule
	for _, found := range listed {
		r := ObservedRule{
			Name: aws.ToString(found.Name), ARN: aws.ToString(found.Arn), Description: aws.ToString(found.Description),
			Pattern: aws.ToString(found.EventPattern), Schedule: aws.ToString(found.ScheduleExpression), State: string(found.State),
		}
		tags, err := client.ListTagsForResource(ctx, &eventbridge.ListTagsForResourceInput{ResourceARN: &r.ARN})
		if isNoSuchRule(err) {
			continue // deleted a moment ago
		}
		if err != nil {
			return nil, fmt.Errorf("rule %s: %w", r.Name, called("reading its tags", "events:ListTagsForResource", err))
		}
		r.Tags = tagMap(tags.Tags)
		if !wanted[r.Name] && r.Tags[TagCluster] != w.Cluster {
			continue
		}
		r.Targets, err = listTargets(ctx, client, r.Name)
		if isNoSuchRule(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("rule %s: %w", r.Name, err)
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b ObservedRule) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

func listRules(ctx context.Context, client RuleReader, prefix string) ([]ebtypes.Rule, error) {
	var all []ebtypes.Rule
	in := &eventbridge.ListRulesInput{NamePrefix: &prefix}
	for {
		page, err := client.ListRules(ctx, in)
		if err != nil {
			return nil, called("listing EventBridge rules", "events:ListRules", err)
		}
		all = append(all, page.Rules...)
		if page.NextToken == nil {
			return all, nil
		}
		in.NextToken = page.NextToken
	}
}

func listTargets(ctx context.Context, client RuleReader, rule string) ([]Target, error) {
	var all []Target
	in := &eventbridge.ListTargetsByRuleInput{Rule: &rule}
	for {
		page, err := client.ListTargetsByRule(ctx, in)
		if err != nil {
			return nil, called("listing its targets", "events:ListTargetsByRule", err)
		}
		for _, t := range page.Targets {
			all = append(all, observedTarget(t))
		}
		if page.NextToken == nil {
			return all, nil
		}
		in.NextToken = page.NextToken
	}
}

func observedTarget(t ebtypes.Target) Target {
	out := Target{
		ID: aws.ToString(t.Id), ARN: aws.ToString(t.Arn),
		Input: aws.ToString(t.Input), InputPath: aws.ToString(t.InputPath),
	}
	if t.DeadLetterConfig != nil {
		out.DeadLetterARN = aws.ToString(t.DeadLetterConfig.Arn)
	}
	if t.InputTransformer != nil {
		out.InputTemplate = aws.ToString(t.InputTransformer.InputTemplate)
	}
	if p := t.RetryPolicy; p != nil {
		var said []string
		if p.MaximumRetryAttempts != nil {
			said = append(said, fmt.Sprintf("%d attempts", *p.MaximumRetryAttempts))
		}
		if p.MaximumEventAgeInSeconds != nil {
			said = append(said, fmt.Sprintf("%d s", *p.MaximumEventAgeInSeconds))
		}
		out.Retry = strings.Join(said, ", ")
	}
	return out
}

func tagMap(tags []ebtypes.Tag) map[string]string {
	out := map[string]string{}
	for _, t := range tags {
		out[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return out
}
