package pattern

import "slices"

// CouldMatch reports whether the pattern could match an event of the same kind. Such an event has the same source and
// detail-type, and the same values at the fixed paths. Other fields can have any value of the right type, or any
// value of a closed set such as instance states. If CouldMatch is true but MatchEvent is false, the pattern is
// narrower: it selects particular instances, groups or accounts.
func (p *Pattern) CouldMatch(e *Event, fixed ...string) bool {
	k := knownEventFor(e)
	return slices.ContainsFunc(p.branches, func(b branch) bool {
		return !slices.ContainsFunc(b.leaves, func(l *leaf) bool { return !k.allows(l, fixed) })
	})
}

// PathsWith returns the paths of the fields for which the pattern has a value with a
// property.
func (p *Pattern) PathsWith(has func(value string) bool) []string {
	var paths []string
	for _, b := range p.branches {
		for _, l := range b.leaves {
			if slices.ContainsFunc(l.tests, func(t test) bool { return has(t.String()) }) && !slices.Contains(paths, l.path) {
				paths = append(paths, l.path)
			}
		}
	}
	return paths
}

// knownEventFor returns the catalogue's knowledge about events like this one, with this event as the example.
func knownEventFor(e *Event) *knownEvent {
	like := knownEvent{event: e}
	source, name := e.text("source"), e.text("detail-type")
	for _, k := range catalogue() {
		if (k.anySource || k.Source == source) && slices.Contains(k.detailTypes, name) {
			like.Sample, like.detailTypes, like.values, like.open = k.Sample, k.detailTypes, k.values, k.open
			break
		}
	}
	return &like
}

// text returns the string at a top-level key, or "".
func (e *Event) text(key string) string {
	if n := e.root.get(key); n != nil && n.kind == kindString {
		return n.text
	}
	return ""
}

// allows reports whether an event of this kind can satisfy a leaf.
func (k *knownEvent) allows(l *leaf, fixed []string) bool {
	values := k.event.at(l.path).values
	if l.path == "source" || l.path == "detail-type" || slices.Contains(fixed, l.path) {
		return l.absent && len(values) == 0 || slices.ContainsFunc(values, func(v *node) bool {
			return slices.ContainsFunc(l.tests, func(t test) bool { return t.holds(v) })
		})
	}
	return l.absent || slices.ContainsFunc(l.tests, func(t test) bool { return k.accepts(l.path, t) })
}
