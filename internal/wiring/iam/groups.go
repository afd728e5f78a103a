package iam

import (
	"cmp"

	"github.com/lifeboat-dev/lifeboat/internal/wiring"
)

// The tags of a cluster's Auto Scaling groups. kOps, Cluster API and the templates
// for self-managed nodes tag groups as they do instances, and EKS the groups of its
// node groups.
func clusterTags(w wiring.Wiring) []tag {
	return []tag{
		{"", "kubernetes.io/cluster/" + w.Cluster, "owned"},
		{"OfNodeGroups", "eks:cluster-name", w.Cluster},
	}
}

// tag is a tag, with what its statement's Sid ends in.
type tag struct{ suffix, key, value string }

type conditions = map[string]map[string]string

// ofGroups are the statements that allow actions on the cluster's groups: on those
// that are named, or, where none is, on those with the cluster's tags. Conditions
// of one statement would all have to hold, so each tag has a statement.
func ofGroups(w wiring.Wiring, sid string, also conditions, actions ...string) []Statement {
	if len(w.Groups) > 0 {
		s := Statement{Sid: sid, Action: actions, Condition: also}
		for _, g := range w.Groups {
			s.Resource = append(s.Resource, w.GroupARN(g))
		}
		return []Statement{s}
	}
	var all []Statement
	for _, t := range clusterTags(w) {
		condition := conditions{"StringEquals": {"aws:ResourceTag/" + t.key: t.value}}
		for operator, keys := range also {
			condition[operator] = keys
		}
		all = append(all, Statement{Sid: sid + t.suffix, Action: actions, Resource: []string{w.GroupARN("*")}, Condition: condition})
	}
	return all
}

// answerHooks lets the controller answer the hooks of the cluster's groups, and take
// an instance out of its group, which then launches another.
func answerHooks(w wiring.Wiring) []Statement {
	return ofGroups(w, "AnswerHooks", nil,
		"autoscaling:CompleteLifecycleAction", "autoscaling:RecordLifecycleActionHeartbeat", "autoscaling:DetachInstances")
}

// Boot is what `lifeboatd agent boot` needs where it is to answer launch hooks
// itself, from the role of the node's instance. Nothing in IAM limits it to hooks
// of that very instance: what can be asked for is that the credentials are an
// instance's (EC2 User Guide, "IAM roles for Amazon EC2": ec2:SourceInstanceARN is
// in requests with such credentials), and which groups they reach.
func Boot(w wiring.Wiring) Document {
	statements := ofGroups(w, "AnswerOwnHooks", conditions{"Null": {"ec2:SourceInstanceARN": "false"}},
		"autoscaling:CompleteLifecycleAction", "autoscaling:RecordLifecycleActionHeartbeat")
	return document(append(statements, Statement{
		Sid: "SeeItself", Resource: everything(), Condition: inRegion(w),
		Action: []string{"autoscaling:DescribeAutoScalingInstances", "autoscaling:DescribeLifecycleHooks"},
	})...)
}

// UnknownNodeRole stands where the role of the nodes' instances is not known.
const UnknownNodeRole = "NODE_ROLE"

// ManageGroups adds what NodeGroups with the management Hooks or All need: to make
// and change groups, their hooks and warm pools. Who makes a group has to be
// allowed what its launch template does (EC2 Auto Scaling User Guide, "Control
// Amazon EC2 launch template usage in Auto Scaling groups"): nodeRole is the role
// that the template gives to instances.
func ManageGroups(d Document, w wiring.Wiring, nodeRole string) Document {
	// Groups of EKS's node groups are EKS's own to change.
	manage := ofGroups(w, "ManageGroups", nil,
		"autoscaling:UpdateAutoScalingGroup", "autoscaling:DeleteAutoScalingGroup",
		"autoscaling:PutLifecycleHook", "autoscaling:DeleteLifecycleHook",
		"autoscaling:PutWarmPool", "autoscaling:DeleteWarmPool",
		"autoscaling:CreateOrUpdateTags", "autoscaling:DeleteTags")[:1]
	create := Statement{
		Sid: "CreateGroups", Action: []string{"autoscaling:CreateAutoScalingGroup", "autoscaling:CreateOrUpdateTags"}, Resource: []string{w.GroupARN("*")},
		Condition: conditions{"StringEquals": {"aws:RequestTag/kubernetes.io/cluster/" + w.Cluster: "owned"}},
	}
	if len(w.Groups) > 0 {
		create.Condition, create.Resource = nil, manage[0].Resource
	}
	launch := Statement{
		Sid: "LaunchFromTemplates", Action: []string{"ec2:RunInstances"}, Resource: everything(), Condition: inRegion(w),
	}
	launch.Condition["ArnLike"] = map[string]string{"ec2:LaunchTemplate": "arn:" + w.Partition + ":ec2:" + w.Region + ":" + w.Account + ":launch-template/*"}
	statements := append(manage, create, launch, Statement{
		Sid: "TagWhatIsLaunched", Action: []string{"ec2:CreateTags"}, Resource: []string{"arn:" + w.Partition + ":ec2:" + w.Region + ":" + w.Account + ":*/*"},
		Condition: conditions{"StringEquals": {"ec2:CreateAction": "RunInstances"}},
	}, Statement{
		Sid: "PassTheNodesRole", Action: []string{"iam:PassRole"},
		Resource:  []string{"arn:" + w.Partition + ":iam::" + w.Account + ":role/" + cmp.Or(nodeRole, UnknownNodeRole)},
		Condition: conditions{"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}},
	})
	d.Statement = append(d.Statement, document(statements...).Statement...)
	return d
}

// putHooks lets the wirer put hooks on the groups that it was given.
func putHooks(w wiring.Wiring) []Statement {
	if len(w.Groups) == 0 {
		return nil
	}
	return append(ofGroups(w, "Hooks", nil, "autoscaling:PutLifecycleHook", "autoscaling:DeleteLifecycleHook"),
		Statement{
			Sid: "FindGroups", Resource: everything(), Condition: inRegion(w),
			Action: []string{"autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeLifecycleHooks", "autoscaling:DescribeWarmPool"},
		})
}
