package cli

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
)

// IDs of the findings about instances of groups.
const (
	groupsNotSeen    = "groups-not-looked-at"
	warmNode         = "node-of-warm-instance"
	startupTaintLess = "startup-taint-missing"
	metadataOpen     = "metadata-open-to-pods"
)

// memberFindings reports nodes that joined the cluster too early. Pods are
// scheduled to them and are lost when the instance stops or is terminated.
func memberFindings(g seenGroup, nodes []corev1.Node) []finding.Finding {
	var warm, early []string
	for _, m := range g.there.Instances {
		i := slices.IndexFunc(nodes, func(n corev1.Node) bool { return nodeindex.InstanceID(&n) == m.ID })
		if i < 0 {
			continue
		}
		switch node := &nodes[i]; {
		case strings.HasPrefix(m.State, "Warmed:") && !strings.Contains(m.State, "Terminat"):
			warm = append(warm, node.Name)
		case strings.HasPrefix(m.State, "Pending") && !hasTaint(node, v1beta1.TaintNotInService):
			early = append(early, node.Name)
		}
	}
	var all []finding.Finding
	if len(warm) > 0 {
		all = append(all, finding.Finding{
			Severity: finding.Warning, ID: warmNode, Object: someNodes(warm),
			Problem: "its node joined the cluster while its instance is in the warm pool of " + g.there.Name + ": its kubelet started too early; pods that are scheduled to it are lost when the instance stops",
			Fix:     "make the kubelet wait for lifeboatd agent boot (docs/guides/warm-pools.md); the controller deletes such nodes",
		})
	}
	if len(early) > 0 {
		all = append(all, finding.Finding{
			Severity: finding.Warning, ID: startupTaintLess, Object: someNodes(early),
			Problem: "its instance is not in service yet in group " + g.there.Name + ", and the node has no startup taint: pods that are scheduled to it are lost if its launch hook is abandoned",
			Fix:     "start its kubelet with --register-with-taints=" + v1beta1.TaintNotInService + "=:NoSchedule; the controller removes the taint when the instance is in service",
		})
	}
	return all
}

func hasTaint(node *corev1.Node, key string) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == key })
}
