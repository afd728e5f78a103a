package diagnose_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	ebtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/emulator"
	"github.com/lifeboat-dev/lifeboat/emulator/emulatortest"
	"github.com/lifeboat-dev/lifeboat/emulator/wire"
	"github.com/lifeboat-dev/lifeboat/internal/finding"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
	"github.com/lifeboat-dev/lifeboat/internal/wiring"
	"github.com/lifeboat-dev/lifeboat/internal/wiring/diagnose"
)

// account is an emulated account with Lifeboat's wiring in it.
type account struct {
	t      *testing.T
	server *emulator.Server
	queues *sqs.Client
	events *eventbridge.Client
	want   wiring.Wiring
	url    string
}

func newAccount(t *testing.T) *account {
	t.Helper()
	server, url := emulatortest.Serve(t, emulator.Options{})
	a := &account{t: t, server: server, want: wiring.Wanted("prod", server.Account(), server.Region())}
	cfg := aws.Config{
		Region: server.Region(), BaseEndpoint: &url, Credentials: credentials.NewStaticCredentialsProvider("AKIAEXAMPLE", "x", ""),
	}
	a.queues, a.events = sqs.NewFromConfig(cfg), eventbridge.NewFromConfig(cfg)
	applied, err := wiring.Apply(t.Context(), wiring.Clients{SQS: a.queues, Events: a.events}, a.want)
	if err != nil {
		t.Fatal(err)
	}
	a.url = applied.QueueURL
	return a
}

// must fails the test for an error of setting it up.
func (a *account) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

func (a *account) rule(role string) string { return wiring.RuleName("prod", role) }

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

func (a *account) diagnose(cluster diagnose.Cluster) []finding.Finding {
	a.t.Helper()
	s, err := diagnose.Look(a.t.Context(), diagnose.NewClients(a.queues, a.events), diagnose.Target{Want: a.want})
	a.must(err)
	return diagnose.Run(s, a.want, cluster)
}

// brief is a finding without its words.
func brief(all []finding.Finding) []string {
	out := []string{}
	for _, f := range all {
		out = append(out, string(f.Severity)+" "+f.ID+" "+f.Object)
	}
	return out
}

func TestLifeboatsOwnWiringIsSound(t *testing.T) {
	a := newAccount(t)
	if all := a.diagnose(diagnose.Cluster{}); len(all) > 0 {
		t.Errorf("findings:\n%s", text(all))
	}
}

const misspelt = `{"source":["aws.ec2","lifeboat.dev"],"detail-type":["EC2 Spot Interruption Warning"]}`

