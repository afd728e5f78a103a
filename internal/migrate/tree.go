package migrate

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v3"
)

// get returns a key of a mapping and its value. It returns the last of duplicate
// keys, as other readers do.
func get(m *yaml.Node, name string) (key, value *yaml.Node) {
	if i := index(m, name); i >= 0 {
		return m.Content[i], m.Content[i+1]
	}
	return nil, nil
}

func index(m *yaml.Node, name string) int {
	if m == nil || m.Kind != yaml.MappingNode {
		return -1
	}
	for i := len(m.Content) - 2; i >= 0; i -= 2 {
		if m.Content[i].Kind == yaml.ScalarNode && m.Content[i].Value == name {
			return i
		}
	}
	return -1
}

// at returns the value at a path of keys, or nil.
func at(n *yaml.Node, path ...string) *yaml.Node {
	for _, name := range path {
		_, n = get(n, name)
	}
	return n
}

// mapping returns the mapping at a path, or nil.
func mapping(n *yaml.Node, path ...string) *yaml.Node {
	if n = at(n, path...); n != nil && n.Kind == yaml.MappingNode {
		return n
	}
	return nil
}

// list returns the items of the list at a path.
func list(n *yaml.Node, path ...string) []*yaml.Node {
	if n = at(n, path...); n != nil && n.Kind == yaml.SequenceNode {
		return n.Content
	}
	return nil
}

// text returns the value of a scalar, or "" for null and other nodes.
func text(n *yaml.Node) string {
	if n == nil || n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		return ""
	}
	return n.Value
}

// empty reports whether a node is missing, null, or an empty list or mapping.
func empty(n *yaml.Node) bool {
	return n == nil || n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" || n.Kind != yaml.ScalarNode && len(n.Content) == 0
}

// set sets the value of a key. A new key is inserted after another key, or at the
// end.
func set(m *yaml.Node, name string, value *yaml.Node, after string) {
	if i := index(m, name); i >= 0 {
		m.Content[i+1] = value
		return
	}
	where := len(m.Content)
	if i := index(m, after); i >= 0 {
		where = i + 2
	}
	m.Content = slices.Insert(m.Content, where, scalar(name), value)
}

// remove removes a key from a mapping.
func remove(m *yaml.Node, name string) (key, value *yaml.Node) {
	i := index(m, name)
	if i < 0 {
		return nil, nil
	}
	key, value = m.Content[i], m.Content[i+1]
	m.Content = slices.Delete(m.Content, i, i+2)
	return key, value
}

func scalar(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: value}
}

// literal parses YAML that this package contains.
func literal(text string) *yaml.Node {
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(text), &n); err != nil || len(n.Content) == 0 {
		return scalar(text)
	}
	walk(n.Content[0], func(n *yaml.Node) { n.Line, n.Column = 0, 0 })
	return n.Content[0]
}

// walk visits a node and all nodes below it.
func walk(n *yaml.Node, visit func(*yaml.Node)) {
	if n == nil {
		return
	}
	visit(n)
	for _, child := range n.Content {
		walk(child, visit)
	}
}

// same compares values. It ignores style, comments and the order of keys.
func same(a, b *yaml.Node) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Kind != b.Kind || len(a.Content) != len(b.Content) {
		return false
	}
	switch a.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(a.Content); i += 2 {
			if _, other := get(b, a.Content[i].Value); other == nil || !same(a.Content[i+1], other) {
				return false
			}
		}
		return true
	case yaml.ScalarNode:
		return a.Value == b.Value
	}
	return slices.EqualFunc(a.Content, b.Content, same)
}

// render returns a value on one line, shortened if it is long.
func render(n *yaml.Node) string {
	const most = 160
	copied := clone(n)
	walk(copied, func(n *yaml.Node) { n.HeadComment, n.LineComment, n.FootComment = "", "", "" })
	if copied.Kind != yaml.ScalarNode {
		copied.Style |= yaml.FlowStyle
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	if err := errors.Join(e.Encode(copied), e.Close()); err != nil {
		return "…"
	}
	line := strings.Join(strings.Fields(b.String()), " ")
	if runes := []rune(line); len(runes) > most {
		line = string(runes[:most]) + "…"
	}
	return line
}

func clone(n *yaml.Node) *yaml.Node {
	out := *n
	out.Content = make([]*yaml.Node, 0, len(n.Content))
	for _, child := range n.Content {
		out.Content = append(out.Content, clone(child))
	}
	return &out
}

// Limits for a document: aliases can turn a small text into a huge value.
const (
	maxValues = 200_000 // values
	maxDepth  = 100
)

// boundError means that a document exceeds a limit of this package.
type boundError struct {
	line    int // in the document, from 1
	problem string
}

// Error implements error.
func (e *boundError) Error() string { return e.problem }

// expander replaces aliases by copies, and counts the nodes.
type expander struct{ written int }

// expand returns a copy of a node in which every alias is a copy of its target, and
// merges are resolved. This is needed because fields move between documents, and
// anchors are local to a document.
func (x *expander) expand(n *yaml.Node, depth int) (*yaml.Node, error) {
	if x.written++; x.written > maxValues || depth > maxDepth {
		return nil, &boundError{n.Line, fmt.Sprintf("the document is larger than %d values or deeper than %d", maxValues, maxDepth)}
	}
	if n.Kind == yaml.AliasNode {
		return x.expand(n.Alias, depth+1)
	}
	out := *n
	out.Anchor, out.Content = "", nil
	for _, child := range n.Content {
		c, err := x.expand(child, depth+1)
		if err != nil {
			return nil, err
		}
		out.Content = append(out.Content, c)
	}
	if out.Kind == yaml.MappingNode {
		merge(&out)
		for i := 0; i < len(out.Content); i += 2 {
			if out.Content[i].Kind != yaml.ScalarNode {
				return nil, &boundError{n.Line, "a key is a list or a mapping, which Kubernetes manifests cannot have"}
			}
		}
	}
	return &out, nil
}

// merge replaces << by the merged mappings. Keys of the mapping itself have
// precedence (YAML merge key language-independent type).
func merge(m *yaml.Node) {
	own := map[string]bool{}
	for i := 0; i+1 < len(m.Content); i += 2 {
		own[m.Content[i].Value] = true
	}
	content := make([]*yaml.Node, 0, len(m.Content))
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Tag != "!!merge" {
			content = append(content, m.Content[i], m.Content[i+1])
			continue
		}
		sources := []*yaml.Node{m.Content[i+1]}
		if sources[0].Kind == yaml.SequenceNode {
			sources = sources[0].Content
		}
		for _, source := range sources {
			for j := 0; source.Kind == yaml.MappingNode && j+1 < len(source.Content); j += 2 {
				if key := source.Content[j]; !own[key.Value] {
					own[key.Value] = true
					content = append(content, key, source.Content[j+1])
				}
			}
		}
	}
	m.Content = content
}
