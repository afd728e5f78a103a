package events_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
)

const queueARN = "arn:aws:sqs:us-east-1:123456789012:notices"

// newClient returns the real EventBridge client of an emulated account of its own,
// and what other clients of the account need.
func newClient(t *testing.T) (*eventbridge.Client, aws.Config) {
	t.Helper()
	server, url := emulatortest.Serve(t, emulator.Options{})
	cfg := aws.Config{
		Region: server.Region(), BaseEndpoint: &url, RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "AKIATEST", SecretAccessKey: "secret"}, nil
		}),
	}
	return eventbridge.NewFromConfig(cfg), cfg
}

// must returns v, or ends the test.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func wantCode(t *testing.T, what string, err error, code string) {
	t.Helper()
	var e smithy.APIError
	if !errors.As(err, &e) || e.ErrorCode() != code {
		t.Errorf("%s: got error %v, want %s", what, err, code)
	}
}

func putRule(t *testing.T, c *eventbridge.Client, name, pattern string) string {
	t.Helper()
	return *must(c.PutRule(t.Context(), &eventbridge.PutRuleInput{
		Name: &name, EventPattern: &pattern, Description: aws.String("about " + name),
		Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String("a")}},
	}))(t).RuleArn
}

func TestSDKManagesRules(t *testing.T) {
	t.Parallel()
	c, _ := newClient(t)
	for n := range 12 {
		putRule(t, c, fmt.Sprintf("rule-%02d", n), `{"source":["aws.ec2"]}`)
	}
	must(c.DisableRule(t.Context(), &eventbridge.DisableRuleInput{Name: aws.String("rule-03")}))(t)
	got := must(c.DescribeRule(t.Context(), &eventbridge.DescribeRuleInput{Name: aws.String("rule-03")}))(t)
	same(t, "rule", []any{*got.Arn, *got.EventPattern, got.State, *got.Description, *got.EventBusName},
		[]any{"arn:aws:events:us-east-1:123456789012:rule/rule-03", `{"source":["aws.ec2"]}`, types.RuleStateDisabled, "about rule-03", "default"})
	must(c.EnableRule(t.Context(), &eventbridge.EnableRuleInput{Name: aws.String("rule-03")}))(t)

	var names []string
	input := &eventbridge.ListRulesInput{NamePrefix: aws.String("rule-0"), Limit: aws.Int32(4)}
	for pages := 1; ; pages++ {
		out := must(c.ListRules(t.Context(), input))(t)
		for _, r := range out.Rules {
			names = append(names, *r.Name)
		}
		if input.NextToken = out.NextToken; input.NextToken == nil {
			same(t, "pages", pages, 3)
			break
		}
	}
	same(t, "rules", strings.Join(names, " "), "rule-00 rule-01 rule-02 rule-03 rule-04 rule-05 rule-06 rule-07 rule-08 rule-09")

	tags := must(c.ListTagsForResource(t.Context(), &eventbridge.ListTagsForResourceInput{ResourceARN: got.Arn}))(t).Tags
	same(t, "tag", []any{len(tags), *tags[0].Key, *tags[0].Value}, []any{1, "team", "a"})
	must(c.DeleteRule(t.Context(), &eventbridge.DeleteRuleInput{Name: aws.String("rule-03")}))(t)
	_, err := c.DescribeRule(t.Context(), &eventbridge.DescribeRuleInput{Name: aws.String("rule-03")})
	var missing *types.ResourceNotFoundException
	if !errors.As(err, &missing) || missing.ErrorMessage() != "Rule rule-03 does not exist on EventBus default." {
		t.Errorf("describing a deleted rule: %v", err)
	}
}

func TestSDKSeesBadPatterns(t *testing.T) {
	t.Parallel()
	c, _ := newClient(t)
	_, err := c.PutRule(t.Context(), &eventbridge.PutRuleInput{Name: aws.String("x"), EventPattern: aws.String(`{"source":"aws.ec2"}`)})
	var invalid *types.InvalidEventPatternException
	if !errors.As(err, &invalid) || !strings.Contains(invalid.ErrorMessage(), `"source" must be an object or an array`) {
		t.Errorf("putting a scalar: %v", err)
	}
	_, err = c.PutRule(t.Context(), &eventbridge.PutRuleInput{Name: aws.String("x"), ScheduleExpression: aws.String("rate(1 minute)")})
	wantCode(t, "a schedule", err, "ValidationException")
	_, err = c.PutRule(t.Context(), &eventbridge.PutRuleInput{Name: aws.String("x y"), EventPattern: aws.String(`{"source":["a"]}`)})
	wantCode(t, "a bad name", err, "ValidationException")
	_, err = c.PutRule(t.Context(), &eventbridge.PutRuleInput{Name: aws.String("x"), EventBusName: aws.String("none"), EventPattern: aws.String(`{"source":["a"]}`)})
	wantCode(t, "a bus that is not there", err, "ResourceNotFoundException")
}

