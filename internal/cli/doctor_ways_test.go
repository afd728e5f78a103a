package cli

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	ebtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// breakage is one way to break a working wiring.
type breakage struct {
	name string
	do   func(*wiringToBreak)
	// want is the id of the finding that must be among those of the doctor.
	want string
}

// wiringToBreak breaks Lifeboat's wiring in an emulated account.
type wiringToBreak struct{ *awsAccount }

const brokenRule = "lifeboat-prod-spot-interruption"

func (w *wiringToBreak) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *wiringToBreak) pattern(text string) {
	_, err := w.rules.PutRule(w.t.Context(), &eventbridge.PutRuleInput{Name: aws.String(brokenRule), EventPattern: &text})
	w.must(err)
}

func (w *wiringToBreak) target(edit func(*ebtypes.Target)) {
	out, err := w.rules.ListTargetsByRule(w.t.Context(), &eventbridge.ListTargetsByRuleInput{Rule: aws.String(brokenRule)})
	w.must(err)
	edit(&out.Targets[0])
	_, err = w.rules.PutTargets(w.t.Context(), &eventbridge.PutTargetsInput{Rule: aws.String(brokenRule), Targets: out.Targets})
	w.must(err)
}

func (w *wiringToBreak) queueURL(name string) *string {
	return aws.String(w.url + "/123456789012/" + name)
}

func (w *wiringToBreak) set(queue, attribute, value string) {
	_, err := w.queues.SetQueueAttributes(w.t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: w.queueURL(queue), Attributes: map[string]string{attribute: value}})
	w.must(err)
}

func patternOf(detailType, detail string) string {
	return `{"source":["aws.ec2","lifeboat.dev"],"detail-type":["` + detailType + `"]` + detail + `}`
}

const spotWarning = "EC2 Spot Instance Interruption Warning"

