package iam_test

import (
	"maps"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudtrail"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	ebtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/iam"
	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// call makes the call that needs an action, on what the statement is about.
type call = func(session, iam.Statement) error

// ofEKS reports whether a statement is about node groups of EKS.
func ofEKS(s iam.Statement) bool { return strings.HasSuffix(s.Sid, "OfNodeGroups") }

func groupOf(s iam.Statement) *string {
	if ofEKS(s) {
		return aws.String(eksGroup)
	}
	return aws.String(ownGroup)
}

// calls are the calls by the action that they need.
func calls() map[string]call {
	all := map[string]call{}
	maps.Copy(all, sqsCalls())
	maps.Copy(all, eventCalls())
	maps.Copy(all, ec2Calls())
	maps.Copy(all, readingGroupCalls())
	maps.Copy(all, groupCalls())
	return all
}

func sqsCalls() map[string]call {
	url := func(s session) *string {
		return aws.String(s.url + "/" + s.server.Account() + "/" + s.wiring.Queue.Name)
	}
	handle := aws.String("h")
	return map[string]call{
		"sqs:ReceiveMessage": func(s session, _ iam.Statement) error {
			_, err := s.queues.ReceiveMessage(s.ctx, &sqs.ReceiveMessageInput{QueueUrl: url(s)})
			return err
		},
		"sqs:DeleteMessage": func(s session, _ iam.Statement) error {
			_, err := s.queues.DeleteMessage(s.ctx, &sqs.DeleteMessageInput{QueueUrl: url(s), ReceiptHandle: handle})
			return err
		},
		"sqs:ChangeMessageVisibility": func(s session, _ iam.Statement) error {
			_, err := s.queues.ChangeMessageVisibility(s.ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: url(s), ReceiptHandle: handle})
			return err
		},
		"sqs:GetQueueAttributes": func(s session, _ iam.Statement) error {
			_, err := s.queues.GetQueueAttributes(s.ctx, &sqs.GetQueueAttributesInput{QueueUrl: url(s)})
			return err
		},
		"sqs:ListQueueTags": func(s session, _ iam.Statement) error {
			_, err := s.queues.ListQueueTags(s.ctx, &sqs.ListQueueTagsInput{QueueUrl: url(s)})
			return err
		},
		"sqs:SendMessage": func(s session, _ iam.Statement) error {
			_, err := s.queues.SendMessage(s.ctx, &sqs.SendMessageInput{
				QueueUrl: aws.String(s.url + "/" + s.server.Account() + "/karpenter"), MessageBody: aws.String("b"),
			})
			return err
		},
		"cloudtrail:LookupEvents": func(s session, _ iam.Statement) error {
			_, err := s.trail.LookupEvents(s.ctx, &cloudtrail.LookupEventsInput{})
			return err
		},
		"sqs:GetQueueUrl": func(s session, _ iam.Statement) error {
			_, err := s.queues.GetQueueUrl(s.ctx, &sqs.GetQueueUrlInput{QueueName: &s.wiring.Queue.Name})
			return err
		},
		"sqs:CreateQueue": func(s session, _ iam.Statement) error {
			_, err := s.queues.CreateQueue(s.ctx, &sqs.CreateQueueInput{QueueName: &s.wiring.DeadLetter.Name})
			return err
		},
		"sqs:SetQueueAttributes": func(s session, _ iam.Statement) error {
			_, err := s.queues.SetQueueAttributes(s.ctx, &sqs.SetQueueAttributesInput{QueueUrl: url(s), Attributes: map[string]string{"DelaySeconds": "0"}})
			return err
		},
		"sqs:TagQueue": func(s session, _ iam.Statement) error {
			_, err := s.queues.TagQueue(s.ctx, &sqs.TagQueueInput{QueueUrl: url(s), Tags: map[string]string{"a": "b"}})
			return err
		},
		"sqs:DeleteQueue": func(s session, _ iam.Statement) error {
			_, err := s.queues.DeleteQueue(s.ctx, &sqs.DeleteQueueInput{QueueUrl: aws.String(s.url + "/" + s.server.Account() + "/" + s.wiring.DeadLetter.Name)})
			return err
		},
	}
}

