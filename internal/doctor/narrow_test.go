package doctor_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/template"
	"github.com/lifeboat-dev/lifeboat/internal/doctor"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// wiringOf is a sound wiring of one rule with this pattern.
func wiringOf(pattern, account, region string) snapshot.Snapshot {
	const queue = "arn:aws:sqs:eu-west-1:210987654321:q"
	return snapshot.Snapshot{
		Account: account, Region: region, Offline: true,
		Queues: []snapshot.Queue{
			{
				ARN: queue, Name: "q", Known: true, PolicyKnown: true, ManagedSSE: true, Retention: 96 * time.Hour, DeadLetterARN: queue + "-dead", MaxReceives: 30,
				Policy: `{"Statement":{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},"Action":"sqs:SendMessage","Resource":"` + queue + `",` +
					`"Condition":{"ArnEquals":{"aws:SourceArn":"arn:aws:events:eu-west-1:210987654321:rule/r"}}}}`,
			},
			{ARN: queue + "-dead", Name: "q-dead", Known: true, Retention: 336 * time.Hour, ManagedSSE: true},
		},
		Rules: []snapshot.Rule{{
			Name: "r", ARN: "arn:aws:events:eu-west-1:210987654321:rule/r", Enabled: true, TargetsKnown: true, Pattern: pattern,
			Targets: []snapshot.Target{{ID: "q", ARN: queue, DeadLetterARN: queue + "-dead"}},
		}},
	}
}

// ids are the severities and ids of the findings that are not about other kinds.
func ids(all []finding.Finding, kind string) []string {
	var got []string
	for _, f := range all {
		if len(f.Kinds) == 0 && f.ID != "kind-covered-twice" || slices.Contains(f.Kinds, kind) {
			got = append(got, string(f.Severity)+" "+f.ID)
		}
	}
	return got
}

func TestNarrowRules(t *testing.T) {
	spot := func(fields string) string {
		return `{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"]` + fields + `}`
	}
	const account, region = "210987654321", "eu-west-1"
	for _, tc := range []struct{ name, pattern, account, region, kind, want string }{
		{"all spot interruptions", spot(``), account, region, "SpotInterruption", ""},
		{"the instance of the example", spot(`,"detail":{"instance-id":["i-0a1b2c3d4e5f60718"]}`), account, region, "SpotInterruption", "broken kind-partly-covered"},
		{"another instance", spot(`,"detail":{"instance-id":["i-0123456789abcdef0"]}`), account, region, "SpotInterruption", "broken kind-partly-covered"},
		{"the resource of the example", spot(`,"resources":["arn:aws:ec2:eu-west-1b:instance/i-0a1b2c3d4e5f60718"]`), account, region, "SpotInterruption", "broken kind-partly-covered"},
		{"a zone", spot(`,"resources":[{"prefix":"arn:aws:ec2:eu-west-1c:"}]`), account, region, "SpotInterruption", "warning kind-partly-covered"},
		{"all zones", spot(`,"resources":[{"wildcard":"arn:aws:ec2:eu-west-1*:instance/*"}]`), account, region, "SpotInterruption", ""},
		{"node names", spot(`,"detail":{"instance-id":[{"prefix":"ip-"}]}`), account, region, "SpotInterruption", "broken rule-matches-nothing, broken kind-uncovered"},
		{"a past year", spot(`,"time":[{"prefix":"2023"}]`), account, region, "SpotInterruption", "broken kind-partly-covered"},
		{"only stops", spot(`,"detail":{"instance-action":["stop"]}`), account, region, "SpotInterruption", "broken kind-partly-covered"},
		{"another region, without an account", spot(`,"region":["us-east-1"]`), "", region, "SpotInterruption", "broken kind-uncovered"},
		{"another account, without a region", spot(`,"account":["111122223333"]`), account, "", "SpotInterruption", "broken kind-uncovered"},
		{"its region, without an account", spot(`,"region":["eu-west-1"]`), "", region, "SpotInterruption", ""},
		{"a zone as the region", spot(`,"region":["eu-west-1a"]`), "", "", "SpotInterruption", "broken rule-matches-nothing, broken kind-uncovered"},
		{"the domain of EC2 as the source", `{"source":["ec2.amazonaws.com"],"detail-type":["EC2 Spot Instance Interruption Warning"]}`, account, region, "SpotInterruption", "broken rule-matches-nothing"},
		{"a Health service in lower case", `{"source":["aws.health"],"detail-type":["AWS Health Event"],"detail":{"service":["ec2"]}}`, account, region, "ScheduledChange", "broken rule-matches-nothing"},
	} {
		all := doctor.Run(wiringOf(tc.pattern, tc.account, tc.region), awssetup.Desired("", "", ""), doctor.Cluster{})
		if got := strings.Join(ids(all, tc.kind), ", "); got != tc.want {
			t.Errorf("%s: %q, want %q\n%s", tc.name, got, tc.want, text(all))
		}
		for _, f := range all {
			if _, after, ok := strings.Cut(f.Fix, ": "); f.Fix == "" || ok && strings.TrimSpace(after) == "" {
				t.Errorf("%s: %s has an empty fix %q", tc.name, f.ID, f.Fix)
			}
		}
	}
}

// A part of a pattern that matches nothing has a fix, also if none can be inferred.
func TestDoubtHasFix(t *testing.T) {
	s := wiringOf(`{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"],"detail":{"instance-action":["terminate",{"prefix":"re"}]}}`, "210987654321", "eu-west-1")
	s.Rules[0].From = "wild.yaml, R"
	all := doctor.Run(s, awssetup.Desired("", "", ""), doctor.Cluster{})
	i := slices.IndexFunc(all, func(f finding.Finding) bool { return f.ID == "pattern-doubt" })
	if i < 0 || all[i].Fix != "in wild.yaml, R: compare detail.instance-action with an event that the rule should match" {
		t.Errorf("%s", text(all))
	}
}