func breakages() []breakage {
	pattern := func(text string) func(*wiringToBreak) { return func(w *wiringToBreak) { w.pattern(text) } }
	queue := func(attribute, value string) func(*wiringToBreak) {
		return func(w *wiringToBreak) { w.set("lifeboat-prod", attribute, value) }
	}
	return []breakage{
		{"the detail-type is misspelt", pattern(patternOf("EC2 Spot Interruption Warning", "")), "rule-matches-nothing"},
		{"the detail-type is in lower case", pattern(patternOf("ec2 spot instance interruption warning", "")), "rule-matches-nothing"},
		{"the key is written in camel case", pattern(`{"source":["aws.ec2"],"detailType":["` + spotWarning + `"]}`), "rule-matches-nothing"},
		{"the source is another service's", pattern(`{"source":["aws.autoscaling"],"detail-type":["` + spotWarning + `"]}`), "rule-matches-nothing"},
		{"one action only", pattern(patternOf(spotWarning, `,"detail":{"instance-action":["hibernate"]}`)), "kind-partly-covered"},
		{"one instance only", pattern(patternOf(spotWarning, `,"detail":{"instance-id":["i-0fedcba9876543210"]}`)), "kind-partly-covered"},
		{"another account's events", pattern(`{"source":["aws.ec2"],"account":["999999999999"],"detail-type":["` + spotWarning + `"]}`), "kind-uncovered"},
		{"another region's events", pattern(`{"source":["aws.ec2"],"region":["ap-south-1"],"detail-type":["` + spotWarning + `"]}`), "kind-uncovered"},
		{"the rule is disabled", func(w *wiringToBreak) {
			_, err := w.rules.DisableRule(w.t.Context(), &eventbridge.DisableRuleInput{Name: aws.String(brokenRule)})
			w.must(err)
		}, "rule-disabled"},
		{"the rule is gone", func(w *wiringToBreak) {
			_, err := w.rules.RemoveTargets(w.t.Context(), &eventbridge.RemoveTargetsInput{Rule: aws.String(brokenRule), Ids: []string{"lifeboat-queue"}})
			w.must(err)
			_, err = w.rules.DeleteRule(w.t.Context(), &eventbridge.DeleteRuleInput{Name: aws.String(brokenRule)})
			w.must(err)
		}, "kind-uncovered"},
		{"the target is gone", func(w *wiringToBreak) {
			_, err := w.rules.RemoveTargets(w.t.Context(), &eventbridge.RemoveTargetsInput{Rule: aws.String(brokenRule), Ids: []string{"lifeboat-queue"}})
			w.must(err)
		}, "rule-no-target"},
		{"the target is another queue", func(w *wiringToBreak) {
			w.target(func(t *ebtypes.Target) { t.Arn = aws.String("arn:aws:sqs:us-east-1:123456789012:other") })
		}, "rule-wrong-target"},
		{"the target has an input", func(w *wiringToBreak) { w.target(func(t *ebtypes.Target) { t.Input = aws.String(`{"a":1}`) }) }, "target-input-changed"},
		{"the target has an input path", func(w *wiringToBreak) { w.target(func(t *ebtypes.Target) { t.InputPath = aws.String("$.detail") }) }, "target-input-changed"},
		{"the target has a transformer", func(w *wiringToBreak) {
			w.target(func(t *ebtypes.Target) {
				t.InputTransformer = &ebtypes.InputTransformer{InputTemplate: aws.String(`"x"`)}
			})
		}, "target-input-changed"},
		{"the target has no dead-letter queue", func(w *wiringToBreak) { w.target(func(t *ebtypes.Target) { t.DeadLetterConfig = nil }) }, "target-dead-letter-missing"},
		{"the queue has no policy", queue("Policy", ""), "queue-policy-refuses"},
		{"the policy is for another rule", queue("Policy", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},"Action":"sqs:SendMessage","Resource":"*","Condition":{"ArnEquals":{"aws:SourceArn":"arn:aws:events:us-east-1:123456789012:rule/other"}}}]}`), "queue-policy-refuses"},
		{"the policy is open", queue("Policy", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":"*","Action":"sqs:SendMessage","Resource":"*"}]}`), "queue-policy-open"},
		{"the policy denies", queue("Policy", `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},"Action":"sqs:SendMessage","Resource":"*"},{"Effect":"Deny","Principal":"*","Action":"sqs:SendMessage","Resource":"*"}]}`), "queue-policy-refuses"},
		{"the queue has AWS's key", queue("KmsMasterKeyId", "alias/aws/sqs"), "queue-encryption-aws-key"},
		{"the queue is not encrypted", queue("SqsManagedSseEnabled", "false"), "queue-unencrypted"},
		{"the retention is short", queue("MessageRetentionPeriod", "300"), "queue-retention-short"},
		{"the visibility timeout is long", queue("VisibilityTimeout", "600"), "queue-visibility-long"},
		{"the queue delays", queue("DelaySeconds", "60"), "queue-delay"},
		{"large messages are refused", queue("MaximumMessageSize", "1024"), "queue-message-size"},
		{"there is no dead-letter queue", queue("RedrivePolicy", ""), "dead-letter-missing"},
		{"good notices become dead letters", queue("RedrivePolicy", `{"deadLetterTargetArn":"arn:aws:sqs:us-east-1:123456789012:lifeboat-prod-dead-letter","maxReceiveCount":1}`), "dead-letter-max-receives"},
		{"dead letters expire on arrival", func(w *wiringToBreak) { w.set("lifeboat-prod-dead-letter", "MessageRetentionPeriod", "300") }, "dead-letter-retention-short"},
		{"dead letters are refused", func(w *wiringToBreak) { w.set("lifeboat-prod-dead-letter", "Policy", "") }, "target-dead-letter-refuses"},
	}
}

