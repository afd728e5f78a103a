package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lifeboat-dev/lifeboat/api/v1beta1"
)

// matchPolicies finds the governing policy of the node and returns its first rule for the
// notice, or nil.
func (q *matchContext) matchPolicies(policies []v1beta1.InterruptionPolicy) *match {
	var chosen *match
	for _, p := range ranked(policies) {
		if objection, objects := q.policyMismatch(p); objects {
			q.consider(p.Name, "", false, objection)
			continue
		}
		q.says = p
		if q.invalid = Validate(p.Spec); len(q.invalid) > 0 {
			q.consider(p.Name, "", false, q.whyGuarded())
			continue
		}
		q.consider(p.Name, "", false, fmt.Sprintf("applies: no policy that selects the node has a priority above %d", p.Spec.Priority))
		chosen = q.matchRules(p)
	}
	return chosen
}

// ranked returns the policies in the order in which they are asked.
func ranked(policies []v1beta1.InterruptionPolicy) []*v1beta1.InterruptionPolicy {
	var all []*v1beta1.InterruptionPolicy
	for i := range policies {
		all = append(all, &policies[i])
	}
	slices.SortFunc(all, func(a, b *v1beta1.InterruptionPolicy) int {
		return cmp.Or(cmp.Compare(b.Spec.Priority, a.Spec.Priority), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// matchRules returns the first rule of the governing policy for the notice, or nil.
func (q *matchContext) matchRules(p *v1beta1.InterruptionPolicy) *match {
	for i, r := range p.Spec.Rules {
		if objection, objects := q.ruleMismatch(r); objects {
			q.consider(p.Name, ruleName(i, r), false, objection)
			continue
		}
		what := q.notice.Kind
		if len(r.EventTypeCodes) > 0 {
			what = subject(q.notice)
		}
		q.consider(p.Name, ruleName(i, r), true, fmt.Sprintf("rules: it is the first of policy %s for %s", p.Name, what))
		for j, later := range p.Spec.Rules[i+1:] {
			q.consider(p.Name, ruleName(i+1+j, later), false, fmt.Sprintf("is not used: %s comes before it", describeRule(i, r)))
		}
		return chosen(p, i, what)
	}
	return nil
}

// ruleMismatch says why a rule is not for the notice.
func (q *matchContext) ruleMismatch(r v1beta1.Rule) (string, bool) {
	if !slices.Contains(r.Kinds, q.notice.Kind) && !slices.Contains(r.Kinds, "*") {
		return fmt.Sprintf("is for %s, not for %s", strings.Join(r.Kinds, ", "), q.notice.Kind), true
	}
	code := q.notice.EventTypeCode
	if len(r.EventTypeCodes) == 0 || code != "" && slices.ContainsFunc(r.EventTypeCodes, func(pattern string) bool { return matchesCode(pattern, code) }) {
		return "", false
	}
	return fmt.Sprintf("is for the codes %s, and the notice has %s", strings.Join(r.EventTypeCodes, ", "), cmp.Or(code, "none")), true
}

func chosen(p *v1beta1.InterruptionPolicy, i int, what string) *match {
	r := &p.Spec.Rules[i]
	c := &match{
		policy: p.Name, rule: ruleName(i, *r), action: r.Action, doNotDisrupt: r.DoNotDisrupt,
		strategy: r.Strategy, replacement: r.Replacement, approval: r.Approval, ifUnanswered: r.IfUnanswered,
		because: fmt.Sprintf("policy %s, %s, is for %s", p.Name, describeRule(i, *r), what),
	}
	if r.NotBefore != nil {
		c.notBefore = r.NotBefore.Duration
	}
	if r.DrainTimeout != nil {
		c.drainTimeout = r.DrainTimeout.Duration
	}
	if r.Window != nil {
		w, _ := parseWindow(*r.Window) // no problems: the policy is valid
		c.window = &w
	}
	return c
}

// matchesCode reports whether a code matches a pattern, in which "*" matches any characters.
// Case does not matter.
func matchesCode(pattern, code string) bool {
	parts := strings.Split(strings.ToLower(pattern), "*")
	rest, begins := strings.CutPrefix(strings.ToLower(code), parts[0])
	if !begins || len(parts) == 1 {
		return begins && rest == ""
	}
	last := len(parts) - 1
	for _, part := range parts[1:last] { // the earliest match leaves the most for the other parts
		_, after, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = after
	}
	return strings.HasSuffix(rest, parts[last])
}

// ruleName is the reported name of a rule: its name, or its position.
func ruleName(i int, r v1beta1.Rule) string {
	if r.Name != "" {
		return r.Name
	}
	return fmt.Sprintf("rule %d", i+1)
}

// describeRule describes where a rule is in the policy.
func describeRule(i int, r v1beta1.Rule) string {
	if r.Name != "" {
		return fmt.Sprintf("rule %d (%s)", i+1, r.Name)
	}
	return fmt.Sprintf("rule %d", i+1)
}

// deregistering is how long pods wait at most until load balancers have deregistered the node.
func deregistering(p *v1beta1.InterruptionPolicy) time.Duration {
	if wait := p.Spec.WaitForDeregistration; wait != nil {
		return wait.Duration
	}
	return 0
}
