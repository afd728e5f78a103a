package awssetup

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"
)

func (p Plan) applyTopic(ctx context.Context, client TopicWriter, c Change) error {
	attributes, tags := c.split()
	arn := p.Wiring.TopicARN(c.Name)
	switch c.Action {
	case Create:
		// Set the policy and the tags in the same call, so that the topic never exists without them.
		_, err := client.CreateTopic(ctx, &sns.CreateTopicInput{Name: &c.Name, Attributes: attributes, Tags: topicTags(tags)})
		return callError("creating the topic", "sns:CreateTopic", err)
	case Update:
		for _, name := range slices.Sorted(maps.Keys(attributes)) {
			_, err := client.SetTopicAttributes(ctx, &sns.SetTopicAttributesInput{TopicArn: &arn, AttributeName: &name, AttributeValue: aws.String(attributes[name])})
			if err != nil {
				return callError("setting the topic's attributes", "sns:SetTopicAttributes", err)
			}
		}
		if len(tags) > 0 {
			_, err := client.TagResource(ctx, &sns.TagResourceInput{ResourceArn: &arn, Tags: topicTags(tags)})
			return callError("tagging the topic", "sns:TagResource", err)
		}
	case Delete:
		_, err := client.DeleteTopic(ctx, &sns.DeleteTopicInput{TopicArn: &arn})
		return callError("deleting the topic", "sns:DeleteTopic", err)
	}
	return nil
}

func topicTags(tags map[string]string) []snstypes.Tag {
	var out []snstypes.Tag
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, snstypes.Tag{Key: &key, Value: aws.String(tags[key])})
	}
	return out
}

func (p Plan) applySubscription(ctx context.Context, client TopicWriter, c Change) error {
	attributes, _ := c.split()
	switch c.Action {
	case Create:
		_, err := client.Subscribe(ctx, &sns.SubscribeInput{
			TopicArn: aws.String(p.Wiring.TopicARN(p.Wiring.Topic)), Protocol: aws.String("sqs"), Endpoint: aws.String(p.Wiring.QueueARN()), Attributes: attributes,
		})
		return callError("subscribing the queue", "sns:Subscribe", err)
	case Update:
		for _, name := range slices.Sorted(maps.Keys(attributes)) {
			_, err := client.SetSubscriptionAttributes(ctx, &sns.SetSubscriptionAttributesInput{
				SubscriptionArn: &p.subscribed, AttributeName: &name, AttributeValue: aws.String(attributes[name]),
			})
			if err != nil {
				return callError("setting the subscription's attributes", "sns:SetSubscriptionAttributes", err)
			}
		}
	case Delete:
		_, err := client.Unsubscribe(ctx, &sns.UnsubscribeInput{SubscriptionArn: &p.subscribed})
		return callError("ending the subscription", "sns:Unsubscribe", err)
	}
	return nil
}
