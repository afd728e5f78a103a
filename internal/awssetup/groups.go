package awssetup

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// groupRoles are the rules that can be limited to Auto Scaling groups: their events
// name the group.
func groupRoles() []string { return []string{RoleAutoScalingLifecycle, RoleAutoScalingResult} }

// fieldGroup is the field of Auto Scaling's events that names the group (EC2 Auto
// Scaling User Guide, "EventBridge event reference").
const fieldGroup = "AutoScalingGroupName"

// probeGroup is the group name in probes. A rule that is limited to groups must match
// it too.
const probeGroup = "lifeboat.dev/probe"

// maxPatternLength is the limit for a rule's pattern, in characters (EventBridge User
// Guide, "EventBridge quotas"; AWS can raise it).
const maxPatternLength = 2048

// TooManyGroupsError means that the names of the groups do not fit into a rule's
// pattern.
type TooManyGroupsError struct {
	// Groups is the number of groups, and Length the length of the pattern.
	Groups, Length int
}

// Error returns the length of the pattern and the limit.
func (e *TooManyGroupsError) Error() string {
	return fmt.Sprintf("the names of %d Auto Scaling groups need an event pattern of %d characters, but EventBridge accepts %d; name fewer groups, or none to match all", e.Groups, e.Length, maxPatternLength)
}

// ForGroups returns the wiring with its Auto Scaling rules limited to groups. Without
// groups, the rules match every group in the account. The error is a
// [TooManyGroupsError].
func (w Wiring) ForGroups(groups []string) (Wiring, error) {
	w.Groups = slices.Compact(slices.Sorted(slices.Values(groups)))
	w.Rules = slices.Clone(w.Rules)
	for i, r := range w.Rules {
		if !slices.Contains(groupRoles(), r.Role) {
			continue
		}
		pattern, err := limitToGroups(rolePattern(r.Role), w.Groups)
		if err != nil {
			return Wiring{}, fmt.Errorf("rule %s: %w", r.Name, err)
		}
		w.Rules[i].Pattern = pattern
	}
	return w, nil
}

// rolePattern returns the pattern of a role, without a limit to groups.
func rolePattern(role string) string {
	for _, r := range roles() {
		if r.Role == role {
			return r.Pattern
		}
	}
	return ""
}

// limitToGroups returns the pattern with the additional condition that the event
// names one of the groups.
func limitToGroups(pattern string, groups []string) (string, error) {
	if len(groups) == 0 {
		return pattern, nil
	}
	var fields map[string]any
	if err := json.Unmarshal([]byte(pattern), &fields); err != nil {
		return "", fmt.Errorf("reading the rule's pattern: %w", err)
	}
	detail, _ := fields["detail"].(map[string]any)
	detail = maps.Clone(detail)
	if detail == nil {
		detail = map[string]any{}
	}
	detail[fieldGroup] = append(slices.Clone(groups), probeGroup)
	fields["detail"] = detail
	text, err := json.Marshal(fields)
	if err != nil {
		return "", fmt.Errorf("encoding the rule's pattern: %w", err)
	}
	if n := len(text); n > maxPatternLength {
		return "", &TooManyGroupsError{Groups: len(groups), Length: n}
	}
	return string(text), nil
}

// LimitedTo returns the groups to which the existing rules are limited. limits is
// false if no rule has such a limit. A caller that names no groups uses it to keep
// the existing limit.
func LimitedTo(o Observed) (groups []string, limits bool) {
	for _, found := range o.Rules {
		for _, role := range groupRoles() {
			if names := groupsIn(found.Pattern, role); len(names) > 0 {
				return names, true
			}
		}
		if names := groupsInMerged(found.Pattern); len(names) > 0 {
			return names, true
		}
	}
	return nil, false
}

// groupsInMerged is groupsIn for the merged rule of Auto Scaling.
func groupsInMerged(pattern string) []string {
	var p eventPattern
	if json.Unmarshal([]byte(pattern), &p) != nil {
		return nil
	}
	for _, branch := range p.Or {
		names := namedGroups(branch.Detail)
		if len(names) == 0 {
			continue
		}
		w, err := Desired("any", "", "").ForGroups(names)
		if err == nil {
			w, err = w.Merged()
		}
		if rule, ok := w.Delivers(RoleAutoScalingLifecycle); err == nil && ok && samePattern(pattern, rule.Pattern) {
			return names
		}
	}
	return nil
}

// namedGroups returns the groups that a filter of the detail names.
func namedGroups(detail json.RawMessage) []string {
	var d map[string]json.RawMessage
	var names []string
	if json.Unmarshal(detail, &d) != nil || json.Unmarshal(d[fieldGroup], &names) != nil {
		return nil
	}
	return slices.DeleteFunc(names, func(n string) bool { return n == probeGroup })
}

// groupsIn returns the groups to which a pattern is limited. It returns nil unless
// the pattern is that of the role plus this limit.
func groupsIn(pattern, role string) []string {
	var p eventPattern
	if json.Unmarshal([]byte(pattern), &p) != nil {
		return nil
	}
	names := namedGroups(p.Detail)
	same, err := limitToGroups(rolePattern(role), names)
	if err != nil || !samePattern(pattern, same) {
		return nil
	}
	return names
}
