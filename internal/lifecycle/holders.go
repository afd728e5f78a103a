package lifecycle

import (
	"fmt"
	"strings"
)

// holders returns the own hooks of a transition, or what to say where there is
// none that may be answered.
func holders(f Facts, terminating bool) ([]Hook, Decision) {
	var own []Hook
	var others []string
	for _, h := range f.Hooks {
		switch {
		case h.Terminating != terminating:
		case h.Own:
			own = append(own, h)
		default:
			others = append(others, h.Name)
		}
	}
	switch {
	case f.Operator != "":
		return nil, Decision{Reason: fmt.Sprintf("its group belongs to %s, which alone may answer its hooks", f.Operator)}
	case len(own) > 0:
		return own, Decision{}
	case len(others) > 0:
		return nil, Decision{Reason: fmt.Sprintf("%s of others %s it, which Lifeboat does not answer", plural(others, "the hook", "the hooks"), verb(others))}
	case !f.HooksKnown:
		return nil, Decision{Reason: "the hooks of its group could not be read"}
	}
	return nil, Decision{Reason: "its group has no hook that could hold it: what holds it was deleted, and ends by itself"}
}

func plural(names []string, one, many string) string {
	word := one
	if len(names) > 1 {
		word = many
	}
	return word + " " + strings.Join(names, ", ")
}

func verb(names []string) string {
	if len(names) > 1 {
		return "hold"
	}
	return "holds"
}

// IsOwn reports whether a hook is Lifeboat's: a NodeGroup names it, or its name
// matches a pattern, in which * stands for any text.
func IsOwn(name string, named, patterns []string) bool {
	for _, n := range named {
		if n == name {
			return true
		}
	}
	for _, p := range patterns {
		if matches(p, name) {
			return true
		}
	}
	return false
}

func matches(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == name
	}
	rest, ok := strings.CutPrefix(name, parts[0])
	if !ok {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		rest = rest[i+len(part):]
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}
