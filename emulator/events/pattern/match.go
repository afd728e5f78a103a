package pattern

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Event is an event as a list of scalars by path. It is immutable.
type Event struct{ at map[string][]scalar }

// scalar is one value, with the elements that contain it.
type scalar struct {
	value    any
	elements elements
}

// elements maps an array of the event, by its number, to one of its elements.
type elements map[int]int

// agree reports whether no array has two different elements in a and b.
func (a elements) agree(b elements) bool {
	for array, i := range a {
		if j, ok := b[array]; ok && i != j {
			return false
		}
	}
	return true
}

// Decode reads an event, which must be a JSON object.
func Decode(text []byte) (*Event, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var object map[string]any
	if err := dec.Decode(&object); err != nil {
		return nil, fmt.Errorf("reading event: %w", err)
	}
	if object == nil {
		return nil, errors.New("reading event: it must be a JSON object")
	}
	f := flattener{at: map[string][]scalar{}}
	for key, member := range object {
		f.add(key, member, elements{})
	}
	return &Event{f.at}, nil
}

type flattener struct {
	at     map[string][]scalar
	arrays int
}

// add flattens a value. An array adds nothing to the path of its elements. Elements exclude each
// other, except scalars: event-ruler matches "x" and k of ["x", {"k": 1}] together.
func (f *flattener) add(path string, v any, in elements) {
	switch v := v.(type) {
	case map[string]any:
		for key, member := range v {
			f.add(path+"."+key, member, in)
		}
	case []any:
		f.arrays++
		array := f.arrays
		for i, item := range v {
			inside := in
			switch item.(type) {
			case map[string]any, []any:
				inside = maps.Clone(in)
				inside[array] = i
			}
			f.add(path, item, inside)
		}
	default:
		f.at[path] = append(f.at[path], scalar{v, in})
	}
}

// Matches reports whether a pattern matches an event.
func (p *Pattern) Matches(e *Event) bool {
	return slices.ContainsFunc(p.choices, func(c choice) bool {
		return e.satisfies(c, slices.Sorted(maps.Keys(c)), elements{})
	})
}

// satisfies reports whether the fields with these paths match scalars that are in the same
// elements of all arrays.
func (e *Event) satisfies(c choice, paths []string, chosen elements) bool {
	if len(paths) == 0 {
		return true
	}
	f, present := c[paths[0]], false
	for _, s := range e.at[paths[0]] {
		if !s.elements.agree(chosen) {
			continue
		}
		present = true
		if !anyOf(f.tests)(s.value) {
			continue
		}
		both := maps.Clone(chosen)
		maps.Copy(both, s.elements)
		if e.satisfies(c, paths[1:], both) {
			return true
		}
	}
	return f.absent && !present && e.satisfies(c, paths[1:], chosen)
}
