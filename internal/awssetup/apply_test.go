package awssetup_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	ebtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/emulator/events"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
)

// account is an emulated AWS account.
type account struct {
	server  *emulator.Server
	queues  *sqs.Client
	rules   *eventbridge.Client
	clients awssetup.Clients
	w       awssetup.Wiring
}

func newAccount(t *testing.T) *account {
	t.Helper()
	server, url := emulatortest.Serve(t, emulator.Options{})
	cfg := aws.Config{Region: server.Region(), BaseEndpoint: &url, Credentials: awshttp.StaticCredentials("AKIAEXAMPLE", "x")}
	a := &account{server: server, queues: sqs.NewFromConfig(cfg), rules: eventbridge.NewFromConfig(cfg)}
	a.clients = awssetup.Clients{SQS: a.queues, Events: a.rules}
	a.w = awssetup.Desired("prod", server.Account(), server.Region())
	return a
}

func (a *account) observe(t *testing.T) awssetup.Observed {
	t.Helper()
	o, err := awssetup.Observe(t.Context(), a.clients, a.w)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func (a *account) plan(t *testing.T, opts awssetup.Options) awssetup.Plan {
	t.Helper()
	p, err := awssetup.Diff(a.w, a.observe(t), opts)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (a *account) apply(t *testing.T, p awssetup.Plan) (awssetup.Applied, int) {
	t.Helper()
	done := 0
	applied, err := p.Apply(t.Context(), a.clients, func(awssetup.Change) { done++ })
	if err != nil {
		t.Fatal(err)
	}
	return applied, done
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// checkDelivery sends an AWS event and waits for it in the queue.
func (a *account) checkDelivery(t *testing.T, url string) {
	t.Helper()
	a.server.States.Events.Emit(events.Event{
		Source: "aws.ec2", DetailType: "EC2 Spot Instance Interruption Warning", Resources: []string{"arn:aws:ec2:us-east-1a:instance/i-1"},
		Time: time.Now(), Detail: json.RawMessage(`{"instance-id":"i-1","instance-action":"terminate"}`),
	})
	got := must(a.queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, WaitTimeSeconds: 5}))(t)
	if len(got.Messages) != 1 {
		t.Fatalf("received %d messages: want the warning", len(got.Messages))
	}
	must(a.queues.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: got.Messages[0].ReceiptHandle}))(t)
}

func TestApplyIsIdempotent(t *testing.T) {
	a := newAccount(t)
	first := a.plan(t, awssetup.Options{})
	applied, done := a.apply(t, first)
	if done != 10 || len(first.Changes) != 10 {
		t.Errorf("%d of %d changes done, want 10: two queues, eight rules", done, len(first.Changes))
	}
	if second := a.plan(t, awssetup.Options{}); !second.Empty() || len(second.Notes) > 0 {
		t.Errorf("a second plan is not empty: %v", lines(second))
	}
	a.checkDelivery(t, applied.QueueURL)
	again, err := awssetup.Apply(t.Context(), a.clients, a.w)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(applied, again); diff != "" {
		t.Errorf("applied twice (-first +second):\n%s", diff)
	}
}

func TestEveryProbeArrives(t *testing.T) {
	a := newAccount(t)
	applied := must(awssetup.Apply(t.Context(), a.clients, a.w))(t)
	for _, r := range a.w.Rules {
		probe := must(awssetup.Probe(r, "p1", a.w.Cluster))(t)
		out := must(a.rules.PutEvents(t.Context(), &eventbridge.PutEventsInput{Entries: []ebtypes.PutEventsRequestEntry{{
			Source: &probe.Source, DetailType: &probe.DetailType, Detail: aws.String(string(probe.Detail)),
		}}}))(t)
		if out.FailedEntryCount > 0 {
			t.Fatalf("probe of %s: %s", r.Role, aws.ToString(out.Entries[0].ErrorMessage))
		}
		got := must(a.queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &applied.QueueURL, WaitTimeSeconds: 5}))(t)
		if len(got.Messages) != 1 {
			t.Fatalf("probe of %s: received %d messages", r.Role, len(got.Messages))
		}
		must(a.queues.DeleteMessage(t.Context(), &sqs.DeleteMessageInput{QueueUrl: &applied.QueueURL, ReceiptHandle: got.Messages[0].ReceiptHandle}))(t)
	}
}