// breakages are what people and programs do to a wiring.
var breakages = []struct {
	name string
	do   func(*account)
	// want are the findings: severity, id, object.
	want []string
	// cause is a part of what Cause says of a missing spot warning, and fix of the
	// mend.
	cause, fix string
}{
	{
		name: "the spot rule is misspelt as in the field",
		do: func(a *account) {
			a.putRule(eventbridge.PutRuleInput{Name: aws.String(a.rule("spot-interruption")), EventPattern: aws.String(misspelt)})
		},
		want:  []string{"broken rule-matches-nothing rule lifeboat-prod-spot-interruption"},
		cause: `did you mean "EC2 Spot Instance Interruption Warning"`, fix: "lifeboat wire apply --cluster prod",
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
			a.must(wiring.RemoveRules(a.t.Context(), a.events, []wiring.Rule{{Name: a.rule("spot-interruption")}}))
		},
		want:  []string{"broken kind-uncovered kind SpotInterruption"},
		cause: "no rule brings such notices", fix: "lifeboat wire apply --cluster prod",
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
		cause: "and not to the queue lifeboat-prod", fix: "lifeboat wire apply",
	},
	{
		name: "the spot rule has no target",
		do: func(a *account) {
			_, err := a.events.RemoveTargets(a.t.Context(), &eventbridge.RemoveTargetsInput{Rule: aws.String(a.rule("spot-interruption")), Ids: []string{"lifeboat-queue"}})
			a.must(err)
		},
		want:  []string{"broken rule-no-target rule lifeboat-prod-spot-interruption"},
		cause: "goes nowhere", fix: "lifeboat wire apply",
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
		cause: "InputTransformer", fix: "lifeboat wire apply",
	},
	{
		name: "the spot rule is on a bus of its own",
		do: func(a *account) {
			_, err := a.events.CreateEventBus(a.t.Context(), &eventbridge.CreateEventBusInput{Name: aws.String("nodes")})
			a.must(err)
			a.must(wiring.RemoveRules(a.t.Context(), a.events, []wiring.Rule{{Name: a.rule("spot-interruption")}}))
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
		cause: "its policy lets EventBridge in for other rules only", fix: "lifeboat wire apply",
	},
	{
		name:  "the queue has no policy",
		do:    func(a *account) { a.set(map[string]string{"Policy": ""}) },
		want:  []string{"broken queue-policy-refuses queue lifeboat-prod"},
		cause: "it has no policy", fix: "lifeboat wire apply",
	},
	{
		name: "the policy lets everybody in",
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
		cause: "there is no such queue", fix: "lifeboat wire apply",
	},
	{
		name:  "the queue is encrypted with AWS's key",
		do:    func(a *account) { a.set(map[string]string{"KmsMasterKeyId": "alias/aws/sqs"}) },
		want:  []string{"broken queue-encryption-aws-key queue lifeboat-prod"},
		cause: "alias/aws/sqs", fix: "lifeboat wire apply",
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
		name: "a rule brings it a second time, and another that is misspelt sends elsewhere",
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
		name: "Karpenter's queue hears the same",
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
		cause: "that part of the wiring was not looked at", fix: "events:ListRules",
	},
	{
		name:  "the doctor may not see the queue's attributes",
		do:    func(a *account) { a.server.Gate.Deny("sqs", "GetQueueAttributes") },
		want:  []string{"unknown permission-missing permission sqs:GetQueueAttributes"},
		cause: "that part of the wiring was not looked at",
	},
	{
		name:  "the doctor may not ask EventBridge about patterns",
		do:    func(a *account) { a.server.Gate.Deny("events", "TestEventPattern") },
		want:  []string{"info permission-missing permission events:TestEventPattern"},
		cause: "best-effort",
	},
	{
		name: "AWS throttles a while",
		do: func(a *account) {
			a.server.Gate.Throttle("events", "ListTargetsByRule", 1)
			a.server.Gate.Throttle("sqs", "GetQueueAttributes", 1)
		},
		want:  []string{},
		cause: "best-effort",
	},
}

func TestWhatIsBrokenIsFound(t *testing.T) {
	for _, tc := range breakages {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t)
			tc.do(a)
			all := a.diagnose(diagnose.Cluster{})
			if diff := cmp.Diff(tc.want, brief(all)); diff != "" {
				t.Errorf("findings (-want +got):\n%s\n%s", diff, text(all))
			}
			for _, f := range all {
				if f.Fix == "" || f.Problem == "" || !slices.Contains(diagnose.IDs(), f.ID) {
					t.Errorf("%+v", f)
				}
			}
			sentence, fix := diagnose.Cause(t.Context(), diagnose.NewClients(a.queues, a.events), diagnose.Target{Want: a.want}, notice.KindSpotInterruption)
			if !strings.Contains(sentence, tc.cause) || !strings.Contains(fix, tc.fix) {
				t.Errorf("cause %q, mend %q, want %q and %q in them", sentence, fix, tc.cause, tc.fix)
			}
		})
	}
}

// skewed is a transport that sets the clock of AWS.
type skewed struct{ by time.Duration }

// Do sends a request and changes the answer's date.
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
		clients := diagnose.NewClients(sqs.New(a.queues.Options(), func(o *sqs.Options) { o.HTTPClient = skewed{by} }), a.events)
		s, err := diagnose.Look(t.Context(), clients, diagnose.Target{Want: a.want})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(brief(diagnose.Run(s, a.want, diagnose.Cluster{})), ""); got != want {
			t.Errorf("a clock that is %s ahead: %q, want %q", by, got, want)
		}
	}
}