// Narrowing a noisy rule keeps the other notices that it brings.
func TestNoiseFixKeepsSpot(t *testing.T) {
	for _, pattern := range []string{
		`{"source":["aws.ec2"]}`,
		`{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning","EC2 Instance Rebalance Recommendation","EC2 Instance State-change Notification"]}`,
		`{"source":["aws.ec2","aws.health"],"detail-type":["EC2 Spot Instance Interruption Warning","AWS Health Event"]}`,
	} {
		s, want := wiringOf(pattern, "210987654321", "eu-west-1"), awssetup.Desired("", "", "")
		noisy := 0
		for _, f := range doctor.Run(s, want, doctor.Cluster{}) {
			if f.ID != "pattern-noise" {
				continue
			}
			noisy++
			after, changed := doctor.Apply(f, s)
			if !changed {
				t.Fatalf("%s: cannot apply %s", pattern, f.Fix)
			}
			if got := ids(doctor.Run(after, want, doctor.Cluster{}), "SpotInterruption"); len(got) > 0 {
				t.Errorf("%s: after %s: %v", pattern, f.Fix, got)
			}
		}
		if noisy == 0 {
			t.Errorf("%s is not noisy", pattern)
		}
	}
}

// What the files do not contain is unknown, and not well.
func TestAbsentParts(t *testing.T) {
	const (
		rule    = `{"Name":"r","Arn":"arn:aws:events:eu-west-1:210987654321:rule/r","EventBusName":"default","State":"ENABLED","EventPattern":"{\"source\":[\"aws.ec2\"],\"detail-type\":[\"EC2 Spot Instance Interruption Warning\"]}"}`
		targets = `{"Targets":[{"Id":"q","Arn":"arn:aws:sqs:eu-west-1:210987654321:q","DeadLetterConfig":{"Arn":"arn:aws:sqs:eu-west-1:210987654321:dead"}}]}`
		policy  = `"Policy":"{\"Statement\":{\"Effect\":\"Allow\",\"Principal\":{\"Service\":\"events.amazonaws.com\"},\"Action\":\"sqs:SendMessage\",\"Resource\":\"*\",\"Condition\":{\"StringEquals\":{\"aws:SourceAccount\":\"210987654321\"}}}}"`
		queue   = `"QueueArn":"arn:aws:sqs:eu-west-1:210987654321:q"`
		created = `"CreatedTimestamp":"1","MessageRetentionPeriod":"345600","VisibilityTimeout":"10","MaximumMessageSize":"262144","SqsManagedSseEnabled":"true","RedrivePolicy":"{\"deadLetterTargetArn\":\"arn:aws:sqs:eu-west-1:210987654321:dead\",\"maxReceiveCount\":30}"`
		open    = `{"Resources":{"R":{"Type":"AWS::Events::Rule","Properties":{"EventPattern":{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"]},"Targets":[{"Id":"q","Arn":{"Fn::ImportValue":"queue"}}]}}}}`
		named   = `{"Parameters":{"Queue":{"Type":"String"}},"Resources":{"R":{"Type":"AWS::Events::Rule","Properties":{"EventPattern":{"source":["aws.ec2"],"detail-type":["EC2 Spot Instance Interruption Warning"]},"Targets":[{"Id":"q","Arn":{"Ref":"Queue"}}]}}}}`
	)
	for name, tc := range map[string]struct{ file, want, fix string }{
		"rules only":                           {rule, "unknown not-understood", "list-targets-by-rule"},
		"rules and targets":                    {rule + targets, "unknown queue-policy-unread", "get-queue-attributes --attribute-names All"},
		"a queue with its ARN only":            {rule + targets + `{"Attributes":{` + queue + `}}`, "unknown queue-policy-unread", "--queue-name q "},
		"a queue with its policy only":         {rule + targets + `{"Attributes":{` + queue + `,` + policy + `}}`, "", ""},
		"a queue with all attributes":          {rule + targets + `{"Attributes":{` + queue + `,` + policy + `,` + created + `}}`, "", ""},
		"a queue that has no policy":           {rule + targets + `{"Attributes":{` + queue + `,` + created + `}}`, "broken queue-policy-refuses", ""},
		"a target of another stack":            {open, "unknown not-understood", "add the files with its values"},
		"a target that a parameter names":      {named, "unknown not-understood", "--parameter Queue=VALUE"},
		"a policy that is in no configuration": {`{"resource":{"aws_cloudwatch_event_rule":{"r":{"event_pattern":"{\"source\":[\"aws.ec2\"]}"}},"aws_cloudwatch_event_target":{"t":{"rule":"${aws_cloudwatch_event_rule.r.name}","arn":"arn:aws:sqs:eu-west-1:210987654321:q"}}}}`, "unknown queue-policy-unread", "queue-name q "},
	} {
		s, err := template.Read([]template.File{{Name: "x", Data: []byte(tc.file)}}, template.Given{})
		if err != nil {
			t.Fatal(err)
		}
		all := doctor.Run(s, awssetup.Desired("", s.Account, s.Region), doctor.Cluster{})
		all = slices.DeleteFunc(all, func(f finding.Finding) bool { return f.Severity != finding.Unknown && f.Severity != finding.Broken })
		if got := strings.Join(ids(all, "SpotInterruption"), ", "); got != tc.want {
			t.Errorf("%s: %q, want %q\n%s", name, got, tc.want, text(all))
		} else if got != "" && !strings.Contains(all[0].Fix, tc.fix) {
			t.Errorf("%s: fix %q, want %q", name, all[0].Fix, tc.fix)
		}
	}
}
