package sns_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	ebtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/emulator/events"
)

const (
	topicARN = "arn:aws:sns:eu-west-1:210987654321:notices"
	queueARN = "arn:aws:sqs:eu-west-1:210987654321:"
)

// account is an emulated account with real clients.
type account struct {
	t      *testing.T
	server *emulator.Server
	sns    *sns.Client
	sqs    *sqs.Client
	events *eventbridge.Client
	iam    *iam.Client
	cfg    aws.Config
}

func newAccount(t *testing.T) *account {
	server, url := emulatortest.Serve(t, emulator.Options{Account: "210987654321", Region: "eu-west-1"})
	cfg := aws.Config{
		Region: "eu-west-1", BaseEndpoint: &url, HTTPClient: emulatortest.HTTPClient(t), RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIATEST", SecretAccessKey: "secret"}, nil
		}),
	}
	return &account{t, server, sns.NewFromConfig(cfg), sqs.NewFromConfig(cfg), eventbridge.NewFromConfig(cfg), iam.NewFromConfig(cfg), cfg}
}

// must is the result of a call that has to succeed.
func must[T any](a *account) func(out T, err error) T {
	return func(out T, err error) T {
		a.t.Helper()
		if err != nil {
			a.t.Fatal(err)
		}
		return out
	}
}

func code(err error) string {
	var api smithy.APIError
	if !errors.As(err, &api) {
		return fmt.Sprint(err)
	}
	return api.ErrorCode()
}

