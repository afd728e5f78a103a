package pattern

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// Detail-types that a rule should narrow.
const (
	stateChange = "EC2 Instance State-change Notification"
	healthEvent = "AWS Health Event"
)

// choice is one object of a pattern's "$or".
type choice = map[string]any

// Quiet narrows a pattern that Lint finds noisy, without losing notices: it adds detail.state or detail.service,
// within "$or" if the pattern brings other events too. It returns false for a pattern that it cannot narrow.
func Quiet(text string) (string, bool) {
	root, p, ok := splittable(text)
	if !ok || root["detail"] != nil && !narrowable(p) {
		return "", false
	}
	types := listed(root)
	if types == nil {
		types = matchedTypes(p)
	}
	detail, _ := root["detail"].(map[string]any) // nil without one
	delete(root, "detail")
	return assemble(root, append(narrowed(types, detail), others(types, detail)...))
}

// separate moves detail-types that the pattern's other fields exclude to a choice of their own.
func separate(text string) (string, bool) {
	root, _, ok := splittable(text)
	if !ok {
		return "", false
	}
	var alive, dead []string
	for _, name := range listed(root) {
		alone := maps.Clone(root)
		alone["detail-type"] = []any{name}
		if p, err := Compile([]byte(encode(alone, ""))); err == nil && len(Lint(p).Matches) > 0 {
			alive = append(alive, name)
		} else {
			dead = append(dead, name)
		}
	}
	if len(alive) == 0 || len(dead) == 0 || root["detail"] == nil {
		return "", false
	}
	kept := choice{"detail-type": alive, "detail": root["detail"]}
	delete(root, "detail")
	return assemble(root, append(append([]choice{kept}, narrowed(dead, nil)...), others(dead, nil)...))
}

// splittable returns the fields of a pattern without "$or".
func splittable(text string) (map[string]any, *Pattern, bool) {
	p, err := Compile([]byte(text))
	if err != nil || len(p.branches) != 1 {
		return nil, nil, false
	}
	var root map[string]any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return root, p, d.Decode(&root) == nil && root["$or"] == nil
}

// narrowable reports whether detail can get another field: all events of the pattern are of one kind.
func narrowable(p *Pattern) bool {
	return len(matchedTypes(p)) == 1
}

// listed returns the detail-types of a pattern, or nil if it has none or not only exact ones.
func listed(root map[string]any) []string {
	all, _ := root["detail-type"].([]any) // nil without any
	var names []string
	for _, v := range all {
		name, ok := v.(string)
		if !ok {
			return nil
		}
		names = append(names, name)
	}
	return names
}

// matchedTypes returns the detail-types of the notices that a pattern matches.
func matchedTypes(p *Pattern) []string {
	var names []string
	matches := Lint(p).Matches
	for _, k := range catalogue() {
		if slices.Contains(matches, k.Name) && slices.Contains(noticeSamples(), k.Name) {
			names = append(names, k.detailTypes...)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// noticeSamples are the samples of events about instances that go away.
func noticeSamples() []string {
	return []string{"spot-interruption-warning", "rebalance-recommendation", "instance-state-change", "health-event", "capacity-reservation-interruption",
		"capacity-block-interruption", "capacity-block-expiration", "terminate-lifecycle-action", "launch-lifecycle-action"}
}

// narrowed returns the choices for the detail-types that a rule should narrow.
func narrowed(types []string, detail map[string]any) []choice {
	var all []choice
	for name, fields := range map[string]map[string]any{
		stateChange: {"state": []string{"stopping", "stopped", "shutting-down", "terminated"}},
		healthEvent: {"service": []string{"EC2", "EBS", "EKS"}},
	} {
		if slices.Contains(types, name) {
			maps.Copy(fields, detail)
			all = append(all, choice{"detail-type": []string{name}, "detail": fields})
		}
	}
	slices.SortFunc(all, func(a, b choice) int { return strings.Compare(encode(a, ""), encode(b, "")) })
	return all
}

// others returns the choice for the other detail-types.
func others(types []string, detail map[string]any) []choice {
	rest := slices.DeleteFunc(slices.Clone(types), func(name string) bool { return name == stateChange || name == healthEvent })
	if len(rest) == 0 {
		return nil
	}
	c := choice{"detail-type": rest}
	if detail != nil {
		c["detail"] = detail
	}
	return []choice{c}
}

// assemble adds the choices to a pattern.
func assemble(root map[string]any, choices []choice) (string, bool) {
	delete(root, "detail-type")
	switch len(choices) {
	case 0:
		return "", false
	case 1:
		maps.Copy(root, choices[0])
	default:
		root["$or"] = choices
	}
	text := encode(root, "")
	_, err := Compile([]byte(text))
	return text, err == nil
}
