package awssetup

import (
	"encoding/json"
	"fmt"
	"slices"
)

// The roles of merged rules. RoleHealth is the same in both forms.
const (
	RoleEC2         = "ec2"
	RoleAutoScaling = "autoscaling"
)

// mergedRole is a rule in place of several.
type mergedRole struct {
	role, description string
	of                []string
}

func mergedRoles() []mergedRole {
	return []mergedRole{
		{RoleEC2, "EC2: spot interruptions, rebalance recommendations, state changes, capacity that ends", []string{
			RoleSpotInterruption, RoleRebalance, RoleStateChange, RoleCapacity,
		}},
		{RoleAutoScaling, "Auto Scaling: lifecycle hooks, terminations, failures, refused answers to hooks", []string{
			RoleAutoScalingLifecycle, RoleAutoScalingResult, RoleLifecycleFailure,
		}},
	}
}

// Merged returns the wiring with one rule for each AWS service, three in all. They match the same
// events as the others. Call it after [Wiring.ForGroups].
func (w Wiring) Merged() (Wiring, error) {
	out := w
	out.Rules = nil
	merged := map[string]bool{}
	for _, m := range mergedRoles() {
		var parts []Rule
		rule := Rule{Name: RuleName(w.Cluster, m.role), Role: m.role, Description: m.description}
		for _, r := range w.Rules {
			if !slices.Contains(m.of, r.Role) {
				continue
			}
			parts, merged[r.Role] = append(parts, r), true
			rule.Kinds = append(rule.Kinds, r.Kinds...)
		}
		slices.Sort(rule.Kinds)
		rule.Kinds = slices.Compact(rule.Kinds)
		var err error
		if rule.Pattern, err = mergePatterns(parts); err != nil {
			return Wiring{}, err
		}
		if n := len(rule.Pattern); n > maxPatternLength {
			return Wiring{}, fmt.Errorf("rule %s: %w", rule.Name, &TooManyGroupsError{Groups: len(w.Groups), Length: n})
		}
		out.Rules = append(out.Rules, rule)
	}
	for _, r := range w.Rules {
		if !merged[r.Role] {
			out.Rules = append(out.Rules, r)
		}
		out.Replaces = append(out.Replaces, r.Name)
	}
	return out, nil
}

// eventPattern is a pattern of a role: its source, its detail-types and the filter of its detail.
type eventPattern struct {
	Source     []string        `json:"source,omitempty"`
	DetailType []string        `json:"detail-type,omitempty"`
	Detail     json.RawMessage `json:"detail,omitempty"`
	Or         []eventPattern  `json:"$or,omitempty"`
}

// mergePatterns returns a pattern for the events of all rules, which have the same source. Rules
// with the same filter of the detail share a branch.
func mergePatterns(rules []Rule) (string, error) {
	var all eventPattern
	for _, r := range rules {
		var p eventPattern
		if err := json.Unmarshal([]byte(r.Pattern), &p); err != nil {
			return "", fmt.Errorf("rule %s: reading its pattern: %w", r.Name, err)
		}
		if all.Source == nil {
			all.Source = p.Source
		}
		if !slices.Equal(all.Source, p.Source) {
			return "", fmt.Errorf("rule %s: its source is %q, and that of others %q", r.Name, p.Source, all.Source)
		}
		i := slices.IndexFunc(all.Or, func(b eventPattern) bool { return string(b.Detail) == string(p.Detail) })
		if i < 0 {
			all.Or = append(all.Or, eventPattern{DetailType: p.DetailType, Detail: p.Detail})
			continue
		}
		all.Or[i].DetailType = append(all.Or[i].DetailType, p.DetailType...)
	}
	text, err := json.Marshal(all)
	if err != nil {
		return "", fmt.Errorf("encoding a pattern: %w", err)
	}
	return string(text), nil
}

// IsMerged reports whether a rule of a cluster is a merged one, by its name.
func IsMerged(cluster, rule string) bool {
	return cluster != "" && slices.ContainsFunc(mergedRoles(), func(m mergedRole) bool { return rule == RuleName(cluster, m.role) })
}

// AreMerged reports whether the rules of a cluster in the account are merged.
func AreMerged(w Wiring, o Observed) bool {
	return slices.ContainsFunc(o.Rules, func(r ObservedRule) bool { return IsMerged(w.Cluster, r.Name) })
}

// Separated returns the wiring with separate rules, for an account with merged ones. The queue's
// policy still allows the merged ones.
func (w Wiring) Separated() Wiring {
	w.Replaces = nil
	for _, m := range mergedRoles() {
		w.Replaces = append(w.Replaces, RuleName(w.Cluster, m.role))
	}
	return w
}

// Delivers returns the rule that delivers the events of a role, in either form.
func (w Wiring) Delivers(role string) (Rule, bool) {
	i := slices.IndexFunc(w.Rules, func(r Rule) bool {
		return r.Role == role || slices.ContainsFunc(mergedRoles(), func(m mergedRole) bool {
			return m.role == r.Role && slices.Contains(m.of, role)
		})
	})
	if i < 0 {
		return Rule{}, false
	}
	return w.Rules[i], true
}
