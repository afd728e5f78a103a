// Package iam writes the minimal IAM policies of Lifeboat's parts, and the trust
// policies of their roles. It is pure.
//
// The Service Authorization Reference lists which actions support resources.
// ec2:Describe*, autoscaling:Describe* and events:List* do not, so they are limited
// to the region.
package iam

import (
	"cmp"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/awssetup"

	"github.com/lifeboat-dev/lifeboat/internal/notice"
)

// Document is a policy document.
type Document struct {
	Version   string
	Statement []Statement
}

// Statement is one statement of a policy.
type Statement struct {
	Sid       string
	Effect    string
	Principal map[string]string `json:",omitempty"`
	Action    []string
	Resource  []string   `json:",omitempty"`
	Condition conditions `json:",omitempty"`
}

// conditions are the conditions of a statement, by operator and key. A value is a string, or a list
// of strings.
type conditions = map[string]map[string]any

// Namespace and ServiceAccount identify the pods that may assume the controller's
// role.
const (
	Namespace      = "lifeboat-system"
	ServiceAccount = "lifeboat-controller"
)

func document(statements ...Statement) Document {
	for i := range statements {
		statements[i].Effect = "Allow"
	}
	return Document{Version: "2012-10-17", Statement: statements}
}

// allResources is the resource of actions that support none.
func allResources() []string { return []string{"*"} }

func inRegion(w awssetup.Wiring) conditions {
	return conditions{"StringEquals": {"aws:RequestedRegion": w.Region}}
}

// Controller is the policy of lifeboatd controller. GetCallerIdentity needs no
// permission (STS API Reference). canary adds the permission to send probes: events
// of Lifeboat's own source only. It may complete the hooks of w's groups, or of the
// cluster's groups if w names none.
func Controller(w awssetup.Wiring, canary bool) Document {
	d := document(append([]Statement{
		{
			Sid: "ReadTheQueue", Resource: []string{w.QueueARN()},
			Action: []string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes", "sqs:ListQueueTags"},
		},
		{
			Sid: "SeeInstances", Resource: allResources(), Condition: inRegion(w),
			Action: []string{
				"ec2:DescribeInstances", "ec2:DescribeInstanceStatus", "ec2:DescribeSpotInstanceRequests",
				"autoscaling:DescribeAutoScalingInstances", "autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeLifecycleHooks",
				"autoscaling:DescribeWarmPool", "ec2:DescribeLaunchTemplates",
			},
		},
		{
			Sid: "DiagnoseSetup", Resource: allResources(), Condition: inRegion(w),
			Action: []string{"events:ListRules", "events:ListEventBuses", "events:ListRuleNamesByTarget", "events:TestEventPattern"},
		},
		{
			Sid: "DiagnoseTheRules", Resource: []string{w.RuleARN("*")},
			Action: []string{"events:DescribeRule", "events:ListTargetsByRule"},
		},
		terminate(w, "TerminateNodes", "kubernetes.io/cluster/"+w.Cluster, "owned"),
		terminate(w, "TerminateNodesOfNodeGroups", "eks:cluster-name", w.Cluster),
	}, answerHooks(w)...)...)
	if canary {
		d.Statement = append(d.Statement, sendProbes(w))
	}
	return d
}

// FeedKarpenter adds the permission to send to Karpenter's queue with this name.
func FeedKarpenter(d Document, w awssetup.Wiring, queue string) Document {
	d.Statement = append(d.Statement, Statement{
		Sid: "FeedKarpenter", Effect: "Allow", Action: []string{"sqs:SendMessage"},
		Resource: []string{"arn:" + w.Partition + ":sqs:" + w.Region + ":" + w.Account + ":" + queue},
	})
	return d
}

// ReadEventHistory adds the permission to read CloudTrail's event history, which supports no
// resource.
func ReadEventHistory(d Document, w awssetup.Wiring) Document {
	d.Statement = append(d.Statement, Statement{
		Sid: "ReadEventHistory", Effect: "Allow", Action: []string{"cloudtrail:LookupEvents"}, Resource: allResources(), Condition: inRegion(w),
	})
	return d
}

// ReadTargetHealth adds the permission to read whether load balancers have deregistered an instance,
// which supports no resource.
func ReadTargetHealth(d Document, w awssetup.Wiring) Document {
	d.Statement = append(d.Statement, Statement{
		Sid: "ReadTargetHealth", Effect: "Allow", Action: []string{"elasticloadbalancing:DescribeTargetHealth"}, Resource: allResources(), Condition: inRegion(w),
	})
	return d
}

