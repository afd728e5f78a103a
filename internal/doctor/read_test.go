package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	ebtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/cloud/awshttp"
	"github.com/lifeboat-dev/lifeboat/internal/doctor"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// account is an emulated account with Lifeboat's wiring in it.
type account struct {
	t      *testing.T
	server *emulator.Server
	queues *sqs.Client
	events *eventbridge.Client
	want   awssetup.Wiring
	url    string
}

func newAccount(t *testing.T) *account {
	t.Helper()
	server, url := emulatortest.Serve(t, emulator.Options{})
	a := &account{t: t, server: server, want: awssetup.Desired("prod", server.Account(), server.Region())}
	cfg := aws.Config{
		Region: server.Region(), BaseEndpoint: &url, Credentials: awshttp.StaticCredentials("AKIAEXAMPLE", "x"),
	}
	a.queues, a.events = sqs.NewFromConfig(cfg), eventbridge.NewFromConfig(cfg)
	applied, err := awssetup.Apply(t.Context(), awssetup.Clients{SQS: a.queues, Events: a.events}, a.want)
	if err != nil {
		t.Fatal(err)
	}
	a.url = applied.QueueURL
	return a
}

// must fails the test if the setup fails.
func (a *account) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

func (a *account) rule(role string) string { return awssetup.RuleName("prod", role) }

func (a *account) putRule(in eventbridge.PutRuleInput) {
	_, err := a.events.PutRule(a.t.Context(), &in)
	a.must(err)
}

func (a *account) putTarget(rule, bus string, target ebtypes.Target) {
	in := &eventbridge.PutTargetsInput{Rule: &rule, Targets: []ebtypes.Target{target}}
	if bus != "" {
		in.EventBusName = &bus
	}
	_, err := a.events.PutTargets(a.t.Context(), in)
	a.must(err)
}

func (a *account) set(attributes map[string]string) {
	_, err := a.queues.SetQueueAttributes(a.t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: &a.url, Attributes: attributes})
	a.must(err)
}

func (a *account) createQueue(name string) string {
	out, err := a.queues.CreateQueue(a.t.Context(), &sqs.CreateQueueInput{QueueName: &name})
	a.must(err)
	return aws.ToString(out.QueueUrl)
}

func (a *account) diagnose(cluster doctor.Cluster) []finding.Finding {
	a.t.Helper()
	s, err := doctor.ReadAccount(a.t.Context(), doctor.NewClients(a.queues, a.events), doctor.Target{Desired: a.want})
	a.must(err)
	return doctor.Run(s, a.want, cluster)
}

// brief returns findings without their texts.
func brief(all []finding.Finding) []string {
	out := []string{}
	for _, f := range all {
		out = append(out, string(f.Severity)+" "+f.ID+" "+f.Object)
	}
	return out
}

func TestLifeboatWiringHasNoFindings(t *testing.T) {
	a := newAccount(t)
	if all := a.diagnose(doctor.Cluster{}); len(all) > 0 {
		t.Errorf("findings:\n%s", text(all))
	}
}

const misspelt = `{"source":["aws.ec2","lifeboat.dev"],"detail-type":["EC2 Spot Interruption Warning"]}`

