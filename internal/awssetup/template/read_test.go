package template_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/template"
)

func read(t *testing.T, given template.Given, files ...string) snapshot.Snapshot {
	t.Helper()
	var all []template.File
	for i, data := range files {
		all = append(all, template.File{Name: "file" + string(rune('0'+i)), Data: []byte(data)})
	}
	s, err := template.Read(all, given)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// functions is a template that uses all supported functions.
const functions = `
AWSTemplateFormatVersion: 2010-09-09
Parameters:
  Name: { Type: String, Default: prod }
  Given: { Type: String }
  Many: { Type: CommaDelimitedList, Default: "x, y" }
Mappings:
  Retention: { long: { seconds: 86400 } }
Conditions:
  Named: !Not [!Equals [!Ref Name, ""]]
Resources:
  Dead:
    Type: AWS::SQS::Queue
    Properties: { QueueName: !Join ["-", [!Ref Name, !Select [1, !Split [",", "a,dead"]]]] }
  Queue:
    Type: AWS::SQS::Queue
    Condition: Named
    Properties: &settings
      QueueName: !If [Named, !Sub "${Name}-notices", !Ref AWS::NoValue]
      MessageRetentionPeriod: !FindInMap [Retention, long, seconds]
      KmsMasterKeyId: !Ref Key
      RedrivePolicy: { deadLetterTargetArn: !GetAtt Dead.Arn, maxReceiveCount: 7 }
      Tags: [{ Key: team, Value: !Ref Given }]
  Key:
    Type: AWS::KMS::Key
    Properties: { KeyPolicy: { Version: 2012-10-17 } }
  Policy:
    Type: AWS::SQS::QueuePolicy
    Properties:
      Queues: [!Ref Queue]
      PolicyDocument: !Sub ['{"Resource":"${Where}","Literal":"${!aws:username}"}', { Where: !GetAtt Queue.Arn }]
  Rule:
    Type: AWS::Events::Rule
    Properties:
      EventPattern: { source: [aws.ec2], account: [!Ref AWS::AccountId] }
      State: DISABLED
      Targets:
        - { Id: q, Arn: !GetAtt [Queue, Arn], SqsParameters: { MessageGroupId: g }, DeadLetterConfig: { Arn: !GetAtt Dead.Arn } }
        - { Id: other, Arn: !ImportValue Elsewhere, RoleArn: r, InputPath: $.detail }
  Nightly:
    Type: AWS::Events::Rule
    Properties: { ScheduleExpression: rate(1 day) }
`

func TestCloudFormationFunctions(t *testing.T) {
	got := read(t, template.Given{Account: "210987654321", Region: "cn-north-1"}, functions)
	want := snapshot.Snapshot{
		Account: "210987654321", Region: "cn-north-1", Offline: true,
		Queues: []snapshot.Queue{
			{
				ARN: "arn:aws-cn:sqs:cn-north-1:210987654321:prod-dead", Name: "prod-dead", From: "file0, Dead", Reference: `{"Fn::GetAtt":["Dead","Arn"]}`, Known: true, PolicyKnown: true,
				Retention: 96 * time.Hour, Visibility: 30 * time.Second, MaximumSize: 1 << 20, ManagedSSE: true,
			},
			{
				ARN: "arn:aws-cn:sqs:cn-north-1:210987654321:prod-notices", Name: "prod-notices", From: "file0, Queue", Reference: `{"Fn::GetAtt":["Queue","Arn"]}`, Known: true, PolicyKnown: true,
				Policy:    `{"Resource":"arn:aws-cn:sqs:cn-north-1:210987654321:prod-notices","Literal":"${aws:username}"}`,
				Retention: 24 * time.Hour, Visibility: 30 * time.Second, MaximumSize: 1 << 20,
				KMSKey: "key-Key", KeyPolicy: `{"Version":"2012-10-17"}`,
				DeadLetterARN: "arn:aws-cn:sqs:cn-north-1:210987654321:prod-dead", MaxReceives: 7, Tags: map[string]string{"team": "{?Given}"},
			},
		},
		Rules: []snapshot.Rule{{
			Name: "{?AWS.StackName}-Nightly-{~Nightly}", ARN: "arn:aws-cn:events:cn-north-1:210987654321:rule/{?AWS.StackName}-Nightly-{~Nightly}",
			From: "file0, Nightly", Reference: `{"Fn::GetAtt":["Nightly","Arn"]}`, Enabled: true, Scheduled: true, TargetsKnown: true,
		}, {
			Name: "{?AWS.StackName}-Rule-{~Rule}", ARN: "arn:aws-cn:events:cn-north-1:210987654321:rule/{?AWS.StackName}-Rule-{~Rule}", From: "file0, Rule", Reference: `{"Fn::GetAtt":["Rule","Arn"]}`, TargetsKnown: true,
			Pattern: `{"account":["210987654321"],"source":["aws.ec2"]}`,
			Targets: []snapshot.Target{
				{ID: "q", ARN: "arn:aws-cn:sqs:cn-north-1:210987654321:prod-notices", GroupID: "g", DeadLetterARN: "arn:aws-cn:sqs:cn-north-1:210987654321:prod-dead"},
				{ID: "other", ARN: "{?ImportValue Elsewhere}", RoleARN: "r", InputPath: "$.detail"},
			},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

const terraform = `{
 "variable": {"cluster": {"default": "prod"}, "open": {}},
 "locals": {"queue": "${var.cluster}-notices"},
 "data": {
  "aws_caller_identity": {"me": {}}, "aws_region": {"here": {}},
  "aws_iam_policy_document": {"send": {"statement": [{
    "effect": "Allow", "actions": ["sqs:SendMessage"], "resources": ["${aws_sqs_queue.main.arn}"],
    "principals": [{"type": "Service", "identifiers": ["events.amazonaws.com"]}],
    "condition": [{"test": "ArnEquals", "variable": "aws:SourceArn", "values": ["${aws_cloudwatch_event_rule.spot.arn}"]}]}]}}
 },
 "resource": [
  {"aws_sqs_queue": {
    "main": [{"name": "${local.queue}", "visibility_timeout_seconds": 10, "tags": {"a": "b"}}],
    "unnamed": {"fifo_queue": true, "kms_master_key_id": "${aws_kms_key.k.arn}"}}},
  {"aws_kms_key": {"k": {"policy": "{}"}}},
  {"aws_sqs_queue_policy": {"main": {"queue_url": "${aws_sqs_queue.main.id}", "policy": "${data.aws_iam_policy_document.send.json}"}}},
  {"aws_sqs_queue_redrive_policy": {"main": {"queue_url": "${aws_sqs_queue.main.url}",
    "redrive_policy": "{\"deadLetterTargetArn\":\"arn:aws:sqs:${data.aws_region.here.name}:${data.aws_caller_identity.me.account_id}:dead\",\"maxReceiveCount\":3}"}}},
  {"aws_cloudwatch_event_bus": {"nodes": {"name": "nodes"}}},
  {"aws_cloudwatch_event_rule": {
    "spot": {"name": "spot", "is_enabled": false, "event_pattern": "{\"source\":[\"aws.ec2\"]}"},
    "own": {"name": "own", "event_bus_name": "${aws_cloudwatch_event_bus.nodes.name}", "event_pattern": "${jsonencode({source = [\"aws.ec2\"]})}"},
    "nightly": {"schedule_expression": "rate(1 day)"}}},
  {"aws_cloudwatch_event_target": {
    "spot": {"rule": "${aws_cloudwatch_event_rule.spot.name}", "target_id": "q", "arn": "${aws_sqs_queue.main.arn}",
      "input_transformer": [{"input_template": "x"}], "dead_letter_config": {"arn": "d"}, "sqs_target": {"message_group_id": "g"}},
    "lost": {"rule": "${var.open}", "arn": "${aws_sqs_queue.main.arn}"}}},
  {"aws_iam_policy": {"reader": {"policy": "{\"Statement\":{\"Effect\":\"Allow\",\"Action\":\"sqs:*\",\"Resource\":\"${aws_sqs_queue.main.arn}\"}}"}}}
 ]}`

func TestTerraform(t *testing.T) {
	got := read(t, template.Given{}, terraform)
	const main = "arn:aws:sqs:{region}:{account}:prod-notices"
	want := snapshot.Snapshot{
		Offline: true,
		Queues: []snapshot.Queue{
			{
				ARN: main, Name: "prod-notices", From: "file0, aws_sqs_queue.main", Reference: `"${aws_sqs_queue.main.arn}"`, Known: true, PolicyKnown: true,
				Policy: `{"Statement":[{"Action":["sqs:SendMessage"],"Condition":{"ArnEquals":{"aws:SourceArn":["arn:aws:events:{region}:{account}:rule/spot"]}},` +
					`"Effect":"Allow","Principal":{"Service":["events.amazonaws.com"]},"Resource":["` + main + `"]}],"Version":"2012-10-17"}`,
				Retention: 96 * time.Hour, Visibility: 10 * time.Second, MaximumSize: 1 << 20, ManagedSSE: true,
				DeadLetterARN: "arn:aws:sqs:{region}:{account}:dead", MaxReceives: 3, Tags: map[string]string{"a": "b"},
				Readers: []string{"aws_iam_policy.reader"},
			},
			{
				ARN: "arn:aws:sqs:{region}:{account}:terraform-{~aws_sqs_queue.unnamed}.fifo", Name: "terraform-{~aws_sqs_queue.unnamed}.fifo", From: "file0, aws_sqs_queue.unnamed", Reference: `"${aws_sqs_queue.unnamed.arn}"`, Known: true, PolicyKnown: true,
				Retention: 96 * time.Hour, Visibility: 30 * time.Second, MaximumSize: 1 << 20, FIFO: true,
				KMSKey: "arn:aws:kms:{region}:{account}:key/k", KeyPolicy: "{}",
			},
		},
		Rules: []snapshot.Rule{
			{
				Name: "terraform-{~aws_cloudwatch_event_rule.nightly}", ARN: "arn:aws:events:{region}:{account}:rule/terraform-{~aws_cloudwatch_event_rule.nightly}",
				From: "file0, aws_cloudwatch_event_rule.nightly", Reference: `"${aws_cloudwatch_event_rule.nightly.arn}"`, Enabled: true, Scheduled: true, TargetsKnown: true,
			},
			{
				Name: "own", ARN: "arn:aws:events:{region}:{account}:rule/nodes/own", From: "file0, aws_cloudwatch_event_rule.own", Reference: `"${aws_cloudwatch_event_rule.own.arn}"`, Bus: "nodes",
				Enabled: true, Pattern: "{?jsonencode}", TargetsKnown: true,
			},
			{
				Name: "spot", ARN: "arn:aws:events:{region}:{account}:rule/spot", From: "file0, aws_cloudwatch_event_rule.spot", Reference: `"${aws_cloudwatch_event_rule.spot.arn}"`,
				Pattern: `{"source":["aws.ec2"]}`, TargetsKnown: true,
				Targets: []snapshot.Target{{ID: "q", ARN: main, Transformed: true, DeadLetterARN: "d", GroupID: "g"}},
			},
		},
		Unread: []snapshot.Unread{
			{From: "target " + main, What: `it is a target of the rule "{?var.open}", which is not in the files`, Fix: "add --parameter open=VALUE"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTerraformState(t *testing.T) {
	got := read(t, template.Given{}, `{"format_version":"1.0","values":{"root_module":{"child_modules":[{"resources":[
		{"address":"module.w.aws_sqs_queue.q[0]","values":{"name":"q","arn":"arn:aws:sqs:eu-west-1:210987654321:q","policy":"{}"}},
		{"address":"module.w.aws_cloudwatch_event_rule.r[\"spot\"]","values":{"name":"r","arn":"arn:aws:events:eu-west-1:210987654321:rule/r","event_pattern":"{}","state":"ENABLED"}},
		{"address":"module.w.aws_cloudwatch_event_target.t","values":{"rule":"r","arn":"arn:aws:sqs:eu-west-1:210987654321:q"}}]}]}}}`)
	if got.Account != "210987654321" || got.Region != "eu-west-1" || len(got.Queues) != 1 || got.Queues[0].Policy != "{}" {
		t.Errorf("%+v", got)
	}
	if len(got.Rules) != 1 || len(got.Rules[0].Targets) != 1 || !got.Rules[0].Enabled {
		t.Errorf("rules %+v", got.Rules)
	}
}

func TestAWSCLI(t *testing.T) {
	const (
		rules   = `{"Rules":[{"Name":"spot","Arn":"arn:aws:events:eu-west-1:210987654321:rule/spot","State":"ENABLED","EventBusName":"default","EventPattern":"{}"},{"Name":"state","State":"DISABLED"}]}`
		targets = `{"Targets":[{"Id":"q","Arn":"arn:aws:sqs:eu-west-1:210987654321:q"}]}`
	)
	got := read(t, template.Given{}, rules)
	if len(got.Rules) != 2 || got.Rules[0].TargetsKnown || !got.Rules[0].Enabled || got.Rules[1].Enabled || got.Account != "210987654321" {
		t.Errorf("list-rules: %+v", got)
	}
	// The name of a file can be the rule of its targets.
	s, err := template.Read([]template.File{{Name: "rules.json", Data: []byte(rules)}, {Name: "spot.json", Data: []byte(targets)}}, template.Given{})
	if err != nil || len(s.Rules[0].Targets) != 1 || s.Rules[1].TargetsKnown {
		t.Errorf("targets in a separate file: %+v, %v", s.Rules, err)
	}
	if s := read(t, template.Given{}, rules, targets); len(s.Unread) != 1 || s.Rules[0].TargetsKnown {
		t.Errorf("targets of an unknown rule: %+v", s)
	}
	// In a stream, targets follow their rule.
	got = read(t, template.Given{}, `{"Name":"a","EventPattern":"{}","EventBusName":"default"}`+targets+`{"Name":"b","EventPattern":"{}","EventBusName":"default"}{"Targets":[]}`)
	if len(got.Rules[0].Targets) != 1 || len(got.Rules[1].Targets) != 0 || !got.Rules[1].TargetsKnown {
		t.Errorf("stream: %+v", got.Rules)
	}
}

func TestNotRead(t *testing.T) {
	for name, data := range map[string]string{
		"empty": "", "spaces": " \n", "a list": "[1]", "text": "hello", "broken YAML": "a: [", "broken JSON": `{"a":`, "tabs": "{\n\t\"a\": x\n",
		"a bomb": "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n",
		"deep":   strings.Repeat("[", 200) + strings.Repeat("]", 200),
	} {
		if _, err := template.Read([]template.File{{Name: "x", Data: []byte(data)}}, template.Given{}); err == nil {
			t.Errorf("%s: read", name)
		}
	}
	_, err := template.Read([]template.File{{Name: "x", Data: []byte(`{"Resources":{"B":{"Type":"AWS::S3::Bucket"}}}`)}}, template.Given{})
	if !errors.Is(err, template.ErrNoWiring) {
		t.Errorf("a template without wiring: %v", err)
	}
}

func TestCircularReferences(t *testing.T) {
	began := time.Now()
	read(t, template.Given{}, `{"Resources":{"Q":{"Type":"AWS::SQS::Queue","Properties":{"QueueName":{"Fn::Sub":"`+strings.Repeat("${Q}", 10)+`"}}}}}`,
		`{"resource":{"aws_sqs_queue":{"q":{"name":"`+strings.Repeat("${aws_sqs_queue.q.name}", 10)+`"}}}}`)
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
	s := read(t, template.Given{}, `{"Resources":{"Q":{"Type":"AWS::SQS::Queue","Properties":{"QueueName":{"Fn::GetAtt":["Q","Arn"]}}}}}`,
		`{"resource":{"aws_sqs_queue":{"q":{"name":"${aws_sqs_queue.q.name}"}}}}`)
	if len(s.Queues) != 2 {
		t.Errorf("%+v", s.Queues)
	}
}

// FuzzRead checks that no file makes Read panic or run forever, and that an empty
// result is an error.
func FuzzRead(f *testing.F) {
	for _, text := range []string{functions, terraform, `{"Rules":[{"Name":"a"}]}`, `{"Targets":[{}]}`, `{"Attributes":{"QueueArn":"a"}}`,
		`{"values":{"root_module":{"resources":[{"address":"aws_sqs_queue.q","values":{}}]}}}`, "Resources: !Ref x", "a: &a [*a]"} {
		f.Add([]byte(text))
	}
	files, err := filepath.Glob("../../doctor/testdata/offline/*.*")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := template.Read([]template.File{{Name: "x", Data: data}}, template.Given{})
		if err == nil && len(s.Queues)+len(s.Rules)+len(s.Unread) == 0 && !strings.Contains(string(data), "Targets") {
			t.Errorf("empty result without an error")
		}
	})
}
