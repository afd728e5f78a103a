package template_test

import (
	"strings"
	"testing"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/snapshot"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/template"
)

// Every partition has its own ARNs and domains, in each syntax.
func TestPartitions(t *testing.T) {
	const (
		cloudFormation = `{"Resources":{"Q":{"Type":"AWS::SQS::Queue","Properties":{"QueueName":"q"}},
			"P":{"Type":"AWS::SQS::QueuePolicy","Properties":{"Queues":[{"Ref":"Q"}],"PolicyDocument":{"Resource":{"Fn::Sub":"arn:${AWS::Partition}:sqs:${AWS::Region}:${AWS::AccountId}:q"}}}}}}`
		terraform = `
data "aws_partition" "here" {}
data "aws_region" "here" {}
data "aws_caller_identity" "here" {}
resource "aws_sqs_queue" "q" { name = "q" }
resource "aws_sqs_queue_policy" "q" {
  queue_url = aws_sqs_queue.q.url
  policy    = jsonencode({ Resource = "arn:${data.aws_partition.here.partition}:sqs:${data.aws_region.here.region}:${data.aws_caller_identity.here.account_id}:q" })
}
`
	)
	for region, tc := range map[string][2]string{
		"eu-west-1": {"aws", "amazonaws.com"}, "cn-north-1": {"aws-cn", "amazonaws.com.cn"}, "us-gov-west-1": {"aws-us-gov", "amazonaws.com"},
		"us-iso-east-1": {"aws-iso", "c2s.ic.gov"}, "us-isob-east-1": {"aws-iso-b", "sc2s.sgov.gov"}, "eu-isoe-west-1": {"aws-iso-e", "cloud.adc-e.uk"},
		"us-isof-south-1": {"aws-iso-f", "csp.hci.ic.gov"}, "eusc-de-east-1": {"aws-eusc", "amazonaws.eu"},
	} {
		for name, text := range map[string]string{"template.json": cloudFormation, "main.tf": terraform} {
			s, err := template.Read([]template.File{{Name: name, Data: []byte(text)}}, template.Given{Account: "210987654321", Region: region})
			if err != nil {
				t.Fatal(err)
			}
			arn := "arn:" + tc[0] + ":sqs:" + region + ":210987654321:q"
			if len(s.Queues) != 1 || s.Queues[0].ARN != arn || !strings.Contains(s.Queues[0].Policy, `"`+arn+`"`) {
				t.Errorf("%s in %s: %+v", name, region, s.Queues)
			}
		}
		if got := snapshot.URLSuffix(tc[0]); got != tc[1] {
			t.Errorf("domain of %s: %s", tc[0], got)
		}
	}
}

const (
	cdkManifest = `{"version":"48.0.0","artifacts":{
		"Wiring":{"type":"aws:cloudformation:stack","environment":"aws://210987654321/cn-north-1","properties":{"templateFile":"Wiring.template.json","stackName":"prod-wiring"}},
		"Wiring.assets":{"type":"cdk:asset-manifest","properties":{"file":"Wiring.assets.json"}}}}`
	cdkTemplate = `{"Resources":{
		"Rules":{"Type":"AWS::CloudFormation::Stack","Metadata":{"aws:asset:path":"WiringRules.nested.template.json"},
			"Properties":{"TemplateURL":{"Fn::Join":["",["https://s3.",{"Ref":"AWS::Region"},".amazonaws.com/assets/abc.json"]]},"Parameters":{"Queue":{"Fn::GetAtt":["Q","Arn"]}}}},
		"Q":{"Type":"AWS::SQS::Queue"},
		"CDKMetadata":{"Type":"AWS::CDK::Metadata"}}}`
	cdkNested = `{"Parameters":{"Queue":{"Type":"String"}},"Resources":{"R":{"Type":"AWS::Events::Rule","Properties":{"EventPattern":{"source":["aws.ec2"]},"Targets":[{"Id":"q","Arn":{"Ref":"Queue"}}]}}}}`
)

