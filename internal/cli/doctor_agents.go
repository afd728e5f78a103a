package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/lifeboat-dev/lifeboat/internal/doctor"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
	"github.com/lifeboat-dev/lifeboat/internal/doctor/installed"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
)

// IDs of the findings about agents.
const (
	agentsMissing  = "agents-missing"
	agentsNotReady = "agents-not-ready"
	nodesNoAgent   = "nodes-without-agent"
)

// agents checks that an agent on every node reads its instance's metadata; the
// agent is Ready if it does. It checks nothing if the chart is not installed, which
// installed reports.
func (d *doctorRun) agents(ctx context.Context) ([]finding.Finding, error) {
	if d.kube == nil || d.lifeboat.Controller == nil {
		return nil, nil
	}
	if d.lifeboat.IsUnread(doctor.PartAgents) {
		return nil, nil // installed reports that
	}
	nodes, err := d.kube.nodes(ctx)
	if err != nil {
		return nil, err
	}
	var pods corev1.PodList
	if d.agentNamespace != "" {
		err = d.kube.list(ctx, "the agents", &pods, client.InNamespace(d.agentNamespace),
			client.MatchingLabels{nameLabel: "lifeboat", componentLabel: "agent"})
	}
	if err != nil {
		return nil, err
	}
	return agentFindings(d.agentNamespace, nodes, pods.Items), nil
}

// agentFindings reports the nodes that have no agent, or an agent that is not
// Ready. namespace is that of the DaemonSet; empty if there is none.
func agentFindings(namespace string, nodes []corev1.Node, pods []corev1.Pod) []finding.Finding {
	without, unready := agentless(nodes, pods)
	const effect = "if the queue fails as well, only the poll of EC2 finds a spot notice, up to 15 seconds late"
	describe := "kubectl -n " + namespace + " describe daemonset lifeboat-agent"
	if len(pods) == 0 && len(without) > 0 {
		f := finding.Finding{
			Severity: finding.Warning, ID: agentsMissing, Object: "daemonset " + namespace + "/lifeboat-agent",
			Problem: "no agent runs on any node, so nothing reads instance metadata: " + effect,
			Fix:     describe + " shows why it has no pods, for example because the namespace enforces a Pod Security level",
		}
		if namespace == "" {
			f.Object, f.Fix = "daemonset "+lifeboatNamespace+"/lifeboat-agent", installed.Upgrade("--set agent.enabled=true")
		}
		return []finding.Finding{f}
	}
	var all []finding.Finding
	if len(without) > 0 {
		all = append(all, finding.Finding{
			Severity: finding.Warning, ID: nodesNoAgent, Object: someNodes(without), Problem: "no agent runs on these nodes: " + effect,
			Fix: describe,
		})
	}
	if len(unready) > 0 {
		all = append(all, finding.Finding{
			Severity: finding.Warning, ID: agentsNotReady, Object: someNodes(unready),
			Problem: "the agent on these nodes is not Ready: it cannot read the instance's metadata, or cannot write to the API server; " + effect,
			Fix: "kubectl -n " + namespace + " logs -l app.kubernetes.io/component=agent --prefix --tail=3 shows the reason; if the hop limit is too low: " +
				"aws ec2 modify-instance-metadata-options --instance-id ID --http-put-response-hop-limit 2, or agent.hostNetwork=true in the chart",
		})
	}
	return all
}

// agentless returns the EC2 nodes that have no agent, and those whose agent is
// not Ready.
func agentless(nodes []corev1.Node, pods []corev1.Pod) (without, unready []string) {
	ready := map[string]bool{} // by node; false: the agent exists and is not Ready
	for i := range pods {
		if pod := &pods[i]; pod.DeletionTimestamp.IsZero() && pod.Spec.NodeName != "" {
			ready[pod.Spec.NodeName] = ready[pod.Spec.NodeName] || podReady(pod)
		}
	}
	for i := range nodes {
		node := &nodes[i]
		if nodeindex.InstanceID(node) == "" || !nodeindex.Ready(node) {
			continue // not on EC2, or the node itself is not Ready
		}
		switch is, there := ready[node.Name]; {
		case !there:
			without = append(without, node.Name)
		case !is:
			unready = append(unready, node.Name)
		}
	}
	return without, unready
}

func podReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// someNodes formats a list of node names and shortens a long one.
func someNodes(names []string) string {
	slices.Sort(names)
	const shown = 5
	if len(names) <= shown {
		return "nodes " + strings.Join(names, ", ")
	}
	return fmt.Sprintf("nodes %s and %d more", strings.Join(names[:shown], ", "), len(names)-shown)
}
