package pattern

import (
	"cmp"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// maxVisits limits the work for one leaf on one event. An event of 1 MB, the maximum of EventBridge, stays well below
// it. Exceptions are events that contain the same paths nested and dotted within large arrays; those do not match.
const maxVisits = 4_000_000

// Match decodes an event and reports whether the pattern matches it. Its errors are those of Decode.
func (p *Pattern) Match(event []byte) (bool, error) {
	e, err := Decode(event)
	if err != nil {
		return false, err
	}
	return p.MatchEvent(e), nil
}

// MatchEvent reports whether the pattern matches a decoded event.
func (p *Pattern) MatchEvent(e *Event) bool {
	m := matcher{event: e}
	for _, b := range p.branches {
		if m.stoppedAt(b) < 0 {
			return true
		}
	}
	return false
}

// binding fixes one array of the event to one of its elements: fields of different elements must not be combined.
type binding struct {
	array, index int
	prefix       string // the path of the array
}

// state is the set of bindings of a partial match, sorted by array.
type state []binding

func (s state) find(array int) (int, bool) {
	return slices.BinarySearchFunc(s, array, func(b binding, array int) int { return cmp.Compare(b.array, array) })
}

// matcher matches one event. It processes the leaves of a branch in the order of their paths, and keeps all possible
// bindings of the event's arrays so far. It drops bindings of arrays that no later leaf uses, so their number stays
// at most that of the array's elements.
type matcher struct {
	event  *Event
	gaveUp bool // maxVisits was reached
}

// stoppedAt returns the index of the leaf at which the branch fails, or -1 when it matches.
func (m *matcher) stoppedAt(b branch) int {
	states := []state{nil}
	for i := range b.leaves {
		s := step{matcher: m, leaf: b.leaves[i], later: b.leaves[i+1:], absentLater: b.absentAfter[i]}
		for _, before := range states {
			s.from(before)
			if s.settled {
				break
			}
		}
		if len(s.next) == 0 {
			return i
		}
		states = s.next
	}
	return -1
}

// step advances every state by one leaf.
type step struct {
	*matcher
	leaf        *leaf
	later       []*leaf
	absentLater bool

	visits  int
	before  state
	chain   []binding // arrays entered on the way to the current node
	found   bool      // a scalar exists at the path
	settled bool      // the best possible state is reached: stop
	next    []state
	seen    map[string]bool
}

func (s *step) from(before state) {
	s.before, s.chain, s.found = before, s.chain[:0], false
	s.enter(s.event.root, 0)
	if !s.found && s.leaf.absent {
		s.reach(before)
	}
}

// stop reports whether to abort the walk.
func (s *step) stop() bool {
	s.visits++
	s.gaveUp = s.gaveUp || s.visits > maxVisits
	return s.settled || s.visits > maxVisits
}

// enter follows the rest of the path, from byte pos, within a node. Keys can contain dots, in the pattern and in the
// event: every prefix of the rest that ends before a dot is tried as a key.
func (s *step) enter(n *node, pos int) {
	if s.stop() {
		return
	}
	switch n.kind {
	case kindArray:
		s.elements(n, max(pos-1, 0), func(item *node) { s.enter(item, pos) })
	case kindObject:
		rest := s.leaf.path[pos:]
		for i := 0; i <= len(rest); i++ {
			if i < len(rest) && rest[i] != '.' {
				continue
			}
			s.visits += i / 64 // looking up a long key costs more
			child := n.get(rest[:i])
			switch {
			case child == nil:
			case i == len(rest):
				s.arrive(child)
			default:
				s.enter(child, pos+i+1)
			}
		}
	}
}

// arrive tests a node at the leaf's path. Arrays are flattened; an object is not a value.
func (s *step) arrive(n *node) {
	if s.stop() {
		return
	}
	switch n.kind {
	case kindObject:
	case kindArray:
		// A scalar directly in an array binds nothing: it has no sibling fields to be consistent with.
		for _, item := range n.items {
			if item.scalar() {
				s.arrive(item)
			}
		}
		s.elements(n, len(s.leaf.path), s.arrive)
	default:
		s.found = true
		if slices.ContainsFunc(s.leaf.tests, func(t test) bool { return t.holds(n) }) {
			s.reach(s.bound())
		}
	}
}

// elements visits the arrays and objects in an array that the state allows.
func (s *step) elements(n *node, prefix int, visit func(*node)) {
	if at, ok := s.before.find(n.array); ok {
		if i := s.before[at].index; !n.items[i].scalar() {
			visit(n.items[i])
		}
		return
	}
	for i, item := range n.items {
		if item.scalar() {
			continue
		}
		s.chain = append(s.chain, binding{n.array, i, s.leaf.path[:prefix]})
		visit(item)
		s.chain = s.chain[:len(s.chain)-1]
		if s.stop() {
			return
		}
	}
}

// bound returns the state after a match at the current position.
func (s *step) bound() state {
	if len(s.chain) == 0 {
		return s.before
	}
	after := slices.Clone(s.before)
	for _, b := range s.chain {
		if at, ok := after.find(b.array); !ok {
			after = slices.Insert(after, at, b)
		}
	}
	return after
}

// reach records a state without obsolete bindings, unless it is already recorded.
func (s *step) reach(after state) {
	if slices.ContainsFunc(after, s.past) {
		after = slices.DeleteFunc(slices.Clone(after), s.past)
	}
	if len(after) == 0 && !s.absentLater {
		// Nothing is bound, and no later leaf can profit from a binding: no other state can be better.
		s.next, s.settled = []state{nil}, true
		return
	}
	key := after.key()
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	if !s.seen[key] {
		s.seen[key] = true
		s.next = append(s.next, after)
	}
}

// past reports whether no later leaf can be within the array. Paths are sorted, so those with a common prefix are
// adjacent.
func (s *step) past(b binding) bool {
	inside := b.prefix + "."
	i := sort.Search(len(s.later), func(i int) bool { return s.later[i].path >= inside })
	return i == len(s.later) || !strings.HasPrefix(s.later[i].path, inside)
}

func (s state) key() string {
	var b []byte
	for _, x := range s {
		b = strconv.AppendInt(b, int64(x.array), 10)
		b = append(b, ':')
		b = strconv.AppendInt(b, int64(x.index), 10)
		b = append(b, ' ')
	}
	return string(b)
}