// breakages are typical errors in wiring.
var breakages = []struct {
	name string
	do   func(*account)
	// want are the findings: severity, id, object.
	want []string
	// cause is a part of Cause's sentence about a missing spot interruption, and fix
	// a part of its fix.
	cause, fix string
}{
	{
		name: "the spot rule is misspelt as in the field",
		do: func(a *account) {
			a.putRule(eventbridge.PutRuleInput{Name: aws.String(a.rule("spot-interruption")), EventPattern: aws.String(misspelt)})
		},
		want:  []string{"broken rule-matches-nothing rule lifeboat-prod-spot-interruption"},
		cause: `did you mean "EC2 Spot Instance Interruption Warning"`, fix: "lifeboat aws setup --cluster prod",
	},
	{
		name: "the spot rule is disabled",
		do: func(a *account) {
			_, err := a.events.DisableRule(a.t.Context(), &eventbridge.DisableRuleInput{Name: aws.String(a.rule("spot-interruption"))})
			a.must(err)
		},
		want:  []string{"broken rule-disabled rule lifeboat-prod-spot-interruption"},
		cause: "it is disabled", fix: "aws events enable-rule --name lifeboat-prod-spot-interruption",
	},
	{
		name: "the spot rule is gone",
		do: func(a *account) {
			a.must(awssetup.RemoveRules(a.t.Context(), a.events, []awssetup.Rule{{Name: a.rule("spot-interruption")}}))
		},
		want:  []string{"broken kind-uncovered kind SpotInterruption"},
		cause: "no rule delivers such notices", fix: "lifeboat aws setup --cluster prod",
	},
	{
		name: "the spot rule has another target",
		do: func(a *account) {
			a.createQueue("audit")
			_, err := a.events.RemoveTargets(a.t.Context(), &eventbridge.RemoveTargetsInput{Rule: aws.String(a.rule("spot-interruption")), Ids: []string{"lifeboat-queue"}})
			a.must(err)
			a.putTarget(a.rule("spot-interruption"), "", ebtypes.Target{Id: aws.String("q"), Arn: aws.String("arn:aws:sqs:us-east-1:123456789012:audit")})
		},
		want:  []string{"broken rule-wrong-target rule lifeboat-prod-spot-interruption"},
		cause: "and not the queue lifeboat-prod", fix: "lifeboat aws setup",
	},
	{
		name: "the spot rule has no target",
		do: func(a *account) {
			_, err := a.events.RemoveTargets(a.t.Context(), &eventbridge.RemoveTargetsInput{Rule: aws.String(a.rule("spot-interruption")), Ids: []string{"lifeboat-queue"}})
			a.must(err)
		},
		want:  []string{"broken rule-no-target rule lifeboat-prod-spot-interruption"},
		cause: "it has no target", fix: "lifeboat aws setup",
	},
	{
		name: "the target has an input transformer",
		do: func(a *account) {
			a.putTarget(a.rule("spot-interruption"), "", ebtypes.Target{
				Id: aws.String("lifeboat-queue"), Arn: aws.String(a.want.QueueARN()),
				DeadLetterConfig: &ebtypes.DeadLetterConfig{Arn: aws.String(a.want.DeadLetterARN())},
				InputTransformer: &ebtypes.InputTransformer{InputTemplate: aws.String(`"spot"`)},
			})
		},
		want:  []string{"broken target-input-changed rule lifeboat-prod-spot-interruption"},
		cause: "InputTransformer", fix: "lifeboat aws setup",
	},
	{
		name: "the spot rule is on a bus of its own",
		do: func(a *account) {
			_, err := a.events.CreateEventBus(a.t.Context(), &eventbridge.CreateEventBusInput{Name: aws.String("nodes")})
			a.must(err)
			a.must(awssetup.RemoveRules(a.t.Context(), a.events, []awssetup.Rule{{Name: a.rule("spot-interruption")}}))
			a.putRule(eventbridge.PutRuleInput{Name: aws.String("spot"), EventBusName: aws.String("nodes"), EventPattern: aws.String(a.want.Rules[0].Pattern)})
			a.putTarget("spot", "nodes", ebtypes.Target{Id: aws.String("q"), Arn: aws.String(a.want.QueueARN()), DeadLetterConfig: &ebtypes.DeadLetterConfig{Arn: aws.String(a.want.DeadLetterARN())}})
		},
		want: []string{
			"broken rule-custom-bus rule spot on bus nodes",
			"broken queue-policy-refuses queue lifeboat-prod",
			"warning target-dead-letter-refuses queue lifeboat-prod-dead-letter",
		},
		cause: "the bus nodes", fix: "aws events put-rule --name spot",
	},
	{
		name: "the policy names other rules",
		do: func(a *account) {
			a.set(map[string]string{"Policy": `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},` +
				`"Action":"sqs:SendMessage","Resource":"*","Condition":{"ArnEquals":{"aws:SourceArn":"arn:aws:events:us-east-1:123456789012:rule/lifeboat-prod-rebalance"}}}]}`})
		},
		want:  []string{"broken queue-policy-refuses queue lifeboat-prod"},
		cause: "its policy allows EventBridge to send only for other rules", fix: "lifeboat aws setup",
	},
	{
		name:  "the queue has no policy",
		do:    func(a *account) { a.set(map[string]string{"Policy": ""}) },
		want:  []string{"broken queue-policy-refuses queue lifeboat-prod"},
		cause: "it has no policy", fix: "lifeboat aws setup",
	},
	{
		name: "the policy allows everyone",
		do: func(a *account) {
			a.set(map[string]string{"Policy": `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"sqs:SendMessage","Resource":"*"}]}`})
		},
		want:  []string{"warning queue-policy-open queue lifeboat-prod"},
		cause: "best-effort",
	},
	{
		name: "the queue is deleted",
		do: func(a *account) {
			_, err := a.queues.DeleteQueue(a.t.Context(), &sqs.DeleteQueueInput{QueueUrl: &a.url})
			a.must(err)
		},
		want:  []string{"broken queue-missing queue lifeboat-prod"},
		cause: "the queue does not exist", fix: "lifeboat aws setup",
	},
	{
		name:  "the queue is encrypted with AWS's key",
		do:    func(a *account) { a.set(map[string]string{"KmsMasterKeyId": "alias/aws/sqs"}) },
		want:  []string{"broken queue-encryption-aws-key queue lifeboat-prod"},
		cause: "alias/aws/sqs", fix: "lifeboat aws setup",
	},
	{
		name:  "the queue is encrypted with a customer's key",
		do:    func(a *account) { a.set(map[string]string{"KmsMasterKeyId": "alias/mine"}) },
		want:  []string{"warning queue-encryption-key-policy queue lifeboat-prod"},
		cause: "best-effort",
	},
	{
		name: "the queue's settings were changed",
		do: func(a *account) {
			a.set(map[string]string{
				"MessageRetentionPeriod": "300", "VisibilityTimeout": "300", "DelaySeconds": "20", "MaximumMessageSize": "1024",
				"RedrivePolicy": `{"deadLetterTargetArn":"` + a.want.DeadLetterARN() + `","maxReceiveCount":1}`,
			})
		},
		want: []string{
			"warning queue-retention-short queue lifeboat-prod", "warning queue-visibility-long queue lifeboat-prod",
			"warning queue-delay queue lifeboat-prod", "warning queue-message-size queue lifeboat-prod",
			"warning dead-letter-max-receives queue lifeboat-prod",
		},
		cause: "best-effort",
	},
	{
		name: "a second rule delivers the same, and a misspelt one has another target",
		do: func(a *account) {
			a.createQueue("chat")
			a.putRule(eventbridge.PutRuleInput{Name: aws.String("also"), EventPattern: aws.String(`{"source":["aws.ec2"],"detail-type":["EC2 Instance Rebalance Recommendation"]}`)})
			a.putTarget("also", "", ebtypes.Target{Id: aws.String("q"), Arn: aws.String(a.want.QueueARN()), DeadLetterConfig: &ebtypes.DeadLetterConfig{Arn: aws.String(a.want.DeadLetterARN())}})
			a.putRule(eventbridge.PutRuleInput{Name: aws.String("chat"), EventPattern: aws.String(misspelt)})
			a.putTarget("chat", "", ebtypes.Target{Id: aws.String("q"), Arn: aws.String("arn:aws:sqs:us-east-1:123456789012:chat")})
		},
		want: []string{
			"broken queue-policy-refuses queue lifeboat-prod", "warning target-dead-letter-refuses queue lifeboat-prod-dead-letter",
			"info kind-covered-twice kind RebalanceRecommendation", "info rule-elsewhere-matches-nothing rule chat",
		},
		cause: "best-effort",
	},
	{
		name: "Karpenter's queue receives the same events",
		do: func(a *account) {
			a.createQueue("Karpenter-prod")
			a.putRule(eventbridge.PutRuleInput{Name: aws.String("KarpenterSpot"), EventPattern: aws.String(a.want.Rules[0].Pattern)})
			a.putTarget("KarpenterSpot", "", ebtypes.Target{Id: aws.String("q"), Arn: aws.String("arn:aws:sqs:us-east-1:123456789012:Karpenter-prod")})
		},
		want:  []string{"warning karpenter-hears-too queue Karpenter-prod"},
		cause: "best-effort",
	},
	{
		name:  "the doctor may not delete messages",
		do:    func(a *account) { a.server.Gate.Deny("sqs", "DeleteMessage") },
		want:  []string{"warning permission-missing permission sqs:DeleteMessage"},
		cause: "best-effort",
	},
	{
		name: "the doctor may not list rules",
		do: func(a *account) {
			a.server.Gate.Deny("events", "ListRules")
			a.server.Gate.Deny("events", "TestEventPattern")
		},
		want:  []string{"unknown permission-missing permission events:ListRules"},
		cause: "that part of the AWS resources was not checked", fix: "events:ListRules",
	},
	{
		name:  "the doctor may not read the queue's attributes",
		do:    func(a *account) { a.server.Gate.Deny("sqs", "GetQueueAttributes") },
		want:  []string{"unknown permission-missing permission sqs:GetQueueAttributes"},
		cause: "that part of the AWS resources was not checked",
	},
	{
		name:  "the doctor may not test patterns",
		do:    func(a *account) { a.server.Gate.Deny("events", "TestEventPattern") },
		want:  []string{"info permission-missing permission events:TestEventPattern"},
		cause: "best-effort",
	},
	{
		name: "AWS throttles some calls",
		do: func(a *account) {
			a.server.Gate.Throttle("events", "ListTargetsByRule", 1)
			a.server.Gate.Throttle("sqs", "GetQueueAttributes", 1)
		},
		want:  []string{},
		cause: "best-effort",
	},
}

