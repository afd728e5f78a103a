package iam_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup/iam"
)

// refusedCall is a call that the controller's whole policy must not allow.
type refusedCall struct {
	permission string
	call       func(session) error
}

// refusedOnInstances are attacks on instances and through launches.
func refusedOnInstances() map[string]refusedCall {
	run := func(change func(*ec2.RunInstancesInput)) func(session) error {
		return func(s session) error {
			in := &ec2.RunInstancesInput{
				MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
				LaunchTemplate: &ec2types.LaunchTemplateSpecification{LaunchTemplateId: &s.template},
			}
			change(in)
			_, err := s.ec2.RunInstances(s.ctx, in)
			return err
		}
	}
	kill := func(tags map[string]string) func(session) error {
		return func(s session) error { return terminate(s, tags) }
	}
	return map[string]refusedCall{
		"terminating an instance without a tag": {"ec2:TerminateInstances", kill(nil)},
		"terminating another cluster's node":    {"ec2:TerminateInstances", kill(map[string]string{"kubernetes.io/cluster/dev": "owned"})},
		"terminating a shared instance":         {"ec2:TerminateInstances", kill(map[string]string{"kubernetes.io/cluster/prod": "shared"})},
		"terminating kOps' control plane": {"ec2:TerminateInstances", kill(map[string]string{
			"kubernetes.io/cluster/prod": "owned", "k8s.io/role/control-plane": "1",
		})},
		"terminating kOps' old control plane": {"ec2:TerminateInstances", kill(map[string]string{
			"kubernetes.io/cluster/prod": "owned", "k8s.io/role/master": "1",
		})},
		"tagging an instance as the cluster's": {"ec2:CreateTags", func(s session) error {
			_, err := s.ec2.CreateTags(s.ctx, &ec2.CreateTagsInput{
				Resources: []string{s.instance(nil)}, Tags: []ec2types.Tag{{Key: aws.String("kubernetes.io/cluster/prod"), Value: aws.String("owned")}},
			})
			return err
		}},
		"launching without a template": {"ec2:RunInstances", run(func(in *ec2.RunInstancesInput) {
			in.LaunchTemplate, in.ImageId = nil, aws.String("ami-evil")
		})},
		"launching another image than the template's": {"ec2:RunInstances", run(func(in *ec2.RunInstancesInput) { in.ImageId = aws.String("ami-evil") })},
		"launching with other security groups": {"ec2:RunInstances", run(func(in *ec2.RunInstancesInput) {
			in.SecurityGroupIds = []string{"sg-open"}
		})},
		"passing another role": {"iam:PassRole", func(s session) error { return createGroup(s, "prod-evil", s.newTemplate("admin")) }},
	}
}

