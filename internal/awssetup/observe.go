package awssetup

import (
	"cmp"
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

// Observed holds the existing resources of a cluster's wiring.
type Observed struct {
	Queue      ObservedQueue `json:"queue"`
	DeadLetter ObservedQueue `json:"deadLetter"`
	// Rules are the rules on the default bus with a desired name or with the tag of the
	// cluster or of the topic, sorted by name.
	Rules []ObservedRule `json:"rules"`
	// Topic is the shared topic: that of the wiring, or else the one that the queue's tag names.
	Topic ObservedTopic `json:"topic,omitzero"`
}

// ObservedQueue is an existing queue. URL is empty if the queue does not exist.
type ObservedQueue struct {
	URL string `json:"url,omitempty"`
	// Attributes have the names and the format of SQS.
	Attributes map[string]string `json:"attributes,omitempty"`
	Tags       map[string]string `json:"tags,omitempty"`
}

// Exists reports whether the queue exists.
func (q ObservedQueue) Exists() bool { return q.URL != "" }

// Messages returns the approximate number of messages, including those in flight and
// delayed.
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

// ObservedRule is an existing rule.
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

// Target is an existing or desired target of a rule.
type Target struct {
	ID            string `json:"id"`
	ARN           string `json:"arn"`
	DeadLetterARN string `json:"deadLetterARN,omitempty"`
	// Input, InputPath and InputTemplate replace the event by other text.
	Input         string `json:"input,omitempty"`
	InputPath     string `json:"inputPath,omitempty"`
	InputTemplate string `json:"inputTemplate,omitempty"`
	// Retry describes the target's retry policy; empty for EventBridge's default.
	Retry string `json:"retry,omitempty"`
}

// Observe reads the existing resources of the wiring. It changes nothing. Errors wrap
// a [CallError].
func Observe(ctx context.Context, clients Clients, w Wiring) (Observed, error) {
	var o Observed
	var err error
	if o.Queue, err = observeQueue(ctx, clients.SQS, w.Queue.Name); err != nil {
		return Observed{}, fmt.Errorf("queue %s: %w", w.Queue.Name, err)
	}
	if o.DeadLetter, err = observeQueue(ctx, clients.SQS, w.DeadLetter.Name); err != nil {
		return Observed{}, fmt.Errorf("queue %s: %w", w.DeadLetter.Name, err)
	}
	topic := cmp.Or(w.Topic, sharedBy(o.Queue.Tags))
	if o.Topic, err = observeTopic(ctx, clients.SNS, w, topic); err != nil {
		return Observed{}, fmt.Errorf("topic %s: %w", topic, err)
	}
	if o.Rules, err = observeRules(ctx, clients.Events, w, topic); err != nil {
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
		return ObservedQueue{}, callError("getting the queue's URL", "sqs:GetQueueUrl", err)
	}
	q := ObservedQueue{URL: aws.ToString(found.QueueUrl)}
	attributes, err := client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &q.URL, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameAll},
	})
	if isNoSuchQueue(err) {
		return ObservedQueue{}, nil // deleted between two calls
	}
	if err != nil {
		return ObservedQueue{}, callError("reading the queue's attributes", "sqs:GetQueueAttributes", err)
	}
	tags, err := client.ListQueueTags(ctx, &sqs.ListQueueTagsInput{QueueUrl: &q.URL})
	if err != nil {
		return ObservedQueue{}, callError("reading the queue's tags", "sqs:ListQueueTags", err)
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

// observeRules reads the desired rules, and obsolete rules of the cluster. Names of
// other clusters' rules can have the same prefix; the tags distinguish them.
func observeRules(ctx context.Context, client RuleReader, w Wiring, topic string) ([]ObservedRule, error) {
	desired := map[string]bool{}
	for _, r := range w.Rules {
		desired[r.Name] = true
	}
	listed, err := listOwnRules(ctx, client, w, topic)
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
			continue // deleted between two calls
		}
		if err != nil {
			return nil, fmt.Errorf("rule %s: %w", r.Name, callError("reading the rule's tags", "events:ListTagsForResource", err))
		}
		r.Tags = tagMap(tags.Tags)
		ours := r.Tags[TagCluster] == w.Cluster || topic != "" && r.Tags[TagTopic] == topic
		if !desired[r.Name] && !ours || slices.ContainsFunc(out, func(o ObservedRule) bool { return o.Name == r.Name }) {
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

// listOwnRules lists the rules with the prefix of the cluster, and those with that of the topic.
func listOwnRules(ctx context.Context, client RuleReader, w Wiring, topic string) ([]ebtypes.Rule, error) {
	listed, err := listRules(ctx, client, RulePrefix(w.Cluster))
	if err != nil || topic == "" {
		return listed, err
	}
	shared, err := listRules(ctx, client, topicRuleName(topic, ""))
	return append(listed, shared...), err
}

func listRules(ctx context.Context, client RuleReader, prefix string) ([]ebtypes.Rule, error) {
	var all []ebtypes.Rule
	in := &eventbridge.ListRulesInput{NamePrefix: &prefix}
	for {
		page, err := client.ListRules(ctx, in)
		if err != nil {
			return nil, callError("listing EventBridge rules", "events:ListRules", err)
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
			return nil, callError("listing the rule's targets", "events:ListTargetsByRule", err)
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
		var parts []string
		if p.MaximumRetryAttempts != nil {
			parts = append(parts, fmt.Sprintf("%d attempts", *p.MaximumRetryAttempts))
		}
		if p.MaximumEventAgeInSeconds != nil {
			parts = append(parts, fmt.Sprintf("%d s", *p.MaximumEventAgeInSeconds))
		}
		out.Retry = strings.Join(parts, ", ")
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
