package policy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// labelNodePool is Karpenter's label with the name of a node's NodePool.
const labelNodePool = "karpenter.sh/nodepool"

// check looks at one policy and says why it does not apply, or has no objection.
type check func(q *matchContext, p *v1beta1.InterruptionPolicy) (string, bool)

// policyMismatch says why a policy does not apply to the node.
func (q *matchContext) policyMismatch(p *v1beta1.InterruptionPolicy) (string, bool) {
	for _, object := range checksInOrder() {
		if reason, objects := object(q, p); objects {
			return reason, true
		}
	}
	return "", false
}

// checksInOrder lists the checks; the first with an objection wins.
func checksInOrder() []check {
	return []check{
		outranked,        // a policy of higher priority applies
		otherPool,        // its nodePools do not include the node
		otherGroup,       // its nodeGroups do not
		otherLabels,      // its matchLabels do not
		otherExpressions, // its matchExpressions do not
		badSelector,      // its selector is not valid
	}
}

func outranked(q *matchContext, p *v1beta1.InterruptionPolicy) (string, bool) {
	switch {
	case q.says == nil:
		return "", false
	case q.says.Spec.Priority == p.Spec.Priority:
		return fmt.Sprintf("is not used: policy %s has the same priority %d and sorts first", q.says.Name, p.Spec.Priority), true
	}
	return fmt.Sprintf("is not used: policy %s has priority %d, above its %d", q.says.Name, q.says.Spec.Priority, p.Spec.Priority), true
}

func otherPool(q *matchContext, p *v1beta1.InterruptionPolicy) (string, bool) {
	pools := p.Spec.Nodes.NodePools
	if len(pools) == 0 {
		return "", false
	}
	if q.node == nil {
		return unknownNode, true
	}
	pool, ok := q.node.Labels[labelNodePool]
	switch {
	case !ok:
		return fmt.Sprintf("does not select the node: it is for NodePools %s, and the node is of none", strings.Join(pools, ", ")), true
	case !slices.Contains(pools, pool):
		return fmt.Sprintf("does not select the node: it is for NodePools %s, and the node is of %s", strings.Join(pools, ", "), pool), true
	}
	return "", false
}

func otherGroup(q *matchContext, p *v1beta1.InterruptionPolicy) (string, bool) {
	groups := p.Spec.Nodes.NodeGroups
	if len(groups) == 0 {
		return "", false
	}
	if q.node == nil {
		return unknownNode, true
	}
	group := NodeGroup(q.node)
	switch {
	case group == "":
		return fmt.Sprintf("does not select the node: it is for node groups %s, and the node is of none", strings.Join(groups, ", ")), true
	case !slices.Contains(groups, group):
		return fmt.Sprintf("does not select the node: it is for node groups %s, and the node is of %s", strings.Join(groups, ", "), group), true
	}
	return "", false
}

const unknownNode = "does not select the node: it asks for labels, and the node is not in the cluster to show any"

func otherLabels(q *matchContext, p *v1beta1.InterruptionPolicy) (string, bool) {
	want := p.Spec.Nodes.MatchLabels
	if len(want) == 0 {
		return "", false
	}
	if q.node == nil {
		return unknownNode, true
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		got, ok := q.node.Labels[key]
		switch {
		case !ok:
			return fmt.Sprintf("does not select the node: it asks for label %s=%s, which the node lacks", key, want[key]), true
		case got != want[key]:
			return fmt.Sprintf("does not select the node: it asks for label %s=%s, and the node has %s=%s", key, want[key], key, got), true
		}
	}
	return "", false
}

func otherExpressions(q *matchContext, p *v1beta1.InterruptionPolicy) (string, bool) {
	expressions := p.Spec.Nodes.MatchExpressions
	if len(expressions) == 0 {
		return "", false
	}
	if q.node == nil {
		return unknownNode, true
	}
	selector, err := metav1.LabelSelectorAsSelector(&metav1.LabelSelector{MatchExpressions: expressions})
	if err != nil {
		return "", false // the next check says so
	}
	if !selector.Matches(labels.Set(q.node.Labels)) {
		return fmt.Sprintf("does not select the node: its labels do not fit %s", selector), true
	}
	return "", false
}

func badSelector(_ *matchContext, p *v1beta1.InterruptionPolicy) (string, bool) {
	problems := ValidateNodes(p.Spec)
	if len(problems) == 0 {
		return "", false
	}
	return "selects no node, since its selector is not valid: " + strings.Join(problems, "; "), true
}
