package pattern

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// maxLength is the quota "Event pattern size" in characters (EventBridge User Guide, Quotas).
	maxLength = 2048
	// maxChoices bounds the combinations of "$or" (EventBridge User Guide, "Creating event
	// patterns using the $or operator").
	maxChoices = 1000
)

// Pattern is a compiled event pattern. It is immutable.
type Pattern struct {
	text    string
	choices []choice
}

// String returns the text of the pattern.
func (p *Pattern) String() string { return p.text }

// choice is one combination of the alternatives of "$or", by path: every field must match.
type choice map[string]field

// field is a leaf of the pattern: one of its tests must hold.
type field struct {
	tests  []test
	absent bool // {"exists": false} is one of the alternatives
}

// operators are the names of the operators (EventBridge User Guide). A choice of "$or" cannot have
// a field with such a name.
var operators = []string{
	"anything-but", "cidr", "equals-ignore-case", "exactly", "exists", "numeric", "prefix", "suffix", "wildcard",
}

// Compile reads a pattern. Its error has the text of EventBridge's InvalidEventPatternException.
func Compile(text string) (*Pattern, error) {
	c := compiler{dec: json.NewDecoder(strings.NewReader(text))}
	c.dec.UseNumber()
	choices, err := c.root(text)
	if err != nil {
		before := text[:min(int(c.dec.InputOffset()), len(text))]
		line := before[strings.LastIndexByte(before, '\n')+1:]
		return nil, refuse("Event pattern is not valid. Reason: %v\n at [Source: (String)%q; line: %d, column: %d]",
			err, text, 1+strings.Count(before, "\n"), 1+utf8.RuneCountInString(line))
	}
	return &Pattern{text, choices}, nil
}

type compiler struct{ dec *json.Decoder }

func (c compiler) root(text string) ([]choice, error) {
	if n := utf8.RuneCountInString(text); n > maxLength {
		return nil, refuse("Pattern is %d characters long, the limit is %d", n, maxLength)
	}
	if token, err := c.dec.Token(); err != nil || token != json.Delim('{') {
		return nil, refuse("Filter is not an object")
	}
	choices, err := c.object("", []choice{{}}, false)
	if err != nil {
		return nil, err
	}
	if _, err := c.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, refuse("Invalid JSON: text after the pattern")
	}
	return choices, nil
}

// object reads the members of an object and adds its fields to each choice.
func (c compiler) object(prefix string, choices []choice, inOr bool) ([]choice, error) {
	members := 0
	for ; c.dec.More(); members++ {
		key, err := c.dec.Token()
		if err != nil {
			return nil, invalidJSON(err)
		}
		name, _ := key.(string) // the decoder returns strings as keys
		if inOr && slices.Contains(operators, name) {
			return nil, refuse("%s is Ruler reserved fieldName which cannot be used inside $or.", name)
		}
		if choices, err = c.member(prefix, name, choices, inOr); err != nil {
			return nil, err
		}
	}
	if _, err := c.dec.Token(); err != nil {
		return nil, invalidJSON(err)
	}
	if members == 0 {
		return nil, refuse("Empty objects are not allowed")
	}
	return choices, nil
}

func (c compiler) member(prefix, name string, choices []choice, inOr bool) ([]choice, error) {
	open, err := c.dec.Token()
	switch {
	case err != nil:
		return nil, invalidJSON(err)
	case name == "$or":
		return c.or(open, prefix, choices)
	case open == json.Delim('{'):
		return c.object(prefix+name+".", choices, inOr)
	case open == json.Delim('['):
		f, err := c.field()
		for _, ch := range choices {
			ch[prefix+name] = f
		}
		return choices, err
	}
	return nil, refuse("%q must be an object or an array", name)
}

// or multiplies the choices by the objects of the list.
func (c compiler) or(open json.Token, prefix string, before []choice) ([]choice, error) {
	tooFew := refuse("There must have at least 2 Objects in $or relationship.")
	if open != json.Delim('[') {
		return nil, tooFew
	}
	var after []choice
	objects := 0
	for ; c.dec.More(); objects++ {
		if token, err := c.dec.Token(); err != nil || token != json.Delim('{') {
			return nil, refuse("Only JSON object is allowed in array of $or relationship.")
		}
		var copies []choice
		for _, ch := range before {
			copies = append(copies, maps.Clone(ch))
		}
		more, err := c.object(prefix, copies, true)
		if err != nil {
			return nil, err
		}
		if after = append(after, more...); len(after) > maxChoices {
			return nil, refuse("the $or has more than %d combinations", maxChoices)
		}
	}
	if objects < 2 {
		return nil, tooFew
	}
	if _, err := c.dec.Token(); err != nil {
		return nil, invalidJSON(err)
	}
	return after, nil
}

// field reads the list of alternatives of a leaf.
func (c compiler) field() (field, error) {
	var f field
	items := 0
	for ; c.dec.More(); items++ {
		var item any
		if err := c.dec.Decode(&item); err != nil {
			return f, invalidJSON(err)
		}
		if object, ok := item.(map[string]any); ok && len(object) == 1 && object["exists"] == false {
			f.absent = true
			continue
		}
		t, err := alternative(item)
		if err != nil {
			return f, err
		}
		f.tests = append(f.tests, t)
	}
	if _, err := c.dec.Token(); err != nil {
		return f, invalidJSON(err)
	}
	if items == 0 {
		return f, refuse("Empty arrays are not allowed")
	}
	return f, nil
}

// refusal is a reason in the words of EventBridge, which begin with a capital letter.
type refusal string

// Error implements error.
func (r refusal) Error() string { return string(r) }

func refuse(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

func invalidJSON(err error) error { return refuse("Invalid JSON: %v", err) }