func TestBrokenWiringHasFindings(t *testing.T) {
	for _, tc := range breakages {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t)
			tc.do(a)
			all := a.diagnose(doctor.Cluster{})
			if diff := cmp.Diff(tc.want, brief(all)); diff != "" {
				t.Errorf("findings (-want +got):\n%s\n%s", diff, text(all))
			}
			for _, f := range all {
				if f.Fix == "" || f.Problem == "" || !slices.Contains(doctor.IDs(), f.ID) {
					t.Errorf("%+v", f)
				}
			}
			sentence, fix := doctor.Cause(t.Context(), doctor.NewClients(a.queues, a.events), doctor.Target{Desired: a.want}, notice.KindSpotInterruption)
			if !strings.Contains(sentence, tc.cause) || !strings.Contains(fix, tc.fix) {
				t.Errorf("cause %q, fix %q, want %q and %q in them", sentence, fix, tc.cause, tc.fix)
			}
		})
	}
}

// skewed is a transport that changes the clock of AWS.
type skewed struct{ by time.Duration }

// Do sends a request and changes the Date header of the response.
func (s skewed) Do(r *http.Request) (*http.Response, error) {
	answer, err := http.DefaultClient.Do(r)
	if err == nil {
		answer.Header.Set("Date", time.Now().Add(-s.by).UTC().Format(http.TimeFormat))
	}
	return answer, err
}

