package history

import "slices"

// Shrink removes what a failing history does not need, one element at a time, as long as it still
// fails. It plays at most tries histories.
func Shrink(h History, tries int, fails func(History) bool) History {
	for again := true; again; {
		again = false
		for _, shorter := range without(h) {
			if tries == 0 {
				return h
			}
			tries--
			if fails(shorter) {
				h, again = shorter, true
				break
			}
		}
	}
	return h
}

// without are all valid histories that lack one element. Events come first: they explain most.
func without(h History) (all []History) {
	add := func(shorter History) {
		if shorter.valid() {
			all = append(all, shorter)
		}
	}
	for i := range h.Events {
		s := h
		s.Events = slices.Delete(slices.Clone(h.Events), i, i+1)
		add(s)
	}
	for i := range h.Workloads {
		s := h
		s.Workloads = slices.Delete(slices.Clone(h.Workloads), i, i+1)
		add(s)
	}
	for i := range h.Policies {
		s := h
		s.Policies = slices.Delete(slices.Clone(h.Policies), i, i+1)
		add(s)
	}
	for i := range h.Nodes {
		s := h
		s.Nodes = slices.Delete(slices.Clone(h.Nodes), i, i+1)
		add(s)
	}
	return all
}
