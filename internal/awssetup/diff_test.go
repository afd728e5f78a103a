package awssetup_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
)

func testWiring() awssetup.Wiring { return awssetup.Desired("prod", "210987654321", "eu-west-1") }

// upToDate returns an account that has the desired wiring.
func upToDate(t *testing.T, w awssetup.Wiring) awssetup.Observed {
	t.Helper()
	queue, err := w.QueueAttributes()
	if err != nil {
		t.Fatal(err)
	}
	deadLetter, err := w.DeadLetterAttributes()
	if err != nil {
		t.Fatal(err)
	}
	o := awssetup.Observed{
		Queue:      awssetup.ObservedQueue{URL: "https://sqs/q", Attributes: queue, Tags: w.Tags()},
		DeadLetter: awssetup.ObservedQueue{URL: "https://sqs/d", Attributes: deadLetter, Tags: w.Tags()},
	}
	for _, r := range w.Rules {
		o.Rules = append(o.Rules, awssetup.ObservedRule{
			Name: r.Name, ARN: w.RuleARN(r.Name), Description: r.Description, Pattern: r.Pattern, State: "ENABLED", Tags: w.Tags(),
			Targets: []awssetup.Target{{ID: "lifeboat-queue", ARN: w.QueueARN(), DeadLetterARN: w.DeadLetterARN()}},
		})
	}
	return o
}

// lines returns a plan with one line per change.
func lines(p awssetup.Plan) []string {
	var out []string
	for _, c := range p.Changes {
		line := string(c.Action) + " " + c.Name
		for _, f := range c.Fields {
			if c.Action == awssetup.Update {
				line += ", " + f.Name + ": " + f.Was + " -> " + f.WillBe
			}
		}
		out = append(out, line)
	}
	for _, c := range p.Conflicts {
		line := "conflict " + c.Name
		for _, f := range c.Fields {
			line += ", " + f.Name
		}
		out = append(out, line+": "+c.Reason)
	}
	for _, n := range p.Notes {
		out = append(out, "note: "+n)
	}
	return out
}

const cloudFormation = "cloudformation"

