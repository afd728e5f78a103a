package replacement

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// mostRequirements is the limit of a NodeClaim (Karpenter's CRD,
// spec.requirements).
const mostRequirements = 100

// requirement is an entry of spec.requirements of a NodePool or NodeClaim.
type requirement struct {
	Key       string   `json:"key"`
	Operator  string   `json:"operator"`
	Values    []string `json:"values,omitempty"`
	MinValues *int     `json:"minValues,omitempty"`
}

func (r requirement) equal(s requirement) bool {
	return r.Key == s.Key && r.Operator == s.Operator && slices.Equal(r.Values, s.Values)
}

func (r requirement) object() map[string]any {
	values := make([]any, 0, len(r.Values))
	for _, v := range r.Values {
		values = append(values, v)
	}
	o := map[string]any{"key": r.Key, "operator": r.Operator}
	if len(values) > 0 {
		o["values"] = values
	}
	return o
}

// allowed returns the values of a key that the In requirements leave, and
// whether there are any such requirements. Without them all values are allowed.
func allowed(all []requirement, key string) (values []string, named bool) {
	for _, r := range all {
		if r.Key != key || r.Operator != string(corev1.NodeSelectorOpIn) {
			continue
		}
		if !named {
			values, named = slices.Clone(r.Values), true
			continue
		}
		values = slices.DeleteFunc(values, func(v string) bool { return !slices.Contains(r.Values, v) })
	}
	return values, named
}

// leastOf is the highest minValues of a key.
func leastOf(all []requirement, key string) int {
	least := 1
	for _, r := range all {
		if r.Key == key && r.MinValues != nil {
			least = max(least, *r.MinValues)
		}
	}
	return least
}

// isOfKarpenter reports whether Karpenter sets a label from the launched
// instance. A NodeClaim must not set it, since Karpenter would copy that value
// to the Node whatever it launches.
func isOfKarpenter(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	if !ok || domain == "node-restriction.kubernetes.io" || domain == "kops.k8s.io" {
		return false
	}
	return slices.ContainsFunc([]string{"kubernetes.io", "k8s.io", "karpenter.sh", "k8s.aws", "eks.amazonaws.com"}, func(of string) bool {
		return domain == of || strings.HasSuffix(domain, "."+of)
	})
}

// isKnown reports whether Karpenter can launch by a key that the NodePool's
// template does not name (Karpenter documentation, "Well-Known Labels").
func isKnown(key string) bool {
	return slices.Contains([]string{
		corev1.LabelTopologyZone, corev1.LabelInstanceTypeStable, corev1.LabelArchStable, corev1.LabelOSStable,
		labelCapacityType, "topology.k8s.aws/zone-id",
	}, key) || strings.HasPrefix(key, "karpenter.k8s.aws/instance-")
}

// customLabels are the NodeClaim's labels for custom keys that it requires: the
// interrupted node's value if allowed, else the first. Without them Karpenter
// would consider the node drifted.
func customLabels(all []requirement, node *corev1.Node) map[string]string {
	labels := map[string]string{}
	for _, r := range all {
		if isOfKarpenter(r.Key) || r.Operator != string(corev1.NodeSelectorOpIn) {
			continue
		}
		values, _ := allowed(all, r.Key)
		if len(values) == 0 {
			continue
		}
		labels[r.Key] = values[0]
		if v := node.Labels[r.Key]; slices.Contains(values, v) {
			labels[r.Key] = v
		}
	}
	return labels
}
