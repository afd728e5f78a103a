package wiring

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// groupRoles are the rules that can be limited to Auto Scaling groups: what they
// hear names its group.
func groupRoles() []string { return []string{RoleAutoScalingLifecycle, RoleAutoScalingResult} }

// fieldGroup is where Auto Scaling's events name the group (EC2 Auto Scaling User
// Guide, "EventBridge event reference").
const fieldGroup = "AutoScalingGroupName"

// probeGroup is the group that probes are about: a rule that is limited to groups
// has to let them through as well. No group is called so unless somebody means to.
const probeGroup = "lifeboat.dev/probe"

// longestPattern is how long a rule's pattern may be, in characters (EventBridge
// User Guide, "EventBridge quotas"; it can be raised).
const longestPattern = 2048

// TooManyGroupsError says that the names of groups do not fit into a rule.
type TooManyGroupsError struct {
	// Groups is how many there are, and Length how long the pattern would be.
	Groups, Length int
}

// Error says how far it is too much.
func (e *TooManyGroupsError) Error() string {
	return fmt.Sprintf("the names of %d Auto Scaling groups make an event pattern of %d characters, of %d that EventBridge takes", e.Groups, e.Length, longestPattern)
}

// ForGroups is the wiring with the rules about Auto Scaling limited to groups. With
// none, they hear of every group in the account. The error is a
// [TooManyGroupsError].
func (w Wiring) ForGroups(groups []string) (Wiring, error) {
	w.Groups = slices.Compact(slices.Sorted(slices.Values(groups)))
	w.Rules = slices.Clone(w.Rules)
	for i, r := range w.Rules {
		if !slices.Contains(groupRoles(), r.Role) {
			continue
		}
		pattern, err := limited(wantedPattern(r.Role), w.Groups)
		if err != nil {
			return Wiring{}, fmt.Errorf("rule %s: %w", r.Name, err)
		}
		w.Rules[i].Pattern = pattern
	}
	return w, nil
}

// wantedPattern is the pattern of a role, without any limit.
func wantedPattern(role string) string {
	for _, r := range roles() {
		if r.Role == role {
			return r.Pattern
		}
	}
	return ""
}

// limited is a pattern that also asks for one of these groups.
func limited(pattern string, groups []string) (string, error) {
	if len(groups) == 0 {
		return pattern, nil
	}
	var fields map[string]any
	if err := json.Unmarshal([]byte(pattern), &fields); err != nil {
		return "", fmt.Errorf("reading its pattern: %w", err)
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
		return "", fmt.Errorf("writing its pattern: %w", err)
	}
	if n := len(text); n > longestPattern {
		return "", &TooManyGroupsError{Groups: len(groups), Length: n}
	}
	return string(text), nil
}

// LimitedTo returns the groups that the rules which are there are limited to, and
// whether they are the wiring's own but for that limit. It is for who does not say
// which groups are meant: what was said before then stands.
func LimitedTo(o Observed) (groups []string, limits bool) {
	for _, found := range o.Rules {
		for _, role := range groupRoles() {
			if names := groupsIn(found.Pattern, role); len(names) > 0 {
				return names, true
			}
		}
	}
	return nil, false
}

// groupsIn returns the groups that a pattern is limited to, where it is a role's
// with such a limit and nothing else.
func groupsIn(pattern, role string) []string {
	var p struct {
		Detail map[string]json.RawMessage `json:"detail"`
	}
	var names []string
	if json.Unmarshal([]byte(pattern), &p) != nil || json.Unmarshal(p.Detail[fieldGroup], &names) != nil {
		return nil
	}
	names = slices.DeleteFunc(names, func(n string) bool { return n == probeGroup })
	same, err := limited(wantedPattern(role), names)
	if err != nil || !samePattern(pattern, same) {
		return nil
	}
	return names
}
