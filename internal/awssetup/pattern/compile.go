package pattern

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits for a pattern.
const (
	// MaxLength is the maximum number of characters: the default of the EventBridge quota "Event pattern size".
	MaxLength = 2048
	// maxBranches is the maximum number of combinations of the pattern's "$or" choices (EventBridge User Guide,
	// "Creating event patterns using the $or operator").
	maxBranches = 1000
	// maxWildcards is Lifeboat's own limit. AWS refuses patterns whose wildcards make its automaton too large, by an
	// unpublished measure. This engine matches in linear time, so the limit only excludes abuse.
	maxWildcards = 64
)

const tooComplex = "Rule is too complex - try using fewer wildcard characters or fewer repeating character sequences after a wildcard character"

// Pattern is a compiled event pattern. It is immutable: safe for concurrent use.
type Pattern struct {
	source   []byte
	branches []branch
}

// String returns the pattern as it was passed to Compile.
func (p *Pattern) String() string { return string(p.source) }

// branch is one combination of "$or" choices: all its leaves must match. A pattern without "$or" has one branch.
type branch struct {
	leaves []*leaf // by path
	// absentAfter[i] reports whether a leaf after i can match an absent field.
	absentAfter []bool
}

// leaf is one field of the pattern with its alternatives.
type leaf struct {
	path   string // keys joined by dots: {"a":{"b":…}} and {"a.b":…} are the same field
	tests  []test // other than "exists": false
	absent bool   // "exists": false is among the alternatives
	all    []test // every alternative, as written
	at     int
}

// draft is a branch under construction: the last leaf for a path wins.
type draft map[string]*leaf

// Compile reads a pattern. Its error is a *SyntaxError.
func Compile(pattern []byte) (*Pattern, error) {
	c := &compiler{source: pattern}
	if err := c.compile(); err != nil {
		return nil, err
	}
	p := &Pattern{source: bytes.Clone(pattern)}
	for _, d := range c.drafts {
		p.branches = append(p.branches, d.finish())
	}
	return p, nil
}

func (d draft) finish() branch {
	b := branch{absentAfter: make([]bool, len(d))}
	for _, path := range slices.Sorted(maps.Keys(d)) {
		b.leaves = append(b.leaves, d[path])
	}
	for i := len(b.leaves) - 2; i >= 0; i-- {
		b.absentAfter[i] = b.absentAfter[i+1] || b.leaves[i+1].absent
	}
	return b
}

type compiler struct {
	source    []byte
	drafts    []draft
	path      []string
	wildcards int
}

func (c *compiler) where() string { return strings.Join(c.path, ".") }

// fail creates the error. It returns error and not *SyntaxError, so that no nil pointer ends up in an interface.
func (c *compiler) fail(at int, format string, args ...any) error {
	return newSyntaxError(c.source, at, c.where(), fmt.Sprintf(format, args...))
}

func (c *compiler) compile() error {
	if length := utf8.RuneCount(c.source); length > MaxLength {
		return c.fail(0, "Pattern is %d characters long, the limit is %d", length, MaxLength)
	}
	if len(bytes.TrimSpace(c.source)) == 0 {
		return c.fail(0, "Filter is not an object")
	}
	root, err := readJSON(c.source)
	if err != nil {
		return c.invalidJSON(err)
	}
	if root.kind != kindObject {
		return c.fail(root.at, "Filter is not an object")
	}
	return c.object(root, false)
}

func (c *compiler) invalidJSON(err error) error {
	offset := 0
	if j := (*jsonError)(nil); errors.As(err, &j) {
		offset = j.offset
	}
	return c.fail(offset, "Invalid JSON: %v", err)
}

func (c *compiler) object(n *node, inOr bool) error {
	if len(n.members) == 0 {
		return c.fail(n.end, "Empty objects are not allowed")
	}
	for _, m := range n.members {
		if m.key == "$or" {
			if err := c.or(m); err != nil {
				return err
			}
			continue
		}
		if inOr && reserved(m.key) {
			return c.fail(m.at, "%s is Ruler reserved fieldName which cannot be used inside $or.", m.key)
		}
		if err := c.field(m, inOr); err != nil {
			return err
		}
	}
	return nil
}

func (c *compiler) field(m member, inOr bool) error {
	c.path = append(c.path, m.key)
	defer func() { c.path = c.path[:len(c.path)-1] }()
	switch m.value.kind {
	case kindObject:
		return c.object(m.value, inOr)
	case kindArray:
		return c.leaf(m.value)
	default:
		return c.fail(m.value.at, "%q must be an object or an array", m.key)
	}
}

func (c *compiler) leaf(n *node) error {
	if len(n.items) == 0 {
		return c.fail(n.end, "Empty arrays are not allowed")
	}
	l := &leaf{path: c.where(), at: n.at}
	for _, item := range n.items {
		t, err := c.alternative(item)
		if err != nil {
			return err
		}
		l.all = append(l.all, t)
		if _, ok := t.(absent); ok {
			l.absent = true
		} else {
			l.tests = append(l.tests, t)
		}
	}
	if len(c.drafts) == 0 {
		c.drafts = []draft{{}}
	}
	for _, d := range c.drafts {
		d[l.path] = l
	}
	return nil
}

// or copies the drafts so far, once for each object in the array.
func (c *compiler) or(m member) error {
	const tooFew = "There must have at least 2 Objects in $or relationship."
	if m.value.kind != kindArray {
		return c.fail(m.value.at, tooFew)
	}
	before := c.drafts
	if len(before) == 0 {
		before = []draft{{}}
	}
	var after []draft
	for _, choice := range m.value.items {
		if choice.kind != kindObject {
			return c.fail(choice.at, "Only JSON object is allowed in array of $or relationship.")
		}
		c.drafts = nil
		for _, d := range before {
			c.drafts = append(c.drafts, maps.Clone(d))
		}
		if err := c.object(choice, true); err != nil {
			return err
		}
		after = append(after, c.drafts...)
		if len(after) > maxBranches {
			return c.fail(choice.end, "Too many combinations in $or relationship, the limit is %d", maxBranches)
		}
	}
	if len(m.value.items) < 2 {
		return c.fail(m.value.end, tooFew)
	}
	c.drafts = after
	return nil
}

// reserved reports whether a key inside "$or" is reserved for current and future operators (event-ruler, "$or" in its
// README).
func reserved(key string) bool {
	switch key {
	case "exactly", "equals-ignore-case", "prefix", "suffix", "anything-but", "exists", "wildcard", "numeric", "cidr",
		"=", "<", "<=", ">", ">=", "regex", "not-wildcard", "not-equals-ignore-case",
		"date-after", "date-on-or-after", "date-before", "date-on-or-before", "in-date-range",
		"ip-address-in-range", "ip-address-not-in-range":
		return true
	}
	return false
}
