package migrate

import (
	"fmt"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v3"

	"github.com/lifeboat-dev/lifeboat/internal/doctor/finding"
)

// duplicateKeys reports duplicate keys in a mapping, and keeps the last one. kubectl
// and the API server have silently done so, while stricter parsers refuse the whole
// file (YAML 1.2.2, section 3.2.1.1).
func (c *converter) duplicateKeys(d *document) {
	for _, o := range d.objects() {
		c.duplicatesBelow(o, o.node, "")
	}
}

func (c *converter) duplicatesBelow(o *object, n *yaml.Node, path string) {
	if n.Kind == yaml.MappingNode {
		c.duplicatesOf(o, n, path)
	}
	each(n, path, func(child *yaml.Node, path string) { c.duplicatesBelow(o, child, path) })
}

// each calls visit for the values directly below a node, with their paths.
func each(n *yaml.Node, path string, visit func(child *yaml.Node, path string)) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			visit(n.Content[i+1], join(path, n.Content[i].Value))
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			visit(item, fmt.Sprintf("%s[%d]", path, i))
		}
	}
}

// join returns the path of a field, for example spec.tags["example.com/team"].
func join(path, name string) string {
	switch {
	case strings.ContainsAny(name, "./[] "):
		return path + "[" + strconv.Quote(name) + "]"
	case path == "":
		return name
	}
	return path + "." + name
}

func (c *converter) duplicatesOf(o *object, m *yaml.Node, path string) {
	last := map[string]int{} // index of the last occurrence of each key
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Kind == yaml.ScalarNode {
			last[m.Content[i].Value] = i
		}
	}
	content := make([]*yaml.Node, 0, len(m.Content))
	for i := 0; i+1 < len(m.Content); i += 2 {
		key, removed := m.Content[i], m.Content[i+1]
		if key.Kind != yaml.ScalarNode || last[key.Value] == i {
			content = append(content, key, removed)
			continue
		}
		keptKey, kept := m.Content[last[key.Value]], m.Content[last[key.Value]+1]
		severity, what := finding.Warning, fmt.Sprintf("It is a duplicate of line %d. The last one was kept, as kubectl does: %s. Removed: %s.",
			keptKey.Line, render(kept), render(removed))
		fix := "If you need both values, merge them."
		if same(kept, removed) {
			severity, what, fix = finding.Info, fmt.Sprintf("It is a duplicate of line %d with the same value. One was kept.", keptKey.Line), ""
		}
		c.addFinding(o, severity, "duplicate-key", join(path, key.Value), key, what, fix)
		o.doc.changed = true
	}
	m.Content = content
}
