package nth

import (
	"maps"

	yaml "go.yaml.in/yaml/v3"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// selectors are the values of the handler's chart that select the nodes of its DaemonSets. It acts on
// these nodes (chart aws-node-termination-handler, values.yaml).
func selectors() []string {
	return []string{"node-selector", "daemonset-node-selector", "linux-node-selector", "windows-node-selector"}
}

// selector reads a node selector.
func (s settings) selector(file, flag string, n *yaml.Node) {
	if n == nil || n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		return
	}
	labels := map[string]string{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if key := n.Content[i].Value; key != "kubernetes.io/os" { // each DaemonSet has its own
			labels[key] = text(n.Content[i+1])
		}
	}
	if len(labels) > 0 {
		s[flag] = setting{file: file, line: n.Line, labels: labels}
	}
}

// nodeLabels returns the labels of the nodes that the handler acts on; nil for all
// nodes. In queue mode the selector says only where its Deployment runs.
func (c *converter) nodeLabels() map[string]string {
	if c.queue() {
		return nil
	}
	var labels map[string]string
	for _, flag := range selectors() {
		own := c.settings[flag].labels
		switch {
		case own == nil:
		case labels == nil:
			labels = own
		case !maps.Equal(labels, own):
			c.report(flag, finding.Broken, "nodes", "Several node selectors are set, and a policy has one. The policy has the labels of the first.", "write a policy for each selector")
		}
		if own != nil && maps.Equal(labels, own) {
			c.report(flag, finding.Warning, "nodes", "The policy applies to the nodes with these labels. NTH does nothing on the other nodes, and there Lifeboat's defaults apply.",
				"to do nothing on the other nodes, add a policy for all nodes with a lower priority and action: Ignore")
		}
	}
	return labels
}
