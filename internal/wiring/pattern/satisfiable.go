package pattern

import "slices"

// CouldMatch says whether the pattern could match an event of the same kind as this one: with the same source and
// detail-type, the same values at the fixed paths, and any values of the right type elsewhere (of closed sets, such as
// the states of an instance, any of the set). Where MatchEvent does not hold but CouldMatch does, the pattern narrows:
// it is about particular instances, groups or accounts.
func (p *Pattern) CouldMatch(e *Event, fixed ...string) bool {
	k := kindOf(e)
	return slices.ContainsFunc(p.branches, func(b branch) bool {
		return !slices.ContainsFunc(b.leaves, func(l *leaf) bool { return !k.allows(l, fixed) })
	})
}

// kindOf is what the catalogue knows of events like this one, with this one as the example.
func kindOf(e *Event) *knownEvent {
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

// text is the string at the top of an event under a key, or "".
func (e *Event) text(key string) string {
	if n := e.root.get(key); n != nil && n.kind == kindString {
		return n.text
	}
	return ""
}

// allows says whether an event of this kind can satisfy a leaf.
func (k *knownEvent) allows(l *leaf, fixed []string) bool {
	values := k.event.at(l.path).values
	if l.path == "source" || l.path == "detail-type" || slices.Contains(fixed, l.path) {
		return l.absent && len(values) == 0 || slices.ContainsFunc(values, func(v *node) bool {
			return slices.ContainsFunc(l.tests, func(t test) bool { return t.holds(v) })
		})
	}
	return l.absent || slices.ContainsFunc(l.tests, func(t test) bool { return k.takes(l.path, t) })
}
