package doctor_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lifeboat-dev/lifeboat/internal/doctor"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// Each call of the doctor fails in turn: the others still give their findings, and the
// failed call is one of them.
func TestFailedCallHidesNoOtherFinding(t *testing.T) {
	for _, call := range []struct {
		service, action string
		severity        finding.Severity
		// hides is true if the misspelt rule cannot be found without the call.
		hides bool
	}{
		{"sqs", "GetQueueUrl", finding.Unknown, false},
		{"sqs", "GetQueueAttributes", finding.Unknown, false},
		{"sqs", "ListQueueTags", finding.Info, false},
		{"sqs", "DeleteMessage", finding.Info, false},
		{"sqs", "ChangeMessageVisibility", finding.Info, false},
		{"events", "ListRules", finding.Unknown, true},
		{"events", "ListRuleNamesByTarget", finding.Unknown, false},
		{"events", "ListTargetsByRule", finding.Unknown, false},
		{"events", "ListEventBuses", finding.Info, false},
		{"events", "TestEventPattern", finding.Info, false},
	} {
		t.Run(call.action, func(t *testing.T) {
			t.Parallel()
			a := newAccount(t)
			a.putRule(eventbridge.PutRuleInput{Name: aws.String(a.rule("spot-interruption")), EventPattern: aws.String(misspelt)})
			a.server.Gate.Fail(call.service, call.action)
			queues := sqs.New(a.queues.Options(), func(o *sqs.Options) { o.RetryMaxAttempts = 1 })
			events := eventbridge.New(a.events.Options(), func(o *eventbridge.Options) { o.RetryMaxAttempts = 1 })
			s, err := doctor.ReadAccount(t.Context(), doctor.NewClients(queues, events), doctor.Target{Desired: a.want})
			if err != nil {
				t.Fatal(err)
			}
			all := doctor.Run(s, a.want, doctor.Cluster{})
			has := func(severity finding.Severity, id, object string) bool {
				return slices.ContainsFunc(all, func(f finding.Finding) bool {
					return f.Severity == severity && f.ID == id && f.Object == object && f.Fix != ""
				})
			}
			if !has(call.severity, "call-failed", "call "+call.service+":"+call.action) {
				t.Errorf("the failed call is no finding:\n%s", text(all))
			}
			if !call.hides && !has(finding.Broken, "rule-matches-nothing", "rule lifeboat-prod-spot-interruption") {
				t.Errorf("the misspelt rule is not found:\n%s", text(all))
			}
			for _, f := range all {
				if f.ID == "permission-missing" || f.ID == "queue-missing" || f.ID == "kind-uncovered" {
					t.Errorf("%s: %s", f.ID, f.Problem)
				}
			}
		})
	}
}

func TestIfNoCallIsAnsweredThatIsTheError(t *testing.T) {
	a := newAccount(t)
	a.server.Gate.Fail("sqs", "*")
	a.server.Gate.Fail("events", "*")
	queues := sqs.New(a.queues.Options(), func(o *sqs.Options) { o.RetryMaxAttempts = 1 })
	events := eventbridge.New(a.events.Options(), func(o *eventbridge.Options) { o.RetryMaxAttempts = 1 })
	_, err := doctor.ReadAccount(t.Context(), doctor.NewClients(queues, events), doctor.Target{Desired: a.want})
	if err == nil || !strings.Contains(err.Error(), "sqs:GetQueueUrl") || strings.Contains(err.Error(), "denied") {
		t.Errorf("%v", err)
	}
}

// SQS accepts a dead-letter queue that is deleted later.
func TestMissingDeadLetterQueueIsFound(t *testing.T) {
	a := newAccount(t)
	url := strings.TrimSuffix(a.url, "lifeboat-prod") + "lifeboat-prod-dead-letter"
	if _, err := a.queues.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: &url}); err != nil {
		t.Fatal(err)
	}
	all := a.diagnose(doctor.Cluster{})
	if len(all) != 1 || all[0].ID != "dead-letter-absent" || all[0].Severity != finding.Warning ||
		!strings.Contains(all[0].Problem, "queue lifeboat-prod and 8 targets of its rules") || all[0].Fix != "lifeboat aws setup --cluster prod" {
		t.Errorf("findings:\n%s", text(all))
	}
}
