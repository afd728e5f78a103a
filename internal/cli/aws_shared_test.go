package cli

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	emulatedsqs "github.com/lifeboat-dev/lifeboat/emulator/sqs"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
	"github.com/lifeboat-dev/lifeboat/internal/testkit/timelimit"
)

// awsFor runs an aws command for a cluster.
func (e *awsAccount) awsFor(cluster string, args ...string) result {
	e.t.Helper()
	return e.run(e.t.Context(), append(append([]string{"aws"}, args...), "--sandbox=default", "--cluster", cluster)...)
}

// publish publishes to a topic as an identity of the account.
func (e *awsAccount) publish(topic string) error {
	client := sns.New(sns.Options{Region: e.server.Region(), BaseEndpoint: &e.url, Credentials: awshttp.StaticCredentials("AKIAEXAMPLE", "x")})
	_, err := client.Publish(e.t.Context(), &sns.PublishInput{TopicArn: &topic, Message: aws.String("b")})
	return err
}

const sharedTopic = "lifeboat-shared"

var sharedRules = []string{"lifeboat-shared-autoscaling", "lifeboat-shared-ec2", "lifeboat-shared-health"}

// emits puts an event on the bus, and returns whether each queue receives it as it is.
func (e *awsAccount) emits(clusters ...string) []bool {
	e.t.Helper()
	out, err := e.rules.PutEvents(e.t.Context(), &eventbridge.PutEventsInput{Entries: []types.PutEventsRequestEntry{{
		Source: aws.String("lifeboat.dev"), DetailType: aws.String("EC2 Spot Instance Interruption Warning"), Detail: aws.String(`{"x":1}`),
	}}})
	if err != nil {
		e.t.Fatal(err)
	}
	id := aws.ToString(out.Entries[0].EventId)
	timelimit.Until(e.t, "the delivery", 10*time.Second, 1, func(context.Context) (bool, error) {
		for _, d := range e.server.States.Events.Deliveries() {
			if d.EventID == id {
				return true, nil
			}
		}
		return false, nil
	})
	var got []bool
	for _, cluster := range clusters {
		url := e.url + "/" + e.server.Account() + "/" + awssetup.QueueName(cluster)
		out, err := e.queues.ReceiveMessage(e.t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10, WaitTimeSeconds: 1})
		if err != nil {
			e.t.Fatal(err)
		}
		got = append(got, slices.ContainsFunc(out.Messages, func(m sqstypes.Message) bool {
			return strings.HasPrefix(*m.Body, `{"version"`) && strings.Contains(*m.Body, id)
		}))
	}
	return got
}

// TestAWSSharesTopic gives two clusters one topic with three rules. The last cluster that leaves
// deletes them.
func TestAWSSharesTopic(t *testing.T) {
	t.Parallel()
	e := newAWSAccount(t)
	e.want(e.awsFor("a", "setup", "--shared-topic", sharedTopic, "--yes"), 0)
	plan := e.awsFor("b", "plan", "--shared-topic", sharedTopic)
	e.want(plan, ExitChanges)
	if strings.Contains(plan.out, "rule ") || strings.Contains(plan.out, "+ topic") || !strings.Contains(plan.out, "+ subscription lifeboat-b to lifeboat-shared") {
		t.Errorf("the second cluster needs only its queues and a subscription:\n%s", plan.out)
	}
	e.want(e.awsFor("b", "setup", "--shared-topic", sharedTopic, "--yes"), 0)
	if got := e.ruleNames(); !slices.Equal(got, sharedRules) {
		t.Errorf("rules %v", got)
	}
	for _, cluster := range []string{"a", "b"} { // without the flag, the queue's tag names the topic
		e.want(e.awsFor(cluster, "plan"), 0)
	}
	if got := e.emits("a", "b"); !slices.Equal(got, []bool{true, true}) {
		t.Errorf("received: %v", got)
	}
	e.want(e.awsFor("a", "plan", "--shared-topic", "another"), 2)

	destroyed := e.awsFor("a", "destroy", "--yes")
	e.want(destroyed, 0)
	if !strings.Contains(destroyed.out, "topic lifeboat-shared and its rules stay: 1 other subscription") {
		t.Errorf("destroy says:\n%s", destroyed.out)
	}
	e.want(e.awsFor("b", "plan"), 0)
	if got := e.emits("b"); !got[0] {
		t.Error("the other cluster receives nothing any more")
	}
	e.want(e.awsFor("b", "destroy", "--yes"), 0)
	if got, topics := e.ruleNames(), e.server.States.SNS.Topics(); len(got)+len(topics) > 0 {
		t.Errorf("destroy leaves %v and %v", got, topics)
	}
}

