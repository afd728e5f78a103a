package pattern

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// generator creates small random patterns and events over a narrow alphabet, so that they often match.
type generator struct{ *rand.Rand }

func (g generator) pick(choices ...string) string { return choices[g.IntN(len(choices))] }

func (g generator) key() string { return g.pick("a", "b", "c", "a.b", "b.c") }

func (g generator) scalar() string {
	return g.pick(`"x"`, `"y"`, `"xy"`, `""`, `1`, `1.0`, `2`, `true`, `null`, `"10.0.0.1"`, `"10.0.0.01"`)
}

func (g generator) event(depth int) string {
	switch n := g.IntN(4); {
	case depth == 0 || n == 0:
		return g.scalar()
	case n == 1:
		return "[" + g.many(func() string { return g.event(depth - 1) }) + "]"
	default:
		return g.object(depth)
	}
}

func (g generator) object(depth int) string {
	return "{" + g.many(func() string { return quote(g.key()) + ":" + g.event(depth-1) }) + "}"
}

func (g generator) many(one func() string) string {
	var all []string
	for range g.IntN(4) {
		all = append(all, one())
	}
	return strings.Join(all, ",")
}

// alternative returns any alternative except anything-but.
func (g generator) alternative() string {
	return g.pick(g.scalar(), g.scalar(), `{"prefix":"x"}`, `{"suffix":"y"}`, `{"wildcard":"x*"}`, `{"numeric":[">",1]}`,
		`{"exists":true}`, `{"exists":false}`, `{"cidr":"10.0.0.0/8"}`, `{"equals-ignore-case":"X"}`)
}

// fields returns the members of a pattern, with distinct paths so that their order does not matter.
func (g generator) fields(alternative func() string) []string {
	var all []string
	for i, path := range []string{`"a":`, `"b":{"c":`, `"b":{"a":`, `"c.a":`, `"a.b":`} {
		if g.IntN(2) == 0 && (i > 0 || len(all) == 0) {
			all = append(all, path+"["+alternative()+"]"+strings.Repeat("}", strings.Count(path, "{")))
		}
	}
	if len(all) == 0 {
		all = append(all, `"c":[`+alternative()+`]`)
	}
	return all
}

const rounds = 10_000

func newGenerator() generator { return generator{rand.New(rand.NewPCG(1, 2))} }

func TestAdditionalAlternativeKeepsAMatch(t *testing.T) {
	g, matches := newGenerator(), 0
	for range rounds {
		fields := g.fields(g.alternative)
		e := mustDecode(t, g.object(3))
		p := mustCompile(t, "{"+strings.Join(fields, ",")+"}")
		if !p.MatchEvent(e) {
			continue
		}
		matches++
		i := g.IntN(len(fields))
		fields[i] = strings.Replace(fields[i], "[", "["+g.alternative()+",", 1)
		wider := mustCompile(t, "{"+strings.Join(fields, ",")+"}")
		if !wider.MatchEvent(e) {
			t.Fatalf("%s matches and %s does not: %s", p, wider, e.root.dump())
		}
	}
	if matches < rounds/100 {
		t.Errorf("only %d of %d pairs matched: the property was hardly tested", matches, rounds)
	}
}

func TestKeyOrderIsIrrelevant(t *testing.T) {
	g, matches := newGenerator(), 0
	for range rounds {
		fields := g.fields(func() string { return g.alternative() + "," + g.alternative() })
		e := mustDecode(t, g.object(3))
		p := mustCompile(t, "{"+strings.Join(fields, ",")+"}")
		g.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
		q := mustCompile(t, "{"+strings.Join(fields, ",")+"}")
		if p.MatchEvent(e) != q.MatchEvent(e) {
			t.Fatalf("%s and %s differ on %s", p, q, e.root.dump())
		}
		if p.MatchEvent(e) {
			matches++
		}
	}
	if matches < rounds/100 {
		t.Errorf("only %d of %d pairs matched", matches, rounds)
	}
}

// The matcher must agree with a naive version of the reference engine's procedure: flatten the event into fields that
// remember their array elements, then try every combination in the order of the paths.
func TestMatchingAgreesWithTheNaiveProcedure(t *testing.T) {
	g, matches := newGenerator(), 0
	for range rounds {
		alternative := func() string { return g.alternative() }
		if g.IntN(3) == 0 {
			alternative = func() string { return `{"anything-but":` + g.pick(`"x"`, `1`, `{"prefix":"x"}`) + `}` }
		}
		p := mustCompile(t, "{"+strings.Join(g.fields(alternative), ",")+"}")
		e := mustDecode(t, g.object(4))
		want := naive(flattened(e.root, "", nil), p.branches[0].leaves, nil)
		if got := p.MatchEvent(e); got != want {
			t.Fatalf("%s on %s: got %v, naively %v", p, e.root.dump(), got, want)
		}
		if x := p.ExplainEvent(e); x.Matched != want || (len(x.Mismatches) == 0) != want {
			t.Fatalf("%s on %s: explanation %+v", p, e.root.dump(), x)
		}
		if want {
			matches++
		}
	}
	if matches < rounds/100 {
		t.Errorf("only %d of %d pairs matched", matches, rounds)
	}
}

type flatField struct {
	path   string
	value  *node
	chosen map[int]int // array to element
}

func flattened(n *node, path string, chosen map[int]int) []flatField {
	var all []flatField
	switch n.kind {
	case kindObject:
		for _, key := range keysOf(n) {
			under := key
			if chosen != nil {
				under = path + "." + key
			}
			all = append(all, flattened(n.get(key), under, with(chosen, -1, 0))...)
		}
	case kindArray:
		for i, item := range n.items {
			if item.scalar() {
				all = append(all, flatField{path, item, chosen})
			} else {
				all = append(all, flattened(item, path, with(chosen, n.array, i))...)
			}
		}
	default:
		all = append(all, flatField{path, n, chosen})
	}
	return all
}

// with returns a copy; the entry -1 marks a path below the top.
func with(chosen map[int]int, array, index int) map[int]int {
	after := map[int]int{array: index}
	for k, v := range chosen {
		after[k] = v
	}
	return after
}

func naive(fields []flatField, leaves []*leaf, chosen map[int]int) bool {
	if len(leaves) == 0 {
		return true
	}
	l, found := leaves[0], false
	for _, f := range fields {
		if f.path != l.path || !consistent(f.chosen, chosen) {
			continue
		}
		found = true
		for _, alternative := range l.tests {
			if alternative.holds(f.value) {
				after := f.chosen
				for k, v := range chosen {
					after = with(after, k, v)
				}
				if naive(fields, leaves[1:], after) {
					return true
				}
			}
		}
	}
	return l.absent && !found && naive(fields, leaves[1:], chosen)
}

func consistent(a, b map[int]int) bool {
	for k, v := range a {
		if other, ok := b[k]; ok && other != v {
			return false
		}
	}
	return true
}

// dump returns a node as complete JSON.
func (n *node) dump() string {
	var parts []string
	switch n.kind {
	case kindArray:
		for _, item := range n.items {
			parts = append(parts, item.dump())
		}
		return "[" + strings.Join(parts, ",") + "]"
	case kindObject:
		for _, m := range n.members {
			parts = append(parts, fmt.Sprintf("%s:%s", quote(m.key), m.value.dump()))
		}
		return "{" + strings.Join(parts, ",") + "}"
	case kindString:
		return quote(n.text)
	default:
		return n.text
	}
}
