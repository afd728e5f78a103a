package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
)

// topicsOf returns the ARNs of the topics that should send to a queue: the one that its tag names, and
// those that its policy names.
func topicsOf(q snapshot.Queue, want awssetup.Wiring) []string {
	var all []string
	if name := q.Tags[awssetup.TagTopic]; name != "" {
		all = append(all, want.TopicARN(name))
	}
	return union(all, snapshot.TopicsIn(q.Policy))
}

// ownTopics returns the ARNs of the topics that should send to the queue.
func (l *accountReader) ownTopics() []string {
	q, _ := l.out.FindQueue(l.out.Queue)
	return topicsOf(q, l.target.Desired)
}

// isOfTopic reports whether a rule has the name of a rule of one of the topics.
func (l *accountReader) isOfTopic(rule string) bool {
	return slices.ContainsFunc(l.ownTopics(), func(arn string) bool {
		w, err := l.target.Desired.Shared(snapshot.Name(arn))
		return err == nil && slices.ContainsFunc(w.Rules, func(r awssetup.Rule) bool { return r.Name == rule })
	})
}

// readTopics reads the topics that should send to the queue, with the subscription of the queue.
func (l *accountReader) readTopics(ctx context.Context) error {
	if l.clients.Topics == nil {
		return nil
	}
	for _, arn := range l.ownTopics() {
		l.target.report("reading the topic " + snapshot.Name(arn))
		t, err := l.fetchTopic(ctx, arn)
		if err != nil {
			return err
		}
		l.out.Topics = append(l.out.Topics, t)
	}
	return nil
}

func (l *accountReader) fetchTopic(ctx context.Context, arn string) (snapshot.Topic, error) {
	t := snapshot.Topic{ARN: arn}
	object := "topic " + snapshot.Name(arn)
	out, err := l.clients.Topics.GetTopicAttributes(ctx, &sns.GetTopicAttributesInput{TopicArn: &arn})
	if isTopicMissing(err) {
		t.Missing = true
		return t, nil
	}
	denied, err := l.recordCall("sns:GetTopicAttributes", object, err)
	if err != nil {
		return t, err
	}
	if !denied {
		t.Known, t.Policy, t.KMSKey = true, out.Attributes["Policy"], out.Attributes["KmsMasterKeyId"]
	}
	in := &sns.ListSubscriptionsByTopicInput{TopicArn: &arn}
	for {
		page, err := l.clients.Topics.ListSubscriptionsByTopic(ctx, in)
		if isTopicMissing(err) {
			t.Missing = true
			return t, nil
		}
		if denied, err := l.recordCall("sns:ListSubscriptionsByTopic", object, err); err != nil || denied {
			return t, err
		}
		for _, found := range page.Subscriptions {
			s, err := l.fetchSubscription(ctx, found)
			if err != nil {
				return t, err
			}
			t.Subscriptions = append(t.Subscriptions, s)
		}
		if aws.ToString(page.NextToken) == "" {
			t.SubscriptionsKnown = true
			return t, nil
		}
		in.NextToken = page.NextToken
	}
}

// pending is in place of the ARN of a subscription that is not confirmed (Amazon SNS API Reference,
// Subscribe).
const pending = "PendingConfirmation"

// fetchSubscription reads a subscription. Those of other queues have only their endpoint.
func (l *accountReader) fetchSubscription(ctx context.Context, found snstypes.Subscription) (snapshot.Subscription, error) {
	s := snapshot.Subscription{ARN: aws.ToString(found.SubscriptionArn), Endpoint: aws.ToString(found.Endpoint)}
	s.Pending = s.ARN == pending
	if s.Endpoint != l.out.Queue || s.Pending {
		return s, nil
	}
	out, err := l.clients.Topics.GetSubscriptionAttributes(ctx, &sns.GetSubscriptionAttributesInput{SubscriptionArn: &s.ARN})
	if isTopicMissing(err) {
		return s, nil // ended between two calls
	}
	if denied, err := l.recordCall("sns:GetSubscriptionAttributes", "the subscription of queue "+snapshot.Name(s.Endpoint), err); err != nil || denied {
		return s, err
	}
	var redrive struct {
		Target string `json:"deadLetterTargetArn"`
	}
	if text := out.Attributes["RedrivePolicy"]; text != "" && json.Unmarshal([]byte(text), &redrive) == nil {
		s.DeadLetterARN = redrive.Target
	}
	s.Filter = out.Attributes["FilterPolicy"]
	return s, nil
}

func isTopicMissing(err error) bool {
	var missing *snstypes.NotFoundException
	return errors.As(err, &missing)
}
