package awssetup

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	ebtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// Applied holds the URLs of the queues that Apply created or found.
type Applied struct {
	QueueURL      string `json:"queueURL,omitempty"`
	DeadLetterURL string `json:"deadLetterURL,omitempty"`
}

// ErrConflicts means that an existing object would have to change, and Lifeboat does
// not manage it.
var ErrConflicts = errors.New("existing objects with these names are not managed by `lifeboat aws`")

// targetID identifies Lifeboat's queue among the targets of each rule.
const targetID = "lifeboat-queue"

// isTargetID reports whether Lifeboat manages a target with this id.
func isTargetID(id string) bool { return id == targetID || id == topicTargetID }

// Apply observes the account, computes the difference to w and applies it. It is
// idempotent: it updates only objects that differ. Errors are those of [Observe],
// [Diff] and [Plan.Apply].
func Apply(ctx context.Context, clients Clients, w Wiring) (Applied, error) {
	observed, err := Observe(ctx, clients, w)
	if err != nil {
		return Applied{}, err
	}
	plan, err := Diff(w, observed, Options{})
	if err != nil {
		return Applied{}, err
	}
	return plan.Apply(ctx, clients, func(Change) {})
}

// Apply applies the changes in order, and calls done after each of them. If the plan
// has conflicts it changes nothing, and the error wraps [ErrConflicts]. It stops at
// the first failed call; that error wraps a [CallError]. A new plan then contains
// only the remaining changes.
func (p Plan) Apply(ctx context.Context, clients Clients, done func(Change)) (Applied, error) {
	if len(p.Conflicts) > 0 {
		c := p.Conflicts[0]
		return Applied{}, fmt.Errorf("%s %s: %s: %w", c.Kind, c.Name, c.Reason, ErrConflicts)
	}
	for _, c := range p.Changes {
		var err error
		switch c.Kind {
		case QueueObject:
			err = p.applyQueue(ctx, clients.SQS, c)
		case RuleObject:
			err = p.applyRule(ctx, clients.Events, c)
		case TopicObject:
			err = p.applyTopic(ctx, clients.SNS, c)
		case SubscriptionObject:
			err = p.applySubscription(ctx, clients.SNS, c)
		}
		if err != nil {
			return Applied{}, fmt.Errorf("%s %s: %w", c.Kind, c.Name, err)
		}
		done(c)
	}
	return Applied{QueueURL: p.urls[p.Wiring.Queue.Name], DeadLetterURL: p.urls[p.Wiring.DeadLetter.Name]}, nil
}

func (p Plan) applyQueue(ctx context.Context, client QueueWriter, c Change) error {
	attributes, tags := c.split()
	url := p.urls[c.Name]
	switch c.Action {
	case Create:
		for name, value := range attributes {
			if value == "" {
				delete(attributes, name) // a new queue has no attribute to remove
			}
		}
		// Set attributes and tags in the same call, so that the queue never exists
		// without them.
		created, err := client.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &c.Name, Attributes: attributes, Tags: tags})
		if err != nil {
			return callError("creating the queue", "sqs:CreateQueue", err)
		}
		p.urls[c.Name] = aws.ToString(created.QueueUrl)
	case Update:
		if len(attributes) > 0 {
			_, err := client.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: attributes})
			if err != nil {
				return callError("setting the queue's attributes", "sqs:SetQueueAttributes", err)
			}
		}
		if len(tags) > 0 {
			_, err := client.TagQueue(ctx, &sqs.TagQueueInput{QueueUrl: &url, Tags: tags})
			return callError("tagging the queue", "sqs:TagQueue", err)
		}
	case Delete:
		_, err := client.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: &url})
		if !isNoSuchQueue(err) {
			return callError("deleting the queue", "sqs:DeleteQueue", err)
		}
	}
	return nil
}

// split separates the fields of a change into settings and tags.
func (c Change) split() (settings, tags map[string]string) {
	settings, tags = map[string]string{}, map[string]string{}
	for _, f := range c.Fields {
		if key, ok := strings.CutPrefix(f.Name, fieldTag); ok {
			tags[key] = f.WillBe
		} else {
			settings[f.Name] = f.WillBe
		}
	}
	return settings, tags
}