// perform runs what the doctor printed.
func (w *wiringToBreak) perform(fix string) {
	w.t.Helper()
	switch {
	case strings.HasPrefix(fix, "lifeboat aws setup --cluster prod"):
		arguments := []string{"setup", "--yes"}
		if _, groups, ok := strings.Cut(fix, " --groups "); ok {
			arguments = append(arguments, "--groups", strings.Fields(groups)[0])
		}
		w.want(w.aws(arguments...), ExitOK)
	case strings.HasPrefix(fix, "aws events enable-rule --name "):
		_, err := w.rules.EnableRule(w.t.Context(), &eventbridge.EnableRuleInput{Name: aws.String(strings.TrimPrefix(fix, "aws events enable-rule --name "))})
		w.must(err)
	default:
		w.t.Errorf("the fix %q is not one that this test can perform", fix)
	}
}

// The doctor finds each of the ways to break the wiring. What it prints repairs it.
func TestWaysToBreakTheWiring(t *testing.T) {
	if n := len(breakages()); n < 30 {
		t.Fatalf("%d ways", n)
	}
	for _, b := range breakages() {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			w := &wiringToBreak{newBrokenAccount(t)}
			b.do(w)
			found := w.findings(t.Context())
			if !slices.ContainsFunc(found, func(f [2]string) bool { return f[0] == b.want }) {
				t.Fatalf("found %q, want %s", found, b.want)
			}
			for round := 0; len(found) > 0 && round < 3; round++ {
				w.perform(found[0][1])
				found = w.findings(t.Context())
			}
			if len(found) > 0 {
				t.Errorf("what is printed does not repair it: %q", found)
			}
		})
	}
}

// findings runs the doctor, and returns id and fix of each finding.
func (w *wiringToBreak) findings(ctx context.Context) [][2]string {
	w.t.Helper()
	r := w.run(ctx, "doctor", "--sandbox=default", "--cluster", "prod", "-o", "json")
	var report doctorReport
	if err := json.Unmarshal([]byte(r.out), &report); err != nil {
		w.t.Fatalf("%v:\n%s%s", err, r.out, r.err)
	}
	var all [][2]string
	for _, f := range report.Findings {
		all = append(all, [2]string{f.ID, f.Fix})
	}
	return all
}

// lifeboat aws setup changes nothing for the rule of another, so that is not what is printed.
func TestFixForRuleOfOthers(t *testing.T) {
	w := &wiringToBreak{newBrokenAccount(t)}
	_, err := w.rules.PutRule(t.Context(), &eventbridge.PutRuleInput{Name: aws.String("own"), EventPattern: aws.String(patternOf(spotWarning, ""))})
	w.must(err)
	_, err = w.rules.PutTargets(t.Context(), &eventbridge.PutTargetsInput{Rule: aws.String("own"), Targets: []ebtypes.Target{{Id: aws.String("x"), Arn: aws.String("arn:aws:sqs:us-east-1:123456789012:lifeboat-prod")}}})
	w.must(err)
	fixes := map[string]string{}
	for _, f := range w.findings(t.Context()) {
		fixes[f[0]] = f[1]
	}
	const put = "aws events put-targets --rule own --targets '"
	targets, isCommand := strings.CutPrefix(fixes["target-dead-letter-missing"], put)
	if !isCommand || !strings.HasPrefix(fixes["queue-policy-refuses"], "add to its statement with Effect Deny the condition {") ||
		!strings.Contains(fixes["queue-policy-refuses"], "; and add the statement {") {
		t.Fatalf("%q", fixes)
	}
	var parsed []ebtypes.Target
	w.must(json.Unmarshal([]byte(strings.TrimSuffix(targets, "'")), &parsed))
	_, err = w.rules.PutTargets(t.Context(), &eventbridge.PutTargetsInput{Rule: aws.String("own"), Targets: parsed})
	w.must(err)
	for _, f := range w.findings(t.Context()) {
		if f[0] == "target-dead-letter-missing" {
			t.Errorf("%q remains", f)
		}
	}
}