func TestSDKTestsPatterns(t *testing.T) {
	t.Parallel()
	c, _ := newClient(t)
	const event = `{"id":"1","account":"123456789012","source":"aws.ec2","time":"2026-05-11T08:14:02Z","region":"us-east-1",` +
		`"resources":[],"detail-type":"EC2 Spot Instance Interruption Warning","detail":{}}`
	ask := func(pattern, event string) (bool, error) {
		out, err := c.TestEventPattern(t.Context(), &eventbridge.TestEventPatternInput{EventPattern: &pattern, Event: &event})
		if err != nil {
			return false, err
		}
		return out.Result, nil
	}
	same(t, "the right name", must(ask(`{"detail-type":["EC2 Spot Instance Interruption Warning"]}`, event))(t), true)
	same(t, "the wrong name", must(ask(`{"detail-type":["EC2 Spot Interruption Warning"]}`, event))(t), false)
	_, err := ask(`{"source":[]}`, event)
	wantCode(t, "a bad pattern", err, "InvalidEventPatternException")
	_, err = ask(`{"source":["aws.ec2"]}`, `{"source":"aws.ec2"}`)
	wantCode(t, "an event that lacks fields", err, "ValidationException")
}

func TestSDKManagesTargets(t *testing.T) {
	t.Parallel()
	c, _ := newClient(t)
	putRule(t, c, "r", `{"source":["aws.ec2"]}`)
	target := types.Target{
		Id: aws.String("q"), Arn: aws.String(queueARN),
		DeadLetterConfig: &types.DeadLetterConfig{Arn: aws.String(queueARN + "-dead")},
		RetryPolicy:      &types.RetryPolicy{MaximumRetryAttempts: aws.Int32(0), MaximumEventAgeInSeconds: aws.Int32(60)},
		InputTransformer: &types.InputTransformer{InputPathsMap: map[string]string{"id": "$.detail.instance-id"}, InputTemplate: aws.String(`"<id>"`)},
	}
	must(c.PutTargets(t.Context(), &eventbridge.PutTargetsInput{Rule: aws.String("r"), Targets: []types.Target{target}}))(t)
	got := must(c.ListTargetsByRule(t.Context(), &eventbridge.ListTargetsByRuleInput{Rule: aws.String("r")}))(t).Targets
	if len(got) != 1 {
		t.Fatalf("%d targets", len(got))
	}
	same(t, "target", []any{
		*got[0].Id, *got[0].Arn, *got[0].DeadLetterConfig.Arn, *got[0].RetryPolicy.MaximumRetryAttempts,
		*got[0].InputTransformer.InputTemplate, got[0].InputTransformer.InputPathsMap,
	}, []any{"q", queueARN, queueARN + "-dead", int32(0), `"<id>"`, map[string]string{"id": "$.detail.instance-id"}})
	rules := must(c.ListRuleNamesByTarget(t.Context(), &eventbridge.ListRuleNamesByTargetInput{TargetArn: aws.String(queueARN)}))(t)
	same(t, "rules of the target", rules.RuleNames, []string{"r"})
	_, err := c.DeleteRule(t.Context(), &eventbridge.DeleteRuleInput{Name: aws.String("r")})
	wantCode(t, "deleting a rule with targets", err, "ValidationException")
	out := must(c.RemoveTargets(t.Context(), &eventbridge.RemoveTargetsInput{Rule: aws.String("r"), Ids: []string{"q", "z"}}))(t)
	same(t, "removed", []any{out.FailedEntryCount, *out.FailedEntries[0].TargetId}, []any{int32(1), "z"})
	many := make([]types.Target, 6)
	for i := range many {
		many[i] = types.Target{Id: aws.String(fmt.Sprint(i)), Arn: aws.String(queueARN)}
	}
	_, err = c.PutTargets(t.Context(), &eventbridge.PutTargetsInput{Rule: aws.String("r"), Targets: many})
	wantCode(t, "six targets", err, "LimitExceededException")
}

