package cli

import (
	"context"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/internal/drill"
	"github.com/lifeboat-dev/lifeboat/internal/kube/nodeindex"
	"github.com/lifeboat-dev/lifeboat/internal/text/levenshtein"
)

var instanceID = regexp.MustCompile(`^i-[0-9a-f]{8,17}$`)

// nodes lists the nodes of the cluster.
func (c cluster) nodes(ctx context.Context) ([]corev1.Node, error) {
	var all corev1.NodeList
	if err := c.list(ctx, "nodes", &all); err != nil {
		return nil, err
	}
	return all.Items, nil
}

// findNode finds a node by its name, or by the id of its instance.
func findNode(nodes []corev1.Node, arg string) (*corev1.Node, error) {
	for i := range nodes {
		if id, _ := instanceOf(&nodes[i]); nodes[i].Name == arg || id == arg {
			return &nodes[i], nil
		}
	}
	if instanceID.MatchString(arg) {
		return nil, nodeNotFound.Errorf("no node of this cluster has the instance %s; check the id and --context", arg)
	}
	names := make([]string, 0, len(nodes))
	for _, n := range nodes {
		names = append(names, n.Name)
	}
	near := nearest(arg, names)
	if len(near) == 0 {
		return nil, nodeNotFound.Errorf("node %q not found: the cluster has no nodes; check --context", arg)
	}
	return nil, nodeNotFound.Errorf("node %q not found; similar names: %s", arg, strings.Join(near, ", "))
}

// targets returns the targets that the arguments name. An instance id works
// without a node. If the cluster does not answer, or has no such node, only the
// node name stays empty.
func (s *session) targets(ctx context.Context, args []string) ([]drill.Target, error) {
	named := slices.ContainsFunc(args, func(a string) bool { return !instanceID.MatchString(a) })
	nodes, err := s.nodesOf(ctx)
	if err != nil && named {
		return nil, err
	}
	var found []drill.Target
	for _, arg := range args {
		node, err := findNode(nodes, arg)
		var t drill.Target
		switch {
		case err == nil:
			if t, err = targetOf(node); err != nil {
				return nil, err
			}
		case instanceID.MatchString(arg):
			t = drill.Target{InstanceID: arg}
		default:
			return nil, err
		}
		if !slices.ContainsFunc(found, func(other drill.Target) bool { return other.InstanceID == t.InstanceID }) {
			found = append(found, t)
		}
	}
	return found, nil
}

func (s *session) nodesOf(ctx context.Context) ([]corev1.Node, error) {
	c, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	return c.nodes(ctx)
}

func targetOf(node *corev1.Node) (drill.Target, error) {
	id, zone := instanceOf(node)
	if id == "" {
		return drill.Target{}, nodeNotEC2.Errorf("node %s is not an EC2 instance: its provider id is %q instead of aws:///ZONE/INSTANCE", node.Name, node.Spec.ProviderID)
	}
	return drill.Target{InstanceID: id, Node: node.Name, Zone: zone}, nil
}

// instanceOf returns a node's instance id and zone, or empty strings if the
// node is not on EC2. If no label has the zone, it comes from the provider id,
// such as aws:///us-east-1a/i-0a1b2c3d4e5f60718.
func instanceOf(node *corev1.Node) (id, zone string) {
	if id = nodeindex.InstanceID(node); !instanceID.MatchString(id) {
		return "", ""
	}
	parts := strings.Split(node.Spec.ProviderID, "/")
	if zone = node.Labels[corev1.LabelTopologyZone]; zone == "" && len(parts) > 1 {
		zone = parts[len(parts)-2]
	}
	return id, zone
}

// nearest returns the three names with the smallest edit distance.
func nearest(name string, names []string) []string {
	sorted := slices.Sorted(slices.Values(names))
	slices.SortStableFunc(sorted, func(a, b string) int { return levenshtein.Distance(name, a) - levenshtein.Distance(name, b) })
	return sorted[:min(3, len(sorted))]
}