func TestApplyCorrectsDrift(t *testing.T) {
	a := newAccount(t)
	applied := must(awssetup.Apply(t.Context(), a.clients, a.w))(t)
	spot, health := a.w.Rules[0].Name, awssetup.RuleName("prod", awssetup.RoleHealth)
	set := func(attributes map[string]string) {
		must(a.queues.SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &applied.QueueURL, Attributes: attributes}))(t)
	}
	for _, tc := range []struct {
		name   string
		drift  func()
		fields []string
	}{
		{"policy and visibility", func() { set(map[string]string{"Policy": "", "VisibilityTimeout": "0"}) }, []string{"Policy", "VisibilityTimeout"}},
		{"KMS key", func() { set(map[string]string{"KmsMasterKeyId": "alias/aws/sqs"}) }, []string{"KmsMasterKeyId", "SqsManagedSseEnabled"}},
		{"no dead-letter queue", func() { set(map[string]string{"RedrivePolicy": ""}) }, []string{"RedrivePolicy"}},
		{"misspelt pattern", func() {
			must(a.rules.PutRule(t.Context(), &eventbridge.PutRuleInput{
				Name: &spot, EventPattern: aws.String(`{"source":["aws.ec2"],"detail-type":["EC2 Spot Interruption Warning"]}`),
			}))(t)
		}, []string{"EventPattern", "Description"}},
		{"disabled", func() { must(a.rules.DisableRule(t.Context(), &eventbridge.DisableRuleInput{Name: &spot}))(t) }, []string{"State"}},
		{"input transformer", func() {
			must(a.rules.PutTargets(t.Context(), &eventbridge.PutTargetsInput{Rule: &health, Targets: []ebtypes.Target{{
				Id: aws.String("lifeboat-queue"), Arn: aws.String(a.w.QueueARN()),
				InputTransformer: &ebtypes.InputTransformer{InputTemplate: aws.String(`"text"`)},
				RetryPolicy:      &ebtypes.RetryPolicy{MaximumRetryAttempts: aws.Int32(0)},
			}}}))(t)
		}, []string{"Target.DeadLetterConfig.Arn", "Target.InputTransformer.InputTemplate", "Target.RetryPolicy"}},
		{"no target", func() {
			must(a.rules.RemoveTargets(t.Context(), &eventbridge.RemoveTargetsInput{Rule: &spot, Ids: []string{"lifeboat-queue"}}))(t)
		}, []string{"Target.Arn", "Target.DeadLetterConfig.Arn"}},
		{"tag", func() {
			must(a.rules.UntagResource(t.Context(), &eventbridge.UntagResourceInput{ResourceARN: aws.String(a.w.RuleARN(spot)), TagKeys: []string{awssetup.TagManagedBy}}))(t)
		}, []string{"Tag lifeboat.dev/managed-by"}},
	} {
		tc.drift()
		plan := a.plan(t, awssetup.Options{})
		var fields []string
		for _, c := range plan.Changes {
			for _, f := range c.Fields {
				fields = append(fields, f.Name)
			}
		}
		if diff := cmp.Diff(tc.fields, fields); diff != "" {
			t.Errorf("%s: plan (-want +got):\n%s", tc.name, diff)
		}
		a.apply(t, plan)
		if left := a.plan(t, awssetup.Options{}); !left.Empty() {
			t.Errorf("%s: not corrected: %v", tc.name, lines(left))
		}
		a.checkDelivery(t, applied.QueueURL)
	}
}

