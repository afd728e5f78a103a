package iam

import "github.com/lifeboat-dev/lifeboat/internal/awssetup"

// Drill is the policy of the role with which AWS Fault Injection Service interrupts spot
// instances. It covers only nodes of the cluster, by the tags that terminate explains.
func Drill(w awssetup.Wiring) Document {
	return document(
		interruptSpot(w, "InterruptSpotNodes", "kubernetes.io/cluster/"+w.Cluster, "owned"),
		interruptSpot(w, "InterruptSpotNodesOfNodeGroups", "eks:cluster-name", w.Cluster),
	)
}

func interruptSpot(w awssetup.Wiring, sid, tag, value string) Statement {
	return Statement{
		Sid: sid, Action: []string{"ec2:SendSpotInstanceInterruptions"},
		Resource:  []string{"arn:" + w.Partition + ":ec2:" + w.Region + ":" + w.Account + ":instance/*"},
		Condition: conditions{"StringEquals": {"aws:ResourceTag/" + tag: value}},
	}
}

// DrillTrust lets experiments of this account assume the role (FIS User Guide, "Create an IAM
// role for AWS FIS experiments").
func DrillTrust(w awssetup.Wiring) Document {
	return document(Statement{
		Sid: "Experiments", Principal: map[string]string{"Service": "fis.amazonaws.com"}, Action: []string{"sts:AssumeRole"},
		Condition: conditions{
			"StringEquals": {"aws:SourceAccount": w.Account},
			"ArnLike":      {"aws:SourceArn": "arn:" + w.Partition + ":fis:" + w.Region + ":" + w.Account + ":experiment/*"},
		},
	})
}
