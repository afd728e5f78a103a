package awssetup

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"
)

// ObservedTopic is an existing topic. ARN is empty if the topic does not exist.
type ObservedTopic struct {
	// Name is the topic that the cluster shares, or is to share; empty without one.
	Name string `json:"name,omitempty"`
	ARN  string `json:"arn,omitempty"`
	// Attributes have the names and the format of SNS.
	Attributes    map[string]string      `json:"attributes,omitempty"`
	Tags          map[string]string      `json:"tags,omitempty"`
	Subscriptions []ObservedSubscription `json:"subscriptions,omitempty"`
}

// ObservedSubscription is a subscription of a topic.
type ObservedSubscription struct {
	ARN      string `json:"arn"`
	Endpoint string `json:"endpoint"`
	// Attributes are those of the subscription of the cluster's own queue.
	Attributes map[string]string `json:"attributes,omitempty"`
}

// Exists reports whether the topic exists.
func (t ObservedTopic) Exists() bool { return t.ARN != "" }

func (t ObservedTopic) subscriptionOf(queueARN string) (ObservedSubscription, bool) {
	i := slices.IndexFunc(t.Subscriptions, func(s ObservedSubscription) bool { return s.Endpoint == queueARN })
	if i < 0 {
		return ObservedSubscription{}, false
	}
	return t.Subscriptions[i], true
}

func observeTopic(ctx context.Context, client TopicReader, w Wiring, name string) (ObservedTopic, error) {
	t := ObservedTopic{Name: name}
	if name == "" {
		return t, nil
	}
	arn := w.TopicARN(name)
	attributes, err := client.GetTopicAttributes(ctx, &sns.GetTopicAttributesInput{TopicArn: &arn})
	if isNoSuchTopic(err) {
		return t, nil
	}
	if err != nil {
		return ObservedTopic{}, callError("reading the topic's attributes", "sns:GetTopicAttributes", err)
	}
	tags, err := client.ListTagsForResource(ctx, &sns.ListTagsForResourceInput{ResourceArn: &arn})
	if isNoSuchTopic(err) {
		return t, nil // deleted between two calls
	}
	if err != nil {
		return ObservedTopic{}, callError("reading the topic's tags", "sns:ListTagsForResource", err)
	}
	t.ARN, t.Attributes, t.Tags = arn, attributes.Attributes, map[string]string{}
	for _, tag := range tags.Tags {
		t.Tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	t.Subscriptions, err = observeSubscriptions(ctx, client, w, arn)
	return t, err
}

func observeSubscriptions(ctx context.Context, client TopicReader, w Wiring, topic string) ([]ObservedSubscription, error) {
	var all []ObservedSubscription
	in := &sns.ListSubscriptionsByTopicInput{TopicArn: &topic}
	for {
		page, err := client.ListSubscriptionsByTopic(ctx, in)
		if isNoSuchTopic(err) {
			return nil, nil
		}
		if err != nil {
			return nil, callError("listing the topic's subscriptions", "sns:ListSubscriptionsByTopic", err)
		}
		for _, found := range page.Subscriptions {
			s := ObservedSubscription{ARN: aws.ToString(found.SubscriptionArn), Endpoint: aws.ToString(found.Endpoint)}
			if s.Endpoint == w.QueueARN() {
				out, err := client.GetSubscriptionAttributes(ctx, &sns.GetSubscriptionAttributesInput{SubscriptionArn: &s.ARN})
				if isNoSuchTopic(err) {
					continue // ended between two calls
				}
				if err != nil {
					return nil, callError("reading the subscription's attributes", "sns:GetSubscriptionAttributes", err)
				}
				s.Attributes = out.Attributes
			}
			all = append(all, s)
		}
		if page.NextToken == nil {
			return all, nil
		}
		in.NextToken = page.NextToken
	}
}

func isNoSuchTopic(err error) bool {
	var missing *snstypes.NotFoundException
	var untagged *snstypes.ResourceNotFoundException
	return errors.As(err, &missing) || errors.As(err, &untagged)
}