func TestDiff(t *testing.T) {
	w := testWiring()
	foreign := map[string]string{"team": "a"}
	for _, tc := range []struct {
		name    string
		drift   func(*awssetup.Observed)
		options awssetup.Options
		want    []string
	}{
		{"no differences", func(*awssetup.Observed) {}, awssetup.Options{}, nil},
		{"written in another way", func(o *awssetup.Observed) {
			o.Queue.Attributes["RedrivePolicy"] = `{"maxReceiveCount":"30", "deadLetterTargetArn":"` + w.DeadLetterARN() + `"}`
			o.Rules[0].Pattern = "{\n \"detail-type\": [\"EC2 Spot Instance Interruption Warning\"], \"source\": [\"lifeboat.dev\", \"aws.ec2\"]}"
		}, awssetup.Options{}, nil},
		{"a rule is gone", func(o *awssetup.Observed) { o.Rules = o.Rules[1:] }, awssetup.Options{},
			[]string{"create lifeboat-prod-spot-interruption"}},
		{"a queue is gone", func(o *awssetup.Observed) { o.Queue = awssetup.ObservedQueue{} }, awssetup.Options{},
			[]string{"create lifeboat-prod"}},
		{"attributes drifted", func(o *awssetup.Observed) {
			o.Queue.Attributes["MessageRetentionPeriod"] = "300"
			o.Queue.Attributes["DelaySeconds"] = "60"
			delete(o.DeadLetter.Attributes, "RedriveAllowPolicy")
		}, awssetup.Options{}, []string{
			`update lifeboat-prod-dead-letter, RedriveAllowPolicy:  -> {"redrivePermission":"byQueue","sourceQueueArns":["arn:aws:sqs:eu-west-1:210987654321:lifeboat-prod"]}`,
			"update lifeboat-prod, DelaySeconds: 60 -> 0, MessageRetentionPeriod: 300 -> 345600",
		}},
		{"a small message size", func(o *awssetup.Observed) {
			o.Queue.Attributes["MaximumMessageSize"], o.DeadLetter.Attributes["MaximumMessageSize"] = "1024", "1048576"
		}, awssetup.Options{}, []string{"update lifeboat-prod, MaximumMessageSize: 1024 -> 262144"}},
		{"a KMS key", func(o *awssetup.Observed) {
			o.Queue.Attributes["KmsMasterKeyId"], o.Queue.Attributes["SqsManagedSseEnabled"] = "alias/aws/sqs", "false"
		}, awssetup.Options{}, []string{"update lifeboat-prod, KmsMasterKeyId: alias/aws/sqs -> , SqsManagedSseEnabled: false -> true"}},
		{"a rule drifted", func(o *awssetup.Observed) {
			o.Rules[0].Pattern = `{"source":["aws.ec2"],"detail-type":["EC2 Spot Interruption Warning"]}`
			o.Rules[0].State = "DISABLED"
			o.Rules[1].Targets[0].InputTemplate = "<x>"
			o.Rules[2].Targets = nil
		}, awssetup.Options{}, []string{
			`update lifeboat-prod-spot-interruption, EventPattern: {"source":["aws.ec2"],"detail-type":["EC2 Spot Interruption Warning"]} -> ` +
				w.Rules[0].Pattern + ", State: DISABLED -> ENABLED",
			"update lifeboat-prod-rebalance, Target.InputTransformer.InputTemplate: <x> -> ",
			"update lifeboat-prod-state-change, Target.Arn:  -> " + w.QueueARN() + ", Target.DeadLetterConfig.Arn:  -> " + w.DeadLetterARN(),
		}},
		{"a foreign queue with the name", func(o *awssetup.Observed) {
			o.Queue.Tags, o.Queue.Attributes["VisibilityTimeout"] = foreign, "30"
		}, awssetup.Options{}, []string{
			"conflict lifeboat-prod, VisibilityTimeout: `lifeboat aws` did not create it (it has no tag lifeboat.dev/cluster=prod)",
		}},
		{"it is adopted", func(o *awssetup.Observed) {
			o.Queue.Tags, o.Queue.Attributes["VisibilityTimeout"] = foreign, "30"
		}, awssetup.Options{Adopt: true}, []string{
			"update lifeboat-prod, VisibilityTimeout: 30 -> 10, Tag lifeboat.dev/cluster:  -> prod, Tag lifeboat.dev/managed-by:  -> lifeboat",
		}},
		{"another cluster's rule", func(o *awssetup.Observed) {
			o.Rules[0].Tags, o.Rules[0].State = map[string]string{awssetup.TagCluster: "other", awssetup.TagManagedBy: "lifeboat"}, "DISABLED"
		}, awssetup.Options{}, []string{
			"conflict lifeboat-prod-spot-interruption, State: it belongs to another cluster (its tag lifeboat.dev/cluster says other)",
		}},
		{"created by a template, without differences", func(o *awssetup.Observed) {
			o.DeadLetter.Tags = map[string]string{awssetup.TagCluster: "prod", awssetup.TagManagedBy: cloudFormation}
		}, awssetup.Options{}, []string{
			"note: queue lifeboat-prod-dead-letter has the desired configuration, but Lifeboat may not change or delete it: " +
				"it is managed by cloudformation (tag lifeboat.dev/managed-by)",
		}},
		{"a tag is gone", func(o *awssetup.Observed) { o.Queue.Tags = map[string]string{awssetup.TagCluster: "prod"} }, awssetup.Options{},
			[]string{"update lifeboat-prod, Tag lifeboat.dev/managed-by:  -> lifeboat"}},
		{"a rule of an older release", func(o *awssetup.Observed) {
			o.Rules = append(o.Rules, awssetup.ObservedRule{Name: "lifeboat-prod-old", Tags: w.Tags(), Targets: []awssetup.Target{{ID: "lifeboat-queue"}}})
		}, awssetup.Options{}, []string{"delete lifeboat-prod-old"}},
		{"a rule of an older release with a foreign target", func(o *awssetup.Observed) {
			o.Rules = append(o.Rules, awssetup.ObservedRule{Name: "lifeboat-prod-old", Tags: w.Tags(), Targets: []awssetup.Target{{ID: "theirs", ARN: "arn:x"}}})
		}, awssetup.Options{}, []string{"conflict lifeboat-prod-old: it has a target that Lifeboat does not manage (theirs, to arn:x)"}},
		{"a foreign target on Lifeboat's rule", func(o *awssetup.Observed) {
			o.Rules[0].Targets = append(o.Rules[0].Targets, awssetup.Target{ID: "theirs", ARN: "arn:x"})
		}, awssetup.Options{}, []string{"note: rule lifeboat-prod-spot-interruption also has a target that Lifeboat does not manage (theirs, to arn:x): the plan does not change it"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := upToDate(t, w)
			tc.drift(&o)
			plan, err := awssetup.Diff(w, o, tc.options)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, lines(plan)); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
			if left := slices.ContainsFunc(tc.want, func(l string) bool { return !strings.HasPrefix(l, "note") }); plan.Empty() == left {
				t.Errorf("empty: %v", plan.Empty())
			}
		})
	}
}