func TestSDKCannotForgeAWSEvents(t *testing.T) {
	t.Parallel()
	c, _ := newClient(t)
	out := must(c.PutEvents(t.Context(), &eventbridge.PutEventsInput{Entries: []types.PutEventsRequestEntry{
		{Source: aws.String("aws.ec2"), DetailType: aws.String("EC2 Spot Instance Interruption Warning"), Detail: aws.String(`{}`)},
		{Source: aws.String("drill"), DetailType: aws.String("EC2 Spot Instance Interruption Warning"), Detail: aws.String(`{}`)},
	}}))(t)
	same(t, "failed", out.FailedEntryCount, int32(1))
	same(t, "refused", []any{*out.Entries[0].ErrorCode, *out.Entries[0].ErrorMessage, out.Entries[0].EventId},
		[]any{"NotAuthorizedForSourceException", "Not authorized for the source.", (*string)(nil)})
	if out.Entries[1].ErrorCode != nil || len(*out.Entries[1].EventId) != 36 {
		t.Errorf("the event of its own source: %+v", out.Entries[1])
	}
}

func TestSDKEventReachesQueue(t *testing.T) {
	t.Parallel()
	c, cfg := newClient(t)
	queues := sqs.NewFromConfig(cfg)
	ruleARN := putRule(t, c, "drills", `{"source":["drill"]}`)
	url := must(queues.CreateQueue(t.Context(), &sqs.CreateQueueInput{
		QueueName: aws.String("notices"),
		Attributes: map[string]string{"Policy": `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},` +
			`"Action":"sqs:SendMessage","Resource":"` + queueARN + `","Condition":{"ArnEquals":{"aws:SourceArn":"` + ruleARN + `"}}}]}`},
	}))(t).QueueUrl
	must(c.PutTargets(t.Context(), &eventbridge.PutTargetsInput{Rule: aws.String("drills"), Targets: []types.Target{
		{Id: aws.String("q"), Arn: aws.String(queueARN)},
	}}))(t)
	at := time.Date(2026, 5, 11, 8, 14, 2, 987e6, time.UTC)
	put := must(c.PutEvents(t.Context(), &eventbridge.PutEventsInput{Entries: []types.PutEventsRequestEntry{{
		Source: aws.String("drill"), DetailType: aws.String("Test <1>"), Detail: aws.String(`{"a":"<&>"}`), Time: &at,
		Resources: []string{"arn:x"},
	}}}))(t)
	out := must(queues.ReceiveMessage(t.Context(), &sqs.ReceiveMessageInput{QueueUrl: url, WaitTimeSeconds: 20}))(t)
	if len(out.Messages) != 1 {
		t.Fatalf("%d messages", len(out.Messages))
	}
	same(t, "body", *out.Messages[0].Body, `{"version":"0","id":"`+*put.Entries[0].EventId+`","detail-type":"Test <1>","source":"drill",`+
		`"account":"123456789012","time":"2026-05-11T08:14:02Z","region":"us-east-1","resources":["arn:x"],"detail":{"a":"<&>"}}`)
}

func TestSDKManagesBuses(t *testing.T) {
	t.Parallel()
	c, _ := newClient(t)
	made := must(c.CreateEventBus(t.Context(), &eventbridge.CreateEventBusInput{Name: aws.String("mine")}))(t)
	same(t, "arn", *made.EventBusArn, "arn:aws:events:us-east-1:123456789012:event-bus/mine")
	_, err := c.CreateEventBus(t.Context(), &eventbridge.CreateEventBusInput{Name: aws.String("mine")})
	wantCode(t, "making it twice", err, "ResourceAlreadyExistsException")
	arn := must(c.PutRule(t.Context(), &eventbridge.PutRuleInput{
		Name: aws.String("r"), EventBusName: made.EventBusArn, EventPattern: aws.String(`{"source":["a"]}`),
	}))(t).RuleArn
	same(t, "rule", *arn, "arn:aws:events:us-east-1:123456789012:rule/mine/r")
	_, err = c.DeleteEventBus(t.Context(), &eventbridge.DeleteEventBusInput{Name: aws.String("mine")})
	wantCode(t, "deleting it with a rule", err, "ValidationException")
	buses := must(c.ListEventBuses(t.Context(), &eventbridge.ListEventBusesInput{}))(t).EventBuses
	same(t, "buses", []any{len(buses), *buses[0].Name, *buses[1].Name}, []any{2, "default", "mine"})
	bus := must(c.DescribeEventBus(t.Context(), &eventbridge.DescribeEventBusInput{}))(t)
	same(t, "the default bus", *bus.Arn, "arn:aws:events:us-east-1:123456789012:event-bus/default")
}
