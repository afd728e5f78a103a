package wiring_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/internal/awsemu"
	"github.com/lifeboat-dev/lifeboat/internal/awsemu/awsemutest"
	"github.com/lifeboat-dev/lifeboat/internal/awsemu/events"
	"github.com/lifeboat-dev/lifeboat/internal/wiring"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/pattern"
)

func TestWantedRulesCatchWhatTheyAreFor(t *testing.T) {
	w := wiring.Wanted("prod", "210987654321", "eu-west-1")
	for _, sample := range pattern.Samples() {
		var by []string
		for _, r := range w.Rules {
			p, err := pattern.Compile([]byte(r.Pattern))
			if err != nil {
				t.Fatalf("rule %s: %v", r.Name, err)
			}
			matched, err := p.Match(sample.JSON)
			if err != nil {
				t.Fatal(err)
			}
			if matched {
				by = append(by, strings.TrimPrefix(r.Name, "lifeboat-prod-"))
			}
		}
		var want []string
		switch {
		case sample.DetailType == "EC2 Spot Instance Interruption Warning":
			want = []string{"spot-interruption"}
		case sample.DetailType == "EC2 Instance Rebalance Recommendation":
			want = []string{"rebalance"}
		case sample.DetailType == "EC2 Instance State-change Notification" && !strings.Contains(string(sample.JSON), `"running"`) && !strings.Contains(string(sample.JSON), `"pending"`):
			want = []string{"state-change"}
		}
		if diff := cmp.Diff(want, by); diff != "" {
			t.Errorf("%s (-want +got):\n%s", sample.Name, diff)
		}
	}
}

func TestNamesFitWhateverTheClusterIsCalled(t *testing.T) {
	long := strings.Repeat("x", 100)
	seen := map[string]string{}
	for _, cluster := range []string{"prod", "k8s.example.com", "k8s-example-com", long, long + "y", "Ärger", "a_b"} {
		w := wiring.Wanted(cluster, "210987654321", "eu-west-1")
		for _, name := range []string{w.Queue.Name, w.DeadLetter.Name, w.Rules[0].Name} {
			if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") != "" || len(name) > 80 {
				t.Errorf("cluster %s: %q is no name for a queue", cluster, name)
			}
			if other, ok := seen[name]; ok {
				t.Errorf("clusters %s and %s share %s", cluster, other, name)
			}
			seen[name] = cluster
		}
		for _, r := range w.Rules {
			if len(r.Name) > 64 {
				t.Errorf("cluster %s: %q is too long for a rule", cluster, r.Name)
			}
		}
	}
	if w := wiring.Wanted("prod", "210987654321", "cn-north-1"); w.RuleARN("r") != "arn:aws-cn:events:cn-north-1:210987654321:rule/r" {
		t.Errorf("ARN in China: %s", w.RuleARN("r"))
	}
}

func TestApplyMakesAndCorrectsTheWiring(t *testing.T) {
	server, url := awsemutest.Serve(t, awsemu.Options{})
	cfg := aws.Config{Region: server.Region(), BaseEndpoint: &url, Credentials: credentials.NewStaticCredentialsProvider("AKIAEXAMPLE", "x", "")}
	queues, rules := sqs.NewFromConfig(cfg), eventbridge.NewFromConfig(cfg)
	clients := wiring.Clients{SQS: queues, Events: rules}
	w := wiring.Wanted("prod", server.Account(), server.Region())

	first, err := wiring.Apply(t.Context(), clients, w)
	if err != nil {
		t.Fatal(err)
	}
	// Somebody meddles; the next time it is put right.
	if _, err := queues.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{
		QueueUrl: &first.QueueURL, Attributes: map[string]string{"Policy": "", "VisibilityTimeout": "0"},
	}); err != nil {
		t.Fatal(err)
	}
	second, err := wiring.Apply(t.Context(), clients, w)
	if err != nil {
		t.Fatal(err)
	}
	if first != second {
		t.Errorf("applied twice: %v, then %v", first, second)
	}
	checkAttributes(t, queues, w, second)

	server.States.Events.Emit(events.Event{
		Source: "aws.ec2", DetailType: "EC2 Spot Instance Interruption Warning", Resources: []string{"arn:aws:ec2:us-east-1a:instance/i-1"},
		Time: time.Now(), Detail: json.RawMessage(`{"instance-id":"i-1","instance-action":"terminate"}`),
	})
	got, err := queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &second.QueueURL, WaitTimeSeconds: 5})
	if err != nil || len(got.Messages) != 1 {
		t.Fatalf("received %d messages, %v: want the warning", len(got.Messages), err)
	}

	for range 2 { // the second time there is nothing left to remove
		if err := wiring.RemoveRules(t.Context(), rules, w.Rules); err != nil {
			t.Fatal(err)
		}
	}
	left, err := rules.ListRules(t.Context(), &eventbridge.ListRulesInput{})
	if err != nil || len(left.Rules) != 0 {
		t.Errorf("%d rules are left, %v", len(left.Rules), err)
	}
}

func checkAttributes(t *testing.T, queues *sqs.Client, w wiring.Wiring, applied wiring.Applied) {
	t.Helper()
	out, err := queues.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{
		QueueUrl: &applied.QueueURL, AttributeNames: []sqstypes.QueueAttributeName{"All"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"VisibilityTimeout": "10", "MessageRetentionPeriod": "345600", "ReceiveMessageWaitTimeSeconds": "20", "SqsManagedSseEnabled": "true",
		"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:123456789012:lifeboat-prod-dead-letter","maxReceiveCount":30}`,
		"Policy": `{"Version":"2012-10-17","Statement":[{"Sid":"LifeboatRules","Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},` +
			`"Action":"sqs:SendMessage","Resource":"` + w.QueueARN() + `","Condition":{"ArnEquals":{"aws:SourceArn":["` +
			w.RuleARN("lifeboat-prod-spot-interruption") + `","` + w.RuleARN("lifeboat-prod-rebalance") + `","` + w.RuleARN("lifeboat-prod-state-change") +
			`"]},"StringEquals":{"aws:SourceAccount":"123456789012"}}}]}`,
	}
	got := map[string]string{}
	for name := range want {
		got[name] = out.Attributes[name]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("attributes (-want +got):\n%s", diff)
	}
}
