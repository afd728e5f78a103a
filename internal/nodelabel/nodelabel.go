// Package nodelabel reads labels of nodes as a cache holds them: there, nodes that
// are alike share one map of labels, in which the host's name, which is most often
// that of the node and of no other, is not written out.
package nodelabel

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
)

// AsNamed stands for the name of its node, as the value of the label of the host's
// name. No host has an empty name.
const AsNamed = ""

// Of returns the value of a node's label, whether or not the node is whole.
func Of(node *corev1.Node, key string) string {
	value := node.Labels[key]
	if isMissing(node, key, value) {
		return node.Name
	}
	return value
}

// PutBack makes a node whole, in labels of its own; the node itself, but for them,
// must be the caller's.
func PutBack(node *corev1.Node) {
	if !isMissing(node, corev1.LabelHostname, node.Labels[corev1.LabelHostname]) {
		return
	}
	node.Labels = maps.Clone(node.Labels)
	node.Labels[corev1.LabelHostname] = node.Name
}

func isMissing(node *corev1.Node, key, value string) bool {
	if key != corev1.LabelHostname || value != AsNamed {
		return false
	}
	_, there := node.Labels[key]
	return there
}