// The output of cdk synth names stacks, accounts and regions.
func TestCDK(t *testing.T) {
	files := func(manifest string) []template.File {
		return []template.File{
			{Name: "cdk.out/manifest.json", Data: []byte(manifest), Found: true},
			{Name: "cdk.out/Wiring.template.json", Data: []byte(cdkTemplate), Found: true},
			{Name: "cdk.out/WiringRules.nested.template.json", Data: []byte(cdkNested), Found: true},
			{Name: "cdk.out/Wiring.assets.json", Data: []byte(`{"files":{}}`), Found: true},
			{Name: "cdk.out/tree.json", Data: []byte(`{"tree":{}}`), Found: true},
		}
	}
	s, err := template.Read(files(cdkManifest), template.Given{})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Queues) != 1 || len(s.Rules) != 1 || len(s.Unread) > 0 {
		t.Fatalf("%+v", s)
	}
	const queue = "arn:aws-cn:sqs:cn-north-1:210987654321:prod-wiring-Q-"
	if !strings.HasPrefix(s.Queues[0].ARN, queue) || len(s.Rules[0].Targets) != 1 || s.Rules[0].Targets[0].ARN != s.Queues[0].ARN {
		t.Errorf("%+v", s)
	}
	// A stack for any environment leaves account and region open.
	open, err := template.Read(files(strings.Replace(cdkManifest, "210987654321/cn-north-1", "unknown-account/unknown-region", 1)), template.Given{})
	if err != nil || open.Account != "" || !strings.HasPrefix(open.Queues[0].ARN, "arn:aws:sqs:{region}:{account}:prod-wiring-Q-") {
		t.Errorf("%+v, %v", open, err)
	}
	two := strings.Replace(cdkManifest, `"artifacts":{`, `"artifacts":{"Other":{"type":"aws:cloudformation:stack","environment":"aws://210987654321/eu-west-1","properties":{"templateFile":"Other.template.json"}},`, 1)
	if s, err := template.Read(files(two), template.Given{}); err != nil || len(s.Unread) != 1 || s.Region != "" {
		t.Errorf("two regions: %+v, %v", s.Unread, err)
	}
}

// A rule in the events of a function is a rule with the function as its target.
func TestSAMEvents(t *testing.T) {
	s := read(t, template.Given{Account: "210987654321", Region: "eu-west-1"}, `
Transform: AWS::Serverless-2016-10-31
Resources:
  Notify:
    Type: AWS::Serverless::Function
    Properties:
      Events:
        Spot: { Type: EventBridgeRule, Properties: { Pattern: { source: [aws.ec2] } } }
        Timer: { Type: Schedule, Properties: { Schedule: rate(5 minutes) } }
        Web: { Type: HttpApi }
`)
	if len(s.Rules) != 1 || s.Rules[0].Pattern != `{"source":["aws.ec2"]}` || !strings.Contains(s.Rules[0].Targets[0].ARN, ":lambda:") {
		t.Errorf("%+v", s.Rules)
	}
}

// Programs and states of other tools are told what to give instead.
func TestOtherTools(t *testing.T) {
	for name, tc := range map[string]struct{ file, data, want string }{
		"a CDK program":          {"app.ts", "import * as cdk from 'aws-cdk-lib'\n", "cdk.out"},
		"a Pulumi program":       {"Pulumi.yaml", "name: x\nruntime: nodejs\n", "describe-rule"},
		"a Crossplane manifest":  {"queue.yaml", "apiVersion: sqs.aws.upbound.io/v1beta1\nkind: Queue\n", "describe-rule"},
		"another provider of it": {"queue.yaml", "apiVersion: cloudwatchevents.aws.m.upbound.io/v1beta1\nkind: Rule\n", "describe-rule"},
	} {
		_, err := template.Read([]template.File{{Name: tc.file, Data: []byte(tc.data)}}, template.Given{})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	s, err := template.Read([]template.File{{Name: "stack.json", Data: []byte(`{"version":3,"deployment":{"resources":[]}}`), Found: true}}, template.Given{})
	if err != nil || len(s.Unread) != 1 || !strings.Contains(s.Unread[0].What, "describe-rule") {
		t.Errorf("a state of Pulumi: %+v, %v", s.Unread, err)
	}
	// In a directory, a manifest about wiring is said, and others are not.
	s, err = template.Read([]template.File{
		{Name: "a.yaml", Data: []byte("apiVersion: sqs.aws.upbound.io/v1beta1\nkind: Queue\n"), Found: true},
		{Name: "b.yaml", Data: []byte("apiVersion: ec2.aws.upbound.io/v1beta1\nkind: VPC\n"), Found: true},
		{Name: "c.yaml", Data: []byte("{{ include }}: [\n"), Found: true},
	}, template.Given{})
	if err != nil || len(s.Unread) != 1 || s.Unread[0].From != "a.yaml" {
		t.Errorf("a directory: %+v, %v", s.Unread, err)
	}
}