func TestClockSkew(t *testing.T) {
	a := newAccount(t)
	for by, want := range map[time.Duration]string{
		2 * time.Second: "", 12 * time.Second: "warning clock-skew clock", -12 * time.Second: "warning clock-skew clock", time.Minute: "broken clock-skew clock",
	} {
		clients := doctor.NewClients(sqs.New(a.queues.Options(), func(o *sqs.Options) { o.HTTPClient = skewed{by} }), a.events)
		s, err := doctor.ReadAccount(t.Context(), clients, doctor.Target{Desired: a.want})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(brief(doctor.Run(s, a.want, doctor.Cluster{})), ""); got != want {
			t.Errorf("clock %s ahead: %q, want %q", by, got, want)
		}
	}
}

func TestReadAccountErrors(t *testing.T) {
	a := newAccount(t)
	clients := doctor.NewClients(a.queues, a.events)
	read := func(ctx context.Context, clients doctor.Clients, target doctor.Target) error {
		_, err := doctor.ReadAccount(ctx, clients, target)
		return err
	}

	var misplaced *doctor.WrongLocationError
	for _, url := range []string{"https://sqs.us-east-1.amazonaws.com/999999999999/q", "https://sqs.eu-west-1.amazonaws.com/123456789012/q"} {
		if err := read(t.Context(), clients, doctor.Target{Desired: a.want, QueueURL: url}); !errors.As(err, &misplaced) {
			t.Errorf("%s: %v", url, err)
		}
	}
	away := sqs.New(a.queues.Options(), func(o *sqs.Options) { o.BaseEndpoint, o.RetryMaxAttempts = aws.String("http://127.0.0.1:1"), 1 })
	if err := read(t.Context(), doctor.NewClients(away, a.events), doctor.Target{Desired: a.want}); err == nil || !strings.Contains(err.Error(), "sqs:GetQueueUrl of queue lifeboat-prod") {
		t.Errorf("no connection: %v", err)
	}
	a.server.Gate.Deny("sqs", wire.AnyAction)
	a.server.Gate.Deny("events", wire.AnyAction)
	var denied *doctor.DeniedError
	if err := read(t.Context(), clients, doctor.Target{Desired: a.want}); !errors.As(err, &denied) || !slices.Contains(denied.Actions, "sqs:GetQueueUrl") {
		t.Errorf("all denied: %v", err)
	}

	a.server.Gate.LiftAll()
	a.server.Gate.Hang("sqs", "GetQueueUrl")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	sentence, fix := doctor.Cause(ctx, clients, doctor.Target{Desired: a.want}, notice.KindSpotInterruption)
	if !strings.Contains(sentence, "could not be checked") || fix != "lifeboat doctor --cluster prod" {
		t.Errorf("cause %q, fix %q", sentence, fix)
	}
}

