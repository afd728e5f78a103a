package pattern

import (
	"fmt"
	"strings"
)

// Problem classifies why a field of a pattern does not match.
type Problem string

// The problems.
const (
	// ProblemMissing: the event has no value at the path.
	ProblemMissing Problem = "missing"
	// ProblemValue: the event has a value of the right type, but no alternative accepts it.
	ProblemValue Problem = "value"
	// ProblemType: the event's value has a JSON type that the alternatives do not accept.
	ProblemType Problem = "type"
	// ProblemPresent: the field must not exist, but it does.
	ProblemPresent Problem = "present"
	// ProblemSameElement: each field matches somewhere, but not all within one element of the same array.
	ProblemSameElement Problem = "sameElement"
	// ProblemTooLarge: the event was too complex to match.
	ProblemTooLarge Problem = "tooLarge"
)

// Mismatch is one field of the pattern that the event does not satisfy.
type Mismatch struct {
	// Path is the field, its keys joined by dots.
	Path string `json:"path"`
	// Problem is the class of the mismatch.
	Problem Problem `json:"problem"`
	// Expected are the pattern's alternatives, as JSON.
	Expected []string `json:"wanted"`
	// Found are the event's values at the path, as JSON; only the first few if there are many.
	Found []string `json:"found,omitempty"`
	// Hint is the probable mistake and its correction; empty if the values simply differ.
	Hint string `json:"hint,omitempty"`
}

// Explanation reports whether a pattern matches an event and, if not, why.
type Explanation struct {
	// Matched is the result of MatchEvent.
	Matched bool `json:"matched"`
	// Fields is the number of fields that the pattern tests. For a pattern with "$or", it is that of the nearest
	// combination.
	Fields int `json:"fields"`
	// Choices is the number of combinations of the pattern's "$or" choices; 1 without "$or".
	Choices int `json:"choices"`
	// Mismatches are the fields that do not match, sorted by path; empty only if Matched.
	Mismatches []Mismatch `json:"mismatches,omitempty"`
}

// Explain decodes an event and explains the result. Its errors are those of Decode.
func (p *Pattern) Explain(event []byte) (Explanation, error) {
	e, err := Decode(event)
	if err != nil {
		return Explanation{}, err
	}
	return p.ExplainEvent(e), nil
}

// ExplainEvent explains the result for a decoded event.
func (p *Pattern) ExplainEvent(e *Event) Explanation {
	m := matcher{event: e}
	best := Explanation{Choices: len(p.branches)}
	for i, b := range p.branches {
		stopped := m.stoppedAt(b)
		if stopped < 0 {
			return Explanation{Matched: true, Fields: len(b.leaves), Choices: len(p.branches)}
		}
		mismatches := e.mismatches(b, stopped, m.gaveUp)
		if i == 0 || len(mismatches) < len(best.Mismatches) {
			best.Fields, best.Mismatches = len(b.leaves), mismatches
		}
	}
	return best
}

// mismatches checks every leaf separately. stopped is the leaf at which the joint match failed.
func (e *Event) mismatches(b branch, stopped int, gaveUp bool) []Mismatch {
	var all []Mismatch
	for _, l := range b.leaves {
		if m, ok := e.mismatch(l); !ok {
			all = append(all, m)
		}
	}
	if len(all) > 0 {
		return all
	}
	l := b.leaves[stopped]
	m := Mismatch{Path: l.path, Expected: l.expected(), Found: texts(e.at(l.path).values)}
	if gaveUp {
		m.Problem, m.Hint = ProblemTooLarge, "the event repeats the same paths too often to be matched; report this as a Lifeboat bug"
		return []Mismatch{m}
	}
	m.Problem = ProblemSameElement
	m.Hint = "each field is satisfied somewhere, but fields below one array must be satisfied by the same element of it"
	return []Mismatch{m}
}

func (e *Event) mismatch(l *leaf) (Mismatch, bool) {
	at := e.at(l.path)
	if len(at.values) == 0 && l.absent {
		return Mismatch{}, true
	}
	for _, v := range at.values {
		for _, t := range l.tests {
			if t.holds(v) {
				return Mismatch{}, true
			}
		}
	}
	m := Mismatch{Path: l.path, Problem: ProblemValue, Expected: l.expected(), Found: texts(at.values)}
	switch {
	case len(at.values) == 0:
		m.Problem, m.Hint = ProblemMissing, e.missingHint(l.path, at)
	case len(l.tests) == 0:
		m.Problem, m.Hint = ProblemPresent, "the pattern requires that the field does not exist, but it exists"
	case l.path == "detail-type":
		m.Hint = e.detailTypeHint(l, at.values)
	}
	if m.Problem == ProblemValue && m.Hint == "" {
		m.Problem, m.Hint = valueHint(l, at.values)
	}
	return m, false
}

func (l *leaf) expected() []string {
	all := make([]string, 0, len(l.all))
	for _, t := range l.all {
		all = append(all, t.String())
	}
	return all
}

func texts(values []*node) []string {
	const most = 5
	var all []string
	for _, v := range values {
		if len(all) == most {
			return append(all, fmt.Sprintf("and %d more", len(values)-most))
		}
		all = append(all, v.String())
	}
	return all
}

// place holds what an event contains at a path.
type place struct {
	values []*node // scalars, arrays flattened
	object *node   // an object at the path, which no pattern can match
	empty  bool    // an empty array
}

// at collects the values at a path, from all array elements.
func (e *Event) at(path string) place {
	var p place
	e.root.collect(path, &p)
	return p
}

func (n *node) collect(rest string, p *place) {
	switch n.kind {
	case kindArray:
		for _, item := range n.items {
			item.collect(rest, p)
		}
	case kindObject:
		for i := 0; i <= len(rest); i++ {
			if i < len(rest) && rest[i] != '.' {
				continue
			}
			if child := n.get(rest[:i]); child == nil {
				continue
			} else if i == len(rest) {
				child.flatten(p)
			} else {
				child.collect(rest[i+1:], p)
			}
		}
	}
}

func (n *node) flatten(p *place) {
	switch {
	case n.scalar():
		p.values = append(p.values, n)
	case n.kind == kindObject:
		p.object = n
	case len(n.items) == 0:
		p.empty = true
	default:
		for _, item := range n.items {
			item.flatten(p)
		}
	}
}

// String returns the explanation for a terminal, in several lines without a final newline.
func (x Explanation) String() string {
	if x.Matched {
		return "matches"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "does not match: %d of %s not hold", len(x.Mismatches), plural(x.Fields))
	if x.Choices > 1 {
		fmt.Fprintf(&b, " (nearest of %d $or combinations)", x.Choices)
	}
	for _, m := range x.Mismatches {
		fmt.Fprintf(&b, "\n  %s\n    wants  %s", m.Path, strings.Join(m.Expected, " or "))
		found := "nothing there"
		if len(m.Found) > 0 {
			found = strings.Join(m.Found, ", ")
		}
		fmt.Fprintf(&b, "\n    found  %s", found)
		if m.Hint != "" {
			fmt.Fprintf(&b, "\n    hint   %s", m.Hint)
		}
	}
	return b.String()
}

func plural(fields int) string {
	if fields == 1 {
		return "1 field does"
	}
	return fmt.Sprintf("%d fields do", fields)
}
