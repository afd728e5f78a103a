package nodegroup

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// OtherCluster is the id of the finding about a group of another cluster.
const OtherCluster = "other-cluster"

// clusterPrefixes are the prefixes of tag keys that end in a cluster's name: of Kubernetes itself,
// of Cluster API for AWS, and of the cluster autoscaler's auto-discovery.
func clusterPrefixes() []string {
	return []string{TagCluster, "sigs.k8s.io/cluster-api-provider-aws/cluster/", "k8s.io/cluster-autoscaler/"}
}

// clusterKeys are the tag keys whose value is a cluster's name: of EKS, eksctl, kOps and Lifeboat.
func clusterKeys() []string {
	return []string{"eks:cluster-name", "alpha.eksctl.io/cluster-name", "KubernetesCluster", "lifeboat.dev/cluster"}
}

// clusterOf returns the cluster that a tag names; empty: it names none.
func clusterOf(key, value string) string {
	if slices.Contains(clusterKeys(), key) {
		return value
	}
	for _, prefix := range clusterPrefixes() {
		name, ok := strings.CutPrefix(key, prefix)
		// k8s.io/cluster-autoscaler/enabled and …/node-template/… name no cluster.
		if ok && name != "enabled" && !strings.Contains(name, "/") {
			return name
		}
	}
	return ""
}

// otherCluster returns the cluster that the group belongs to, and the tag that says so. It is empty
// for a group of no cluster, of this cluster, or of several with this one, and if the name of this
// cluster is unknown.
func (o Observed) otherCluster(own string) (cluster, tag string) {
	if own == "" {
		return "", ""
	}
	for _, key := range slices.Sorted(maps.Keys(o.Tags)) {
		switch name := clusterOf(key, o.Tags[key]); name {
		case "":
		case own:
			return "", ""
		default:
			cluster, tag = name, key
		}
	}
	return cluster, tag
}

// belongsElsewhere explains that the group is another cluster's; empty: it is not.
func (o Observed) belongsElsewhere(own string) (problem, fix string) {
	cluster, tag := o.otherCluster(own)
	if cluster == "" {
		return "", ""
	}
	return fmt.Sprintf("the group belongs to cluster %s (tag %s), and this is cluster %s, so Lifeboat changes nothing of it", cluster, tag, own),
		fmt.Sprintf("correct spec.autoScalingGroup. If the group is this cluster's, remove the tag: "+
			"`aws autoscaling delete-tags --tags ResourceId=%s,ResourceType=auto-scaling-group,Key=%s`; if both clusters share it, add the tag %s%s=shared", o.Name, tag, TagCluster, own)
}

// cluster reports a group of another cluster.
func (r *review) cluster() {
	if problem, fix := r.o.belongsElsewhere(r.w.Cluster); problem != "" && r.w.Management != v1beta1.ManageNothing {
		r.add(finding.Broken, OtherCluster, problem, fix)
	}
}