func TestForeignObjectsAreRefusedUntilAdopted(t *testing.T) {
	a := newAccount(t)
	spot := a.w.Rules[0].Name
	created := must(a.queues.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &a.w.Queue.Name, Tags: map[string]string{"team": "a"}}))(t)
	must(a.rules.PutRule(t.Context(), &eventbridge.PutRuleInput{Name: &spot, EventPattern: aws.String(`{"source":["aws.ec2"]}`)}))(t)
	before := a.observe(t)

	if _, err := awssetup.Apply(t.Context(), a.clients, a.w); !errors.Is(err, awssetup.ErrConflicts) {
		t.Errorf("error = %v, want that there are conflicts", err)
	}
	if diff := cmp.Diff(before, a.observe(t)); diff != "" {
		t.Errorf("objects changed in spite of the conflict (-before +after):\n%s", diff)
	}
	applied, _ := a.apply(t, a.plan(t, awssetup.Options{Adopt: true}))
	if applied.QueueURL != aws.ToString(created.QueueUrl) {
		t.Errorf("the queue is %s, want %s adopted", applied.QueueURL, *created.QueueUrl)
	}
	if plan := a.plan(t, awssetup.Options{}); !plan.Empty() {
		t.Errorf("after adoption: %v", lines(plan))
	}
	if tags := a.observe(t).Queue.Tags; tags["team"] != "a" {
		t.Errorf("tags are now %v: other tags must stay", tags)
	}
	a.checkDelivery(t, applied.QueueURL)
}

func TestTeardownDeletesOnlyOwnResources(t *testing.T) {
	a := newAccount(t)
	must(awssetup.Apply(t.Context(), a.clients, a.w))(t)
	other := awssetup.Desired("prod-eu", a.w.Account, a.w.Region)
	must(awssetup.Apply(t.Context(), a.clients, other))(t)
	must(a.rules.PutRule(t.Context(), &eventbridge.PutRuleInput{Name: aws.String("lifeboat-prod-mine"), EventPattern: aws.String(`{"source":["x"]}`)}))(t)
	// A rule of an older release must be deleted too.
	must(a.rules.PutRule(t.Context(), &eventbridge.PutRuleInput{
		Name: aws.String("lifeboat-prod-old"), EventPattern: aws.String(`{"source":["x"]}`),
		Tags: []ebtypes.Tag{{Key: aws.String(awssetup.TagCluster), Value: aws.String("prod")}},
	}))(t)

	_, done := a.apply(t, awssetup.Teardown(a.w, a.observe(t), awssetup.Options{}))
	if done != 11 {
		t.Errorf("%d objects deleted, want two queues and nine rules", done)
	}
	if plan := awssetup.Teardown(a.w, a.observe(t), awssetup.Options{}); !plan.Empty() {
		t.Errorf("left: %v", lines(plan))
	}
	var names []string
	for _, r := range must(a.rules.ListRules(t.Context(), &eventbridge.ListRulesInput{NamePrefix: aws.String("lifeboat-")}))(t).Rules {
		names = append(names, *r.Name)
	}
	if len(names) != 9 {
		t.Errorf("rules left: %v; want the other cluster's eight and lifeboat-prod-mine", names)
	}
	otherLeft := must(awssetup.Observe(t.Context(), a.clients, other))(t)
	if plan := must(awssetup.Diff(other, otherLeft, awssetup.Options{}))(t); !plan.Empty() {
		t.Errorf("the other cluster's wiring changed: %v", lines(plan))
	}
}

func TestRemoveRules(t *testing.T) {
	a := newAccount(t)
	must(awssetup.Apply(t.Context(), a.clients, a.w))(t)
	for range 2 { // the second time there is nothing left to remove
		if err := awssetup.RemoveRules(t.Context(), a.rules, a.w.Rules); err != nil {
			t.Fatal(err)
		}
	}
	if left := a.observe(t).Rules; len(left) != 0 {
		t.Errorf("%d rules are left", len(left))
	}
}
