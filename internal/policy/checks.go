package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// labelNodePool is Karpenter's label with the name of a node's NodePool.
const labelNodePool = "karpenter.sh/nodepool"

// question is what is asked of the policies, and what came of it so far.
type question struct {
	node       *corev1.Node
	notice     v1alpha1.Notice
	says       *v1alpha1.InterruptionPolicy // the policy that has the say
	considered []Considered
}

// choice is the rule that rules.
type choice struct {
	policy, rule string
	action       v1alpha1.Action
	doNotDisrupt v1alpha1.DoNotDisrupt
	window       *window
	because      string
}

// check looks at one policy and says why it has no say, or has no objection.
type check func(q *question, p *v1alpha1.InterruptionPolicy) (string, bool)

// checksInOrder lists the checks; the first with an objection wins.
func checksInOrder() []check {
	return []check{
		outranked,      // one of higher priority has the say
		otherPool,      // its nodePools leave the node out
		otherLabels,    // its matchLabels do
		otherwiseBound, // its matchExpressions do
		invalid,        // nobody should be governed by half a policy
	}
}

// choose finds the rule that rules: of the policy that has the say the first
// that is for the notice, else the built-in default.
func (q *question) choose(policies []v1alpha1.InterruptionPolicy) choice {
	var ranked []*v1alpha1.InterruptionPolicy
	for i := range policies {
		ranked = append(ranked, &policies[i])
	}
	slices.SortFunc(ranked, func(a, b *v1alpha1.InterruptionPolicy) int {
		return cmp.Or(cmp.Compare(b.Spec.Priority, a.Spec.Priority), cmp.Compare(a.Name, b.Name))
	})
	var chosen *choice
	for _, p := range ranked {
		if objection, objects := q.objection(p); objects {
			q.consider(p.Name, "", false, objection)
			continue
		}
		q.says = p
		chosen = q.ask(p)
	}
	if chosen != nil {
		return *chosen
	}
	return q.fallBack()
}

func (q *question) objection(p *v1alpha1.InterruptionPolicy) (string, bool) {
	for _, object := range checksInOrder() {
		if reason, objects := object(q, p); objects {
			return reason, true
		}
	}
	return "", false
}

// ask goes through the rules of the policy that has the say; nil if none is
// for the notice.
func (q *question) ask(p *v1alpha1.InterruptionPolicy) *choice {
	for i, r := range p.Spec.Rules {
		name := ruleName(i, r)
		if !slices.Contains(r.Kinds, q.notice.Kind) && !slices.Contains(r.Kinds, "*") {
			q.consider(p.Name, name, false, fmt.Sprintf("is for %s, not for %s", strings.Join(r.Kinds, ", "), q.notice.Kind))
			continue
		}
		q.consider(p.Name, name, true, fmt.Sprintf("rules: it is the first of policy %s for %s", p.Name, q.notice.Kind))
		chosen := &choice{
			policy: p.Name, rule: name, action: r.Action, doNotDisrupt: r.DoNotDisrupt,
			because: fmt.Sprintf("policy %s, %s, is for %s", p.Name, placed(i, r), q.notice.Kind),
		}
		if r.Window != nil {
			w, _ := understand(*r.Window) // no problems: the policy is valid
			chosen.window = &w
		}
		return chosen
	}
	return nil
}

// fallBack asks the built-in defaults, the last of which is for everything.
func (q *question) fallBack() choice {
	why := "no policy selects the node"
	if q.says != nil {
		why = fmt.Sprintf("policy %s has no rule for it", q.says.Name)
	}
	d := defaultFor(q.notice)
	q.consider("", d.name, true, "rules: it is the built-in default, since "+why)
	return choice{
		rule: d.name, action: d.action,
		because: fmt.Sprintf("built-in default for %s, since %s; %s", subject(q.notice), why, d.because),
	}
}

func (q *question) consider(policy, rule string, rules bool, reason string) {
	q.considered = append(q.considered, Considered{Policy: policy, Rule: rule, Rules: rules, Reason: reason})
}

func outranked(q *question, p *v1alpha1.InterruptionPolicy) (string, bool) {
	switch {
	case q.says == nil:
		return "", false
	case q.says.Spec.Priority == p.Spec.Priority:
		return fmt.Sprintf("is not asked: policy %s has the same priority %d and sorts first", q.says.Name, p.Spec.Priority), true
	}
	return fmt.Sprintf("is not asked: policy %s has priority %d, above its %d", q.says.Name, q.says.Spec.Priority, p.Spec.Priority), true
}

func otherPool(q *question, p *v1alpha1.InterruptionPolicy) (string, bool) {
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

const unknownNode = "does not select the node: it asks for labels, and the node is not in the cluster to show any"

func otherLabels(q *question, p *v1alpha1.InterruptionPolicy) (string, bool) {
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

func otherwiseBound(q *question, p *v1alpha1.InterruptionPolicy) (string, bool) {
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

func invalid(_ *question, p *v1alpha1.InterruptionPolicy) (string, bool) {
	problems := Validate(p.Spec)
	if len(problems) == 0 {
		return "", false
	}
	return "is passed over, since it is not valid: " + strings.Join(problems, "; "), true
}

// ruleName is how a rule is reported: by its name, or by its place.
func ruleName(i int, r v1alpha1.Rule) string {
	if r.Name != "" {
		return r.Name
	}
	return fmt.Sprintf("rule %d", i+1)
}

// placed is how a rule is found in the policy's text.
func placed(i int, r v1alpha1.Rule) string {
	if r.Name != "" {
		return fmt.Sprintf("rule %d (%s)", i+1, r.Name)
	}
	return fmt.Sprintf("rule %d", i+1)
}
