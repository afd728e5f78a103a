package lifecycle

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// unknownTimeout is assumed for a hook whose timeout could not be read; the minimum of Auto
// Scaling is 30 s.
const unknownTimeout = time.Minute

// Hook is a lifecycle hook of a group.
type Hook struct {
	Name string
	// Terminating is set for hooks of terminations; others are for launches.
	Terminating bool
	// Own is set if Lifeboat completes the hook.
	Own bool
	// Timeout is its heartbeat timeout, and Global the limit for all heartbeats; zero: unknown.
	Timeout, Global time.Duration
	// Abandons is set if its default result is ABANDON.
	Abandons bool
}

func (h Hook) timeout() time.Duration { return cmp.Or(h.Timeout, unknownTimeout) }

// Owned returns the hooks with Own set if a NodeGroup names them, or a pattern matches.
func Owned(hooks []Hook, named, patterns []string) []Hook {
	owned := slices.Clone(hooks)
	for i := range owned {
		owned[i].Own = IsOwn(owned[i].Name, named, patterns)
	}
	return owned
}

// Assumed returns the hooks that patterns name exactly, for groups whose hooks cannot be read.
// They are of both transitions: a call for a hook of the other one has no effect. It returns nil
// if a pattern has a *.
func Assumed(patterns []string) []Hook {
	var hooks []Hook
	for _, p := range patterns {
		if strings.Contains(p, "*") {
			return nil
		}
		hooks = append(hooks, Hook{Name: p, Own: true}, Hook{Name: p, Own: true, Terminating: true})
	}
	return hooks
}

// Split returns the hooks of a transition: those that Lifeboat completes, and the others.
func Split(hooks []Hook, terminating bool) (own, others []Hook) {
	for _, h := range hooks {
		switch {
		case h.Terminating != terminating:
		case h.Own:
			own = append(own, h)
		default:
			others = append(others, h)
		}
	}
	return own, others
}

// Names returns the names of hooks, in their order.
func Names(hooks []Hook) string {
	list := make([]string, len(hooks))
	for i, h := range hooks {
		list[i] = h.Name
	}
	return strings.Join(list, ", ")
}

// Limits returns the shortest timeout and the shortest global timeout of hooks; zero: unknown.
func Limits(hooks []Hook) (timeout, global time.Duration) {
	for _, h := range hooks {
		timeout, global = shorter(timeout, h.Timeout), shorter(global, h.Global)
	}
	return timeout, global
}

// shorter returns the shorter of two durations; zero is unknown.
func shorter(a, b time.Duration) time.Duration {
	if a <= 0 || b > 0 && b < a {
		return b
	}
	return a
}

// IsOwn reports whether Lifeboat completes a hook: a NodeGroup names it, or its name matches a
// pattern, in which * matches any text.
func IsOwn(name string, named, patterns []string) bool {
	return slices.Contains(named, name) || slices.ContainsFunc(patterns, func(p string) bool { return matches(p, name) })
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
		_, after, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = after
	}
	return strings.HasSuffix(rest, parts[len(parts)-1])
}
