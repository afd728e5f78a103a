package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/lifeboat-dev/lifeboat/api/v1alpha1"
)

// question is what is asked of the policies, and what came of it so far.
type question struct {
	node       *corev1.Node
	notice     v1alpha1.Notice
	says       *v1alpha1.InterruptionPolicy // the policy that has the say
	invalid    []string                     // what is wrong with that policy
	considered []Considered
}

// choice is the rule that rules.
type choice struct {
	policy, rule string
	action       v1alpha1.Action
	doNotDisrupt v1alpha1.DoNotDisrupt
	strategy     v1alpha1.Strategy
	replacement  v1alpha1.Replacement
	approval     v1alpha1.Approval
	ifUnanswered v1alpha1.Unanswered
	notBefore    time.Duration // zero: nothing is said
	drainTimeout time.Duration // zero: nothing is said
	window       *window
	because      string
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
		if q.invalid = Validate(p.Spec); len(q.invalid) > 0 {
			q.consider(p.Name, "", false, q.whyGuarded())
			continue
		}
		q.consider(p.Name, "", false, fmt.Sprintf("has the say: it selects the node, and none that does has a priority above its %d", p.Spec.Priority))
		chosen = q.ask(p)
	}
	if chosen == nil {
		return q.fallBack()
	}
	q.consider("", defaultFor(q.notice, q.node).name, false, fmt.Sprintf("is not asked: a rule of policy %s rules, and this is the built-in default", chosen.policy))
	return *chosen
}

// ask goes through the rules of the policy that has the say; nil if none is
// for the notice.
func (q *question) ask(p *v1alpha1.InterruptionPolicy) *choice {
	for i, r := range p.Spec.Rules {
		if objection, objects := q.misses(r); objects {
			q.consider(p.Name, ruleName(i, r), false, objection)
			continue
		}
		what := q.notice.Kind
		if len(r.EventTypeCodes) > 0 {
			what = subject(q.notice)
		}
		q.consider(p.Name, ruleName(i, r), true, fmt.Sprintf("rules: it is the first of policy %s for %s", p.Name, what))
		for j, later := range p.Spec.Rules[i+1:] {
			q.consider(p.Name, ruleName(i+1+j, later), false, fmt.Sprintf("is not asked: %s comes before it", placed(i, r)))
		}
		return chosen(p, i, what)
	}
	return nil
}

// misses says why a rule is not for the notice.
func (q *question) misses(r v1alpha1.Rule) (string, bool) {
	if !slices.Contains(r.Kinds, q.notice.Kind) && !slices.Contains(r.Kinds, "*") {
		return fmt.Sprintf("is for %s, not for %s", strings.Join(r.Kinds, ", "), q.notice.Kind), true
	}
	code := q.notice.EventTypeCode
	if len(r.EventTypeCodes) == 0 || code != "" && slices.ContainsFunc(r.EventTypeCodes, func(pattern string) bool { return like(pattern, code) }) {
		return "", false
	}
	return fmt.Sprintf("is for the codes %s, and the notice has %s", strings.Join(r.EventTypeCodes, ", "), cmp.Or(code, "none")), true
}

func chosen(p *v1alpha1.InterruptionPolicy, i int, what string) *choice {
	r := &p.Spec.Rules[i]
	c := &choice{
		policy: p.Name, rule: ruleName(i, *r), action: r.Action, doNotDisrupt: r.DoNotDisrupt,
		strategy: r.Strategy, replacement: r.Replacement, approval: r.Approval, ifUnanswered: r.IfUnanswered,
		because: fmt.Sprintf("policy %s, %s, is for %s", p.Name, placed(i, *r), what),
	}
	if r.NotBefore != nil {
		c.notBefore = r.NotBefore.Duration
	}
	if r.DrainTimeout != nil {
		c.drainTimeout = r.DrainTimeout.Duration
	}
	if r.Window != nil {
		w, _ := understand(*r.Window) // no problems: the policy is valid
		c.window = &w
	}
	return c
}

// fallBack asks the built-in defaults, the last of which is for everything.
func (q *question) fallBack() choice {
	why := "no policy selects the node"
	switch {
	case len(q.invalid) > 0:
		why = fmt.Sprintf("policy %s is not valid", q.says.Name)
	case q.says != nil:
		why = fmt.Sprintf("policy %s has no rule for it", q.says.Name)
	}
	d := defaultFor(q.notice, q.node)
	q.consider("", d.name, true, "rules: it is the built-in default, since "+why)
	c := choice{
		rule: d.name, action: d.action,
		because: fmt.Sprintf("built-in default for %s, since %s; %s", subject(q.notice), why+q.howToCorrect(), d.because),
	}
	if d.replaces {
		c.replacement = v1alpha1.ReplacementBefore
	}
	return c
}

func (q *question) consider(policy, rule string, rules bool, reason string) {
	q.considered = append(q.considered, Considered{Policy: policy, Rule: rule, Rules: rules, Reason: reason})
}

// message is the sentence that is reported: what is done, why, and what it
// waits for.
func (c choice) message(agreed consent, starts start) string {
	clauses := []string{fmt.Sprintf("%s: %s", c.action, c.because)}
	if agreed.because != "" {
		clauses = append(clauses, agreed.because)
	}
	switch {
	case starts.because == "":
	case agreed.awaited && !starts.notBefore.IsZero():
		clauses = append(clauses, "once approved "+starts.because)
	default:
		clauses = append(clauses, starts.because)
	}
	return strings.Join(clauses, "; ")
}

// like reports whether a code is as a pattern says, in which "*" stands for any
// characters, and case does not matter.
func like(pattern, code string) bool {
	parts := strings.Split(strings.ToLower(pattern), "*")
	rest, begins := strings.CutPrefix(strings.ToLower(code), parts[0])
	if !begins || len(parts) == 1 {
		return begins && rest == ""
	}
	last := len(parts) - 1
	for _, part := range parts[1:last] { // the earliest place leaves most to the others
		_, after, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = after
	}
	return strings.HasSuffix(rest, parts[last])
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