func TestNewAccountPlanCreatesInDependencyOrder(t *testing.T) {
	w := testWiring()
	plan, err := awssetup.Diff(w, awssetup.Observed{}, awssetup.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"create lifeboat-prod-dead-letter", "create lifeboat-prod"}
	for _, r := range w.Rules {
		want = append(want, "create "+r.Name)
	}
	if diff := cmp.Diff(want, lines(plan)); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	queue := map[string]string{}
	for _, f := range plan.Changes[1].Fields {
		queue[f.Name] = f.WillBe
	}
	wantQueue := map[string]string{
		"VisibilityTimeout": "10", "MessageRetentionPeriod": "345600", "ReceiveMessageWaitTimeSeconds": "20", "SqsManagedSseEnabled": "true", "DelaySeconds": "0",
		"RedrivePolicy": `{"deadLetterTargetArn":"arn:aws:sqs:eu-west-1:210987654321:lifeboat-prod-dead-letter","maxReceiveCount":30}`,
		"Policy":        policyOf(w, w.QueueARN()), "Tag lifeboat.dev/cluster": "prod", "Tag lifeboat.dev/managed-by": "lifeboat",
	}
	if diff := cmp.Diff(wantQueue, queue); diff != "" {
		t.Errorf("queue (-want +got):\n%s", diff)
	}
}

// policyOf returns the expected policy of a queue.
func policyOf(w awssetup.Wiring, queue string) string {
	var rules []string
	for _, r := range w.Rules {
		rules = append(rules, `"`+w.RuleARN(r.Name)+`"`)
	}
	return `{"Version":"2012-10-17","Statement":[{"Sid":"LifeboatRules","Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},` +
		`"Action":"sqs:SendMessage","Resource":"` + queue + `","Condition":{"ArnEquals":{"aws:SourceArn":[` + strings.Join(rules, ",") +
		`]},"StringEquals":{"aws:SourceAccount":"` + w.Account + `"}}},` +
		`{"Sid":"DenyPlainHTTP","Effect":"Deny","Principal":"*","Action":"sqs:*","Resource":"` + queue + `","Condition":{"Bool":{"aws:SecureTransport":"false"}}},` +
		`{"Sid":"DenyOtherSenders","Effect":"Deny","Principal":"*","Action":"sqs:SendMessage","Resource":"` + queue +
		`","Condition":{"ArnNotEquals":{"aws:SourceArn":[` + strings.Join(rules, ",") + `]}}}]}`
}

func TestTeardown(t *testing.T) {
	w := testWiring()
	o := upToDate(t, w)
	o.Rules = o.Rules[:3]
	o.Rules[1].Tags = map[string]string{}
	o.Rules[2].Targets = append(o.Rules[2].Targets, awssetup.Target{ID: "theirs", ARN: "arn:x"})
	o.Queue.Attributes = maps.Clone(o.Queue.Attributes)
	o.Queue.Attributes["ApproximateNumberOfMessages"], o.Queue.Attributes["ApproximateNumberOfMessagesNotVisible"] = "3", "2"
	o.DeadLetter.Tags[awssetup.TagManagedBy] = cloudFormation
	want := []string{
		"delete lifeboat-prod-spot-interruption", "delete lifeboat-prod",
		"conflict lifeboat-prod-state-change: it has a target that Lifeboat does not manage (theirs, to arn:x)",
		"note: rule lifeboat-prod-rebalance stays: `lifeboat aws` did not create it (it has no tag lifeboat.dev/cluster=prod)",
		"note: queue lifeboat-prod-dead-letter stays: it is managed by cloudformation (tag lifeboat.dev/managed-by)",
	}
	plan := awssetup.Teardown(w, o, awssetup.Options{})
	if diff := cmp.Diff(want, lines(plan)); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
	if reason := plan.Changes[1].Reason; reason != "about 5 messages in it will be deleted" {
		t.Errorf("reason of the queue's deletion: %s", reason)
	}
	if plan := awssetup.Teardown(w, awssetup.Observed{}, awssetup.Options{}); !plan.Empty() {
		t.Errorf("an empty account: %v", lines(plan))
	}
}