func TestCauseOfKindThatTheQueueDoesNotDeliver(t *testing.T) {
	sentence, fix := doctor.Cause(t.Context(), doctor.Clients{}, doctor.Target{}, notice.KindInstanceStatus)
	if !strings.Contains(sentence, "the queue does not deliver notices of kind") || fix != "" {
		t.Errorf("cause %q, fix %q", sentence, fix)
	}
}

// A controller knows the URL of its queue, but possibly neither the cluster's name
// nor the account.
func TestCauseWithQueueURLOnly(t *testing.T) {
	a := newAccount(t)
	a.putRule(eventbridge.PutRuleInput{Name: aws.String(a.rule("spot-interruption")), EventPattern: aws.String(misspelt)})
	target := doctor.Target{Desired: awssetup.Desired("", "", a.server.Region()), QueueURL: a.url}
	sentence, fix := doctor.Cause(t.Context(), doctor.NewClients(a.queues, a.events), target, notice.KindSpotInterruption)
	want := "aws events put-rule --name lifeboat-prod-spot-interruption --event-pattern '" + a.want.Rules[0].Pattern + "'"
	if !strings.HasPrefix(sentence, "rule lifeboat-prod-spot-interruption: ") || fix != want {
		t.Errorf("cause %q, fix %q", sentence, fix)
	}
	if _, err := a.queues.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &a.url}); err != nil {
		t.Fatal(err)
	}
	if sentence, _ := doctor.Cause(t.Context(), doctor.NewClients(a.queues, a.events), target, notice.KindSpotInterruption); !strings.Contains(sentence, "the queue does not exist") {
		t.Errorf("cause %q", sentence)
	}
}

func TestReadAccountReadsAllPages(t *testing.T) {
	a := newAccount(t)
	for i := range 120 { // more than a page
		a.putRule(eventbridge.PutRuleInput{
			Name: aws.String("a-" + strings.Repeat("x", i%40) + string(rune('a'+i/40))), EventPattern: aws.String(`{"source":["mine"]}`),
		})
	}
	if all := a.diagnose(doctor.Cluster{}); len(all) > 0 {
		t.Errorf("findings:\n%s", text(all))
	}
	for i := range 112 { // 240 with the first ones and Lifeboat's own
		a.putRule(eventbridge.PutRuleInput{Name: aws.String(fmt.Sprintf("b-%d", i)), EventPattern: aws.String(`{"source":["mine"]}`)})
	}
	if got := text(a.diagnose(doctor.Cluster{})); !strings.Contains(got, "warning rule-quota: bus default") || !strings.Contains(got, "240 rules") {
		t.Errorf("findings with 240 rules:\n%s", got)
	}
	if n := a.server.Gate.Calls("events", "ListRules"); n < 2 {
		t.Errorf("%d calls of ListRules", n)
	}
}
