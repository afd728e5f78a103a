package iam

import (
	"cmp"
	"slices"

	"github.com/lifeboat-dev/lifeboat/internal/asg/nodegroup"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup"
)

// clusterTags returns the tags of a cluster's Auto Scaling groups. kOps, Cluster API
// and the templates for self-managed nodes tag groups like instances; EKS tags the
// groups of its node groups.
func clusterTags(w awssetup.Wiring) []tag {
	return []tag{
		{"", "kubernetes.io/cluster/" + w.Cluster, "owned"},
		{"OfNodeGroups", "eks:cluster-name", w.Cluster},
	}
}

// tag is a tag, with the suffix of its statement's Sid.
type tag struct{ suffix, key, value string }

// groupStatements allow actions on the cluster's groups: on the named groups or, if
// none is named, on those with the cluster's tags. All conditions of one statement
// must hold, so each tag needs its own statement.
func groupStatements(w awssetup.Wiring, sid string, also conditions, actions ...string) []Statement {
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

// answerHooks allows the controller to complete the hooks of the cluster's groups,
// and to detach an instance from its group, which then launches another.
func answerHooks(w awssetup.Wiring) []Statement {
	return groupStatements(w, "AnswerHooks", nil,
		"autoscaling:CompleteLifecycleAction", "autoscaling:RecordLifecycleActionHeartbeat", "autoscaling:DetachInstances")
}

// Boot is the policy of `lifeboatd agent boot` if it completes launch hooks itself,
// with the role of the node's instance. IAM cannot limit it to hooks of that
// instance. It can require the credentials of an instance (EC2 User Guide, "IAM roles
// for Amazon EC2": requests with such credentials contain ec2:SourceInstanceARN), and
// limit the groups.
func Boot(w awssetup.Wiring) Document {
	statements := groupStatements(w, "AnswerOwnHooks", conditions{"Null": {"ec2:SourceInstanceARN": "false"}},
		"autoscaling:CompleteLifecycleAction", "autoscaling:RecordLifecycleActionHeartbeat")
	return document(append(statements, Statement{
		Sid: "SeeItself", Resource: allResources(), Condition: inRegion(w),
		Action: []string{"autoscaling:DescribeAutoScalingInstances", "autoscaling:DescribeLifecycleHooks"},
	})...)
}

// UnknownNodeRole stands for an unknown role of the nodes' instances.
const UnknownNodeRole = "NODE_ROLE"

// ManageGroups adds the permissions for NodeGroups with the management Hooks or All: to
// create and change groups, their hooks and warm pools. The creator of a group needs the
// permissions of its launch template (User Guide, "Control Amazon EC2 launch template
// usage in Auto Scaling groups"). nodeRole is the role that the template gives to
// instances.
//
// w must name groups; a name may end in *. Without names the policy would reach every
// group of the account. Auto Scaling has no condition like ec2:CreateAction. So a request
// that tags a group cannot be told from one that creates it, and the tag would then allow
// everything else.
//
// tagKeys are the keys of spec.tags. The policy allows no other tags than these, the cluster's and
// Lifeboat's own, so that the role cannot give a group to another cluster.
func ManageGroups(d Document, w awssetup.Wiring, nodeRole string, tagKeys ...string) Document {
	// EKS itself changes the groups of its node groups.
	manage := groupStatements(w, "ManageGroups", nil,
		"autoscaling:UpdateAutoScalingGroup", "autoscaling:DeleteAutoScalingGroup",
		"autoscaling:PutLifecycleHook", "autoscaling:DeleteLifecycleHook",
		"autoscaling:PutWarmPool", "autoscaling:DeleteWarmPool")[:1]
	var statements []Statement
	if len(w.Groups) > 0 {
		keys := append([]string{nodegroup.TagObject, nodegroup.TagCluster + w.Cluster}, tagKeys...)
		statements = append(manage, Statement{
			Sid: "CreateAndTagGroups", Action: []string{"autoscaling:CreateAutoScalingGroup", "autoscaling:CreateOrUpdateTags"}, Resource: manage[0].Resource,
			Condition: conditions{"ForAllValues:StringEquals": {"aws:TagKeys": keys}},
		})
	}
	statements = append(statements, launchFromTemplates(w)...)
	statements = append(statements, Statement{
		Sid: "TagWhatIsLaunched", Action: []string{"ec2:CreateTags"}, Resource: []string{"arn:" + w.Partition + ":ec2:" + w.Region + ":" + w.Account + ":*/*"},
		Condition: conditions{"StringEquals": {"ec2:CreateAction": "RunInstances"}},
	}, Statement{
		Sid: "PassTheNodesRole", Action: []string{"iam:PassRole"},
		Resource:  []string{"arn:" + w.Partition + ":iam::" + w.Account + ":role/" + cmp.Or(nodeRole, UnknownNodeRole)},
		Condition: conditions{"StringEquals": {"iam:PassedToService": "ec2.amazonaws.com"}}, //nolint:gosec // G101: the name of a condition
	})
	d.Statement = append(d.Statement, document(statements...).Statement...)
	return d
}

// launchFromTemplates allows what a group's launch template names. The group itself
// names the subnets, and with them the network interfaces (EC2 User Guide, "Use
// launch templates to control launching instances"). Without
// ec2:IsLaunchTemplateResource any other parameter could be overridden, such as the
// image.
func launchFromTemplates(w awssetup.Wiring) []Statement {
	arns := func(account string, types ...string) []string {
		var all []string
		for _, t := range types {
			all = append(all, "arn:"+w.Partition+":ec2:"+w.Region+":"+account+":"+t+"/*")
		}
		return all
	}
	ofTemplate := map[string]any{"ec2:LaunchTemplate": arns(w.Account, "launch-template")[0]}
	run := []string{"ec2:RunInstances"}
	return []Statement{
		{
			Sid: "LaunchFromTemplates", Action: run,
			// Images belong to no account, and other accounts can share the second kind.
			Resource: slices.Concat(arns("", "image", "snapshot"), arns("*", "capacity-reservation", "placement-group", "security-group"),
				arns(w.Account, "instance", "key-pair", "launch-template", "volume")),
			Condition: conditions{"ArnLike": ofTemplate, "Bool": {"ec2:IsLaunchTemplateResource": "true"}},
		},
		{
			Sid: "LaunchIntoSubnets", Action: run, Resource: arns("*", "network-interface", "subnet"),
			Condition: conditions{"ArnLike": ofTemplate},
		},
	}
}

// putHooks allows `lifeboat aws` to create hooks on the named groups.
func putHooks(w awssetup.Wiring) []Statement {
	if len(w.Groups) == 0 {
		return nil
	}
	return append(groupStatements(w, "Hooks", nil, "autoscaling:PutLifecycleHook", "autoscaling:DeleteLifecycleHook"),
		Statement{
			Sid: "FindGroups", Resource: allResources(), Condition: inRegion(w),
			Action: []string{"autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeLifecycleHooks", "autoscaling:DescribeWarmPool"},
		})
}
