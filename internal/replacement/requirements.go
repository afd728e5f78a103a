package replacement

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// mostRequirements is what a NodeClaim takes (Karpenter's CRD, spec.requirements).
const mostRequirements = 100

// requirement is one of a NodePool's or NodeClaim's.
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

// allowed returns the values that requirements leave of a key, and whether they
// name any: if not, all are left but those excluded.
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

// leastOf is how many values of a key requirements want to be left.
func leastOf(all []requirement, key string) int {
	least := 1
	for _, r := range all {
		if r.Key == key && r.MinValues != nil {
			least = max(least, *r.MinValues)
		}
	}
	return least
}

// isOfKarpenter reports whether Karpenter finds the value of a label itself when
// it launches: a NodeClaim must not name it, since what it names would stand on
// the Node whatever was launched.
func isOfKarpenter(key string) bool {
	domain, _, ok := strings.Cut(key, "/")
	if !ok || domain == "node-restriction.kubernetes.io" || domain == "kops.k8s.io" {
		return false
	}
	return slices.ContainsFunc([]string{"kubernetes.io", "k8s.io", "karpenter.sh", "k8s.aws", "eks.amazonaws.com"}, func(of string) bool {
		return domain == of || strings.HasSuffix(domain, "."+of)
	})
}

// isKnown reports whether Karpenter can launch by a key that a NodePool's
// template does not name (Karpenter documentation, "Well-Known Labels").
func isKnown(key string) bool {
	return slices.Contains([]string{
		corev1.LabelTopologyZone, corev1.LabelInstanceTypeStable, corev1.LabelArchStable, corev1.LabelOSStable,
		labelCapacityType, "topology.k8s.aws/zone-id",
	}, key) || strings.HasPrefix(key, "karpenter.k8s.aws/instance-")
}

// customLabels are the labels of a NodeClaim for keys of the NodePool's own that
// it requires: the doomed node's value where that is allowed, else the first.
// Without them Karpenter would find the node drifted.
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