// TestAWSMovesToTopicAndBack replaces a cluster's own rules by a topic, and back. Notices arrive in
// each form.
func TestAWSMovesToTopicAndBack(t *testing.T) {
	t.Parallel()
	e := newAWSAccount(t)
	e.want(e.awsFor("a", "setup", "--yes"), 0)
	own := e.ruleNames()
	for _, step := range []struct {
		flag   string
		rules  []string
		topics int
	}{{"--shared-topic=" + sharedTopic, sharedRules, 1}, {"--shared-topic=", own, 0}} {
		e.want(e.awsFor("a", "setup", step.flag, "--yes"), 0)
		if got := e.emits("a"); !got[0] {
			t.Errorf("%s: no notice", step.flag)
		}
		e.want(e.awsFor("a", "setup", "--yes"), 0) // the queue's policy forgets the other form
		e.want(e.awsFor("a", "plan"), 0)
		if got := e.ruleNames(); !slices.Equal(got, step.rules) || len(e.server.States.SNS.Topics()) != step.topics {
			t.Errorf("%s: rules %v, topics %v", step.flag, got, e.server.States.SNS.Topics())
		}
		if got := e.emits("a"); !got[0] {
			t.Errorf("%s: no notice", step.flag)
		}
	}
}

// TestAWSCorrectsTopic corrects what others changed, and leaves a topic that something else created.
func TestAWSCorrectsTopic(t *testing.T) {
	t.Parallel()
	e := newAWSAccount(t)
	state := e.server.States.SNS
	arn, err := state.CreateTopic(sharedTopic, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	conflict := e.awsFor("a", "setup", "--shared-topic", sharedTopic, "--yes")
	e.want(conflict, 1)
	if !strings.Contains(conflict.out, "topic lifeboat-shared: `lifeboat aws` did not create it") {
		t.Errorf("the conflict:\n%s", conflict.out)
	}
	e.want(e.awsFor("a", "setup", "--shared-topic", sharedTopic, "--adopt", "--yes"), 0)
	subscriptions, err := state.Subscriptions(arn)
	if err != nil || len(subscriptions) != 1 {
		t.Fatal(subscriptions, err)
	}
	for name, value := range map[string]string{"RawMessageDelivery": "false", "FilterPolicy": `{"a":["b"]}`, "RedrivePolicy": ""} {
		if err := state.SetSubscriptionAttribute(subscriptions[0].ARN, name, value); err != nil {
			t.Fatal(err)
		}
	}
	open := `{"Statement":[{"Effect":"Allow","Principal":"*","Action":"sns:Publish","Resource":"` + arn + `"}]}`
	for name, value := range map[string]string{"Policy": open, "KmsMasterKeyId": "alias/aws/sns"} {
		if err := state.SetTopicAttribute(arn, name, value); err != nil {
			t.Fatal(err)
		}
	}
	plan := e.awsFor("a", "plan")
	e.want(plan, ExitChanges)
	for _, field := range []string{"RawMessageDelivery  false → true", "FilterPolicy", "RedrivePolicy", "KmsMasterKeyId", "only EventBridge should be allowed to publish"} {
		if !strings.Contains(plan.out, field) {
			t.Errorf("the plan does not have %q:\n%s", field, plan.out)
		}
	}
	e.want(e.awsFor("a", "setup", "--yes"), 0)
	e.want(e.awsFor("a", "plan"), 0)
	if got := e.emits("a"); !got[0] {
		t.Error("no notice")
	}
}

// Only the rules may send: neither identities of the account nor other services and topics reach the
// topic or a queue. AWS has no condition on the rule in the topic's policy (docs/limits.md).
func TestSharedTopicRefusesOtherSenders(t *testing.T) {
	t.Parallel()
	e := newAWSAccount(t)
	e.want(e.awsFor("a", "setup", "--shared-topic", sharedTopic, "--yes"), 0)
	w, err := awssetup.Desired("a", e.server.Account(), e.server.Region()).Shared(sharedTopic)
	if err != nil {
		t.Fatal(err)
	}
	from := func(service, source string) emulatedsqs.Sender {
		return emulatedsqs.Sender{ServicePrincipal: service, SourceARN: source, SourceAccount: e.server.Account()}
	}
	topic, queue := w.TopicARN(sharedTopic), w.QueueARN()
	for _, c := range []struct {
		name string
		send func() error
		ok   bool
	}{
		{"EventBridge to the topic", func() error { return e.server.States.SNS.Deliver(topic, "b", from("events.amazonaws.com", "")) }, true},
		{"another service to the topic", func() error { return e.server.States.SNS.Deliver(topic, "b", from("s3.amazonaws.com", "")) }, false},
		{"the topic to the queue", func() error { return e.server.States.SQS.Deliver(queue, "b", from("sns.amazonaws.com", topic)) }, true},
		{"another topic to the queue", func() error { return e.server.States.SQS.Deliver(queue, "b", from("sns.amazonaws.com", topic+"2")) }, false},
		{"a rule to the queue", func() error {
			return e.server.States.SQS.Deliver(queue, "b", from("events.amazonaws.com", w.RuleARN(w.Rules[0].Name)))
		}, false},
		{"an identity to the topic", func() error { return e.publish(topic) }, false},
		{"an identity to the queue", func() error {
			url := e.url + "/" + e.server.Account() + "/" + w.Queue.Name
			_, err := e.queues.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("b")})
			return err
		}, false},
	} {
		if err := c.send(); (err == nil) != c.ok {
			t.Errorf("%s: %v, want success: %t", c.name, err, c.ok)
		}
	}
}
