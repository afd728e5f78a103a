package pattern

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth limits the nesting of arrays and objects, so that hostile input cannot exhaust the stack. It is the
// default limit of the reference engine's JSON reader.
const maxDepth = 1000

// kind is the JSON type of a node.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindArray
	kindObject
)

func (k kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a string", "an array", "an object"}[k]
}

// node is one JSON value. Patterns and events use the same tree.
type node struct {
	kind    kind
	text    string           // string: the value; number, boolean, null: the literal as written
	number  float64          // number: its value; infinite when beyond float64
	members []member         // object: in the order written, duplicates included
	index   map[string]*node // object: the members by key, when there are many
	items   []*node          // array
	array   int              // array: its identity within the document
	at      int              // offset after the value's opening character, or after the value
	end     int              // offset after the value
}

type member struct {
	key   string
	value *node
	at    int
}

// get returns the member with this key, or nil. The last of duplicate keys wins.
func (n *node) get(key string) *node {
	if n.index != nil {
		return n.index[key]
	}
	for _, m := range slices.Backward(n.members) {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// makeIndex indexes objects with many members, so that look-ups need no scan.
func (n *node) makeIndex() {
	const few = 16
	if len(n.members) <= few {
		return
	}
	n.index = make(map[string]*node, len(n.members))
	for _, m := range n.members {
		n.index[m.key] = m.value
	}
}

func (n *node) scalar() bool { return n.kind < kindArray }

// String returns the value as JSON, shortened if it is long.
func (n *node) String() string {
	const longest = 200
	switch n.kind {
	case kindString:
		if len(n.text) > longest {
			return quote(strings.ToValidUTF8(n.text[:longest], "") + "…")
		}
		return quote(n.text)
	case kindArray:
		return "[…]"
	case kindObject:
		return "{…}"
	default:
		return n.text
	}
}

// quote returns s as a JSON string, without escaping <, > and &.
func quote(s string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return strconv.Quote(s) // unreachable: a Go string always encodes
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// jsonError is a JSON syntax error with its position.
type jsonError struct {
	offset int
	cause  error
}

func (e *jsonError) Error() string { return e.cause.Error() }
func (e *jsonError) Unwrap() error { return e.cause }

// reader builds a tree from tokens and records the offsets for error messages.
type reader struct {
	data   []byte
	dec    *json.Decoder
	arrays int
}

// readJSON reads exactly one JSON value. Its errors are *jsonError.
func readJSON(data []byte) (*node, error) {
	if !utf8.Valid(data) {
		return nil, &jsonError{invalidAt(data), errors.New("invalid UTF-8")}
	}
	r := &reader{data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	r.dec.UseNumber()
	n, err := r.value(0)
	if err != nil {
		return nil, err
	}
	if _, err := r.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, r.fail(errors.New("unexpected text after the JSON value"))
	}
	return n, nil
}

func invalidAt(data []byte) int {
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return len(data)
}

func (r *reader) fail(err error) error {
	offset := int(r.dec.InputOffset())
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		offset = int(syntax.Offset)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		offset, err = len(r.data), errors.New("unexpected end of JSON input")
	}
	return &jsonError{min(offset, len(r.data)), err}
}

func (r *reader) value(depth int) (*node, error) {
	if depth > maxDepth {
		return nil, r.fail(fmt.Errorf("nested deeper than %d levels", maxDepth))
	}
	before := int(r.dec.InputOffset())
	token, err := r.dec.Token()
	if err != nil {
		return nil, r.fail(err)
	}
	n := &node{at: int(r.dec.InputOffset())}
	switch t := token.(type) {
	case json.Delim:
		err = r.composite(n, t, depth)
	case string:
		n.kind, n.text = kindString, t
		n.at = before + bytes.IndexByte(r.data[before:], '"') + 1
	case json.Number:
		n.kind, n.text = kindNumber, t.String()
		n.number, _ = strconv.ParseFloat(n.text, 64) // the only possible error is the range; the value then is ±Inf
	case bool:
		n.kind, n.text = kindBool, strconv.FormatBool(t)
	default:
		n.kind, n.text = kindNull, "null"
	}
	n.end = int(r.dec.InputOffset())
	return n, err
}

func (r *reader) composite(n *node, open json.Delim, depth int) error {
	if open == '[' {
		n.kind, n.array = kindArray, r.arrays
		r.arrays++
	} else {
		n.kind = kindObject
	}
	for r.dec.More() {
		if n.kind == kindArray {
			item, err := r.value(depth + 1)
			if err != nil {
				return err
			}
			n.items = append(n.items, item)
			continue
		}
		m, err := r.member(depth)
		if err != nil {
			return err
		}
		n.members = append(n.members, m)
	}
	n.makeIndex()
	if _, err := r.dec.Token(); err != nil { // the closing bracket
		return r.fail(err)
	}
	return nil
}

func (r *reader) member(depth int) (member, error) {
	token, err := r.dec.Token()
	if err != nil {
		return member{}, r.fail(err)
	}
	key, _ := token.(string) // the decoder accepts only strings here
	m := member{key: key, at: int(r.dec.InputOffset())}
	m.value, err = r.value(depth + 1)
	return m, err
}