// refusedOnGroups are attacks on groups, and on queues and events of others.
func refusedOnGroups() map[string]refusedCall {
	foreign := aws.String(foreignGroup)
	return map[string]refusedCall{
		"tagging another cluster's group to take it over": {"autoscaling:CreateOrUpdateTags", func(s session) error {
			return tagGroup(s, groupTag(foreignGroup, "kubernetes.io/cluster/prod", "owned"))
		}},
		"giving an own group to another cluster": {"autoscaling:CreateOrUpdateTags", func(s session) error {
			return tagGroup(s, groupTag(ownGroup, "kubernetes.io/cluster/dev", "owned"))
		}},
		"a foreign tag among allowed ones": {"autoscaling:CreateOrUpdateTags", func(s session) error {
			return tagGroup(s, groupTag(ownGroup, "team", "a"), groupTag(ownGroup, "k8s.io/role/control-plane", "1"))
		}},
		"tagging an own and a foreign group at once": {"autoscaling:CreateOrUpdateTags", func(s session) error {
			return tagGroup(s, groupTag(ownGroup, "team", "a"), groupTag(foreignGroup, "team", "a"))
		}},
		"creating a group under a foreign name": {"autoscaling:CreateAutoScalingGroup", func(s session) error { return createGroup(s, "dev-new", s.template) }},
		"creating a group with another cluster's tag": {"autoscaling:CreateAutoScalingGroup", func(s session) error {
			return createGroup(s, "prod-evil", s.template, groupTag("prod-evil", "eks:cluster-name", "dev"))
		}},
		"changing another cluster's group": {"autoscaling:UpdateAutoScalingGroup", func(s session) error {
			_, err := s.groups.UpdateAutoScalingGroup(s.ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: foreign, MaxSize: aws.Int32(0)})
			return err
		}},
		"changing a node group of EKS": {"autoscaling:UpdateAutoScalingGroup", func(s session) error {
			_, err := s.groups.UpdateAutoScalingGroup(s.ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: aws.String(eksGroup), MaxSize: aws.Int32(0)})
			return err
		}},
		"detaching from another cluster's group":  {"autoscaling:DetachInstances", func(s session) error { return detach(s, foreignGroup) }},
		"answering hooks of another cluster":      {"autoscaling:CompleteLifecycleAction", func(s session) error { return completeHook(s, foreignGroup) }},
		"sending events as AWS":                   {"events:PutEvents", func(s session) error { return putEvent(s, "aws.ec2") }},
		"sending notices into its own queue":      {"sqs:SendMessage", func(s session) error { return send(s, s.wiring.Queue.Name) }},
		"sending messages into a foreign queue":   {"sqs:SendMessage", func(s session) error { return send(s, "foreign") }},
		"receiving messages from a foreign queue": {"sqs:ReceiveMessage", func(s session) error { return receive(s, "foreign") }},
	}
}

func send(s session, queue string) error {
	_, err := s.queues.SendMessage(s.ctx, &sqs.SendMessageInput{QueueUrl: aws.String(s.url + "/" + s.server.Account() + "/" + queue), MessageBody: aws.String("b")})
	return err
}

func receive(s session, queue string) error {
	_, err := s.queues.ReceiveMessage(s.ctx, &sqs.ReceiveMessageInput{QueueUrl: aws.String(s.url + "/" + s.server.Account() + "/" + queue)})
	return err
}

// A thief of the controller's role has all that `lifeboat aws iam` ever prints for the controller.
func TestControllerRoleIsRefusedForeignResources(t *testing.T) {
	t.Parallel()
	a := newAWSAccount(t)
	w := a.wiring
	w.Groups = []string{"prod-*"}
	whole := iam.ManageGroups(iam.FeedKarpenter(iam.Controller(a.wiring, true), w, "karpenter"), w, nodeRole, "team")
	s := a.as(whole, "")
	for _, attacks := range []map[string]refusedCall{refusedOnInstances(), refusedOnGroups()} {
		for name, attack := range attacks {
			if got := unauthorized(attack.call(s)); got != attack.permission {
				t.Errorf("%s: refused for %q, want %s", name, got, attack.permission)
			}
		}
	}
	for name, allowed := range map[string]error{
		"its own group":    tagGroup(s, groupTag(ownGroup, "team", "a")),
		"its own node":     terminate(s, ownTags(false)),
		"its own template": createGroup(s, "prod-new", s.template),
	} {
		if allowed != nil {
			t.Errorf("%s: %v", name, allowed)
		}
	}
}

// A node's role answers hooks with the credentials of an instance only, and of its cluster only.
func TestNodeRoleIsRefusedElsewhere(t *testing.T) {
	t.Parallel()
	a := newAWSAccount(t)
	boot := iam.Boot(a.wiring)
	for name, tc := range map[string]struct {
		instance, group, permission string
	}{
		"outside of an instance":        {"", ownGroup, "autoscaling:CompleteLifecycleAction"},
		"on another cluster's group":    {"i-1", foreignGroup, "autoscaling:CompleteLifecycleAction"},
		"on a group of its own cluster": {"i-1", ownGroup, ""},
	} {
		if got := unauthorized(completeHook(a.as(boot, tc.instance), tc.group)); got != tc.permission {
			t.Errorf("%s: refused for %q, want %q", name, got, tc.permission)
		}
	}
	if got := unauthorized(detach(a.as(boot, "i-1"), ownGroup)); got != "autoscaling:DetachInstances" {
		t.Errorf("a node detaches instances: %q", got)
	}
}
