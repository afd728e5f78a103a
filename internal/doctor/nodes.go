package doctor

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/internal/corroborate"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
)

// CheckNodes reports the instances that several Ready nodes state as their own, and the instances of
// which no node states the id.
func CheckNodes(nodes []corev1.Node) []finding.Finding {
	of := map[string][]*corev1.Node{}
	for i := range nodes {
		if id := nodeindex.InstanceID(&nodes[i]); id != "" {
			of[id] = append(of[id], &nodes[i])
		}
	}
	var all []finding.Finding
	for _, id := range slices.Sorted(maps.Keys(of)) {
		_, err := corroborate.Current(id, of[id])
		conflict, ok := errors.AsType[*corroborate.ConflictError](err)
		if !ok {
			continue
		}
		all = append(all, finding.Finding{
			Severity: finding.Broken, ID: idNodeConflict, Object: "nodes " + joinList(conflict.Nodes),
			Problem: fmt.Sprintf("they all state instance %s as their own, so Lifeboat drains none of them", id),
			Fix: fmt.Sprintf("compare kubectl get nodes %s -o wide with aws ec2 describe-instances --instance-ids %s; kubectl delete node each one that is not the instance's; and examine its machine, because its kubelet states a false spec.providerID",
				strings.Join(conflict.Nodes, " "), id),
		})
	}
	return append(all, checkUnreachable(nodes)...)
}

// checkUnreachable reports the EC2 instances whose nodes have no provider id.
func checkUnreachable(nodes []corev1.Node) []finding.Finding {
	names := nodeindex.Unreachable(nodes)
	if len(names) == 0 {
		return nil
	}
	const shown = 5
	text := joinList(names[:min(len(names), shown)])
	if more := len(names) - shown; more > 0 {
		text = fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), more)
	}
	return []finding.Finding{{
		Severity: finding.Broken, ID: idNodeWithoutProviderID, Object: "nodes " + text,
		Problem: "they run on EC2 and have no spec.providerID, so no notice about their instances reaches them: Lifeboat drains none of them",
		Fix:     nodeindex.ProviderIDFix,
	}}
}