// queue creates a queue that SNS may send to, from the topic.
func (a *account) queue(name string) string {
	policy := fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"sns.amazonaws.com"},"Action":"sqs:SendMessage","Resource":%q,"Condition":{"ArnEquals":{"aws:SourceArn":%q}}}]}`, queueARN+name, topicARN)
	return *must[*sqs.CreateQueueOutput](a)(a.sqs.CreateQueue(a.t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: map[string]string{"Policy": policy}})).QueueUrl
}

// bodies receives the messages that are in a queue.
func (a *account) bodies(url string) []string {
	out := must[*sqs.ReceiveMessageOutput](a)(a.sqs.ReceiveMessage(a.t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10, WaitTimeSeconds: 0}))
	var all []string
	for _, m := range out.Messages {
		all = append(all, *m.Body)
	}
	return all
}

func (a *account) subscribe(queue string, attributes map[string]string) string {
	return *must[*sns.SubscribeOutput](a)(a.sns.Subscribe(a.t.Context(), &sns.SubscribeInput{
		TopicArn: aws.String(topicARN), Protocol: aws.String("sqs"), Endpoint: aws.String(queueARN + queue), Attributes: attributes, ReturnSubscriptionArn: true,
	})).SubscriptionArn
}

func (a *account) topic(attributes map[string]string) {
	out := must[*sns.CreateTopicOutput](a)(a.sns.CreateTopic(a.t.Context(), &sns.CreateTopicInput{
		Name: aws.String("notices"), Attributes: attributes, Tags: []snstypes.Tag{{Key: aws.String("team"), Value: aws.String("nodes")}},
	}))
	if *out.TopicArn != topicARN {
		a.t.Fatalf("topic %s", *out.TopicArn)
	}
}

func TestTopicsAndSubscriptions(t *testing.T) {
	a := newAccount(t)
	a.topic(map[string]string{"DisplayName": "Notices"})
	a.topic(map[string]string{"DisplayName": "Notices"}) // the same again
	_, err := a.sns.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String("notices"), Attributes: map[string]string{"DisplayName": "others"}})
	if got := code(err); got != "InvalidParameter" {
		t.Errorf("another topic of that name: %v", err)
	}
	a.queue("one")
	first := a.subscribe("one", map[string]string{"RawMessageDelivery": "true"})
	if again := a.subscribe("one", nil); again != first {
		t.Errorf("a second subscription %s beside %s", again, first)
	}
	_, err = a.sns.Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: aws.String(topicARN), Protocol: aws.String("sqs"), Endpoint: aws.String(queueARN + "one"), Attributes: map[string]string{"RawMessageDelivery": "false"}})
	if got := code(err); got != "InvalidParameter" {
		t.Errorf("other attributes: %v", err)
	}
	must[*sns.SetSubscriptionAttributesOutput](a)(a.sns.SetSubscriptionAttributes(t.Context(), &sns.SetSubscriptionAttributesInput{
		SubscriptionArn: &first, AttributeName: aws.String("RedrivePolicy"), AttributeValue: aws.String(`{"deadLetterTargetArn":"` + queueARN + `dead"}`),
	}))
	got := must[*sns.GetSubscriptionAttributesOutput](a)(a.sns.GetSubscriptionAttributes(t.Context(), &sns.GetSubscriptionAttributesInput{SubscriptionArn: &first})).Attributes
	if got["RawMessageDelivery"] != "true" || got["Endpoint"] != queueARN+"one" || !strings.Contains(got["RedrivePolicy"], "dead") {
		t.Errorf("attributes %v", got)
	}
	list := must[*sns.ListSubscriptionsByTopicOutput](a)(a.sns.ListSubscriptionsByTopic(t.Context(), &sns.ListSubscriptionsByTopicInput{TopicArn: aws.String(topicARN)}))
	if len(list.Subscriptions) != 1 || *list.Subscriptions[0].SubscriptionArn != first || *list.Subscriptions[0].Protocol != "sqs" {
		t.Errorf("subscriptions %v", list.Subscriptions)
	}
	topic := must[*sns.GetTopicAttributesOutput](a)(a.sns.GetTopicAttributes(t.Context(), &sns.GetTopicAttributesInput{TopicArn: aws.String(topicARN)})).Attributes
	if topic["SubscriptionsConfirmed"] != "1" || !strings.Contains(topic["Policy"], "__default_policy_ID") {
		t.Errorf("topic %v", topic)
	}
	must[*sns.TagResourceOutput](a)(a.sns.TagResource(t.Context(), &sns.TagResourceInput{ResourceArn: aws.String(topicARN), Tags: []snstypes.Tag{{Key: aws.String("a"), Value: aws.String("b")}}}))
	must[*sns.UntagResourceOutput](a)(a.sns.UntagResource(t.Context(), &sns.UntagResourceInput{ResourceArn: aws.String(topicARN), TagKeys: []string{"team"}}))
	tags := must[*sns.ListTagsForResourceOutput](a)(a.sns.ListTagsForResource(t.Context(), &sns.ListTagsForResourceInput{ResourceArn: aws.String(topicARN)})).Tags
	if len(tags) != 1 || *tags[0].Key != "a" {
		t.Errorf("tags %v", tags)
	}
	for range 2 { // both are idempotent
		must[*sns.UnsubscribeOutput](a)(a.sns.Unsubscribe(t.Context(), &sns.UnsubscribeInput{SubscriptionArn: &first}))
		must[*sns.DeleteTopicOutput](a)(a.sns.DeleteTopic(t.Context(), &sns.DeleteTopicInput{TopicArn: aws.String(topicARN)}))
	}
	var gone *snstypes.NotFoundException
	if _, err := a.sns.GetTopicAttributes(t.Context(), &sns.GetTopicAttributesInput{TopicArn: aws.String(topicARN)}); !errors.As(err, &gone) {
		t.Errorf("a deleted topic: %v", err)
	}
	if _, err := a.sns.GetSubscriptionAttributes(t.Context(), &sns.GetSubscriptionAttributesInput{SubscriptionArn: &first}); !errors.As(err, &gone) {
		t.Errorf("a deleted subscription: %v", err)
	}
	var missing *snstypes.ResourceNotFoundException
	if _, err := a.sns.ListTagsForResource(t.Context(), &sns.ListTagsForResourceInput{ResourceArn: aws.String(topicARN)}); !errors.As(err, &missing) {
		t.Errorf("tags of a deleted topic: %v", err)
	}
}

// A raw message is the message itself. Any other comes in SNS's envelope. What a queue refuses goes
// to the subscription's dead-letter queue.
func TestDelivery(t *testing.T) {
	a := newAccount(t)
	a.topic(nil)
	raw, wrapped, dead := a.queue("raw"), a.queue("wrapped"), a.queue("dead")
	a.subscribe("raw", map[string]string{"RawMessageDelivery": "true"})
	a.subscribe("wrapped", nil)
	a.subscribe("missing", map[string]string{"RawMessageDelivery": "true", "RedrivePolicy": `{"deadLetterTargetArn":"` + queueARN + `dead"}`})
	a.queue("filtered")
	a.subscribe("filtered", map[string]string{"FilterPolicy": `{"kind":["spot"]}`})
	must[*sns.PublishOutput](a)(a.sns.Publish(t.Context(), &sns.PublishInput{TopicArn: aws.String(topicARN), Message: aws.String(`{"a":1}`)}))
	if got := a.bodies(raw); !cmp.Equal(got, []string{`{"a":1}`}) {
		t.Errorf("raw: %q", got)
	}
	if got := a.bodies(dead); !cmp.Equal(got, []string{`{"a":1}`}) {
		t.Errorf("dead letters: %q", got)
	}
	var e struct{ Type, TopicArn, Message, MessageId, Timestamp, UnsubscribeURL string }
	got := a.bodies(wrapped)
	if len(got) != 1 || json.Unmarshal([]byte(got[0]), &e) != nil || e.Type != "Notification" || e.TopicArn != topicARN || e.Message != `{"a":1}` || e.MessageId == "" {
		t.Errorf("wrapped: %q", got)
	}
	if got := a.bodies(queueURL(raw, "filtered")); len(got) != 0 {
		t.Errorf("a message without attributes passed the filter: %q", got)
	}
}

func queueURL(other, name string) string { return other[:strings.LastIndex(other, "/")+1] + name }

// EventBridge may publish only if the topic's policy says so, without conditions.
func TestEventBridgePublishes(t *testing.T) {
	a := newAccount(t)
	a.topic(nil)
	url := a.queue("raw")
	a.subscribe("raw", map[string]string{"RawMessageDelivery": "true"})
	rule := must[*eventbridge.PutRuleOutput](a)(a.events.PutRule(t.Context(), &eventbridge.PutRuleInput{Name: aws.String("r"), EventPattern: aws.String(`{"source":["test"]}`)}))
	must[*eventbridge.PutTargetsOutput](a)(a.events.PutTargets(t.Context(), &eventbridge.PutTargetsInput{Rule: aws.String("r"), Targets: []ebtypes.Target{{Id: aws.String("topic"), Arn: aws.String(topicARN)}}}))
	allow := func(condition string) string {
		return `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},"Action":"sns:Publish","Resource":"` + topicARN + `"` + condition + `}]}`
	}
	for _, c := range []struct {
		name, attribute, value, failure string
	}{
		{"the default policy", "DisplayName", "x", "NO_PERMISSIONS"},
		{"a condition on the rule", "Policy", allow(`,"Condition":{"ArnEquals":{"aws:SourceArn":"` + *rule.RuleArn + `"}}`), "NO_PERMISSIONS"},
		{"a Deny for identities", "Policy", strings.Replace(allow(""), `[{`, `[{"Effect":"Deny","Principal":"*","Action":"sns:Publish","Resource":"`+topicARN+`","Condition":{"Bool":{"aws:PrincipalIsAWSService":"false"}}},{`, 1), ""},
		{"the key of AWS", "KmsMasterKeyId", "alias/aws/sns", "NO_PERMISSIONS"},
		{"no key", "KmsMasterKeyId", "", ""},
	} {
		must[*sns.SetTopicAttributesOutput](a)(a.sns.SetTopicAttributes(t.Context(), &sns.SetTopicAttributesInput{TopicArn: aws.String(topicARN), AttributeName: &c.attribute, AttributeValue: &c.value}))
		before := len(a.server.States.Events.Deliveries())
		must[*eventbridge.PutEventsOutput](a)(a.events.PutEvents(t.Context(), &eventbridge.PutEventsInput{Entries: []ebtypes.PutEventsRequestEntry{{Source: aws.String("test"), DetailType: aws.String("x"), Detail: aws.String("{}")}}}))
		d := a.delivery(before)
		if !strings.HasPrefix(d.Failure, c.failure) || c.failure == "" && d.Failure != "" {
			t.Errorf("%s: failure %q, want %q", c.name, d.Failure, c.failure)
		}
		if got := a.bodies(url); (len(got) == 1) != (c.failure == "") {
			t.Errorf("%s: messages %q", c.name, got)
		}
	}
	// The Deny keeps identities of the account from publishing.
	if _, err := a.sns.Publish(t.Context(), &sns.PublishInput{TopicArn: aws.String(topicARN), Message: aws.String("forged")}); code(err) != "AuthorizationError" {
		t.Errorf("an identity published: %v", err)
	}
}

// delivery waits for the delivery after the first n.
func (a *account) delivery(n int) events.Delivery {
	a.t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for ; ; <-tick.C {
		if all := a.server.States.Events.Deliveries(); len(all) > n {
			return all[n]
		}
		if a.t.Context().Err() != nil {
			a.t.Fatal("no delivery")
		}
	}
}