// terminate allows terminating instances with a tag. Nodes of a cluster have
// kubernetes.io/cluster/NAME: Karpenter, kOps, Cluster API and the templates for
// self-managed nodes set it to "owned" (EKS User Guide, "Maintain nodes yourself with
// self-managed nodes"; Karpenter docs, "EC2NodeClass", spec.tags). EKS tags the
// instances of its node groups with eks:cluster-name. All conditions of one statement
// must hold, so each tag needs its own statement. kOps gives the same tag to instances of
// the control plane, which have one of two more (kOps docs, "Instance groups").
func terminate(w awssetup.Wiring, sid, tag, value string) Statement {
	return Statement{
		Sid: sid, Effect: "Allow", Action: []string{"ec2:TerminateInstances"},
		Resource: []string{"arn:" + w.Partition + ":ec2:" + w.Region + ":" + w.Account + ":instance/*"},
		Condition: conditions{
			"StringEquals": {"aws:ResourceTag/" + tag: value},
			"Null":         {"aws:ResourceTag/k8s.io/role/control-plane": "true", "aws:ResourceTag/k8s.io/role/master": "true"},
		},
	}
}

func sendProbes(w awssetup.Wiring) Statement {
	return Statement{
		Sid: "SendProbes", Effect: "Allow", Action: []string{"events:PutEvents"}, Resource: []string{w.BusARN()},
		Condition: conditions{"StringEquals": {"events:source": notice.ProbeSource}},
	}
}

// Setup is the policy for `lifeboat aws` (plan, apply and destroy) by a person or a
// pipeline. It covers the cluster's queues and all rules with the cluster's prefix,
// because roles change with releases. Of Auto Scaling groups it covers only those
// that w names.
func Setup(w awssetup.Wiring) Document {
	rules := []string{w.RuleARN(awssetup.RulePrefix(w.Cluster) + "*")}
	if w.Topic != "" {
		rules = append(rules, w.RuleARN(w.Topic+"-*"))
	}
	return document(append([]Statement{
		{
			Sid: "Queues", Resource: []string{w.QueueARN(), w.DeadLetterARN()},
			Action: []string{
				"sqs:GetQueueUrl", "sqs:GetQueueAttributes", "sqs:ListQueueTags",
				"sqs:CreateQueue", "sqs:SetQueueAttributes", "sqs:TagQueue", "sqs:DeleteQueue",
			},
		},
		{Sid: "FindRules", Resource: allResources(), Condition: inRegion(w), Action: []string{"events:ListRules"}},
		{
			Sid: "Rules", Resource: rules,
			Action: []string{
				"events:ListTargetsByRule", "events:ListTagsForResource", "events:PutRule", "events:PutTargets",
				"events:TagResource", "events:RemoveTargets", "events:DeleteRule",
			},
		},
	}, append(shareTopic(w), putHooks(w)...)...)...)
}

// shareTopic allows a person or a pipeline to share a topic, and to create or delete it. Actions on a
// subscription support no resource.
func shareTopic(w awssetup.Wiring) []Statement {
	if w.Topic == "" {
		return nil
	}
	return []Statement{
		{
			Sid: "Topic", Resource: []string{w.TopicARN(w.Topic)},
			Action: []string{
				"sns:GetTopicAttributes", "sns:ListTagsForResource", "sns:ListSubscriptionsByTopic",
				"sns:CreateTopic", "sns:SetTopicAttributes", "sns:TagResource", "sns:Subscribe", "sns:DeleteTopic",
			},
		},
		{
			Sid: "Subscription", Resource: allResources(), Condition: inRegion(w),
			Action: []string{"sns:GetSubscriptionAttributes", "sns:SetSubscriptionAttributes", "sns:Unsubscribe"},
		},
	}
}

// PodIdentity allows pods of the controller's service account in this cluster to
// assume a role. The source is the EKS User Guide, "Create IAM role with trust policy
// required by EKS Pod Identity".
func PodIdentity(w awssetup.Wiring) Document {
	return document(Statement{
		Sid: "EKSPodIdentity", Principal: map[string]string{"Service": "pods.eks.amazonaws.com"},
		Action: []string{"sts:AssumeRole", "sts:TagSession"},
		Condition: conditions{"StringEquals": {
			"aws:SourceAccount":                         w.Account,
			"aws:RequestTag/eks-cluster-name":           w.Cluster,
			"aws:RequestTag/kubernetes-namespace":       Namespace,
			"aws:RequestTag/kubernetes-service-account": ServiceAccount,
		}},
	})
}

// UnknownIssuer stands for an unknown OIDC issuer of the cluster.
const UnknownIssuer = "OIDC_ISSUER"

// WebIdentity allows the controller's service account to assume a role through the
// cluster's OIDC provider; EKS calls this IRSA (EKS User Guide, "Assign IAM roles to
// Kubernetes service accounts"). issuer is the cluster's issuer, with or without
// https://.
func WebIdentity(w awssetup.Wiring, issuer string) Document {
	issuer = cmp.Or(strings.TrimSuffix(strings.TrimPrefix(issuer, "https://"), "/"), UnknownIssuer)
	return document(Statement{
		Sid:       "WebIdentity",
		Principal: map[string]string{"Federated": "arn:" + w.Partition + ":iam::" + w.Account + ":oidc-provider/" + issuer},
		Action:    []string{"sts:AssumeRoleWithWebIdentity"},
		Condition: conditions{"StringEquals": {
			issuer + ":sub": "system:serviceaccount:" + Namespace + ":" + ServiceAccount,
			issuer + ":aud": "sts.amazonaws.com",
		}},
	})
}
