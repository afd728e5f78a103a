// Package iam writes the least that Lifeboat's parts need of IAM, and who may
// take their roles on. It is pure.
//
// What an action can be limited to is in the Service Authorization Reference:
// ec2:Describe*, autoscaling:Describe* and events:List* know no resources, so
// they are limited to the region.
package iam

import (
	"cmp"
	"strings"

	"github.com/lifeboat-dev/lifeboat/internal/wiring"

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
	Resource  []string                     `json:",omitempty"`
	Condition map[string]map[string]string `json:",omitempty"`
}

// Namespace and ServiceAccount are whose pods may take the controller's role on.
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

// everything is the resource of actions that know none.
func everything() []string { return []string{"*"} }

func inRegion(w wiring.Wiring) map[string]map[string]string {
	return map[string]map[string]string{"StringEquals": {"aws:RequestedRegion": w.Region}}
}

// Controller is what lifeboatd controller needs. Whose credentials it has, it may
// ask without a permission (STS API Reference, GetCallerIdentity). canary adds
// what it needs to send probes: events of Lifeboat's own source, and of no other.
// The hooks that it may answer are those of w's groups, or of the cluster's where
// w names none.
func Controller(w wiring.Wiring, canary bool) Document {
	d := document(append([]Statement{
		{
			Sid: "ReadTheQueue", Resource: []string{w.QueueARN()},
			Action: []string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes", "sqs:ListQueueTags"},
		},
		{
			Sid: "SeeInstances", Resource: everything(), Condition: inRegion(w),
			Action: []string{
				"ec2:DescribeInstances", "ec2:DescribeInstanceStatus", "ec2:DescribeSpotInstanceRequests",
				"autoscaling:DescribeAutoScalingInstances", "autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeLifecycleHooks",
				"autoscaling:DescribeWarmPool", "ec2:DescribeLaunchTemplates",
			},
		},
		{
			Sid: "DiagnoseTheWiring", Resource: everything(), Condition: inRegion(w),
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

// FeedKarpenter adds what it takes to put notices on Karpenter's own queue, given
// its name: to send to that queue, and nothing else.
func FeedKarpenter(d Document, w wiring.Wiring, queue string) Document {
	d.Statement = append(d.Statement, Statement{
		Sid: "FeedKarpenter", Effect: "Allow", Action: []string{"sqs:SendMessage"},
		Resource: []string{"arn:" + w.Partition + ":sqs:" + w.Region + ":" + w.Account + ":" + queue},
	})
	return d
}

// terminate lets instances be terminated that have a tag. Nodes of a cluster have
// kubernetes.io/cluster/NAME: Karpenter, kOps, Cluster API and the templates for
// self-managed nodes set it to "owned" (EKS User Guide, "Maintain nodes yourself
// with self-managed nodes"; Karpenter docs, "EC2NodeClass", spec.tags), and EKS
// tags the instances of its node groups with eks:cluster-name. Conditions of one
// statement would all have to hold, so each tag has a statement.
func terminate(w wiring.Wiring, sid, tag, value string) Statement {
	return Statement{
		Sid: sid, Effect: "Allow", Action: []string{"ec2:TerminateInstances"},
		Resource:  []string{"arn:" + w.Partition + ":ec2:" + w.Region + ":" + w.Account + ":instance/*"},
		Condition: map[string]map[string]string{"StringEquals": {"aws:ResourceTag/" + tag: value}},
	}
}

func sendProbes(w wiring.Wiring) Statement {
	return Statement{
		Sid: "SendProbes", Effect: "Allow", Action: []string{"events:PutEvents"}, Resource: []string{w.BusARN()},
		Condition: map[string]map[string]string{"StringEquals": {"events:source": notice.ProbeSource}},
	}
}

// Wire is what a person or a pipeline needs to run `lifeboat wire` for the
// cluster: plan, apply and destroy. It reaches the cluster's queues and, since
// roles come and go with releases, all rules that begin with its name; of Auto
// Scaling groups, only those that w names.
func Wire(w wiring.Wiring) Document {
	rules := w.RuleARN(wiring.RulePrefix(w.Cluster) + "*")
	return document(append([]Statement{
		{
			Sid: "Queues", Resource: []string{w.QueueARN(), w.DeadLetterARN()},
			Action: []string{
				"sqs:GetQueueUrl", "sqs:GetQueueAttributes", "sqs:ListQueueTags",
				"sqs:CreateQueue", "sqs:SetQueueAttributes", "sqs:TagQueue", "sqs:DeleteQueue",
			},
		},
		{Sid: "FindRules", Resource: everything(), Condition: inRegion(w), Action: []string{"events:ListRules"}},
		{
			Sid: "Rules", Resource: []string{rules},
			Action: []string{
				"events:ListTargetsByRule", "events:ListTagsForResource", "events:PutRule", "events:PutTargets",
				"events:TagResource", "events:RemoveTargets", "events:DeleteRule",
			},
		},
	}, putHooks(w)...)...)
}

// PodIdentity lets pods of the controller's service account, and of this cluster
// only, take a role on (EKS User Guide, "Create IAM role with trust policy
// required by EKS Pod Identity").
func PodIdentity(w wiring.Wiring) Document {
	return document(Statement{
		Sid: "EKSPodIdentity", Principal: map[string]string{"Service": "pods.eks.amazonaws.com"},
		Action: []string{"sts:AssumeRole", "sts:TagSession"},
		Condition: map[string]map[string]string{"StringEquals": {
			"aws:SourceAccount":                         w.Account,
			"aws:RequestTag/eks-cluster-name":           w.Cluster,
			"aws:RequestTag/kubernetes-namespace":       Namespace,
			"aws:RequestTag/kubernetes-service-account": ServiceAccount,
		}},
	})
}

// UnknownIssuer stands where the cluster's OIDC issuer is not known.
const UnknownIssuer = "OIDC_ISSUER"

// WebIdentity lets the controller's service account take a role on through the
// cluster's OIDC provider, which on EKS is called IRSA (EKS User Guide, "Assign
// IAM roles to Kubernetes service accounts"). issuer is that of the cluster, with
// or without https://.
func WebIdentity(w wiring.Wiring, issuer string) Document {
	issuer = cmp.Or(strings.TrimSuffix(strings.TrimPrefix(issuer, "https://"), "/"), UnknownIssuer)
	return document(Statement{
		Sid:       "WebIdentity",
		Principal: map[string]string{"Federated": "arn:" + w.Partition + ":iam::" + w.Account + ":oidc-provider/" + issuer},
		Action:    []string{"sts:AssumeRoleWithWebIdentity"},
		Condition: map[string]map[string]string{"StringEquals": {
			issuer + ":sub": "system:serviceaccount:" + Namespace + ":" + ServiceAccount,
			issuer + ":aud": "sts.amazonaws.com",
		}},
	})
}