func eventCalls() map[string]call {
	name := func(s session) *string { return aws.String(awssetup.RulePrefix(s.wiring.Cluster) + "spot") }
	return map[string]call{
		"events:ListRules": func(s session, _ iam.Statement) error {
			_, err := s.rules.ListRules(s.ctx, &eventbridge.ListRulesInput{})
			return err
		},
		"events:ListEventBuses": func(s session, _ iam.Statement) error {
			_, err := s.rules.ListEventBuses(s.ctx, &eventbridge.ListEventBusesInput{})
			return err
		},
		"events:ListRuleNamesByTarget": func(s session, _ iam.Statement) error {
			_, err := s.rules.ListRuleNamesByTarget(s.ctx, &eventbridge.ListRuleNamesByTargetInput{TargetArn: aws.String(s.wiring.QueueARN())})
			return err
		},
		"events:TestEventPattern": func(s session, _ iam.Statement) error {
			_, err := s.rules.TestEventPattern(s.ctx, &eventbridge.TestEventPatternInput{Event: aws.String("{}"), EventPattern: aws.String(`{"source":["a"]}`)})
			return err
		},
		"events:DescribeRule": func(s session, _ iam.Statement) error {
			_, err := s.rules.DescribeRule(s.ctx, &eventbridge.DescribeRuleInput{Name: name(s)})
			return err
		},
		"events:ListTargetsByRule": func(s session, _ iam.Statement) error {
			_, err := s.rules.ListTargetsByRule(s.ctx, &eventbridge.ListTargetsByRuleInput{Rule: name(s)})
			return err
		},
		"events:ListTagsForResource": func(s session, _ iam.Statement) error {
			_, err := s.rules.ListTagsForResource(s.ctx, &eventbridge.ListTagsForResourceInput{ResourceARN: aws.String(s.wiring.RuleARN(*name(s)))})
			return err
		},
		"events:TagResource": func(s session, _ iam.Statement) error {
			_, err := s.rules.TagResource(s.ctx, &eventbridge.TagResourceInput{
				ResourceARN: aws.String(s.wiring.RuleARN(*name(s))), Tags: []ebtypes.Tag{{Key: aws.String("a"), Value: aws.String("b")}},
			})
			return err
		},
		"events:PutRule": func(s session, _ iam.Statement) error {
			_, err := s.rules.PutRule(s.ctx, &eventbridge.PutRuleInput{Name: name(s), EventPattern: aws.String(`{"source":["aws.ec2"]}`)})
			return err
		},
		"events:PutTargets": func(s session, _ iam.Statement) error {
			_, err := s.rules.PutTargets(s.ctx, &eventbridge.PutTargetsInput{
				Rule: name(s), Targets: []ebtypes.Target{{Id: aws.String("q"), Arn: aws.String(s.wiring.QueueARN())}},
			})
			return err
		},
		"events:RemoveTargets": func(s session, _ iam.Statement) error {
			_, err := s.rules.RemoveTargets(s.ctx, &eventbridge.RemoveTargetsInput{Rule: name(s), Ids: []string{"q"}})
			return err
		},
		"events:DeleteRule": func(s session, _ iam.Statement) error {
			_, err := s.rules.DeleteRule(s.ctx, &eventbridge.DeleteRuleInput{Name: name(s)})
			return err
		},
		"events:PutEvents": func(s session, _ iam.Statement) error { return putEvent(s, notice.ProbeSource) },
	}
}

func putEvent(s session, source string) error {
	_, err := s.rules.PutEvents(s.ctx, &eventbridge.PutEventsInput{Entries: []ebtypes.PutEventsRequestEntry{{
		Source: &source, DetailType: aws.String("d"), Detail: aws.String("{}"),
	}}})
	return err
}

func ec2Calls() map[string]call {
	create := func(s session, _ iam.Statement) error { return createGroup(s, "prod-new", s.template) }
	return map[string]call{
		"ec2:DescribeInstances": func(s session, _ iam.Statement) error {
			_, err := s.ec2.DescribeInstances(s.ctx, &ec2.DescribeInstancesInput{})
			return err
		},
		"elasticloadbalancing:DescribeTargetHealth": func(s session, _ iam.Statement) error {
			_, err := s.elb.DescribeTargetHealth(s.ctx, &elb.DescribeTargetHealthInput{TargetGroupArn: aws.String(s.targets)})
			return err
		},
		"ec2:DescribeInstanceStatus": func(s session, _ iam.Statement) error {
			_, err := s.ec2.DescribeInstanceStatus(s.ctx, &ec2.DescribeInstanceStatusInput{})
			return err
		},
		"ec2:DescribeSpotInstanceRequests": func(s session, _ iam.Statement) error {
			_, err := s.ec2.DescribeSpotInstanceRequests(s.ctx, &ec2.DescribeSpotInstanceRequestsInput{})
			return err
		},
		"ec2:DescribeLaunchTemplates": func(s session, _ iam.Statement) error {
			_, err := s.ec2.DescribeLaunchTemplates(s.ctx, &ec2.DescribeLaunchTemplatesInput{})
			return err
		},
		"ec2:TerminateInstances": func(s session, st iam.Statement) error { return terminate(s, ownTags(ofEKS(st))) },
		"ec2:RunInstances":       create,
		"ec2:CreateTags":         create,
		"iam:PassRole":           create,
	}
}

// terminate terminates a new instance with these tags.
func terminate(s session, tags map[string]string) error {
	_, err := s.ec2.TerminateInstances(s.ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{s.instance(tags)}})
	return err
}

// createGroup creates a group as the controller does for a NodeGroup, with more tags.
func createGroup(s session, name, template string, tags ...astypes.Tag) error {
	_, err := s.groups.CreateAutoScalingGroup(s.ctx, &autoscaling.CreateAutoScalingGroupInput{
		AutoScalingGroupName: &name, MinSize: aws.Int32(0), MaxSize: aws.Int32(1),
		LaunchTemplate:    &astypes.LaunchTemplateSpecification{LaunchTemplateId: &template},
		VPCZoneIdentifier: aws.String(s.server.States.EC2.Subnets()[0].ID),
		Tags:              append(tags, groupTag(name, nodegroup.TagObject, "n"), groupTag(name, nodegroup.TagCluster+"prod", "owned"), groupTag(name, "team", "a")),
	})
	return err
}

func groupTag(group, key, value string) astypes.Tag {
	return astypes.Tag{
		ResourceId: &group, ResourceType: aws.String("auto-scaling-group"), Key: &key, Value: &value, PropagateAtLaunch: aws.Bool(true),
	}
}
