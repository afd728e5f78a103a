package conformance_test

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	emulated "github.com/lifeboat-dev/lifeboat/emulator/events/pattern"
	"github.com/lifeboat-dev/lifeboat/internal/awssetup/pattern"
)

// TestEnginesAgreeOnRandomPatterns compares the two engines on cases that no one has thought of.
func TestEnginesAgreeOnRandomPatterns(t *testing.T) {
	rounds := 20000
	if testing.Short() {
		rounds = 3000
	}
	matches := 0
	for seed := range rounds {
		g := generator{rand.New(rand.NewPCG(1, uint64(seed)))}
		text, event := encode(t, g.pattern(2)), encode(t, g.object(3))
		ours, err := pattern.Compile(text)
		theirs, emulatedErr := emulated.Compile(string(text))
		if err != nil || emulatedErr != nil {
			if (err == nil) != (emulatedErr == nil) {
				t.Errorf("seed %d: pattern %s: product %v, emulator %v", seed, text, err, emulatedErr)
			}
			continue
		}
		got, err := ours.Match(event)
		if err != nil {
			t.Fatal(err)
		}
		decoded, err := emulated.Decode(event)
		if err != nil {
			t.Fatal(err)
		}
		if want := theirs.Matches(decoded); got != want {
			t.Errorf("seed %d: pattern %s, event %s: product %t, emulator %t", seed, text, event, got, want)
		}
		if got {
			matches++
		}
	}
	if matches < rounds/20 {
		t.Errorf("only %d of %d pairs match: the cases test little", matches, rounds)
	}
}

func encode(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

type generator struct{ *rand.Rand }

func pick[T any](g generator, from ...T) T { return from[g.IntN(len(from))] }

func (g generator) key() string  { return pick(g, "a", "a", "b", "b", "c") }
func (g generator) word() string { return pick(g, "x", "x", "X", "xy", "yx", "x*y") }
func (g generator) number() any  { return pick[any](g, 1, 2, 2.5, -1) }
func (g generator) scalar() any {
	return pick(g, any(g.word()), any(g.word()), g.number(), nil, true)
}

// object returns an event, or a part of one.
func (g generator) object(depth int) map[string]any {
	object := map[string]any{}
	for range 1 + g.IntN(3) {
		object[g.key()] = g.value(depth)
	}
	return object
}

func (g generator) value(depth int) any {
	if depth == 0 {
		return g.scalar()
	}
	list := []any{}
	switch g.IntN(5) {
	case 0:
		return g.object(depth - 1)
	case 1:
		for range g.IntN(3) {
			list = append(list, g.value(depth-1))
		}
		return list
	case 2: // fields of different elements must not combine
		for range 2 {
			list = append(list, g.object(depth-1))
		}
		return list
	}
	return g.scalar()
}

// pattern returns an object of a pattern.
func (g generator) pattern(depth int) map[string]any {
	object := map[string]any{}
	for range 1 + g.IntN(2) {
		switch {
		case depth > 0 && g.IntN(3) == 0:
			object[g.key()] = g.pattern(depth - 1)
		case depth > 0 && g.IntN(5) == 0:
			object["$or"] = []any{g.pattern(depth - 1), g.pattern(depth - 1)}
		default:
			list := []any{}
			for range 1 + g.IntN(2) {
				list = append(list, g.alternative())
			}
			object[g.key()] = list
		}
	}
	return object
}

func (g generator) alternative() any {
	with := func(name string, operand any) any { return map[string]any{name: operand} }
	name := pick(g, "prefix", "suffix", "equals-ignore-case", "wildcard")
	switch g.IntN(8) {
	case 0:
		return with("exists", pick(g, true, false))
	case 1:
		return with("anything-but", pick[any](g, g.word(), g.number(), []any{g.word(), g.word()}, []any{g.word(), g.number()}))
	case 2:
		return with("anything-but", with(name, pick[any](g, g.word(), []any{g.word(), g.word()})))
	case 3:
		return with("numeric", pick[any](g, []any{">", g.number()}, []any{"=", g.number()}, []any{">=", g.number(), "<", g.number()}))
	case 4:
		return with(name, g.word())
	case 5:
		return with(pick(g, "prefix", "suffix"), with("equals-ignore-case", g.word()))
	}
	return g.scalar()
}