func TestCannotLook(t *testing.T) {
	a := newAccount(t)
	clients := diagnose.NewClients(a.queues, a.events)
	look := func(ctx context.Context, clients diagnose.Clients, target diagnose.Target) error {
		_, err := diagnose.Look(ctx, clients, target)
		return err
	}

	var misplaced *diagnose.MisplacedError
	for _, url := range []string{"https://sqs.us-east-1.amazonaws.com/999999999999/q", "https://sqs.eu-west-1.amazonaws.com/123456789012/q"} {
		if err := look(t.Context(), clients, diagnose.Target{Want: a.want, QueueURL: url}); !errors.As(err, &misplaced) {
			t.Errorf("%s: %v", url, err)
		}
	}
	away := sqs.New(a.queues.Options(), func(o *sqs.Options) { o.BaseEndpoint, o.RetryMaxAttempts = aws.String("http://127.0.0.1:1"), 1 })
	if err := look(t.Context(), diagnose.NewClients(away, a.events), diagnose.Target{Want: a.want}); err == nil || !strings.Contains(err.Error(), "sqs:GetQueueUrl of queue lifeboat-prod") {
		t.Errorf("nobody answers: %v", err)
	}
	a.server.Gate.Deny("sqs", wire.AnyAction)
	a.server.Gate.Deny("events", wire.AnyAction)
	var denied *diagnose.DeniedError
	if err := look(t.Context(), clients, diagnose.Target{Want: a.want}); !errors.As(err, &denied) || !slices.Contains(denied.Actions, "sqs:GetQueueUrl") {
		t.Errorf("all denied: %v", err)
	}

	a.server.Gate.LiftAll()
	a.server.Gate.Hang("sqs", "GetQueueUrl")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	sentence, fix := diagnose.Cause(ctx, clients, diagnose.Target{Want: a.want}, notice.KindSpotInterruption)
	if !strings.Contains(sentence, "could not be looked at") || fix != "lifeboat doctor --cluster prod" {
		t.Errorf("cause %q, mend %q", sentence, fix)
	}
}

func TestCauseOfWhatTheQueueDoesNotBring(t *testing.T) {
	sentence, fix := diagnose.Cause(t.Context(), diagnose.Clients{}, diagnose.Target{}, notice.KindInstanceStatus)
	if !strings.Contains(sentence, "do not come through the queue") || fix != "" {
		t.Errorf("cause %q, mend %q", sentence, fix)
	}
}

// A controller knows the address of its queue, and perhaps neither the cluster's
// name nor the account.
func TestCauseByTheAddressOfTheQueueAlone(t *testing.T) {
	a := newAccount(t)
	a.putRule(eventbridge.PutRuleInput{Name: aws.String(a.rule("spot-interruption")), EventPattern: aws.String(misspelt)})
	target := diagnose.Target{Want: wiring.Wanted("", "", a.server.Region()), QueueURL: a.url}
	sentence, fix := diagnose.Cause(t.Context(), diagnose.NewClients(a.queues, a.events), target, notice.KindSpotInterruption)
	want := "aws events put-rule --name lifeboat-prod-spot-interruption --event-pattern '" + a.want.Rules[0].Pattern + "'"
	if !strings.HasPrefix(sentence, "rule lifeboat-prod-spot-interruption: ") || fix != want {
		t.Errorf("cause %q, mend %q", sentence, fix)
	}
	if _, err := a.queues.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &a.url}); err != nil {
		t.Fatal(err)
	}
	if sentence, _ := diagnose.Cause(t.Context(), diagnose.NewClients(a.queues, a.events), target, notice.KindSpotInterruption); !strings.Contains(sentence, "there is no such queue") {
		t.Errorf("cause %q", sentence)
	}
}

func TestLookPages(t *testing.T) {
	a := newAccount(t)
	for i := range 120 { // more than a page
		a.putRule(eventbridge.PutRuleInput{
			Name: aws.String("a-" + strings.Repeat("x", i%40) + string(rune('a'+i/40))), EventPattern: aws.String(`{"source":["mine"]}`),
		})
	}
	if all := a.diagnose(diagnose.Cluster{}); len(all) > 0 {
		t.Errorf("findings:\n%s", text(all))
	}
	if n := a.server.Gate.Calls("events", "ListRules"); n < 2 {
		t.Errorf("%d calls of ListRules", n)
	}
}