func (p Plan) applyRule(ctx context.Context, client RuleWriter, c Change) error {
	if c.Action == Delete {
		return removeRule(ctx, client, c.Name, p.targets[c.Name])
	}
	settings, tags := c.split()
	putRule, putTarget := c.Action == Create, false
	for name := range settings {
		if strings.HasPrefix(name, fieldTarget) {
			putTarget = true
		} else {
			putRule = true
		}
	}
	if putRule {
		if err := p.putRule(ctx, client, c); err != nil {
			return err
		}
	}
	if putTarget {
		if err := p.putTarget(ctx, client, c.Name); err != nil {
			return err
		}
	}
	if arn, exists := p.arns[c.Name]; exists && len(tags) > 0 {
		_, err := client.TagResource(ctx, &eventbridge.TagResourceInput{ResourceARN: &arn, Tags: tagList(tags)})
		return callError("tagging the rule", "events:TagResource", err)
	}
	return nil
}

// putRule writes the whole rule: PutRule replaces everything except tags and targets.
func (p Plan) putRule(ctx context.Context, client RuleWriter, c Change) error {
	for _, r := range p.Wiring.Rules {
		if r.Name != c.Name {
			continue
		}
		in := &eventbridge.PutRuleInput{Name: &r.Name, EventPattern: &r.Pattern, State: ebtypes.RuleStateEnabled}
		if r.Description != "" {
			in.Description = &r.Description
		}
		if c.Action == Create {
			in.Tags = tagList(p.Wiring.RuleTags()) // PutRule ignores the tags of an existing rule
		}
		_, err := client.PutRule(ctx, in)
		return callError("writing the rule", "events:PutRule", err)
	}
	return errors.New("the rule is not part of the wiring")
}

func (p Plan) putTarget(ctx context.Context, client RuleWriter, rule string) error {
	t := p.Wiring.Target()
	target := ebtypes.Target{Id: &t.ID, Arn: &t.ARN}
	if t.DeadLetterARN != "" {
		target.DeadLetterConfig = &ebtypes.DeadLetterConfig{Arn: &t.DeadLetterARN}
	}
	out, err := client.PutTargets(ctx, &eventbridge.PutTargetsInput{Rule: &rule, Targets: []ebtypes.Target{target}})
	if err == nil && out.FailedEntryCount > 0 && len(out.FailedEntries) > 0 {
		failed := out.FailedEntries[0]
		err = fmt.Errorf("%s: %s", aws.ToString(failed.ErrorCode), aws.ToString(failed.ErrorMessage))
	}
	return callError("writing the rule's target", "events:PutTargets", err)
}

func tagList(tags map[string]string) []ebtypes.Tag {
	var out []ebtypes.Tag
	for key, value := range tags {
		out = append(out, ebtypes.Tag{Key: &key, Value: &value})
	}
	return out
}

// RemoveRules deletes rules and their targets. A missing rule is not an error.
func RemoveRules(ctx context.Context, events RuleRemover, rules []Rule) error {
	for _, r := range rules {
		if err := removeRule(ctx, events, r.Name, []string{targetID}); err != nil {
			return fmt.Errorf("rule %s: %w", r.Name, err)
		}
	}
	return nil
}

func removeRule(ctx context.Context, client RuleRemover, name string, targets []string) error {
	if len(targets) > 0 {
		out, err := client.RemoveTargets(ctx, &eventbridge.RemoveTargetsInput{Rule: &name, Ids: targets})
		if isNoSuchRule(err) {
			return nil
		}
		if err == nil {
			err = firstFailure(out.FailedEntries)
		}
		if err != nil {
			return callError("removing the rule's targets", "events:RemoveTargets", err)
		}
	}
	_, err := client.DeleteRule(ctx, &eventbridge.DeleteRuleInput{Name: &name})
	if isNoSuchRule(err) {
		return nil
	}
	return callError("deleting the rule", "events:DeleteRule", err)
}

// firstFailure returns the first failed entry as an error. It ignores targets that do
// not exist.
func firstFailure(entries []ebtypes.RemoveTargetsResultEntry) error {
	for _, failed := range entries {
		if code := aws.ToString(failed.ErrorCode); code != "ResourceNotFoundException" {
			return fmt.Errorf("%s: %s", code, aws.ToString(failed.ErrorMessage))
		}
	}
	return nil
}
